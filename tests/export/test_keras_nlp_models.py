"""Models of keras_nlp, which take a padding_mask, become bundles as they are."""

import keras
import numpy as np
import pytest
from keras import layers, ops
from keras_nlp.models import BertBackbone

from seqkeras.export.bundle import ExportOptions
from tests.arrays import close, randomize
from tests.export.bundles import bundled
from tests.export.test_own_models import LABELS, TOKENIZER
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
    model = randomize(make())
    name = "label" if pipeline == "Classify" else "pooled_output"
    labels = {"labels": LABELS} if pipeline == "Classify" else {}
    given = {"settings": {"output": name} | labels, "options": ExportOptions()}
    answers = bundled(tmp_path, model, pipeline, TEXTS, 24, {"text": TOKENIZER}, **given)
    takes = {spec.name for spec in answers.manifest.graphs["model"].inputs}
    assert takes == {"token_ids", "padding_mask", "segment_ids"}
    assert set(answers.manifest.saved_models) == {"saved_model/1", "saved_model_text/1"}
    assert answers.manifest.parity["saved_model_text_difference"] <= 1e-4
    for text, answer in zip(TEXTS, answers(TEXTS), strict=True):
        expected = of_one_text(model, text, name)
        if pipeline == "Embed":
            close(answer.vector, expected / np.linalg.norm(expected), rtol=1e-4, atol=1e-5)
        else:
            scores = np.array([answer.scores[label] for label in LABELS])
            close(scores, ops.softmax(expected), rtol=1e-4, atol=1e-5)
