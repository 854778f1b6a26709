"""A user's own model that can not be served is refused in one line that says why."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops

from seqkeras import serving
from seqkeras.export import save_run
from seqkeras.export.__main__ import main
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.export.tolerances import UNLIMITED
from tests.export.test_own_models import (
    IDS,
    LABELS,
    TOKENIZER,
    OwnClassifier,
    classifier,
    positions,
    save,
)
from tests.zoo import TEXTS


def refusal(tmp_path, capsys):
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle")]) == 1
    output = capsys.readouterr()
    assert "ONNX graph" not in output.out  # before anything is traced
    assert output.err.count("\n") == 1 and "partial" not in output.err
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    return output.err


def test_a_model_whose_answers_change_with_padding_is_refused(tmp_path, capsys):
    save(tmp_path / "run", classifier(mask_zero=False), check_export=False)
    assert "the model's output changes with the padding behind a text: leave it out" in (
        refusal(tmp_path, capsys)
    )


def pooled(vocab_size=None, activation=None, size=3):
    token_ids = keras.Input((None,), dtype="int64", name="token_ids")
    x = layers.Embedding(vocab_size or len(TOKENIZER), 7, mask_zero=True)(token_ids)
    x = layers.GlobalAveragePooling1D()(x)
    return keras.Model(token_ids, layers.Dense(size, activation)(x))


LAST = len(TOKENIZER) - 1
WRONG = [
    (
        lambda: pooled(LAST),
        f"the model must take every id of its tokenizer, from 0 to {LAST}; it says: Invalid"
        f"ArgumentError: indices[0,0] = {LAST} is not in [0, {LAST}).",
    ),
    (positions, "the model must take rows of 24 tokens; it says: InvalidArgument"),
    (
        lambda: pooled(activation="softmax"),
        "the model's output holds probabilities, where Classify needs logits: leave out the "
        "softmax",
    ),
    (
        lambda: pooled(activation="sigmoid"),
        "the model's output holds probabilities, where Classify needs logits: leave out the "
        "sigmoid, in training by from_logits=True of the loss; model.get_layer('dense",
    ),
]


@pytest.mark.parametrize(
    "make, message", WRONG, ids=["vocabulary", "positions", "softmax", "sigmoid"]
)
def test_a_model_that_can_not_be_served_is_refused(make, message, tmp_path, capsys):
    save(tmp_path / "run", make(), check_export=False)
    assert message in refusal(tmp_path, capsys)


@pytest.mark.long
def test_a_sigmoid_at_the_end_comes_off_by_the_line_that_the_refusal_says(tmp_path, capsys):
    labels, model = ["no", "yes"], pooled(activation="sigmoid", size=1)
    save(tmp_path / "run", model, settings={"labels": labels}, check_export=False)
    [line] = re.findall(r"; (model\.get_layer.*) takes it off", refusal(tmp_path, capsys))
    before = [float(model(np.array([TOKENIZER.analyze(text).token_ids]))[0, 0]) for text in TEXTS]
    exec(line, {"model": model, "keras": keras})
    model.save(tmp_path / "run/model.keras")
    options = ExportOptions(precisions=("int8-embedding",), tolerances=UNLIMITED)
    manifest = export(tmp_path / "run", tmp_path / "bundle", options=options)
    assert manifest.parity["saved_model_text_refused"] == 0
    answers = serving.load(tmp_path / "bundle")(TEXTS)
    assert [each.scores["yes"] for each in answers] == pytest.approx(before, abs=1e-6)
    in_8_bits = serving.load(tmp_path / "bundle", precision="int8-embedding")(TEXTS)
    same = np.mean([a.labels == b.labels for a, b in zip(answers, in_8_bits, strict=True)])
    figures = manifest.precisions["int8-embedding"].figures
    assert figures["agreement"] == same and figures["largest_log_prob_difference"] > 0


def test_probabilities_of_choices_are_refused_too(tmp_path, capsys):
    token_ids = keras.Input((None, None), dtype="int64", name="token_ids")  # (B, C, T)
    real = ops.cast(token_ids != 0, "float32")[..., None]
    x = ops.sum(layers.Embedding(len(TOKENIZER), 7)(token_ids) * real, axis=2)
    out = layers.Softmax()(layers.Dense(1)(x)[..., 0])
    inputs = [{"text": TEXTS[0], "choices": ["small", "words", "said"]}]
    save_run(
        tmp_path / "run",
        keras.Model(token_ids, out),
        "Choose",
        [{"input": each} for each in inputs],
        {"source_length": 24},
        {"text": TOKENIZER},
        check_export=False,
    )
    assert "the model's output holds probabilities, where Choose needs logits" in (
        refusal(tmp_path, capsys)
    )


@pytest.mark.long
def test_a_sigmoid_of_numbers_and_one_of_something_within_are_right(tmp_path):
    labels = {"labels": ["yes", "no"], "multi_label": True}
    gated = pooled()
    gated = keras.Model(gated.inputs, layers.Dense(2)(ops.sigmoid(gated.output)))
    for name, model, settings in [
        ("regression", pooled(activation="sigmoid", size=1), {}),
        ("gated", gated, labels),
    ]:
        save(tmp_path / name, model, settings=settings)
        assert main([str(tmp_path / name), str(tmp_path / f"{name}-bundle")]) == 0


def test_a_class_needs_another(tmp_path, capsys):
    save(tmp_path / "run", pooled(size=1), settings={"labels": ["yes"]}, check_export=False)
    message = "run.json: settings.labels must be two at least, or settings.multi_label true"
    assert message in refusal(tmp_path, capsys)


@pytest.mark.parametrize("number", [np.nan, -np.inf])
def test_weights_that_are_not_finite_are_refused(number, tmp_path, capsys):
    model = pooled()
    save(tmp_path / "run", model)
    model.layers[1].embeddings.assign(model.layers[1].embeddings + number)
    model.save(tmp_path / "run/model.keras")
    assert "the model's weights are not finite, embedding" in refusal(tmp_path, capsys)


@keras.saving.register_keras_serializable("tests")
class OfATable(OwnClassifier):
    """Whose ids go through a lookup table of TensorFlow."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        ids = tf.range(len(TOKENIZER), dtype="int64")
        self._table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(ids, ids), 0)

    def call(self, token_ids):
        return super().call({"token_ids": self._table.lookup(tf.cast(token_ids, "int64"))})


