"""A user's own model that can not be traced is refused; a sigmoid at its end comes off."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers, ops

from seqkeras import serving
from seqkeras.export.__main__ import main
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.export.tolerances import UNLIMITED
from tests.conftest import others_long
from tests.export.test_own_models import IDS, TOKENIZER, OwnClassifier, save
from tests.export.test_refusals import pooled, refusal
from tests.zoo import TEXTS


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


@pytest.mark.long
def test_a_sigmoid_of_numbers_and_one_of_something_within_are_right(tmp_path):
    gated = pooled()
    gated = keras.Model(gated.inputs, layers.Dense(2)(ops.sigmoid(gated.output)))
    for name, model, settings in [
        ("regression", pooled(activation="sigmoid", size=1), {}),
        ("gated", gated, {"labels": ["yes", "no"], "multi_label": True}),
    ]:
        save(tmp_path / name, model, settings=settings)
        assert main([str(tmp_path / name), str(tmp_path / f"{name}-bundle")]) == 0


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
class OfSixTokens(OwnClassifier):
    """Whose graph is not what the model is: only rows of six tokens go through."""

    def call(self, token_ids):
        x = self.embedding(token_ids)
        if token_ids.shape[1] is None:
            x += np.zeros((1, 6, 7), "float32")
        return self.out(self.pooling(x))


UNTRACED = [
    (OfATable, "the model reads .*table_handle, which is neither an input nor a weight, as a"),
    (OfAVariable, "saved_model/1: the model can not be traced with open sizes and with weig"),
    (OfSixTokens, "onnx/model.onnx: onnxruntime .*of_six_tokens.*Nothing was written.\n$"),
]


@pytest.mark.parametrize("kind, message", others_long(UNTRACED, short=2))
def test_a_model_that_can_not_be_traced_is_refused(kind, message, tmp_path, capsys):
    model = kind()
    model(IDS)
    save(tmp_path / "run", model, check_export=False)
    assert main([str(tmp_path / "run"), str(tmp_path / "bundle")]) == 1
    error = capsys.readouterr().err
    assert re.match(f"seqkeras export: {message}", error) and error.count("\n") == 1
    assert "partial" not in error and "token_budget" not in error
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
