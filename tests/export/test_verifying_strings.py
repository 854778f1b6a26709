"""A SavedModel on strings that answers otherwise than the pipeline is refused."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from seqkeras.export import bundle
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.export.exported import Exported
from seqkeras.export.pipelines import record_of
from seqkeras.export.pipelines.record import ExpectedAnswer, expected_text
from seqkeras.export.verifying import ParityError
from seqkeras.export.verifying.parity import Comparison
from seqkeras.export.verifying.strings import (
    answers_on_strings,
    compare_on_strings,
    split_otherwise,
)
from seqkeras.serving.manifest import read_manifest
from seqkeras.serving.results import Classification, Embedding, Span, Tagging, Word
from tests.export.test_text_graphs import pieces, wordpieces
from tests.zoo import classify

SCORES = {"b": 0.5, "a": 0.3, "c": 0.2}
CLASSIFIED = Classification(("b",), 0.5, SCORES)
TAGGED = Tagging((Word("the", "O", 0, 3, 0.9), Word("cat", "B-X", 4, 7, 0.7)), ())
OFFSETS = [None, (0, 3), (3, 6), (6, 7), None]  # a token may begin with a space
TAGS = {
    "tags": np.array([b"", b"O", b"B-X", b"I-X", b""]),
    "scores": np.array([0, 0.9, 0.7, 0.6, 0]),
    "starts": np.array([-1, 0, 3, 6, -1]),
    "ends": np.array([-1, 3, 6, 7, -1]),
}
OTHER = Span("cat", 4, 7, 0.2)
FOUND = Span("the", 0, 3, 0.6, None, (OTHER,))
SPAN = {"answer": b"the", "start": 0, "end": 3, "score": 2.0, "null_score": -1.0}
NONE = Span("", None, None, 0.9, -3.0, (OTHER,))
NO_SPAN = {"answer": b"", "start": -1, "end": -1, "score": -4.0, "null_score": -1.0}
CLASSES = {"label": b"b", "scores": np.array([0.3, 0.5, 0.2])}
VECTOR = np.array([0.6, 0.8])
CASES = [
    ("Classify", CLASSES, CLASSIFIED, {"label": b"a"}),
    ("Classify", CLASSES, CLASSIFIED, {"scores": np.array([0.3, 0.501, 0.199])}),
    ("Classify", {"score": 1.5}, Classification((), 1.5, {}), {"score": 1.501}),
    ("Embed", {"embedding": VECTOR}, Embedding(VECTOR), {"embedding": VECTOR + [0, 0.001]}),
    ("Tag", TAGS, TAGGED, {"tags": np.array([b"", b"O", b"I-X", b"I-X", b""])}),
    ("Tag", TAGS, TAGGED, {"scores": np.array([0, 0.9, 0.71, 0.6, 0])}),
    ("Tag", TAGS, TAGGED, {"ends": np.array([-1, 6, 7, 9, -1])}),
    ("Answer", SPAN, FOUND, {"answer": b"th"}),
    ("Answer", SPAN, FOUND, {"start": 4}),
    ("Answer", NO_SPAN, NONE, {"answer": b"cat", "start": 4}),
    ("Answer", NO_SPAN, NONE, {"null_score": -1.01}),
]


class Asked:
    """A pipeline that has answered: of five tokens the second and third begin words."""

    manifest = SimpleNamespace(settings={"labels": ["a", "b", "c"]})

    @staticmethod
    def encode(text):
        windows = SimpleNamespace(rows=[SimpleNamespace(offsets=OFFSETS)])
        return SimpleNamespace(windows=windows, tokens=[([0, 1], [1, 2])])


def compare(pipeline, outputs, answer):
    comparison = Comparison(1)
    compare_on_strings(
        comparison,
        [outputs],
        ["a text"],
        lambda row, outputs: record_of(pipeline).expected(outputs, answer, Asked, "a text"),
    )
    return comparison.finish()


@pytest.mark.parametrize("pipeline, outputs, answer, change", CASES)
def test_an_answer_that_differs_is_refused(pipeline, outputs, answer, change):
    figures = compare(pipeline, outputs, answer)
    assert figures["saved_model_text_refused"] == figures["saved_model_text_ties"] == 0
    assert figures.get("saved_model_text_difference", 0) < 1e-6
    message = "saved_model_text (answers '|numbers differ by 0.0).* Nothing was written. --no-str"
    with pytest.raises(ParityError, match=message):
        compare(pipeline, outputs | change, answer)


@pytest.mark.parametrize(
    ("pipeline", "outputs", "answer"),
    [
        (
            "Classify",
            {"label": b"a", "scores": np.array([0.4, 0.4, 0.2])},
            Classification(("b",), 0.4, {"b": 0.4, "a": 0.4, "c": 0.2}),
        ),
        (
            "Tag",
            TAGS | {"scores": np.array([0, 0.5, 0.7, 0.6, 0])},
            Tagging((Word("the", "I-X", 0, 3, 0.5), TAGGED.words[1]), ()),
        ),
        ("Answer", SPAN, Span("cat", 4, 7, 0.3, None, (Span("the", 0, 3, 0.3),))),
        (
            "Answer",
            SPAN | {"score": -1.0},
            Span("", None, None, 0.5, 0.0, (Span("the", 0, 3, 0.1),)),
        ),
    ],
    ids=["classes", "tags", "spans", "none"],
)
def test_what_is_as_good_is_counted(pipeline, outputs, answer):
    assert compare(pipeline, outputs, answer)["saved_model_text_ties"] == 1


def test_a_text_that_is_generated_is_compared_unless_another_is_as_good():
    def figures(is_tie, expected="e"):
        comparison = Comparison(1)
        compare_on_strings(
            comparison,
            [{"text": "é".encode(), "score": np.float32(-3.5)}],
            ["a"],
            lambda row, outputs: expected_text(outputs, expected, -3, lambda text: is_tie),
        )
        return comparison.finish()

    assert figures(is_tie=True)["saved_model_text_ties"] == 1
    with pytest.raises(ParityError, match="saved_model_text answers 'é' to 'a', Keras 'e'"):
        figures(is_tie=False)
    with pytest.raises(ParityError, match="saved_model_text numbers differ by 0.17 from Keras"):
        figures(is_tie=False, expected="é")


@dataclasses.dataclass
class OfSavedModels:
    """What is read of a manifest."""

    saved_models: tuple
    tokenizers: dict = dataclasses.field(default_factory=dict)


def test_what_is_refused_is_left_out_and_counted(tmp_path):
    text = tf.TensorSpec([None], tf.string)

    def short(text):
        error = tf.where(tf.strings.length(text) < 5, "", "too long")
        return {"same": text, "error": error}

    def both(text, pair):
        return {"both": text + pair, "error": tf.zeros_like(text)}

    def cut(text):
        return {"same": tf.strings.substr(text, 0, 1), "error": tf.zeros_like(text)}

    module = tf.Module()
    functions = {
        "serving_default": tf.function(short, input_signature=[text]),
        "pair": tf.function(both, input_signature=[text, text]),
        "truncate": tf.function(cut, input_signature=[text]),  # answers what is cut: not compared
    }
    tf.saved_model.save(module, str(tmp_path / "saved_model_text/1"), functions)
    manifest = OfSavedModels(("saved_model_text/1",))
    inputs = ["a", ("b", "c"), "too long", {"text": "d", "pair": "e"}, ("of", "many", "words")]
    inputs += [str(number) for number in range(70)] + ["too long again"]
    answers = answers_on_strings(Exported(tmp_path, manifest), inputs, ("text", "pair"))
    assert answers[:5] == [{"same": b"a"}, {"both": b"bc"}, None, {"both": b"de"}, None]
    assert answers[5:] == [*({"same": str(number).encode()} for number in range(70)), None]
    comparison = Comparison(len(inputs))
    compare_on_strings(comparison, answers, inputs, lambda row, outputs: ExpectedAnswer())
    assert comparison.finish()["saved_model_text_refused"] == 3
    assert answers_on_strings(Exported(tmp_path, OfSavedModels(())), inputs) is None


def test_a_text_that_is_split_otherwise_in_a_tie_is_left_out_and_counted(tmp_path):
    tokenizer = pieces("unigram", user_defined_symbols="cat,sat on")
    tokenizer.to_file(tmp_path / "tokenizer.json")
    repeated = "a" * 130  # of pieces a, aa and aaa in any order
    assert split_otherwise(tokenizer, {5: repeated, 7: "the cat"}) == [5]
    assert split_otherwise(wordpieces(), {5: repeated}) == []
    path, signature = "saved_model_text/1", [tf.TensorSpec([None], tf.string, "text")]

    @tf.function(input_signature=signature)
    def function(text):
        return {"same": text, "error": tf.zeros_like(text)}

    tf.saved_model.save(tf.Module(), str(tmp_path / path), {"serving_default": function})
    manifest = OfSavedModels((path,), {"text": "tokenizer.json"})
    answers = answers_on_strings(Exported(tmp_path, manifest), ["the cat", repeated])
    assert answers == [{"same": b"the cat"}, {}]
    comparison = Comparison(2)
    compare_on_strings(comparison, answers, ["", ""], lambda row, outputs: ExpectedAnswer())
    figures = comparison.finish()
    assert (figures["saved_model_text_ties"], figures["saved_model_text_refused"]) == (1, 0)


@pytest.mark.long
def test_an_export_with_other_answers_on_strings_writes_nothing(tmp_path, monkeypatch):
    classify(tmp_path / "run")
    manifest = export(tmp_path / "run", tmp_path / "bundle", options=ExportOptions())
    assert manifest.parity["saved_model_text_difference"] < 1e-4
    assert read_manifest(tmp_path / "bundle").parity == manifest.parity
    whole = bundle.text_signatures

    def with_other_labels(pipeline, texts):
        labels = texts.settings["labels"][1:] + texts.settings["labels"][:1]
        settings = {**texts.settings, "labels": labels}
        return whole(pipeline, dataclasses.replace(texts, settings=settings))

    monkeypatch.setattr(bundle, "text_signatures", with_other_labels)
    with pytest.raises(ParityError, match="saved_model_text answers '(low|middle|high)' to '"):
        export(tmp_path / "run", tmp_path / "other", options=ExportOptions())
    assert not (tmp_path / "other").exists()
