import keras
import numpy as np
import pytest

from seqkeras.models import (
    Bert,
    ClassificationHead,
    MultipleChoiceHead,
    SentenceEncoder,
    TaggingHead,
    WithHeads,
)
from tests.arrays import FEW_STEPS, close, numbers, randomize
from tests.refusals import refusals
from tests.seqkeras.models.support import bert, compiled

TOKENS = {"token_ids": np.array([[3, 8, 16, 2, 5], [7, 1, 4, 0, 0]]), "lengths": np.array([5, 3])}
TARGETS = {"classes": np.array([0, 2])}
LOSSES = {"classes": keras.losses.SparseCategoricalCrossentropy(from_logits=True)}


def built(encoder, **options):
    model = WithHeads(encoder, {"classes": ClassificationHead(3)}, **options)
    model(TOKENS)
    return model


def learns(model):
    """Whether every weight of the encoder changes in a step of training, or none of them does."""
    compiled(model, TOKENS, LOSSES, learning_rate=0.03, **FEW_STEPS)
    before = model.encoder.get_weights()
    head = model.heads["classes"].get_weights()[0]
    model.fit(TOKENS, TARGETS, verbose=0)
    assert not np.array_equal(head, model.heads["classes"].get_weights()[0])
    pairs = zip(before, model.encoder.get_weights(), strict=True)
    changed = {not np.array_equal(one, two) for one, two in pairs}
    assert len(changed) == 1
    return changed.pop()


def test_a_frozen_encoder_is_frozen_after_loading(tmp_path):
    model = built(bert(), frozen=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert len(loaded.trainable_weights) == len(model.trainable_weights) == 2
    close(loaded(TOKENS), model(TOKENS))
    assert not learns(loaded)


def test_an_encoder_that_was_frozen_before_it_had_weights_is_frozen():
    encoder = bert()
    encoder.trainable = False
    model = built(encoder, frozen=True)
    assert len(model.trainable_weights) == 2


def test_after_feature_extraction_an_encoder_may_be_tuned_all_of_it():
    encoder = bert()
    SentenceEncoder(encoder)(TOKENS)  # which leaves the pooler out
    assert not learns(built(encoder, frozen=True))
    assert learns(built(encoder))


def test_a_model_may_thaw_its_encoder_and_freeze_it_again():
    model = built(bert(), frozen=True)
    for frozen in (False, True):
        model.frozen = frozen
        assert learns(model) is not frozen
        assert model.get_config()["frozen"] is frozen


def test_a_part_of_an_encoder_that_is_frozen_by_itself_stays_so():
    encoder = bert()
    encoder(TOKENS)
    encoder.embedding.trainable = False
    model = built(encoder)
    assert len(model.non_trainable_weights) == 1


def test_the_mean_of_real_positions_may_be_what_heads_read(tmp_path):
    model = randomize(built(bert(), pooling="mean"))
    kernel, bias = model.heads["classes"].get_weights()
    hidden = numbers(model.encoder(TOKENS)["hidden"]).astype("float64")
    means = [sum(row[:n]) / n for row, n in zip(hidden, TOKENS["lengths"], strict=True)]
    expected = np.array(means) @ kernel + bias
    close(model(TOKENS)["classes"], expected, rtol=1e-4, atol=1e-5)
    assert len(model.trainable_weights) + 2 == len(model.weights)  # the pooler has no use
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    close(loaded(TOKENS)["classes"], expected, rtol=1e-4, atol=1e-5)


def test_the_mean_of_choices_is_that_of_each():
    model = WithHeads(bert(pooler=None), {"choice": MultipleChoiceHead()}, pooling="mean")
    choices = {name: np.stack([each, each[::-1]], axis=1) for name, each in TOKENS.items()}
    found = numbers(model(choices)["choice"])
    assert found.shape == (2, 2)
    close(found[:, ::-1], found[::-1], rtol=1e-4, atol=1e-6)
    alone = {
        name: each[:1, 1:, :3] if each.ndim == 3 else each[:1, 1:] for name, each in choices.items()
    }
    close(model(alone)["choice"], found[:1, 1:], rtol=1e-4, atol=1e-6)


def test_heads_on_choices_take_a_length_for_each():
    model = WithHeads(bert(), {"classes": ClassificationHead(3)})
    choices = {name: np.stack([each, each[::-1]], axis=1) for name, each in TOKENS.items()}
    assert numbers(model(choices)["classes"]).shape == (2, 2, 3)
    with pytest.raises(ValueError, match=r"lengths must have shape \(batch, choices\), .*\(2,\)"):
        model(choices | {"lengths": np.array([3, 2])})


def test_a_pooler_that_no_head_takes_does_not_learn():
    """Nor does Keras warn of variables without a gradient; warnings are errors here."""
    encoder = Bert(17, 6, 2, 3, 11, max_length=13)
    inputs = {"token_ids": np.array([[3, 8, 12], [7, 1, 4]])}
    for head, learns in ((TaggingHead(3), False), (ClassificationHead(3), True)):
        model = WithHeads(encoder, {"head": head})
        labels = np.array([[0, 1, 2], [2, 1, 0]])[:, : 1 if learns else 3]
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", {"head": loss}, **FEW_STEPS)
        model.fit(inputs, {"head": labels}, verbose=0)
        trained = {id(each) for each in model.trainable_variables}
        assert all((id(each) in trained) == learns for each in encoder.pooler.weights)
        assert all(each.trainable for each in encoder.pooler.weights)


DICTIONARY = "WithHeads: heads must be a dictionary of heads by name; received a"
test_what_is_no_head_or_no_encoder_is_refused = refusals(
    (lambda: WithHeads(bert(), ClassificationHead(2)), f"{DICTIONARY} ClassificationHead."),
    (lambda: WithHeads(bert(), [TaggingHead(2)]), f"{DICTIONARY} list."),
    (
        lambda: WithHeads(bert(), {"tags": TaggingHead(2), "x": keras.layers.Dense(2)}),
        "every head must be a layer that says in `takes` what it is called with, as "
        "ClassificationHead; received {'x': 'Dense'}.",
    ),
    (
        lambda: WithHeads(keras.layers.Dense(2), {"tags": TaggingHead(2)}),
        "the encoder must be a model with hidden_dim and pooler, as Bert; received a Dense "
        "without ['hidden_dim', 'pooler'].",
    ),
    (
        lambda: WithHeads(bert(), {"tags": TaggingHead(2)}, pooling="cls"),
        "pooling must be one of ('pooler', 'mean'); received 'cls'.",
    ),
)
