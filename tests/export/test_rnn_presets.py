"""Every preset of `RNNSeq2Seq` as a bundle, which answers as the Keras model does."""

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.decoding import beam
from seqkeras.export import save_run
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.models import RNNSeq2Seq
from seqkeras.tokenizers import BOS, EOS, CharacterTable, pad
from tests.arrays import numbers, randomize
from tests.conftest import others_long

TABLE = CharacterTable.learn(["abcdefg"])
TEXTS = ["abc", "gfedcba", "d", "bb", "aeg"]
LIMITS = {"source_length": 11, "target_length": 7}
LAYERS = {"encoder_layers": 2, "decoder_layers": 2}
CLASSICAL = {
    "classical_first_state": {},
    "classical_context": {"first_state": "learned", "cell": "lstm"},
    "classical_context_and_output": {},
}
PAPERS = {"sutskever": LAYERS, "cho": {}, "bahdanau": {}, "luong": LAYERS}


@pytest.mark.parametrize(
    "preset, options, saved_models",
    others_long(
        [
            ("classical_first_state", {}, False),
            *((*preset, True) for preset in [*CLASSICAL.items(), *PAPERS.items()]),
        ]
    ),
)
def test_a_bundle_of_a_preset_answers_as_keras_does(preset, options, saved_models, tmp_path):
    model = getattr(RNNSeq2Seq, preset)(len(TABLE), len(TABLE), 5, 7, **options)
    model.build()
    randomize(model)
    model.set_weights([3 * weight for weight in model.get_weights()])  # answers that differ
    examples = [{"text": text, "target": text[::-1]} for text in TEXTS]
    tokenizers = {"source": TABLE, "target": TABLE}
    save_run(tmp_path / "run", model, "Translate", examples, LIMITS, tokenizers)
    export(tmp_path / "run", tmp_path / "bundle", options=ExportOptions(saved_models=saved_models))
    translate = serving.load(tmp_path / "bundle", threads=1)

    state = model.encode(*pad([TABLE.encode(text) for text in TEXTS]))
    expected, _, scores = numbers(
        beam(model.step, state, num_beams=3, n_best=2, start_id=BOS, end_id=EOS, max_length=7)
    )
    answers = translate(TEXTS, num_beams=3, n_best=2, length_penalty=0.0)
    for best, ids, values in zip(answers, expected, scores, strict=True):
        found = [best, *best.alternatives]
        assert [answer.text for answer in found] == [TABLE.decode(row) for row in ids]
        np.testing.assert_allclose([answer.score for answer in found], values, atol=1e-4)
