"""Decoding with a state that is passed along is decoding that starts anew at every token."""

import keras
import numpy as np
import pytest
from keras import ops

from seqkeras.decoding import MinLength, RepetitionPenalty, StateEntry, TopP, beam, greedy
from seqkeras.models import GPT, RNNLanguageModel, RNNSeq2Seq, Transformer
from tests.arrays import BACKEND, close, numbers, randomize
from tests.conftest import others_long
from tests.seqkeras.decoding.toys import BOS, EOS

SOURCE_VOCAB_SIZE, VOCAB_SIZE, MAX_LENGTH = 17, 13, 7
LENGTHS = np.array([5, 3, 1])
SOURCES = np.random.default_rng(0).integers(1, SOURCE_VOCAB_SIZE, (3, 5))
SIZES = {"hidden_dim": 6, "num_layers": 2, "num_heads": 3, "feed_forward_dim": 11}
PROMPT = np.array([[4, 5, 6], [7, 0, 0], [8, 9, 0]]), np.array([3, 1, 2])


def recomputing(all_logits, **sources):
    """A step and its state that hold no more than the prefix: (B, K, T), and how long it is.

    `all_logits(rows, token_ids, sources)` gives the (B K, T, V) logits behind each of (B K, T)
    tokens; `rows` repeats an array of sources for every beam.
    """

    def step(token_ids, state):
        batch_size, num_beams = ops.shape(token_ids)
        here = ops.arange(MAX_LENGTH) == state["length"][..., None]  # (B, K, T)
        prefix = ops.where(here, token_ids[..., None], state["prefix"])
        logits = all_logits(
            lambda each: ops.repeat(each, num_beams, axis=0),
            ops.reshape(prefix, (batch_size * num_beams, MAX_LENGTH)),
            {name: state[name] for name in sources},
        )
        logits = ops.reshape(logits, (batch_size, num_beams, MAX_LENGTH, VOCAB_SIZE))
        logits = ops.sum(ops.where(here[..., None], logits, 0.0), axis=2)
        return (logits,), {**state, "prefix": prefix, "length": state["length"] + 1}

    state = {
        "prefix": np.zeros((len(LENGTHS), 1, MAX_LENGTH), "int32"),
        "length": np.zeros((len(LENGTHS), 1), "int32"),
        **sources,
    }
    entries = [
        *[StateEntry(name, "beam", ()) for name in ("prefix", "length")],
        *[StateEntry(name, "source", ()) for name in sources],
    ]
    return step, state, entries


def translation(preset="bahdanau", **options):
    sizes = {"embedding_dim": 5, "units": 7, "decoder_units": 11}
    options = {"never_generated": (), **sizes, **options}  # a call bans nothing, a step would
    return translating(getattr(RNNSeq2Seq, preset)(SOURCE_VOCAB_SIZE, VOCAB_SIZE, **options))


def translating(model, **room):
    inputs = {"token_ids": SOURCES, "lengths": LENGTHS}
    model(inputs | {"target_ids": SOURCES % VOCAB_SIZE})
    randomize(model)

    def all_logits(rows, token_ids, sources):
        return model(
            {name: rows(each) for name, each in sources.items()} | {"target_ids": token_ids}
        )

    cached = model.step, model.encode(**inputs, **room), model.state_entries
    return cached, recomputing(all_logits, **inputs)


def language(**options):
    return writing(RNNLanguageModel(VOCAB_SIZE, embedding_dim=5, units=11, **options))


def writing(model, **room):
    model({"token_ids": SOURCES % VOCAB_SIZE})
    randomize(model)

    def all_logits(rows, token_ids, sources):
        return model({"token_ids": token_ids})

    cached = model.step, model.initial_state(len(LENGTHS), **room), model.state_entries
    return cached, recomputing(all_logits)


def transformer():
    options = {"shared_embeddings": "none", "never_generated": ()}
    model = Transformer(SOURCE_VOCAB_SIZE, VOCAB_SIZE, **SIZES, **options)
    return translating(model, max_length=MAX_LENGTH)


def gpt(**options):
    model = GPT(VOCAB_SIZE, **SIZES, max_length=MAX_LENGTH, **options)
    return writing(model, max_length=MAX_LENGTH)


MODELS = {
    "bahdanau": lambda: translation(cell="gru"),
    "GPT": gpt,
    "luong": lambda: translation("luong", bridge_layers=1, encoder_layers=1, decoder_layers=1),
    "sutskever": lambda: translation(
        "sutskever", bridge_layers=1, encoder_layers=1, decoder_layers=2
    ),
    "language model": lambda: language(cell="lstm", num_layers=2),
    "tied language model": lambda: language(cell="gru", tie_weights=True),
    "Transformer": transformer,
    "GPT, post-norm": lambda: gpt(pre_norm=False),
}
SEARCHES = {
    "greedy": (greedy, {}),
    "beam": (beam, {"num_beams": 3, "n_best": 2, "length_penalty": 0.8}),
}


@pytest.mark.parametrize("make", others_long(MODELS.values(), 2), ids=MODELS)
def test_a_state_passed_along_gives_what_recomputing_gives(make):
    cached, recomputed = make()
    for search, options in SEARCHES.values():
        answers = [
            search(
                step,
                state,
                state_entries=entries,
                start_id=BOS,
                end_id=EOS,
                max_length=MAX_LENGTH,
                processors=[RepetitionPenalty(3.0)],
                prompt=PROMPT,
                **options,
            )
            for step, state, entries in (cached, recomputed)
        ]
        (token_ids, lengths, scores), (expected_ids, expected_lengths, expected) = numbers(answers)
        np.testing.assert_array_equal(token_ids, expected_ids)
        np.testing.assert_array_equal(lengths, expected_lengths)
        close(scores, expected, rtol=1e-4, atol=1e-5)
        assert len(np.unique(token_ids, axis=0)) == len(LENGTHS)


@pytest.mark.parametrize("policy", others_long(["mixed_float16", "mixed_bfloat16", "float64"]))
def test_a_model_of_any_precision_decodes(policy, restored):
    if policy == "float64":
        if BACKEND == "jax":
            pytest.skip("JAX computes in float64 only when told at its start")
        keras.config.set_floatx("float64")
    keras.config.set_dtype_policy(policy)
    (step, state, entries), _ = translation(cell="lstm")
    mask = np.arange(5) < LENGTHS[:, None]
    _, lengths, scores = numbers(
        beam(
            step,
            state,
            state_entries=entries,
            start_id=BOS,
            end_id=EOS,
            max_length=MAX_LENGTH,
            num_beams=3,
            coverage_penalty=0.2,
            source_mask=mask,
            prompt=PROMPT,
            processors=[RepetitionPenalty(1.2), MinLength(5, EOS), TopP(0.9)],
        )
    )
    assert lengths.min() > 0 and scores.dtype == "float32" and np.isfinite(scores).all()
