"""The site of docs/: it builds without a warning, its links lead somewhere, it asks nothing of the
network, and nothing in it keeps anybody out."""

import functools
import importlib.util
import os
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from seqkeras.serving.playground.page import NODE_MODULES
from tests.conftest import CHECKOUT

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mkdocs") is None, reason="needs requirements-docs.txt"
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site, built anew."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=CHECKOUT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder


class Links(HTMLParser):
    """What a page links to and fetches, and the places in it that links may lead to."""

    def __init__(self, path):
        super().__init__()
        self.linked, self.fetched, self.places = [], [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.places |= {attrs.get("id"), attrs.get("name")}
        if "href" in attrs:
            (self.linked if tag == "a" else self.fetched).append(attrs["href"])
        if "src" in attrs:
            self.fetched.append(attrs["src"])


links_of = functools.cache(Links)


def test_a_link_of_the_site_leads_somewhere(site):
    broken = []
    for page in site.rglob("*.html"):
        if page.name == "404.html":  # is shown at any address, so its links begin with /
            continue
        for link in links_of(page).linked + links_of(page).fetched:
            path, place = urldefrag(link)
            if urlsplit(link).scheme:
                continue
            target = (page.parent / unquote(path)).resolve() if path else page
            if not target.is_file() or (
                target.suffix == ".html" and unquote(place) not in links_of(target).places
            ):
                broken.append(f"{page.relative_to(site)}: {link}")
    assert not broken


def test_a_page_fetches_nothing_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 30
    fetched = {link for page in pages for link in links_of(page).fetched}
    assert {link for link in fetched if urlsplit(link).scheme or link.startswith("//")} == set()


def test_files_of_other_folders_are_pages(site):
    for name in (
        "CONTRIBUTING",
        "LICENSE",
        "overview",
        "serving/index",
        "serving/javascript/index",
    ):
        assert (site / f"{name}.html").is_file()