@keras.saving.register_keras_serializable("tests")
class OfAVariable(OwnClassifier):
    """With a variable that Keras does not know."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._scale = tf.Variable(2.0)

    def call(self, token_ids):
        return self._scale * super().call({"token_ids": token_ids})


@keras.saving.register_keras_serializable("tests")
class OfOneLength(OwnClassifier):
    """That takes a length for a number."""

    def call(self, token_ids):
        positions = np.ones((64, len(LABELS)), "float32")[: ops.shape(token_ids)[1]]
        return super().call({"token_ids": token_ids}) + positions[0]


UNTRACED = {
    OfATable: "the model reads .*table_handle, which is neither an input nor a weight, as a look",
    OfAVariable: "saved_model/1: the model can not be traced with open sizes and with weights of ",
    OfOneLength: ".* the model must take rows of any size in a graph; it says: TypeError: slice ",
}


@pytest.mark.parametrize("kind", UNTRACED, ids=lambda kind: kind.__name__)
def test_a_model_that_can_not_be_traced_is_refused(kind, tmp_path, capsys):
    model = kind()
    model(IDS)
    save(tmp_path / "run", model, check_export=False)
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle")]) == 1
    error = capsys.readouterr().err
    assert re.match(f"export: {UNTRACED[kind]}", error) and error.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@keras.saving.register_keras_serializable("tests")
class OfSixTokens(OwnClassifier):
    """Whose graph is not what the model is: only rows of six tokens go through."""

    def call(self, token_ids):
        x = self.embedding(token_ids)
        if token_ids.shape[1] is None:
            x += np.zeros((1, 6, 7), "float32")
        return self.out(self.pooling(x))


def test_a_graph_that_can_not_run_is_refused_in_words_of_its_own(tmp_path, capsys):
    model = OfSixTokens()
    model(IDS)
    save(tmp_path / "run", model)
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("export: onnx/model.onnx: onnxruntime ")
    assert "of_six_tokens" in error and error.endswith("Nothing was written.\n")
    assert "partial" not in error and "token_budget" not in error


def test_an_input_of_one_length_is_refused(tmp_path, capsys):
    token_ids = keras.Input((16,), dtype="int64", name="token_ids")
    x = layers.Flatten()(layers.Embedding(len(TOKENIZER), 3)(token_ids))
    save(tmp_path / "run", keras.Model(token_ids, layers.Dense(3)(x)), check_export=False)
    assert (
        "run.json: Classify feeds token_ids as int64 (batch, length); the model takes int64 "
        "(batch, 16)" in refusal(tmp_path, capsys)
    )
