"""Models of keras_nlp, which take a padding_mask, become bundles as they are."""

import keras
import numpy as np
import pytest
from keras import layers, ops
from keras_nlp.models import BertBackbone

from seqkeras import serving
from seqkeras.export.bundle import export
from tests.arrays import close
from tests.export.test_own_models import LABELS, TOKENIZER, save
from tests.zoo import TEXTS


def backbone():
    return BertBackbone(len(TOKENIZER), 2, 2, 8, 12, max_sequence_length=24)


def classifier():
    """A head on an encoder, as Keras's guides make one."""
    encoder = backbone()
    out = layers.Dense(len(LABELS), name="label")(encoder.output["pooled_output"])
    return keras.Model(encoder.input, {"label": out})


def of_one_text(model, text, name):
    encoding = TOKENIZER.analyze(text)
    ids = np.array([encoding.token_ids])
    given = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": ids * 0 + 1}
    return ops.convert_to_numpy(model(given)[name])[0]


@pytest.mark.long
@pytest.mark.parametrize("pipeline, make", [("Embed", backbone), ("Classify", classifier)])
def test_an_encoder_that_takes_a_padding_mask_is_served(pipeline, make, tmp_path):
    model = make()
    name = "label" if pipeline == "Classify" else "pooled_output"
    labels = {"labels": LABELS} if pipeline == "Classify" else {}
    save(tmp_path / "run", model, pipeline, settings={"output": name} | labels)
    manifest = export(tmp_path / "run", tmp_path / "bundle")
    assert {"token_ids", "padding_mask", "segment_ids"} == {
        spec.name for spec in manifest.graphs["model"].inputs
    }
    assert set(manifest.saved_models) == {"saved_model/1", "saved_model_text/1"}
    assert manifest.parity["saved_model_text_difference"] <= 1e-4
    for text, answer in zip(TEXTS, serving.load(tmp_path / "bundle")(TEXTS), strict=True):
        expected = of_one_text(model, text, name)
        if pipeline == "Embed":
            close(answer.vector, expected / np.linalg.norm(expected), rtol=1e-4, atol=1e-5)
        else:
            scores = np.array([answer.scores[label] for label in LABELS])
            close(scores, ops.softmax(expected), rtol=1e-4, atol=1e-5)


def test_which_output_a_vector_is_must_be_said(tmp_path):
    save(tmp_path / "run", backbone(), "Embed", settings={}, check_export=False)
    message = "settings.output must be one of .*pooled_output.*; received None"
    with pytest.raises(ValueError, match=message):
        export(tmp_path / "run", tmp_path / "bundle")
