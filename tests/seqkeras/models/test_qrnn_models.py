"""Quasi-recurrent layers in models: the numbers of loops, and what does not go together."""

import numpy as np
import pytest

from seqkeras.models import Forecaster, RNNLanguageModel
from seqkeras.recurrent import QRNN
from tests.arrays import close, numbers, randomize, right_padded
from tests.catalogue import seq2seq
from tests.references.qrnn import qrnn

V, E, U, S = 17, 7, 11, 5
LENGTHS = np.array([5, 3])


def stack_by_loops(x, layers, window, pooling, units):
    """The outputs of the highest layer, and each layer's last memory and inputs."""
    mask, finals = right_padded(LENGTHS, S), []
    for layer in layers:
        start = np.zeros((2, units)), np.zeros((2, window - 1, x.shape[-1]))
        x, *final = qrnn(x, mask, start, layer.get_weights(), pooling)
        finals += final
    return x, finals


@pytest.mark.parametrize(("window", "pooling"), [(1, "f"), (2, "fo"), (3, "ifo")])
def test_a_language_model_of_qrnns_is_its_layers_in_loops(window, pooling):
    model = RNNLanguageModel(V, E, U, num_layers=2, cell=QRNN(3, window, pooling))
    token_ids = np.random.default_rng(0).integers(1, V, (2, S))
    model({"token_ids": token_ids})
    randomize(model)
    logits, state = model.read(token_ids, LENGTHS)
    embedded = numbers(model.embedding.embeddings)[token_ids]
    layers = model.stack.recurrent_layers
    hidden, finals = stack_by_loops(embedded, layers, window, pooling, U)
    kernel, bias = model.output_layer.get_weights()
    close(logits, hidden @ kernel + bias)
    kept = [final for final in finals if final.size]
    assert [each.shape[2:] for each in state.values()] == [final.shape[1:] for final in kept]
    close(list(state.values()), [final[:, None] for final in kept])


def test_a_decoder_starts_from_the_memory_of_the_encoder_at_its_height():
    model = seq2seq.model_of(
        decoder_units=U,
        cell=QRNN(3, 2, "fo"),
        decoder_cell="lstm",
        encoder_layers=2,
        decoder_layers=2,
        bidirectional=False,
        bridge_layers=0,
    )
    inputs = seq2seq.translation_inputs()
    model(inputs)
    randomize(model)
    state = model.encode(inputs["token_ids"], inputs["lengths"])
    embedded = numbers(model.source_embedding.embeddings)[inputs["token_ids"]]
    values, finals = stack_by_loops(embedded, model.encoder.recurrent_layers, 2, "fo", U)
    close(state["hidden_0"], finals[0][:, None])
    close(state["hidden_1"], finals[2][:, None])
    assert not numbers(state["cell_0"]).any()
    close(state["values"], values)


def test_a_qrnn_decodes_nothing():
    message = "^BahdanauDecoder: cell must not be a QRNN, which reads sources only; received "
    for cells in ({"cell": "qrnn"}, {"cell": "gru", "decoder_cell": QRNN(3)}):
        with pytest.raises(ValueError, match=message):
            seq2seq.model_of(**cells)
    message = r"""a QRNN .* goes with decoder="direct"; received "recurrent"\.$"""
    with pytest.raises(ValueError, match=message):
        Forecaster(3, U, cell="qrnn", decoder="recurrent")
