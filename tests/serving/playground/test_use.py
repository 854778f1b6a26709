"""The page in use: by keyboard and ear, on phones, in the dark, with a token, while one types."""

import re
import shutil

import pytest

from seqkeras import serving
from seqkeras.serving.playground import page_of
from tests.serving.http.served import served
from tests.serving.pipelines.toys import Toy, write_bundle
from tests.serving.playground.asked import ASKED
from tests.serving.playground.chromium import (
    NEEDS_CHROMIUM,
    NEEDS_PACKAGES,
    opened,
    panel,
    served_page,
)

pytestmark = NEEDS_CHROMIUM
DESK = {"width": 1280, "height": 800}
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True}
LEFT_OF_A_PHONE = {"width": 390, "height": 664}  # of 390 x 844, below the browser's bars


@pytest.fixture(scope="module")
def address(folders):
    with served(folders, page=page_of()) as port:
        yield f"http://127.0.0.1:{port}"


def status(page, side="on the server"):
    """What a screen reader says of an answer."""
    return panel(page, side).get_by_role("status")


def test_a_bundle_is_reached_and_asked_by_keyboard_alone(browser, address):
    with opened(browser, f"{address}/") as page:
        page.get_by_role("heading", name="letters").wait_for()
        page.keyboard.press("Tab")
        assert page.locator(":focus").inner_text() == "Skip to the model"
        while page.locator(":focus").inner_text() != "classes":
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="classes").wait_for()
        assert page.get_by_role("link", name="classes").get_attribute("aria-current") == "page"
        page.get_by_label("Text", exact=True).focus()
        page.keyboard.type("the cat")
        status(page).filter(has_text=re.compile(r"^[xyz], [\d.]+ %$")).wait_for()
        assert panel(page).get_by_role("list", name="Labels and their probabilities").is_visible()


@pytest.mark.parametrize("arrives", [True, False])
def test_a_manifest_that_comes_late_does_not_take_the_place_of_the_newer_choice(
    arrives, browser, address
):
    with opened(browser, f"{address}/#/letters", refusals=True) as page:
        page.get_by_role("heading", name="letters").wait_for()
        held = []
        page.route("**/classes/files/manifest.json", lambda route: held.append(route))
        with page.expect_request("**/classes/files/manifest.json"):
            page.get_by_role("link", name="classes").click()
        page.get_by_role("link", name="tags").click()
        page.get_by_role("heading", name="tags").wait_for()
        held[0].continue_() if arrives else held[0].fulfill(status=404, json={"error": "no bundle"})
        page.wait_for_timeout(500)
        assert page.get_by_role("heading", level=1).all_inner_texts() == ["tags"]
        assert page.get_by_role("link", name="tags").get_attribute("aria-current") == "page"


@pytest.fixture(scope="module")
def intents(tmp_path_factory):
    """A bundle of 77 labels."""
    labels = [f"label {number}" for number in range(77)]
    folder = tmp_path_factory.mktemp("intents") / "intents"
    return write_bundle(folder, "Classify", Toy(len(labels)).graph("pooled"), {"labels": labels})


def test_of_many_labels_ten_are_shown_and_the_others_unfold(browser, intents):
    classify = serving.load(intents, threads=1)
    scores = classify("the cat").scores
    [best] = classify("the cat sat").labels
    with served_page(browser, {"intents": intents}, "#/intents", viewport=DESK) as page:
        text = page.get_by_label("Text", exact=True)
        text.fill("the cat")
        more = panel(page).get_by_role("button", name="more (67)", expanded=False)
        more.wait_for()
        shown = panel(page).locator(".bars li:not([hidden]) .label")
        assert shown.all_inner_texts() == [*scores][:10]
        assert page.evaluate("document.documentElement.scrollHeight") < 2 * DESK["height"]
        more.focus()
        page.keyboard.press("Enter")
        panel(page).get_by_role("button", name="more (67)", expanded=True).wait_for()
        assert shown.all_inner_texts() == [*scores]
        text.fill("the cat sat")
        panel(page).locator(".label").first.filter(has_text=best).wait_for()
        assert shown.count() == 77
        panel(page).get_by_role("button", name="more (67)").click()
        assert shown.count() == 10


def test_a_refused_text_is_told_in_a_line_and_the_answer_before_it_stays(browser, address):
    with opened(browser, f"{address}/#/letters", refusals=True) as page:
        page.get_by_label("Text").fill("bad")
        answer = panel(page).locator(".text")
        answer.filter(has_text="cbe").wait_for()
        page.get_by_label("Text").fill("a" * 99)
        status(page).filter(has_text="Translate: text").wait_for()
        assert panel(page).locator(".problem").is_visible() and answer.inner_text() == "cbe"
        page.get_by_text("Options").click()
        page.get_by_label("Beams").fill("0")
        status(page).filter(has_text="Beams is out of its bounds").wait_for()


def test_the_newest_text_wins_and_one_request_runs_at_a_time(browser, address):
    with opened(browser, f"{address}/#/letters") as page:
        page.get_by_label("Text").fill("")
        panel(page).get_by_text("The answer appears as you type.").wait_for()
        running, most, bodies = [], [], []

        def begun(request):
            if request.method == "POST":
                running.append(request)
                most.append(len(running))
                bodies.append(request.post_data_json["input"])

        def ended(request):
            if request in running:
                running.remove(request)

        page.on("request", begun)
        page.on("requestfinished", ended)
        page.on("requestfailed", ended)
        page.get_by_label("Text").press_sequentially("abcdefgabc", delay=15)
        panel(page).locator(".time").filter(has_text="ms").wait_for()
        page.wait_for_timeout(300)
        assert bodies[-1] == "up|abcdefgabc" and len(bodies) < 10 and max(most) == 1


