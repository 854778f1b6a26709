"""The page's answers, by the server and in the browser, are those of Python."""

import pytest

from seqkeras import serving
from seqkeras.serving.printing import as_content
from tests.serving.playground.asked import ASKED, fill
from tests.serving.playground.chromium import NEEDS_CHROMIUM, NEEDS_PACKAGES, opened, panel

pytestmark = [*NEEDS_CHROMIUM, NEEDS_PACKAGES]
SIDES = ("on the server", "in this browser")


def seen(name, answer):
    if answer.get("labels"):
        labels = [label or "none of these" for label in answer["labels"]]
        return [*labels, f"{100 * answer['score']:#.3g} %".replace(". ", " ")]
    if name == "number":
        return [f"{answer['score']:.4g}"]
    if "entities" in answer:
        return [f"{entity['text']}: {entity['label']}" for entity in answer["entities"]]
    if name == "vectors":
        return [f"{len(answer['vector'])} numbers", "1.000"]  # the cosine with itself
    if name == "series":
        return [f"{value:.4g}" for step in answer["values"] for value in step]
    return [answer["text"]]


@pytest.mark.parametrize("name", ASKED)
def test_both_sides_show_the_answer_of_python(browser, name, port, bundles):
    _, value, options = ASKED[name]
    answer = as_content(serving.load(bundles[name], threads=1)(value, **options))
    with opened(browser, f"http://127.0.0.1:{port}/#/{name.replace(' ', '-')}") as page:
        fill(page, name)
        page.get_by_label("both").check()
        answers = [panel(page, side) for side in SIDES]
        for shown in answers:
            for text in seen(name, answer):
                shown.filter(has_text=text).wait_for()
            shown.and_(page.locator(":not([aria-busy])")).wait_for()
        server, in_browser = (shown.locator(".body").inner_text() for shown in answers)
        assert server == in_browser and server.strip()
