import itertools

import keras
import numpy as np
import pytest

from seqkeras.models import (
    ClassificationHead,
    HiddenStateHead,
    MaskedLMHead,
    MultipleChoiceHead,
    NextSentenceHead,
    RegressionHead,
    SpanHead,
    TaggingHead,
    WithHeads,
    best_answers,
)
from seqkeras.values import BANNED_LOGIT
from tests.arrays import close, floats, numbers, randomize
from tests.references.transformer import ACTIVATIONS, layer_norm
from tests.refusals import refusals
from tests.seqkeras.models.support import bert

V, B, T = 17, 4, 5
TOKENS = {
    "token_ids": np.random.default_rng(0).integers(1, V, (B, T)),
    "lengths": np.array([5, 3, 4, 2]),
    "segment_ids": np.random.default_rng(1).integers(0, 2, (B, T)),
}


def built(heads, encoder=None, **options):
    model = WithHeads(bert(dropout=0.1) if encoder is None else encoder, heads, **options)
    model(TOKENS)
    return randomize(model)


def test_heads_are_linear_maps_of_what_the_encoder_gives():
    model = built(
        {
            "classes": ClassificationHead(7),
            "numbers": RegressionHead(2),
            "tags": TaggingHead(11),
            "next": NextSentenceHead(),
        }
    )
    encoded, outputs = numbers(model.encoder(TOKENS)), numbers(model(TOKENS))
    for name, source in (
        ("classes", "pooled"),
        ("numbers", "pooled"),
        ("tags", "hidden"),
        ("next", "pooled"),
    ):
        kernel, bias = model.heads[name].get_weights()
        close(outputs[name], encoded[source] @ kernel + bias, rtol=1e-4, atol=1e-5)
    assert outputs["next"].shape == (B, 2)


