"""A toy bundle of every kind, by its name in addresses, and inputs of each as JSON."""

from tests.serving import toy_bundle, toy_language_model
from tests.serving.pipelines.toys import TOKENIZER, TOKENS, Toy, forecaster, write_bundle

TAGS = ["O", "B-PER", "I-PER"]
SPANS = {"start": "start", "end": "end", "window": 17, "stride": 5, "question_length": 6}
# Name -> pipeline, graph, settings.
SINGLE_PASS = {
    "classes": ("Classify", Toy(3).graph("pooled"), {"labels": ["x", "y", "z"]}),
    "number": ("Classify", Toy(1).graph("pooled"), {}),
    "tags": ("Tag", Toy(3).graph("tokens"), {"labels": TAGS}),
    "answers": ("Answer", Toy(2).graph("span"), SPANS),
    "choices": ("Choose", Toy(1).graph("choice"), {}),
    "vectors": ("Embed", Toy(5).graph("pooled"), {}),
    "masks": ("FillMask", Toy(len(TOKENS)).graph("masked"), {}),
    "series": ("Forecast", forecaster(), {}),
}
INPUTS = {
    "letters": ["up|bad", "down|egad"],
    "generator": ["bad", ""],
    "classes": ["the cat", ["the cat", "a dog"]],
    "number": ["the cat sat"],
    "tags": ["the dogs ran to paris", {"text": "he"}],
    "answers": [["who ran ?", "the dog ran to new york . he sat ."]],
    "choices": [["the cat", ["sat", "ran to paris"]]],
    "vectors": ["the cat", "he ran"],
    "masks": ["the [MASK] ran to [MASK]"],
    "series": [[[1, 2, 3], [4, 5, 6]]],
}

# Texts that are answered, whatever they hold.
STRANGE = {
    "nul": "a\0b",
    "right to left": "\u0627\u0644 \u202e\u05d7\u05ea\u202c",
    "emoji": "\U0001f468\u200d\U0001f469 e\u0301",
    "no spaces": "\u732b\u304c",
    "controls": "a\ufeff\ufffd\x7f",
}


def write(name, folder):
    """Write the bundle of a name; its folder."""
    if name == "letters":
        return toy_bundle.write_bundle(folder)
    if name == "generator":
        return toy_language_model.write_bundle(
            folder, toy_language_model.ToyLanguageModel(unknown=-1.0)
        )
    pipeline, graph, settings = SINGLE_PASS[name]
    return write_bundle(folder, pipeline, graph, settings, {} if name == "series" else TOKENIZER)
