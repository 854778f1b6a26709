"""The page does not offer answers in the browser of what JavaScript does not read."""

import json

import pytest

from seqkeras.serving.playground import page_of, write_static
from tests.serving import toy_bundle
from tests.serving.http.served import ask, served
from tests.serving.npm_folder import npm_folder
from tests.serving.pipelines.toys import Toy, forecaster, sentence_pieces, write_bundle
from tests.serving.playground.chromium import NEEDS_CHROMIUM, NEEDS_PACKAGES, panel, served_page

ROWS = {"rows": {"columns": [{"name": name} for name in "abc"]}}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two bundles that JavaScript reads, and one that it refuses."""
    folder = tmp_path_factory.mktemp("bundles")
    pieces = sentence_pieces(ends=False)
    classes = Toy(3).graph("pooled"), {"labels": ["x", "y", "z"]}
    return {
        "letters": toy_bundle.write_bundle(folder / "letters"),
        "rows": write_bundle(folder / "rows", "Forecast", forecaster(), ROWS, tokenizer={}),
        "pieces": write_bundle(folder / "pieces", "Classify", *classes, pieces),
    }


UNREAD = {"letters": "", "rows": "", "pieces": "a SentencePiece model is not read in JavaScript"}


def test_the_server_and_the_static_page_tell_what_javascript_refuses(folders, tmp_path):
    page = page_of(npm_folder(tmp_path))
    with served(folders, page=page) as port:
        of_server = ask(port, "/page.json")[1]
    web = tmp_path / "web"
    web.mkdir()
    write_static(web, [*folders.items()], page)
    static = json.loads((web / "page.json").read_text(encoding="utf-8"))
    for content in (of_server, static):
        assert {entry["name"]: entry["unread"] for entry in content["bundles"]} == UNREAD


class TestInChromium:
    pytestmark = [*NEEDS_CHROMIUM, NEEDS_PACKAGES]

    def test_the_switch_says_why_before_anything_is_loaded(self, browser, folders):
        with served_page(browser, folders) as page:
            page.get_by_role("radio", name="in this browser (loads 3.7 MB)").wait_for()
            loaded = []
            page.on("request", lambda request: loaded.append(request.url))
            page.get_by_role("link", name="pieces").click()
            page.get_by_text(f"Not in this browser: {UNREAD['pieces']}").wait_for()
            for choice in ("in this browser", "both"):
                assert page.get_by_role("radio", name=choice).is_disabled()
            page.get_by_label("Text", exact=True).fill("the cat")
            panel(page).get_by_role("list").wait_for()
            assert not [url for url in loaded if url.endswith((".wasm", ".onnx"))]
