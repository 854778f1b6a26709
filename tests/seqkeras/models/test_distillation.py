"""Teacher and student: distances beside float64 NumPy, and what a student learns."""

import keras
import numpy as np
import pytest

from seqkeras.models import (
    AttentionWeightsHead,
    Bert,
    ClassificationHead,
    Distillation,
    TaggingHead,
    WithHeads,
)
from tests.arrays import close, numbers, randomize
from tests.refusals import refusals

V, CLASSES = 17, 3
TOKENS = {
    "token_ids": np.random.default_rng(0).integers(1, V, (7, 5)),
    "lengths": np.array([5, 3, 5, 2, 4, 5, 1]),
}


def classifier(num_layers, hidden_dim=6, num_heads=3, head=ClassificationHead):
    width = {"hidden_dim": hidden_dim, "feed_forward_dim": 2 * hidden_dim}
    encoder = Bert(V, num_layers=num_layers, num_heads=num_heads, **width)
    model = WithHeads(encoder, {"label": head(CLASSES)})
    model(TOKENS)
    return randomize(model)


def reader():
    """A model of words without an encoder such as Bert."""
    token_ids = keras.Input((None,), dtype="int32", name="token_ids")
    lengths = keras.Input((), dtype="int32", name="lengths")
    hidden = keras.layers.Embedding(V, 11)(token_ids)
    pooled = keras.layers.GlobalAveragePooling1D()(hidden)
    inputs = {"token_ids": token_ids, "lengths": lengths}
    return keras.Model(inputs, keras.layers.Dense(CLASSES, name="label")(pooled))


def softmax(logits):
    exponentials = np.exp(logits - logits.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def mean_of_real(distances):
    rows = zip(distances, TOKENS["lengths"], strict=True)
    return np.array([row[:length].mean() for row, length in rows])


@pytest.mark.parametrize("soft", ["kl", "mse"])
def test_logits_are_compared_by_the_papers_formulas(soft):
    teacher, student = classifier(2), reader()
    model = Distillation(student, teacher, temperature=3.0, soft=soft, scale=1.7)
    outputs = numbers(model(TOKENS))
    t, s = (
        numbers(each(TOKENS)).astype("float64") for each in (lambda x: teacher(x)["label"], student)
    )
    p, q = softmax(t / 3), softmax(s / 3)
    divergence = 9 * (p * np.log(p / q)).sum(-1)
    close(outputs["soft"], divergence if soft == "kl" else (((t - s) / 1.7) ** 2).mean(-1))
    close(outputs["labels"], s)
    kept = Distillation(student, temperature=3.0, soft=soft, scale=1.7)
    close(numbers(kept({**TOKENS, "teacher_logits": t.astype("float32")}))["soft"], outputs["soft"])


def test_tags_are_compared_token_by_token():
    teacher, student = (classifier(1, head=TaggingHead) for _ in range(2))
    t, s = (numbers(model(TOKENS)["label"]).astype("float64") for model in (teacher, student))
    p, q = softmax(t / 2), softmax(s / 2)
    outputs = numbers(Distillation(student, teacher)(TOKENS))
    close(outputs["soft"], 4 * (p * np.log(p / q)).sum(-1), rtol=1e-4, atol=1e-5)


def test_layers_are_compared_at_real_tokens_alone():
    teacher, student = classifier(4), classifier(2, 12)
    model = Distillation(student, teacher, hidden=[(0, 0), (2, 4)], attention=[(1, 2), (2, 4)])
    outputs = numbers(model(TOKENS))
    states, own = (
        [numbers(state).astype("float64") for state in each.encoder.hidden_states(TOKENS)]
        for each in (teacher, student)
    )
    distances = []
    for m, n in ((0, 0), (2, 4)):
        kernel, bias = model.compared.heads[f"hidden_{m}_{n}"].get_weights()
        distances.append(((own[m] @ kernel + bias - states[n]) ** 2).mean(-1))
    close(outputs["hidden"], mean_of_real(np.mean(distances, axis=0)), rtol=1e-4)
    weights, own = (
        numbers(each.attention_weights(TOKENS)["encoder"]).astype("float64")
        for each in (teacher, student)
    )
    seen = (np.arange(5) < TOKENS["lengths"][:, None])[:, None, None]
    divergences = []
    for m, n in ((0, 1), (1, 3)):
        a, b = (np.where(seen, each, 1.0) for each in (weights[:, n], own[:, m]))
        divergences.append((a * np.log(a / b)).sum(-1).mean(1))
    close(outputs["attention"], mean_of_real(np.mean(divergences, axis=0)), rtol=1e-3, atol=1e-5)


def test_the_student_learns_and_the_teacher_does_not():
    teacher, student = classifier(2), classifier(2)
    model = Distillation(student, teacher, attention=[(1, 1), (2, 2)])
    model(TOKENS)
    learning = {id(variable) for variable in model.trainable_variables}
    assert not learning & {id(variable) for variable in teacher.variables}
    assert {id(variable) for variable in student.trainable_variables} <= learning


def test_the_weights_of_a_block_are_those_that_are_drawn():
    model = classifier(2)
    heads = {"low": AttentionWeightsHead(1), "high": AttentionWeightsHead(2)}
    outputs = numbers(WithHeads(model.encoder, heads)(TOKENS))
    drawn = numbers(model.encoder.attention_weights(TOKENS)["encoder"])
    close(outputs["low"], drawn[:, 0])
    close(outputs["high"], drawn[:, 1])
    assert "attention" not in model.encoder(TOKENS)
    with pytest.raises(ValueError, match="block must be at most the number of blocks, 2; rece"):
        WithHeads(model.encoder, {"high": AttentionWeightsHead(3)})(TOKENS)


test_what_can_not_be_compared_is_refused = refusals(
    (lambda: Distillation(reader(), soft="l1"), "soft one of ...; received 2.0, 1.0 and 'l1'"),
    (lambda: Distillation(reader(), temperature=0), "must be positive, ...received 0, 1.0"),
    (
        lambda: Distillation(reader(), classifier(1), hidden=[(0, 0)]),
        "the student must be a WithHeads, whose layers are compared; received a Functional",
    ),
    (
        lambda: Distillation(classifier(1, 8, 2), classifier(1), attention=[(1, 1)]),
        "as many attention heads as the teacher, 3; received 2",
    ),
    (
        lambda: Distillation(reader()).call(TOKENS),
        "Distillation: there must be a teacher, or its logits as ",
    ),
)
