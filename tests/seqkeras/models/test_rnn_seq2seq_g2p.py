"""A trained GRU encoder-decoder of others, g2p_en: from the letters of a word to its phonemes."""

import json

import numpy as np
import pytest

from seqkeras.decoding import greedy
from seqkeras.models import RNNSeq2Seq
from tests.arrays import numbers
from tests.conftest import public_data

BOS, EOS = 2, 3
MAX_LENGTH = 20


def keras_gates(kernel):
    """PyTorch's (3U, D), gates r, z, n, as Keras's (D, 3U), gates z, r, h; a bias as (3U,)."""
    r, z, n = np.split(kernel, 3)
    return np.concatenate([z, r, n]).T


def gru_weights(arrays, side):
    kernels = [keras_gates(arrays[f"{side}_w_{place}"]) for place in ("ih", "hh")]
    return [
        *kernels,
        np.stack([keras_gates(arrays[f"{side}_b_{place}"]) for place in ("ih", "hh")]),
    ]


@pytest.fixture(scope="module")
def model():
    """Embedding, GRU, last state = first state, GRU, output layer: Sutskever's wiring."""
    arrays = np.load(public_data("weights-g2p-gru/checkpoint20.npz"))
    model = RNNSeq2Seq.sutskever(
        source_vocab_size=29,
        target_vocab_size=74,
        embedding_dim=256,
        units=256,
        cell="gru",
        encoder_layers=1,
        decoder_layers=1,
        never_generated=(),
    )
    model.build()
    model.source_embedding.set_weights([arrays["enc_emb"]])
    model.encoder.set_weights(gru_weights(arrays, "enc"))
    model.decoder.embedding.set_weights([arrays["dec_emb"]])
    model.decoder.cell.set_weights(gru_weights(arrays, "dec"))
    model.decoder.output_layer.set_weights([arrays["fc_w"].T, arrays["fc_b"]])
    return model


@pytest.fixture(scope="module")
def outputs():
    return json.loads(public_data("weights-g2p-gru/reference_outputs.json").read_text())


def encode(words, graphemes):
    """Token ids, padded, and lengths; every word ends with `</s>`."""
    rows = [[*map(graphemes.index, word), graphemes.index("</s>")] for word in words]
    lengths = np.array([len(row) for row in rows])
    token_ids = np.zeros((len(rows), lengths.max()), "int64")
    for row, ids in enumerate(rows):
        token_ids[row, : len(ids)] = ids
    return token_ids, lengths


def test_states_and_first_logits_are_those_of_the_original(model, outputs):
    reference = np.load(public_data("weights-g2p-gru/reference_states.npz"))
    state = model.encode(*encode(reference["words"], outputs["graphemes"]))
    difference = numbers(state["hidden"])[:, 0] - reference["encoder_last_state"]
    assert np.abs(difference).max() < 1e-4
    (logits,), _ = model.step(np.full((len(difference), 1), BOS), state)
    np.testing.assert_allclose(
        numbers(logits)[:, 0], reference["decoder_step0_logits"], rtol=1e-4, atol=1e-4
    )


def test_every_word_of_the_reference_has_the_same_phonemes(model, outputs):
    words = list(outputs["words"])
    state = model.encode(*encode(words, outputs["graphemes"]))
    found = greedy(model.step, state, start_id=BOS, end_id=EOS, max_length=MAX_LENGTH)
    token_ids, lengths, _ = numbers(found)
    for word, ids, length in zip(words, token_ids, lengths, strict=True):
        phonemes = [outputs["phonemes"][each] for each in ids[:length] if each != EOS]
        assert phonemes == outputs["words"][word], word
    assert len(words) == 300
