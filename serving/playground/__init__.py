"""The page that asks bundles: on a server (`serving.http`), and as static files.

Addresses, below any:

    index.html, page/…   the page
    page/modules/…       what answers in the browser: serving/javascript, onnxruntime-web and
                         @huggingface/tokenizers, each with the files of its npm package
    page.json            which bundles there are, and where their files lie
"""

# ruff: noqa: F401
# The names are for the other folders of serving.

from .page import Page, page_of
from .static_page import foreign_file, write_static
