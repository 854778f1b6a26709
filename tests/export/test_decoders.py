"""Decoders with a cache leave as a step whose cache grows, and step as Keras does."""

import functools

import numpy as np
import pytest
from keras import ops

from seqkeras.export.families.decoders import encoder_decoder_graphs, language_model_graphs
from seqkeras.models import GPT, RNNLanguageModel, Transformer
from tests.arrays import built, close, numbers
from tests.export.running import graphs_of, run

B, S, V = 3, 7, 31
MODELS = {
    "gpt": lambda: GPT(V, 24, 2, 3, 40, 17),
    "gpt, restricted": lambda: GPT(V, 24, 2, 3, 40, 17, attention_window=3),
    "gpt, relative": lambda: GPT(V, 24, 2, 3, 40, 17, positions="relative"),
    "gpt, bias": lambda: GPT(V, 24, 2, 3, 40, 17, positions="bias"),
    "gpt, restricted, relative": lambda: GPT(
        V, 24, 2, 3, 40, 17, attention_window=3, positions="relative"
    ),
    "gpt, restricted, bias": lambda: GPT(V, 24, 2, 3, 40, 17, attention_window=3, positions="bias"),
    "transformer": lambda: Transformer(29, V, 24, 2, 3, 40, max_length=11),
    "transformer, learned": lambda: Transformer(
        V, V, 24, 1, 2, 40, 11, positions="learned", shared_embeddings="all", pre_norm=True
    ),
    "transformer, restricted": lambda: Transformer(
        29, V, 24, 2, 3, 40, max_length=11, attention_window=2
    ),
    "transformer, relative": lambda: Transformer(
        29, V, 24, 2, 3, 40, max_length=11, positions="relative"
    ),
    "transformer, bias": lambda: Transformer(
        29, V, 24, 2, 3, 40, max_length=11, positions="bias", attention_window=2
    ),
    "rnn language model": lambda: RNNLanguageModel(V, 13, 11, num_layers=2, cell="gru"),
    "qrnn language model": lambda: RNNLanguageModel(V, 13, 11, num_layers=2, cell="qrnn"),
    "key-value": lambda: RNNLanguageModel(
        V, 13, 12, num_layers=2, cell="gru", attention="key_value_predict", attention_window=3
    ),
}
TRANSFORMERS = [name for name in MODELS if name.startswith("transformer")]
LANGUAGE_MODELS = [name for name in MODELS if name not in TRANSFORMERS]
SHORT = ("transformer", "gpt", "rnn language model")


def options_long(names):
    return [pytest.param(name, marks=() if name in SHORT else pytest.mark.long) for name in names]


@functools.cache
def exported(name):
    """A model, and its graphs by role."""
    model = built(MODELS[name]())
    make = encoder_decoder_graphs if name in TRANSFORMERS else language_model_graphs
    return model, graphs_of(make(model))


def empty_caches(graph, rows):
    """The state of a step graph that begins empty."""
    inputs = graph.session().get_inputs()
    caches = {
        each.name: np.zeros((rows, each.shape[1], 0, each.shape[3]), "float32")
        for each in inputs
        if "past_length" in each.shape
    }
    if "position" in [each.name for each in inputs]:  # caches hold the last tokens only
        caches["position"] = np.zeros((rows, 1), "int32")
    return caches


def advance(graph, state, token_ids, beam_index, k=V):
    """One step: its outputs, and the state after."""
    inputs = {"token_ids": token_ids, "beam_index": beam_index, "k": np.array(k)}
    outputs = run(graph, inputs | state)
    after = {name: outputs.get(f"next_{name}", value) for name, value in state.items()}
    return outputs, after


