"""Each notebook of examples/ runs in a clean copy, and prints what its text says."""

import nbformat
import pytest

from tests.notebooks import executed, pictures, printed
from tests.test_notebooks import NOISE, SAID, SEVERAL


@pytest.mark.long
@SEVERAL
def test_a_notebook_runs_in_a_clean_copy(path, tmp_path):
    notebook = executed(path, tmp_path)
    text = printed(notebook)
    assert not NOISE.search(text), text
    assert pictures(notebook) == pictures(nbformat.read(path, as_version=4))
    SAID[path.stem](text)
