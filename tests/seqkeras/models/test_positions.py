"""Models whose positions are sinusoids, learned vectors, vectors of distances, or biases."""

import numpy as np
import pytest
from keras import ops

from seqkeras.models import GPT, Bert, Transformer
from seqkeras.models.limits import most_tokens
from tests.arrays import numbers, randomize
from tests.autodiff import outputs_and_gradients
from tests.refusals import refusals

SIZES = {"hidden_dim": 6, "num_layers": 2, "num_heads": 3, "feed_forward_dim": 11}
KINDS = ("paper", "learned", "relative", "bias")
every_kind = pytest.mark.parametrize("kind", KINDS)
MODELS = {
    "GPT": lambda **options: GPT(17, **SIZES | {"max_length": 5} | options),
    "Bert": lambda **options: Bert(17, **SIZES | {"max_length": 5, "pooler": None} | options),
    "Transformer": lambda **options: Transformer(17, 19, **SIZES | {"max_length": 5} | options),
}
every_model = pytest.mark.parametrize("name", MODELS)


def inputs_of(name, length):
    token_ids = np.random.default_rng(length).integers(1, 17, (2, length))
    if name != "Transformer":
        return {"token_ids": token_ids}
    return {"token_ids": token_ids, "lengths": np.array([length, 2]), "target_ids": token_ids}


def built(name, kind, **sizes):
    model = MODELS[name](positions=kind, **sizes)
    model.build(None)
    return randomize(model)


def outputs(model, inputs):
    result = model(inputs)
    return numbers(result["hidden"] if isinstance(result, dict) else result)


@every_kind
@every_model
def test_a_model_knows_the_order_of_tokens(name, kind):
    """Where nothing tells positions, the last token of a block sees a bag of the tokens before."""
    model, inputs = built(name, kind, num_layers=1), inputs_of(name, 5)
    moved = inputs["token_ids"][:, [1, 0, 2, 3, 4]]
    changed = {key: moved if key.endswith("_ids") else value for key, value in inputs.items()}
    assert np.all(inputs["token_ids"][:, 0] != inputs["token_ids"][:, 1])
    far = np.abs(outputs(model, inputs)[:, -1] - outputs(model, changed)[:, -1])
    assert far.max() > 1e-3


@every_kind
@every_model
def test_only_learned_positions_limit_the_length(name, kind):
    model, inputs = built(name, kind), inputs_of(name, 7)
    assert most_tokens(model) == (5 if kind == "learned" else None)
    if kind == "learned":
        with pytest.raises(ValueError, match="must have at most max_length, 5, positions; rec"):
            model(inputs)
        return
    assert outputs(model, inputs).shape[1] == 7
    if name == "GPT":
        assert model.initial_state(2, 7)["key_0"].shape == (2, 1, 3, 7, 2)


@pytest.mark.parametrize("kind", ["relative", "bias"])
@every_model
def test_every_table_of_distances_learns(name, kind):
    model, inputs = built(name, kind), inputs_of(name, 5)

    def squares(values):
        result = model(inputs)
        result = result["hidden"] if isinstance(result, dict) else result
        return ops.sum(result * result), [result]

    _, gradients = outputs_and_gradients(model, squares, [])
    tables = {
        weight.path: gradient
        for weight, gradient in zip(model.trainable_weights, gradients, strict=True)
        if "relative_" in weight.name or "distance_bias" in weight.path
    }
    stacks = 2 if name == "Transformer" else 1
    assert len(tables) == stacks * (1 if kind == "bias" else 2 * SIZES["num_layers"])
    assert all(np.any(gradient) for gradient in tables.values())


def test_a_bias_of_a_causal_decoder_has_no_buckets_for_later_keys():
    assert [part.distance_bias.bidirectional for part in parts()] == [True, False, True, False]


def parts():
    transformer = MODELS["Transformer"](positions="bias")
    gpts = [MODELS["GPT"](positions="bias", mask=mask) for mask in ("prefix", "causal")]
    return [transformer.encoder, transformer.decoder, *(gpt.decoder for gpt in gpts)]


test_what_is_no_kind_of_positions_is_refused = refusals(
    *(
        (lambda make=make: make(positions="rotary"), f"{name}: positions must be one of")
        for name, make in MODELS.items()
    ),
    (
        lambda: MODELS["Bert"](positions="bias", first_position=2),
        "Bert: first_position must be 0 unless positions is \"learned\"; received 2 and 'bias'.",
    ),
)