def test_a_span_head_gives_two_logits_for_each_real_token():
    model = built({"answer": SpanHead()})
    hidden, outputs = numbers(model.encoder(TOKENS))["hidden"], numbers(model(TOKENS))["answer"]
    kernel, bias = model.heads["answer"].get_weights()
    real = np.arange(T) < TOKENS["lengths"][:, None]
    for place, name in enumerate(("start_logits", "end_logits")):
        expected = np.where(real, (hidden @ kernel + bias)[..., place], -1e9)
        close(outputs[name], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("activation, tied", [("gelu", True), ("relu", False)])
def test_masked_tokens_are_predicted_with_the_encoders_embeddings_or_others(activation, tied):
    model = built({"masked": MaskedLMHead(V, epsilon=1e-3, activation=activation, tied=tied)})
    hidden = numbers(model.encoder(TOKENS))["hidden"].astype("float64")
    head = model.heads["masked"]
    kernel, bias = head.transform.get_weights()
    [E] = (model.encoder if tied else head).embedding.get_weights()
    activated = ACTIVATIONS[activation](hidden @ kernel + bias)
    transformed = layer_norm(activated, *head.norm.get_weights(), 1e-3)
    expected = transformed @ E.T + numbers(head.bias)
    close(model(TOKENS)["masked"], expected, rtol=1e-4, atol=1e-4)
    places = np.array([[0, 3], [2, 2], [1, 0], [0, 1]])
    some = numbers(model(TOKENS | {"masked_positions": places})["masked"])
    close(
        some, np.stack([row[place] for row, place in zip(expected, places)]), rtol=1e-4, atol=1e-4
    )


def test_tied_embeddings_are_one_matrix_after_loading(tmp_path):
    model = built({"masked": MaskedLMHead(V)})
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.heads["masked"].embedding is loaded.encoder.embedding
    assert len(loaded.weights) == len(model.weights)
    close(loaded(TOKENS), model(TOKENS))


def test_each_choice_is_read_alone_and_a_row_of_no_token_is_none():
    model = WithHeads(bert(), {"choice": MultipleChoiceHead()})
    choices = {name: np.stack([each, each[::-1]], axis=1) for name, each in TOKENS.items()}
    model(choices)
    randomize(model)
    kernel, bias = model.heads["choice"].get_weights()
    pooled = numbers(model.encoder(TOKENS)["pooled"])
    expected = np.stack([pooled, pooled[::-1]], axis=1) @ kernel + bias
    close(model(choices)["choice"], expected[..., 0], rtol=1e-4, atol=1e-5)
    for each in choices.values():
        each[0, 1] = 0
    expected[0, 1] = BANNED_LOGIT
    close(model(choices)["choice"], expected[..., 0], rtol=1e-4, atol=1e-5)


def test_a_frozen_encoder_drops_nothing_in_training():
    model = built({"tags": TaggingHead(3)}, frozen=True)
    close(model(TOKENS, training=True), model(TOKENS))
    tuned = built({"tags": TaggingHead(3)})
    dropped, kept = numbers([tuned(TOKENS, training=True), tuned(TOKENS)])
    assert not np.allclose(dropped["tags"], kept["tags"], atol=1e-3)


def best_by_force(start, end, allowed, max_length):
    spans = [
        (start[i] + end[j], i, j)
        for i, j in itertools.product(range(len(start)), repeat=2)
        if allowed[i] and allowed[j] and i <= j < i + max_length
    ]
    return max(spans, default=(-np.inf, 0, 0))


@pytest.mark.parametrize("threshold", [-2.0, 0.0, 1.5])
def test_the_best_answer_is_found_or_that_there_is_none(threshold):
    start, end = 2 * floats(31, 11), 2 * floats(31, 11, seed=1)
    allowed = floats(31, 11, seed=2) > -0.3
    allowed[:, 0] = False
    allowed[5] = False
    starts, ends, scores = numbers(best_answers(start, end, allowed, 3, threshold))
    found = 0
    for row in range(31):
        best, i, j = best_by_force(start[row], end[row], allowed[row], 3)
        score = best - start[row, 0] - end[row, 0]
        if score > threshold:
            found += 1
            assert (starts[row], ends[row]) == (i, j)
            assert scores[row] == pytest.approx(score, abs=1e-5)
        else:
            assert (starts[row], ends[row]) == (0, 0)
    assert 0 < found < 31


def test_a_multiple_choice_model_may_be_built_before_its_inputs_are_known():
    model = WithHeads(bert(), {"choice": MultipleChoiceHead()})
    model.build(None)
    assert model({"token_ids": np.ones((B, 3, T), int)})["choice"].shape == (B, 3)


def two_layers():
    return bert(num_layers=2, pooler=None)


def test_a_head_gives_its_layer_or_a_linear_map_of_it():
    heads = {"low": HiddenStateHead(0), "middle": HiddenStateHead(1, 11)}
    model = built(heads | {"high": HiddenStateHead(2)}, two_layers())
    outputs, states = numbers(model(TOKENS)), numbers(model.encoder.hidden_states(TOKENS))
    kernel, bias = model.heads["middle"].get_weights()
    close(outputs["low"], states[0])
    close(outputs["middle"], states[1] @ kernel + bias, rtol=1e-4, atol=1e-5)
    close(outputs["high"], states[2])
    assert not np.allclose(states[1], states[2], atol=0.1)


def test_layers_of_choices_and_of_a_frozen_encoder_are_layers_too():
    model = built({"low": HiddenStateHead(1)}, two_layers(), frozen=True)
    assert not model.trainable_weights
    choices = {name: np.stack([each, each[::-1]], axis=1) for name, each in TOKENS.items()}
    expected = numbers(model(TOKENS)["low"])
    close(numbers(model(choices)["low"]), np.stack([expected, expected[::-1]], axis=1))


def test_layers_are_given_only_where_a_head_takes_them():
    encoder = two_layers()
    assert set(encoder(TOKENS)) == {"hidden"}
    outputs = encoder(TOKENS, hidden_states=True)
    close(outputs["hidden_states"], encoder.hidden_states(TOKENS))
    close(outputs["hidden_states"][-1], outputs["hidden"])


def test_half_precision_ends_where_the_loss_begins():
    head = HiddenStateHead(1, dtype="mixed_bfloat16")
    states = [keras.ops.cast(floats(2, 5, 6), "bfloat16")] * 2
    assert keras.backend.standardize_dtype(head(states).dtype) == "float32"


test_arguments_out_of_range_are_refused = refusals(
    (
        lambda: HiddenStateHead("1"),
        "HiddenStateHead: layer must be an integer, at least 0; received",
    ),
    (lambda: HiddenStateHead(1, 0), "HiddenStateHead: dim must be a positive integer; received 0"),
    (lambda: built({"low": HiddenStateHead(3)}), "HiddenStateHead: layer must be at most"),
    (lambda: WithHeads(bert(), {}), "WithHeads: there must be a head at least; received {"),
    (
        lambda: WithHeads(bert(), {"masked": MaskedLMHead(13)}),
        "MaskedLMHead: vocab_size must be the encoder's; received 13 and 17.",
    ),
    (
        lambda: WithHeads(
            bert(pooler=None), {"classes": ClassificationHead(3), "t": TaggingHead(3)}
        ),
        "WithHeads: the encoder must have a pooler for the heads ['classes']; received one",
    ),
    (lambda: MaskedLMHead(13, activation="softmax"), "MaskedLMHead: activation must be one of ["),
    (
        lambda: WithHeads(bert(), {"choice": MultipleChoiceHead()})(TOKENS),
        "MultipleChoiceHead: pooled must have shape (batch, choices, dim), ... (None, 6)",
    ),
)
