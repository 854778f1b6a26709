"""What the tests type into the page of each bundle."""

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


def fill(page, name):
    """Type the input of a bundle."""
    if name == "letters":
        page.get_by_label("direction").select_option("down")
    if name in ("generator", "gpt"):
        page.get_by_text("Options").click()
        page.get_by_label("Sample").uncheck()
    for label, text in ASKED[name][0].items():
        page.get_by_label(label, exact=True).fill(text)