def test_attention_is_a_table_that_can_be_read(browser, address):
    with opened(browser, f"{address}/#/letters") as page:
        page.get_by_label("Text").fill("bad")
        table = panel(page).get_by_role("table")
        table.wait_for()
        columns = table.get_by_role("columnheader").all_inner_texts()
        rows = table.get_by_role("rowheader").all_inner_texts()
        assert columns == ["u", "p", "|", "b", "a", "d"] and rows == ["c", "b", "e"]
        cells = table.get_by_role("cell").all_inner_texts()
        shares = [float(text.removesuffix(" %")) for text in cells if text]
        assert len(shares) == 18 and sum(shares) == pytest.approx(300, abs=3)


def test_a_stream_can_be_stopped_and_asked_again(browser, address):
    with opened(browser, f"{address}/#/generator") as page:
        page.get_by_label("Prompt").fill("bad")
        panel(page).locator(".text").filter(has_text=re.compile("^bad[a-g]")).wait_for()
        panel(page).locator(".time").filter(has_text="first letters after").wait_for()
        with page.expect_request("**/stream"):
            page.get_by_role("button", name="Again").click()
        page.get_by_role("button", name="Stop").click()


def test_the_first_answer_is_seen_at_once_on_a_phone(browser, folders, intents):
    bundles = folders | {"intents": intents, "intents-2": intents}
    with served_page(browser, bundles, viewport=LEFT_OF_A_PHONE, has_touch=True) as page:
        root = page.url.partition("#")[0]
        for name in bundles:
            page.goto(f"{root}#/{name}")
            page.get_by_role("heading", name=name, exact=True).wait_for()
            for label, text in ASKED.get(name, ASKED["number"])[0].items():
                page.get_by_label(label, exact=True).fill(text)
            first = panel(page).locator(".body > *").first
            first.wait_for()
            panel(page).locator(".time").filter(has_text="s").wait_for()
            if (lines := first.locator("li")).count():
                first = lines.first
            assert page.evaluate("scrollY") == 0
            box = first.bounding_box()
            assert box["y"] + min(box["height"], 30) <= LEFT_OF_A_PHONE["height"], name


@pytest.mark.parametrize("name", ["letters", "series"])
def test_a_phone_needs_no_sideways_scrolling(browser, name, address):
    with opened(browser, f"{address}/#/{name}", **PHONE) as page:
        page.get_by_role("heading", name=name, exact=True).wait_for()
        if name == "letters":
            page.get_by_label("Text").fill("abcdefgabc")
            panel(page).get_by_role("table").wait_for()
        width = page.evaluate("() => document.documentElement.scrollWidth")
        assert width <= PHONE["viewport"]["width"]
        assert page.locator("textarea").first.bounding_box()["width"] > 250


def test_a_text_from_right_to_left_stands_so(browser, address):
    with opened(browser, f"{address}/#/tags") as page:
        field = page.get_by_label("Text", exact=True)
        for text, direction in (("the dogs", "ltr"), ("\u0634\u0643\u0631\u0627", "rtl")):
            field.fill(text)
            panel(page).locator(".marked").filter(has_text=text).wait_for()
            for place in (field, panel(page).locator(".marked")):
                assert place.evaluate("it => getComputedStyle(it).direction") == direction


@NEEDS_PACKAGES
def test_the_browser_reads_the_bundle_with_the_token(browser, folders):
    bundles = {"letters": folders["letters"]}
    with served_page(browser, bundles, token="se-cret", refusals=True) as page:
        field = page.get_by_label("This server wants a token")
        field.fill("wrong")
        field.press("Enter")
        page.get_by_label("This server wants a token").fill("se-cret")
        page.get_by_role("button", name="Go on").click()
        page.get_by_label("Text").fill("bad")
        asked = []
        page.context.on("response", lambda response: asked.append(response))
        page.get_by_role("radio", name="in this browser (loads 3.7 MB)").check()
        panel(page, "in this browser").locator(".text").filter(has_text="cbe").wait_for()
        assert panel(page).is_hidden()
        runtime = [response for response in asked if response.url.endswith(".wasm")]
        assert {response.header_value("content-encoding") for response in runtime} == {"gzip"}


@NEEDS_PACKAGES
def test_what_a_browser_can_not_read_is_told_in_a_line_and_the_server_answers(
    browser, folders, tmp_path
):
    folder = shutil.copytree(folders["letters"], tmp_path / "letters")
    with served_page(browser, {"letters": folder}) as page:
        file = folder / "tokenizer" / "source.json"
        file.write_bytes(file.read_bytes().replace(b"a", b"b", 1))
        page.get_by_label("Text").fill("bad")
        loaded = []
        page.context.on("requestfinished", lambda request: loaded.append(request.url))
        page.get_by_role("radio", name="both").check()
        told = panel(page, "in this browser").locator(".problem")
        told.filter(has_text="tokenizer/source.json does not have the manifest's sha256").wait_for()
        assert panel(page, "in this browser").locator(".body").inner_text() == ""
        assert not any(url.endswith(".wasm") for url in loaded)
        panel(page).locator(".text").filter(has_text="cbe").wait_for()


def test_a_server_without_the_packages_says_what_to_install(
    browser, folders, monkeypatch, tmp_path
):
    monkeypatch.setattr("seqkeras.serving.playground.page.NODE_MODULES", tmp_path)
    with served_page(browser, {"letters": folders["letters"]}) as page:
        page.get_by_text("npm install --prefix").wait_for()
        assert page.get_by_role("radio", name="in this browser").is_disabled()
        page.get_by_label("Text").fill("bad")
        panel(page).locator(".text").filter(has_text="cbe").wait_for()
