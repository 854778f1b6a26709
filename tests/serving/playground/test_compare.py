"""Two bundles of one pipeline answer the same input, side by side."""

import pytest

from seqkeras import serving
from seqkeras.serving.playground import page_of, write_static
from tests.serving.pipelines.toys import Toy, write_bundle
from tests.serving.playground.chromium import (
    NEEDS_CHROMIUM,
    NEEDS_PACKAGES,
    opened,
    panel,
    served_page,
)
from tests.serving.web_server import web_server

pytestmark = NEEDS_CHROMIUM
SIZES = [(1280, 800), (390, 844)]


@pytest.fixture(scope="module")
def rivals(folders, tmp_path_factory):
    """Two classifiers, and a bundle of another pipeline."""
    folder = tmp_path_factory.mktemp("rivals") / "other"
    other = write_bundle(
        folder, "Classify", Toy(3, seed=7).graph("pooled"), {"labels": list("xyz")}
    )
    return {"classes": folders["classes"], "other": other, "tags": folders["tags"]}


def require_answers(page, rivals, text, side):
    for name in ("classes", "other"):
        answer = serving.load(rivals[name], threads=1)(text)
        said = f"{answer.labels[0]}, {100 * answer.score:#.3g} %"
        region = panel(page, f"of {name}, {side}")
        region.get_by_role("status").filter(has_text=said).wait_for()
        region.locator(".time").filter(has_text="s").wait_for()


@pytest.mark.parametrize("width, height", SIZES)
def test_both_answer_as_python_does_with_their_times(browser, width, height, rivals):
    viewport = {"width": width, "height": height}
    with served_page(browser, rivals, "#/classes", viewport=viewport) as page:
        second = page.get_by_label("Second model")
        second.wait_for()
        assert second.get_by_role("option").all_inner_texts() == ["none", "other"]
        second.select_option("other")
        for text in ("the cat", "the dog ran"):
            page.get_by_label("Text", exact=True).fill(text)
            require_answers(page, rivals, text, "on the server")
        regions = [panel(page, f"of {name}, on the server") for name in ("classes", "other")]
        first, last = (region.bounding_box() for region in regions)
        if width > 1000:
            assert first["y"] == last["y"] and first["x"] + first["width"] < last["x"]
        else:
            assert first["x"] == last["x"] and first["y"] + first["height"] < last["y"]
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        second.select_option("none")
        panel(page).wait_for()
        assert regions[1].count() == 0


def test_the_same_pipeline_alone_is_offered(browser, rivals):
    with served_page(browser, rivals, "#/tags") as page:
        page.get_by_role("heading", name="tags").wait_for()
        assert page.get_by_label("Second model").count() == 0


def test_each_bundle_is_asked_as_its_own_form_asks(browser, folders, bundles):
    rivals = {"letters": folders["letters"], "transformer": bundles["transformer"]}
    asked = {}
    with served_page(browser, rivals, "#/letters", refusals=True) as page:

        def keep(request):
            if request.method == "POST":
                asked[request.url.rpartition("/")[2]] = request.post_data_json

        page.on("request", keep)
        page.get_by_label("Second model").select_option("transformer")
        page.get_by_label("Text").fill("hi")
        region = panel(page, "of transformer, on the server")
        region.locator(".text").wait_for()
        page.wait_for_timeout(500)
    assert asked["letters"]["input"] == "up|hi" and asked["letters"]["options"]["attention"]
    assert asked["transformer"]["input"] == "hi"


@NEEDS_PACKAGES
def test_a_static_page_compares_in_the_browser_and_says_what_it_loads(browser, rivals, tmp_path):
    (tmp_path / "web").mkdir()
    write_static(tmp_path / "web", rivals.items(), page_of())
    with (
        web_server(tmp_path / "web") as server,
        opened(browser, f"http://127.0.0.1:{server.server_port}/#/classes") as page,
    ):
        page.get_by_label("Second model").select_option("other")
        page.get_by_label("Text", exact=True).fill("the cat")
        page.get_by_role("button", name="Answer in this browser (loads 14 MB)").click()
        require_answers(page, rivals, "the cat", "in this browser")
