"""A link holds what is asked; whatever a link holds, it does no harm."""

import contextlib
from urllib.parse import quote, urlencode

import pytest

from seqkeras.serving.playground import page_of
from tests.serving.http.served import served
from tests.serving.playground.chromium import NEEDS_CHROMIUM, opened, panel

pytestmark = NEEDS_CHROMIUM
CLIPBOARD = ["clipboard-read", "clipboard-write"]
TEXT = "the cat\n+ 100% 'café' & \U0001f408 #1?"
MARKUP = "</p><img src=x onerror=\"document.title='harm'\"><script>document.title='harm'</script>"


@pytest.fixture(scope="module")
def address(folders):
    bundles = {name: folders[name] for name in ("letters", "classes", "answers")}
    with served(bundles | {"more-classes": folders["classes"]}, page=page_of()) as port:
        yield f"http://127.0.0.1:{port}/"


@contextlib.contextmanager
def followed(browser, address, fragment, heading, **options):
    with opened(browser, f"{address}#/{fragment}", **options) as page:
        page.get_by_role("heading", name=heading, exact=True).wait_for()
        yield page


def copied_link(page):
    page.get_by_role("button", name="Copy link").click()
    page.get_by_text("Copied", exact=True).wait_for()
    return page.evaluate("navigator.clipboard.readText()")


def test_a_copied_link_shows_the_same_input_options_and_answers(browser, address):
    with followed(browser, address, "classes", "classes", permissions=CLIPBOARD) as page:
        page.get_by_label("Text", exact=True).fill(TEXT)
        page.get_by_label("Second text, if any").fill("a dog")
        page.get_by_label("Second model").select_option("more-classes")
        link = copied_link(page)
        assert page.url == link and link.startswith(f"{address}#/classes?")
        page.get_by_text("Copied", exact=True).wait_for(state="hidden")
    requests = []
    with opened(browser, f"{address}#/answers") as page:
        page.get_by_role("heading", name="answers").wait_for()
        page.on("request", lambda request: requests.append(request))
        page.evaluate("link => { location = link; }", link)
        page.get_by_role("heading", name="classes", exact=True).wait_for()
        assert page.get_by_label("Text", exact=True).input_value() == TEXT
        assert page.get_by_label("Second text, if any").input_value() == "a dog"
        for name in ("classes", "more-classes"):
            panel(page, f"of {name}, on the server").locator(".bars li").first.wait_for()
    asked = [request.post_data_json for request in requests if request.method == "POST"]
    assert {"input": {"text": TEXT, "pair": "a dog"}} in asked
    assert not any("?" in request.url for request in requests)  # it is told to no server


def test_a_link_holds_options_and_the_choice_of_a_prefix(browser, address):
    with followed(browser, address, "letters", "letters", permissions=CLIPBOARD) as page:
        page.get_by_label("direction").select_option("up")
        page.get_by_label("Text").fill("bad")
        page.get_by_text("Options").click()
        page.get_by_label("Beams").fill("5")
        page.get_by_label("Candidates").fill("2")
        page.get_by_label("Attention").uncheck()
        link = copied_link(page)
    with opened(browser, link) as page:
        with page.expect_request(lambda request: request.method == "POST") as asked:
            page.get_by_role("heading", name="letters").wait_for()
        assert asked.value.post_data_json == {
            "input": "up|bad",
            "options": {"num_beams": 5, "n_best": 2},
        }
        assert panel(page).get_by_role("table").count() == 0


def test_without_a_clipboard_the_link_is_copied_too(browser, address):
    with followed(browser, address, "classes", "classes", permissions=CLIPBOARD) as page:
        page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
        page.get_by_label("Text", exact=True).fill("the cat")
        page.get_by_role("button", name="Copy link").click()
        page.get_by_text("Copied", exact=True).wait_for()
        second = page.get_by_label("Second text, if any")
        second.focus()
        page.keyboard.press("Control+V")
        assert second.input_value() == f"{address}#/classes?text=the+cat"


def test_an_input_that_is_too_long_for_a_link_is_told(browser, address):
    with followed(browser, address, "letters", "letters", refusals=True) as page:
        before = page.url
        page.get_by_label("Text").fill("a" * 16_001)
        page.get_by_role("button", name="Copy link").click()
        page.get_by_text("Too long for a link: 16,").wait_for()
        assert page.url == before
    given = urlencode({"text": "a" * 16_001})
    with followed(browser, address, f"letters?{given}", "letters") as page:
        page.get_by_role("alert").filter(has_text="The link is too long").wait_for()
        assert page.get_by_label("Text").input_value() == "bad"  # the first example


@pytest.mark.parametrize(
    "fragment",
    [
        urlencode({"text": MARKUP, "pair": MARKUP, "compare": MARKUP}),
        urlencode({"text": MARKUP, "__proto__": "x", "constructor": "x", "innerHTML": MARKUP}),
        f"text={quote(MARKUP)}&text=%E0%A4%A&&=&%00=1&compare=__proto__",
    ],
)
def test_markup_in_a_link_stays_text(browser, address, fragment):
    with followed(browser, address, f"classes?{fragment}", "classes", refusals=True) as page:
        assert page.get_by_label("Text", exact=True).input_value() == MARKUP
        page.get_by_text("Code of this request").click()
        written = MARKUP.split("'")[0].replace('"', '\\"')
        page.get_by_role("tabpanel").filter(has_text=written).wait_for()
        page.wait_for_timeout(500)
        assert page.title() == "classes – seqkeras"
        assert page.locator("main script, main img").count() == 0
        assert page.get_by_label("Second model").input_value() == ""


def test_a_link_to_a_model_that_is_not_here_says_so_and_fills_in_nothing(browser, address):
    for name, shown in ((MARKUP, MARKUP), ("%E0%A4%A", "\ufffd")):
        path = quote(name, safe="%")
        with followed(browser, address, f"{path}?text=bad+egg", "letters") as page:
            alert = page.get_by_role("alert").inner_text()
            assert alert.startswith("There is no model “") and shown in alert
            assert page.get_by_label("Text").input_value() == "bad"
            assert page.title() == "letters – seqkeras"


def test_values_that_a_form_does_not_have_are_left_out_and_bounds_hold(browser, address):
    given = {"text": "bad", "prefix": "sideways", "num_beams": "1e9", "n_best": "x"}
    with followed(browser, address, f"letters?{urlencode(given)}", "letters") as page:
        assert page.get_by_label("direction").input_value() == "down"
        panel(page).get_by_role("status").filter(has_text="Beams is out of its bounds").wait_for()
