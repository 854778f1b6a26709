"""One graph that generates gives the tokens and scores that `seqkeras.decoding` gives."""

import functools
import itertools

import numpy as np
import pytest
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument

from seqkeras.decoding import beam, greedy
from seqkeras.export.families import plan_export
from seqkeras.export.generation import one_graph
from seqkeras.models import GPT, RNNLanguageModel, RNNSeq2Seq, Transformer
from seqkeras.serving.manifest import DecodingDefaults
from tests.arrays import built, close, numbers
from tests.conftest import others_long
from tests.export.running import graphs_of, run

B, S, V, LONGEST = 5, 7, 31, 9
MODELS = {
    "transformer": lambda: Transformer(
        V, V, 24, 2, 3, 40, LONGEST, shared_embeddings="none", pre_norm=True
    ),
    "rnn": lambda: RNNSeq2Seq.bahdanau(V, V, 13, 8, 11),
    "qrnn": lambda: RNNSeq2Seq.bahdanau(V, V, 13, 8, 11, cell="qrnn", decoder_cell="gru"),
    "gpt": lambda: GPT(V, 24, 2, 3, 40, LONGEST),
    "gpt, restricted": lambda: GPT(V, 24, 2, 3, 40, LONGEST, attention_window=2),
    "key-value": lambda: RNNLanguageModel(V, 13, 12, attention="key_value", attention_window=2),
    "rnn language model": lambda: RNNLanguageModel(V, 13, 11, num_layers=2),
}
ENCODER_DECODERS = ("transformer", "rnn", "qrnn")


@functools.cache
def exported(name):
    """A model, the signatures of its graphs, and the graphs."""
    model = built(MODELS[name](), None if name in ENCODER_DECODERS else {"token_ids": (None, None)})
    model.set_weights([3 * weight for weight in model.get_weights()])  # fewer repetitions
    signatures = plan_export(model, max_length=LONGEST).graphs
    return model, signatures, graphs_of(signatures)


def source():
    token_ids = np.random.default_rng(0).integers(0, V, (B, S))
    return {"token_ids": token_ids, "lengths": np.array([7, 3, 2, 5, 1])}


def keras_results(name, model, decoding):
    """The ids with their prompt, lengths and scores of Keras's own loop."""
    token_ids, lengths = source().values()
    options = {"end_id": decoding.end_id}
    if name in ENCODER_DECODERS:
        state = model.encode(token_ids, lengths)
        options |= {"start_id": decoding.start_id, "max_length": LONGEST}
    else:
        state = model.initial_state(B)
        options |= {"start_id": token_ids[:, 0], "max_length": LONGEST - 1}
        rest = np.pad(token_ids[:, 1:], [(0, 0), (0, 1)])
        options["prompt"] = rest, lengths - 1
    if decoding.num_beams == 1:
        ids, lengths, scores = numbers(greedy(model.step, state, **options))
    else:
        options |= {"num_beams": decoding.num_beams, "length_penalty": decoding.length_penalty}
        results = numbers(beam(model.step, state, **options))
        ids, lengths, scores = (each[:, 0] for each in results)
    if name in ENCODER_DECODERS:
        return ids, lengths, scores
    return np.concatenate([token_ids[:, :1], ids], axis=1), lengths + 1, scores


def often_in_the_middle(rows):
    """The token that rows first come to in most places."""
    firsts = {
        token: {row.index(token) if token in row else -1 for row in rows.tolist()}
        for token in np.unique(rows).tolist()
    }
    return max(firsts, key=lambda token: len(firsts[token]))


SHORT = [("gpt", 1), ("qrnn", 1)]
OTHERS = [case for case in itertools.product(MODELS, (1, 3)) if case not in SHORT]


