"""Heads are trained at once, by batches that hold labels for some of them."""

import keras
import numpy as np
import pytest

from seqkeras.losses import span_loss
from seqkeras.models import Bert, ClassificationHead, SpanHead, TaggingHead, WithHeads
from tests.arrays import FEW_STEPS, close
from tests.conftest import others_long

INPUTS = {"token_ids": np.array([[3, 8, 5], [7, 1, 4]]), "lengths": np.array([3, 2])}
CLASSES, TAGS = np.array([4, 2]), np.array([[1, 2, 0], [2, 1, 0]])
SPAN = {"start_logits": np.array([1, 0]), "end_logits": np.array([2, 1])}
ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
LOSSES = {
    "classes": ENTROPY,
    "tags": ENTROPY,
    "span": {"start_logits": span_loss, "end_logits": span_loss},
}


def compiled(heads=("classes", "tags"), **options):
    keras.utils.set_random_seed(0)
    made = {"classes": ClassificationHead(5), "tags": TaggingHead(3), "span": SpanHead()}
    model = WithHeads(Bert(11, 6, 1, 2, 7, max_length=3), {name: made[name] for name in heads})
    model(INPUTS)
    losses = {name: LOSSES[name] for name in heads}
    model.compile(keras.optimizers.SGD(0.1), losses, **FEW_STEPS | options)
    model.optimizer.build(model.trainable_variables)  # or Keras traces the training step twice
    return model


def first_loss(model, labels, **options):
    return model.fit(INPUTS, labels, verbose=0, batch_size=2, **options).history["loss"][0]


def test_a_head_without_labels_counts_nothing():
    both, alone = compiled(), compiled(["classes"])
    tags = both.heads["tags"].get_weights()
    assert first_loss(both, {"classes": CLASSES}) == first_loss(alone, {"classes": CLASSES})
    close(both.heads["tags"].get_weights(), tags, rtol=0, atol=0)
    close(both.encoder.get_weights(), alone.encoder.get_weights())


def test_losses_of_what_is_labelled_have_their_weights():
    model = compiled(loss_weights={"classes": 0.5, "tags": 2.0})
    outputs = model(INPUTS)
    classes = 0.5 * float(ENTROPY(CLASSES, outputs["classes"]))
    tags = 2.0 * float(ENTROPY(TAGS, outputs["tags"]))
    for labels, expected in (
        ({"classes": CLASSES, "tags": TAGS}, classes + tags),
        ({"classes": CLASSES, "tags": None}, classes),
        ({"tags": TAGS}, tags),
    ):
        model.reset_metrics()
        close(np.ravel(model.test_on_batch(INPUTS, labels))[0], expected)


@pytest.mark.parametrize("first", others_long([1, 0]))
def test_batches_of_two_tasks_take_turns(first):
    model = compiled(run_eagerly=False, jit_compile=False)
    turns = ({"classes": CLASSES, "tags": TAGS}, {"tags": TAGS}, {"classes": CLASSES}) * 2
    for labels in turns[first:]:
        loss = np.ravel(model.train_on_batch(INPUTS, labels))[0]
        assert np.isfinite(loss)


@pytest.mark.parametrize(
    "labels, received",
    [
        ({"label": CLASSES}, r"\['label'\]"),
        ({"classes": CLASSES, "tag": TAGS}, r"\['tag'\]"),
        ({"classes": CLASSES, "span": {"start": CLASSES}}, r"\['span/start'\]"),
        ({"classes": None, "span": None}, "none"),
    ],
)
def test_labels_are_of_heads(labels, received):
    model = WithHeads(
        Bert(11, 6, 1, 2, 7, max_length=3), {"classes": ClassificationHead(5), "span": SpanHead()}
    )
    model.compile("sgd", {name: LOSSES[name] for name in ("classes", "span")})
    message = (
        r"WithHeads: labels must be of one of \['classes', 'span/start_logits', 'span/end_logits'\]"
        rf" at least, and of nothing else; received {received}\.$"
    )
    with pytest.raises(ValueError, match=message):
        model.compute_loss(INPUTS, labels, model(INPUTS))


def test_only_what_has_labels_is_reported():
    accuracy = keras.metrics.SparseCategoricalAccuracy
    losses = {"loss", "classes_loss", "tags_loss"}
    metrics = {name: [accuracy("right")] for name in ("classes", "tags")}
    model = compiled(metrics=metrics, loss_weights={"classes": 0.5, "tags": 2.0})
    whole = model.fit(INPUTS, {"classes": CLASSES, "tags": TAGS}, verbose=0).history
    assert whole.keys() == losses | {"classes_right", "tags_right"}
    expected = float(ENTROPY(CLASSES, model(INPUTS)["classes"]))
    found = model.fit(INPUTS, {"classes": CLASSES}, verbose=0).history
    assert found.keys() == {"loss", "classes_loss", "classes_right"}
    close(found["classes_loss"][0], expected)  # without its weight, as Keras says it
    close(found["loss"][0], 0.5 * expected)


def test_a_metric_keeps_its_name_when_another_is_left_out():
    accuracy = keras.metrics.SparseCategoricalAccuracy
    ends = {name: [accuracy("right")] for name in SPAN}
    model = compiled(["classes", "span"], metrics={"classes": [accuracy("right")], "span": ends})
    labels = {"classes": CLASSES, "span": SPAN}
    best = model(INPUTS)["span"]
    labels["span"] = {name: np.argmax(each, -1) for name, each in best.items()}
    whole = model.test_on_batch(INPUTS, labels, return_dict=True)
    found = model.test_on_batch(INPUTS, {"span": labels["span"]}, return_dict=True)
    assert {name for name in whole if "right" in name} == {"right", "right_1", "right_2"}
    assert {name for name in found if "right" in name} == {"right_1", "right_2"}
    assert found["right_1"] == found["right_2"] == 1


@pytest.mark.parametrize(
    "losses, metrics, message",
    [
        ("crossentropy", None, "the loss of .* what the labels are, as 'sparse_cat.*'; received"),
        (ENTROPY, {"tags": ["accuracy"]}, "metrics of .* objects, as .*; received 'accuracy' for"),
    ],
)
def test_what_goes_by_its_labels_wants_them_at_once(losses, metrics, message):
    model = compiled()
    model.compile("sgd", {"classes": ENTROPY, "tags": losses}, metrics=metrics)
    with pytest.raises(ValueError, match=f"^WithHeads: {message}"):
        model.evaluate(INPUTS, {"classes": CLASSES}, verbose=0)


def test_the_ends_of_a_span_may_have_no_labels():
    model = compiled(["classes", "span"])
    expected = model(INPUTS)["span"]
    loss = model.evaluate(INPUTS, {"span": SPAN}, verbose=0)
    parts = [float(np.mean(span_loss(SPAN[end], expected[end]))) for end in SPAN]
    close(np.ravel(loss)[0], sum(parts))
    assert np.isfinite(first_loss(model, {"classes": CLASSES}))


def test_a_row_masked_for_a_head_counts_nothing():
    labels = {"classes": CLASSES, "tags": TAGS}
    model = compiled(loss_weights={"classes": 1.0, "tags": 0.0})
    mask = {"classes": np.array([1.0, 0.0]), "tags": np.ones((2, 3))}
    loss = np.ravel(model.evaluate(INPUTS, labels, sample_weight=mask, verbose=0))[0]
    [first, _] = model(INPUTS)["classes"]
    close(loss, float(ENTROPY(CLASSES[:1], first[None])) / 2)  # Keras's mean is over all rows
