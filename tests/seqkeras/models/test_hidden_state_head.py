import keras
import numpy as np

from seqkeras.models import Bert, HiddenStateHead, WithHeads
from tests.arrays import close, floats, numbers, randomize
from tests.refusals import refusals

V = 17
TOKENS = {
    "token_ids": np.random.default_rng(0).integers(1, V, (7, 5)),
    "lengths": np.array([5, 3, 5, 2, 4, 5, 1]),
}


def bert(num_layers, hidden_dim=6):
    width = {"hidden_dim": hidden_dim, "feed_forward_dim": 2 * hidden_dim}
    return Bert(V, num_layers=num_layers, num_heads=3, **width, pooler=None)


def built(encoder, heads, **options):
    model = WithHeads(encoder, heads, **options)
    model(TOKENS)
    return model


def test_a_head_gives_its_layer_or_a_linear_map_of_it():
    heads = {
        "low": HiddenStateHead(0),
        "middle": HiddenStateHead(1, 11),
        "high": HiddenStateHead(2),
    }
    model = randomize(built(bert(2), heads))
    outputs, states = numbers(model(TOKENS)), numbers(model.encoder.hidden_states(TOKENS))
    kernel, bias = model.heads["middle"].get_weights()
    close(outputs["low"], states[0])
    close(outputs["middle"], states[1] @ kernel + bias, rtol=1e-4, atol=1e-5)
    close(outputs["high"], states[2])
    assert not np.allclose(states[1], states[2], atol=0.1)


def test_layers_of_choices_and_of_a_frozen_encoder_are_layers_too():
    model = randomize(built(bert(2), {"low": HiddenStateHead(1)}, frozen=True))
    assert not model.trainable_weights
    choices = {name: np.stack([each, each[::-1]], axis=1) for name, each in TOKENS.items()}
    expected = numbers(model(TOKENS)["low"])
    close(numbers(model(choices)["low"]), np.stack([expected, expected[::-1]], axis=1))


def test_layers_are_given_only_where_a_head_takes_them():
    encoder = bert(2)
    assert set(encoder(TOKENS)) == {"hidden"}
    outputs = encoder(TOKENS, hidden_states=True)
    close(outputs["hidden_states"], encoder.hidden_states(TOKENS))
    close(outputs["hidden_states"][-1], outputs["hidden"])


def test_half_precision_ends_where_the_loss_begins():
    head = HiddenStateHead(1, dtype="mixed_bfloat16")
    states = [keras.ops.cast(floats(2, 5, 6), "bfloat16")] * 2
    assert keras.backend.standardize_dtype(head(states).dtype) == "float32"


LAYER = "HiddenStateHead: layer must be an integer, at least 0; received"
test_a_layer_or_a_width_that_is_not_there_is_refused = refusals(
    *(
        (lambda wrong=wrong: HiddenStateHead(wrong), f"{LAYER} {wrong!r}")
        for wrong in (-1, "1", 1.5)
    ),
    (lambda: HiddenStateHead(1, 0), "HiddenStateHead: dim must be a positive integer; received 0"),
    (lambda: built(bert(2), {"low": HiddenStateHead(3)}), "HiddenStateHead: layer must be at most"),
)