@pytest.mark.parametrize("name, num_beams", others_long([*SHORT, *OTHERS], len(SHORT)))
def test_the_graph_generates_what_keras_generates(name, num_beams):
    model, signatures, graphs = exported(name)
    end_id = often_in_the_middle(keras_results(name, model, DecodingDefaults(end_id=-1))[0])
    decoding = DecodingDefaults(num_beams, length_penalty=0.6, end_id=end_id)
    make = one_graph.encoder_decoder if name in ENCODER_DECODERS else one_graph.language_model
    graph = make(graphs, signatures, decoding, LONGEST)
    assert graph.node_counts()["Loop"] == 1
    outputs = run(graph, source())
    ids, lengths, scores = keras_results(name, model, decoding)
    np.testing.assert_array_equal(outputs["generated_ids"], ids)
    np.testing.assert_array_equal(outputs["generated_lengths"], lengths)
    close(outputs["scores"], scores, rtol=1e-4, atol=1e-4)
    assert len(set(lengths.tolist())) > 1


def test_a_weight_lies_in_the_graph_once():
    _, signatures, graphs = exported("gpt")
    graph = one_graph.language_model(graphs, signatures, DecodingDefaults(), LONGEST)
    step = sum(value.nbytes for value in graphs["decoder_step"].weights.values())
    assert sum(value.nbytes for value in graph.weights.values()) == step


IDS = [[3, 4, 5], [6, 7, 8]]


@pytest.mark.parametrize(
    ("name", "token_ids", "lengths", "demand"),
    [
        ("rnn", [[3, -1], [3, 4]], [2, 2], "token_ids: each must be from 0 to 30"),
        ("rnn", [[3, 4], [3, 31]], [2, 2], "token_ids: each must be from 0 to 30"),
        ("gpt", [[3, 4], [3, 31]], [2, 2], "token_ids: each must be from 0 to 30"),
        ("rnn", IDS, [3, 4], "lengths: each must be from 1 to the length of token_ids"),
        ("gpt", IDS, [3, 0], "lengths: each must be from 1 to the length of token_ids"),
        ("gpt", IDS, [3, -2], "lengths: each must be from 1 to the length of token_ids"),
        ("gpt", IDS, [3], "lengths: must be as many as token_ids has rows"),
        ("rnn", np.zeros((2, 0)), [0, 0], "token_ids: must have a column at least"),
        ("gpt", np.zeros((2, 0)), [0, 0], "token_ids: must have a column at least"),
        ("rnn", np.zeros((0, 3)), [], "token_ids: must have a row at least"),
        ("gpt", np.zeros((0, 3)), [], "token_ids: must have a row at least"),
        ("rnn", [[3] * 12], [12], "token_ids: at most 11 in a row"),
        ("gpt", [[3] * LONGEST], [LONGEST], "lengths: at most 8, so that something can follow"),
    ],
)
def test_what_can_not_be_meant_is_an_error_that_says_what_must_hold(
    name, token_ids, lengths, demand
):
    given = {"token_ids": np.array(token_ids, "int64"), "lengths": np.array(lengths, "int64")}
    with pytest.raises(InvalidArgument, match=f"Name:'{demand}"):
        run(greedy_graph(name), given)


@functools.cache
def greedy_graph(name):
    _, signatures, graphs = exported(name)
    if name in ENCODER_DECODERS:
        limits = {"vocab_size": V, "source_length": 11}
        return one_graph.encoder_decoder(graphs, signatures, DecodingDefaults(), LONGEST, **limits)
    return one_graph.language_model(graphs, signatures, DecodingDefaults(), LONGEST)


def test_a_prompt_that_leaves_room_for_one_token_is_answered_with_it():
    prompt = np.array([[3] * (LONGEST - 1)])
    found = run(greedy_graph("gpt"), {"token_ids": prompt, "lengths": np.array([LONGEST - 1])})
    assert found["generated_ids"].shape == (1, LONGEST)
    np.testing.assert_array_equal(found["generated_ids"][:, :-1], prompt)
    assert found["generated_lengths"] == LONGEST


@pytest.mark.long
def test_a_portable_graph_generates_the_same():
    model, signatures, _ = exported("gpt")
    graphs, defaults = graphs_of(signatures, portable=True), DecodingDefaults(2)
    graph = one_graph.language_model(graphs, signatures, defaults, LONGEST, portable=True)
    assert [opset.domain for opset in graph.model.opset_import] == [""]
    ids, _, scores = keras_results("gpt", model, defaults)
    outputs = run(graph, source())
    np.testing.assert_array_equal(outputs["generated_ids"], ids)
    close(outputs["scores"], scores, rtol=1e-4, atol=1e-4)