@pytest.mark.parametrize("name", options_long(TRANSFORMERS))
def test_beams_are_reordered_widened_and_stepped_as_in_keras(name):
    model, graphs = exported(name)
    random = np.random.default_rng(0)
    source = random.integers(1, 29, (B, S))
    lengths = np.array([S, 2, 5])
    keras_state = model.encode(source, lengths, max_length=6)
    state = run(graphs["encoder"], {"token_ids": source, "lengths": lengths})
    window = model.block_options["attention_window"]
    assert "key_0" not in state
    assert ("position" in state) == (window is not None)
    state |= empty_caches(graphs["decoder_step"], B)
    beams, rows = 1, np.arange(B)[:, None]
    for width in (1, 2, 2, 3):
        beam_index = rows + random.integers(0, beams, (B, width))
        token_ids = random.integers(3, V, (B, width))
        outputs, state = advance(graphs["decoder_step"], state, token_ids, beam_index)
        for entry in model.state_entries:
            if entry.per == "beam":
                value = numbers(keras_state[entry.name])
                keras_state[entry.name] = value.reshape(-1, *value.shape[2:])[beam_index]
        (logits, weights), keras_state = model.step(token_ids, keras_state)
        close(outputs["logits"], logits, rtol=1e-4, atol=1e-4)
        close(outputs["attention_weights"], weights, rtol=1e-4, atol=1e-5)
        beams, rows = width, np.arange(B)[:, None] * width
    rows, _, length, _ = state["key_0"].shape
    assert (rows, length) == (B * 3, window or 4)


@pytest.mark.parametrize("name", options_long(LANGUAGE_MODELS))
def test_a_prompt_then_tokens_give_the_logits_that_keras_gives_at_once(name):
    model, graphs = exported(name)
    token_ids = np.random.default_rng(0).integers(0, V, (B, 9))
    expected = numbers(model({"token_ids": token_ids}))
    graph = graphs["decoder_step"]
    state = empty_caches(graph, B)
    if not state:
        state = numbers(model.initial_state(B))
    own = np.arange(B)[:, None]
    for begin, end in ((0, 4), (4, 5), (5, 6), (6, 9)):
        outputs, state = advance(graph, state, token_ids[:, None, begin:end], own, k=3)
        close(outputs["logits"][:, 0], expected[:, end - 1], rtol=1e-4, atol=1e-4)
    best = np.argsort(-expected[:, -1], axis=-1)[:, :3]
    np.testing.assert_array_equal(outputs["candidate_ids"][:, 0], best)
    log_probs = numbers(ops.log_softmax(expected[:, -1]))
    expected = np.take_along_axis(log_probs, best, axis=-1)
    close(outputs["candidate_log_probs"][:, 0], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", options_long(TRANSFORMERS))
def test_padding_of_a_source_is_a_bias_for_every_head(name):
    """Before 1.21 onnxruntime passes by the padding of keys (B, N, S, H), and repeats no bias."""
    model, graphs = exported(name)
    graph = graphs["decoder_step"]
    graph.infer()
    biases = set()
    for node in graph.nodes:
        if node.op_type == "MultiHeadAttention" and node.input[1].startswith("source_key"):
            inputs = dict(enumerate(node.input))
            assert not inputs.get(4)
            biases |= {inputs[5]} if inputs.get(5) else set()
    [bias] = biases  # all layers share one
    assert graph.shape(bias)[1] == model.block_options["num_heads"]


@pytest.mark.parametrize("name", options_long(MODELS))
def test_a_step_of_attention_is_a_handful_of_nodes(name):
    model, graphs = exported(name)
    counts = graphs["decoder_step"].node_counts()
    assert not {"Loop", "If"} & set(counts)
    if name == "qrnn language model":
        assert counts["Scan"] == 2
        return
    assert "Scan" not in counts
    if name in ("rnn language model", "key-value"):
        assert counts["GRU"] == 2
        return
    crossing = name in TRANSFORMERS
    layers = model.num_layers if crossing else 2
    itself = not name.endswith("relative")  # vectors of distances need the weights themselves
    assert counts.get("MultiHeadAttention", 0) == layers * (itself + crossing)
    # Per layer: query, key and value at once, the output, two of the feed-forward network; and
    # across query and output. Then the logits, and the weights that the last layer shows. With
    # vectors of distances: query, key and value apart, but in a window; scores and contexts, by
    # keys and distances.
    own = 4 if itself else 4 + 2 * ("restricted" not in name) + 4
    assert counts["MatMul"] == layers * (own + 2 * crossing) + 1 + crossing
