"""The page's answers, by the server and in the browser, are those of Python."""

import pytest

from seqkeras import serving
from seqkeras.serving.playground import page_of
from seqkeras.serving.printing import as_content
from tests.serving.http.served import served
from tests.serving.javascript.bundles import BUNDLES
from tests.serving.playground.chromium import NEEDS_CHROMIUM, NEEDS_PACKAGES, opened, panel

pytestmark = [*NEEDS_CHROMIUM, NEEDS_PACKAGES]

SIDES = ("on the server", "in this browser")
FRAMES = "Frames, as JSON: a list of numbers for each"
ROWS = [[0.5, -1, 2, 0.25], [1, 0, -0.5, 3]]
CONTEXT = "the dog ran to new york . he sat ."
# name -> what is typed by label, the input that this is for Python, its options on the page
ASKED = {
    "letters": ({"Text": "bad"}, "down|bad", {}),
    "generator": ({"Prompt": "bad"}, "bad", {}),
    "classes": ({"Text": "the cat", "Second text, if any": "a dog"}, ("the cat", "a dog"), {}),
    "none of these": ({"Text": "the cat sat"}, "the cat sat", {}),
    "number": ({"Text": "the cat sat"}, "the cat sat", {}),
    "tags": ({"Text": "the dogs ran to paris"}, "the dogs ran to paris", {}),
    "answers": (
        {"Question": "who ran ?", "Context": CONTEXT},
        ("who ran ?", CONTEXT),
        {"n_best": 3},
    ),
    "choices": (
        {"Text": "the cat", "Choices": "sat\nran to paris"},
        ("the cat", ["sat", "ran to paris"]),
        {},
    ),
    "vectors": ({"Text": "the cat", "Compare with": "the cat\nhe ran"}, "the cat", {}),
    "masks": (
        {"Text with masks": "the [MASK] ran to [MASK]"},
        "the [MASK] ran to [MASK]",
        {"top_k": 5},
    ),
    "series": ({"Series": "1 2 3\n4, 5, 6"}, {"series": [[1, 2, 3], [4, 5, 6]]}, {}),
    "trees": ({"Tree, in brackets": "(2 (3 bad) (1 film))"}, "(2 (3 bad) (1 film))", {}),
    "frames": ({FRAMES: str(ROWS)}, {"frames": ROWS}, {}),
    "frames tagged": ({FRAMES: str(ROWS)}, {"frames": ROWS}, {}),
    "transformer": ({"Text": "hijkl"}, "hijkl", {}),
    "gpt": ({"Prompt": "the cat"}, "the cat", {}),
    "classify with heads": ({"Text": "a small model"}, "a small model", {}),
}


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


@pytest.fixture(scope="module")
def bundles(folders, tmp_path_factory):
    parent = tmp_path_factory.mktemp("bundles")
    for name in ASKED.keys() - folders.keys():
        BUNDLES[name].write(parent / name)
    return {name: folders.get(name, parent / name) for name in ASKED}


@pytest.fixture(scope="module")
def port(bundles):
    folders = {name.replace(" ", "-"): folder for name, folder in bundles.items()}
    with served(folders, page=page_of()) as port:
        yield port


@pytest.mark.parametrize("name", ASKED)
def test_both_sides_show_the_answer_of_python(browser, name, port, bundles):
    typed, value, options = ASKED[name]
    answer = as_content(serving.load(bundles[name], threads=1)(value, **options))
    with opened(browser, f"http://127.0.0.1:{port}/#/{name.replace(' ', '-')}") as page:
        if name == "letters":
            page.get_by_label("direction").select_option("down")
        if name in ("generator", "gpt"):
            page.get_by_text("Options").click()
            page.get_by_label("Sample").uncheck()
        for label, text in typed.items():
            page.get_by_label(label, exact=True).fill(text)
        page.get_by_label("both").check()
        answers = [panel(page, side) for side in SIDES]
        for shown in answers:
            for text in seen(name, answer):
                shown.filter(has_text=text).wait_for()
            shown.and_(page.locator(":not([aria-busy])")).wait_for()
        server, in_browser = (shown.locator(".body").inner_text() for shown in answers)
        assert server == in_browser and server.strip()
