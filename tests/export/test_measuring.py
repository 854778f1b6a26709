"""The figures of a precision, against counts and sums done by hand."""

import functools

import numpy as np
import pytest

from export import measuring
from export.measuring import PrecisionError, Task, measure
from export.quantize import quantize
from export.scores import Score
from seqkeras.values import NEVER
from tests.arrays import floats
from tests.export.running import run
from tests.export.test_decoders import advance, empty_caches, exported
from tests.export.written import graph

KERNEL, OTHER = floats(19, 5), floats(19, 5) + 0.5 * floats(19, 5, seed=1)
EXAMPLES = [{"x": floats(length, 19, seed=length)} for length in (3, 7, 5, 2)]
NUMBERS = np.random.default_rng(0)
PAIRS = [
    {
        "token_ids": NUMBERS.integers(4, 29, length),
        "target_ids": np.append(NUMBERS.integers(4, 31, 9 - length), 3),
    }
    for length in (5, 3, 7)
]
TEXTS = [{"token_ids": NUMBERS.integers(4, 31, length)} for length in (5, 3, 7)]


def scorer(kernel):
    """y, a distribution for each row of x, and the rows' sums."""
    return {
        "model": graph(
            [
                ("MatMul", ["x", "kernel"], ["y"], {}),
                ("ReduceSum", ["x", "axis"], ["sum"], {"keepdims": 0}),
            ],
            {"x": ["batch", "length", 19]},
            {"y": ["batch", "length", 5], "sum": ["batch", "length"]},
            {"kernel": kernel, "axis": np.array([-1])},
        )
    }


def log_softmax(logits):
    logits = logits.astype("float64")
    return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def test_rows_of_logits_are_compared_without_their_padding():
    figures = measure(scorer(KERNEL), scorer(OTHER), EXAMPLES, Task(("y",)), "other", 1)
    equal, differences = [], []
    for example in EXAMPLES:
        a, b = (log_softmax(example["x"] @ kernel) for kernel in (KERNEL, OTHER))
        equal += list(a.argmax(-1) == b.argmax(-1))
        differences += list(np.abs(a - b).ravel())
    assert 0 < np.mean(equal) < 1
    assert len(equal) == 17
    assert figures["examples"] == 4
    assert figures["agreement"] == np.mean(equal)
    assert figures["largest_log_prob_difference"] == pytest.approx(max(differences), rel=1e-5)
    assert figures["mean_log_prob_difference"] == pytest.approx(np.mean(differences), rel=1e-5)
    assert figures["batching_agreement"] == 1
    assert figures["batching_largest_log_prob_difference"] < 1e-5
    assert figures["relative_difference"] < 1e-6  # of the sums, which no kernel touches
    assert figures["speed_batch_1"] > 0
    assert figures["speed_batch_16"] > 0


def test_numbers_that_are_no_logits_are_compared_with_their_size():
    figures = measure(scorer(KERNEL), scorer(2 * KERNEL), EXAMPLES, Task(), "other", 2)
    squares = sum(np.square(each["x"] @ KERNEL).sum() for each in EXAMPLES)
    sums = sum(np.square(each["x"].sum(-1)).sum() for each in EXAMPLES)
    expected = np.sqrt(squares / (squares + sums))
    assert figures["relative_difference"] == pytest.approx(expected, rel=1e-5)
    assert "agreement" not in figures


def test_of_vectors_the_direction_counts():
    as_long = measure(scorer(KERNEL), scorer(2 * KERNEL), EXAMPLES, Task(vectors=True), "other", 1)
    cosines = []
    for each in EXAMPLES:
        for a, b in ((each["x"] @ KERNEL, 2 * each["x"] @ KERNEL), 2 * (each["x"].sum(-1),)):
            cosines.append(np.vdot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))
    assert as_long["mean_cosine"] == pytest.approx(np.mean(cosines), rel=1e-5)
    with pytest.raises(PrecisionError, match="differ from float32's by 1"):
        measure(scorer(KERNEL), scorer(-KERNEL), EXAMPLES, Task(vectors=True), "other", 0.9)


def test_the_score_decides_where_there_is_one():
    numbers = {"float32": 0.5, "better": 0.75, "worse": 0.375}
    task = Task(("y",), score=Score("accuracy", 3, numbers.get))
    zero = scorer(np.zeros((19, 5), "float32"))  # whatever it answers
    figures = measure(scorer(KERNEL), zero, EXAMPLES, task, "better", 0)
    assert (figures["score_name"], figures["scored_examples"]) == ("accuracy", 3)
    assert (figures["float32_score"], figures["score"]) == (0.5, 0.75)
    message = (
        r"^worse: its accuracy on 3 examples is lower than float32's by 0\.12 \(allowed: 0.1\)\. "
        r"Leave it out, or allow more by --tolerance.$"
    )
    with pytest.raises(PrecisionError, match=message):
        measure(scorer(KERNEL), scorer(KERNEL), EXAMPLES, task, "worse", 0.1)


@pytest.mark.parametrize("task", [Task(("y",)), Task()])
def test_what_differs_by_more_than_the_tolerance_or_is_no_number_is_refused(task):
    with pytest.raises(PrecisionError, match=r"^other: .* \(allowed: 0.05\)"):
        measure(scorer(KERNEL), scorer(OTHER), EXAMPLES, task, "other", 0.05)
    for number in (np.nan, np.inf):
        broken = scorer(number * np.ones_like(KERNEL))
        with pytest.raises(PrecisionError, match="^other: it gives numbers that are not finite."):
            measure(scorer(KERNEL), broken, EXAMPLES, task, "other", 0.99)


def test_batches_change_int8_and_the_change_is_told(monkeypatch):
    examples = [{"x": size * floats(3, 19, seed=size)} for size in (1, 30, 3, 10)]
    whole = quantize(scorer(floats(19, 29)), "int8")
    changed = measure(scorer(floats(19, 29)), whole, examples, Task(("y",)), "int8", 1)
    assert changed["batching_largest_log_prob_difference"] > 0.05
    monkeypatch.setattr(measuring, "BATCH", 1)
    alone = measure(scorer(floats(19, 29)), whole, examples, Task(("y",)), "int8", 1)
    assert alone["batching_largest_log_prob_difference"] == 0
    assert alone["mean_log_prob_difference"] < changed["mean_log_prob_difference"]


@functools.cache
def whole(name):
    return quantize(exported(name)[1], "int8-embedding")


def along(graphs, state, token_ids):
    """(T, V) log-probabilities behind each token of one text."""
    state = state | empty_caches(graphs["decoder_step"], 1)
    rows = []
    for token in token_ids:
        shape = (1,) * len(graphs["decoder_step"].session().get_inputs()[0].shape)
        outputs, state = advance(
            graphs["decoder_step"], state, np.full(shape, token), np.zeros((1, 1), "int64")
        )
        rows.append(outputs["logits"][0, 0])
    return log_softmax(np.stack(rows))


def largest_difference(pairs):
    return max(np.abs(a - b)[a > NEVER / 2].max() for a, b in pairs)


def test_a_language_model_is_compared_along_its_texts():
    graphs, made = exported("gpt")[1], whole("gpt")
    figures = measure(graphs, graphs, TEXTS, Task(), "same", 0)
    assert figures["agreement"] == 1
    assert figures["largest_log_prob_difference"] == 0
    assert figures["batching_largest_log_prob_difference"] < 1e-4
    figures = measure(graphs, made, TEXTS[:1], Task(), "int8-embedding", 1)
    a, b = (along(each, {}, TEXTS[0]["token_ids"]) for each in (graphs, made))
    expected = largest_difference([(a, b)])
    assert figures["largest_log_prob_difference"] == pytest.approx(expected, rel=1e-3)
    assert figures["agreement"] == np.mean(a.argmax(-1) == b.argmax(-1))
    assert figures["bytes"] < figures["float32_bytes"]


def test_an_encoder_decoder_is_compared_along_targets_and_by_what_it_generates():
    graphs, made = exported("transformer")[1], whole("transformer")
    task = Task(target_length=6)
    answers = [generated(each) for each in (graphs, made)]
    figures = measure(graphs, made, PAIRS, task, "int8-embedding", 1)
    assert figures["agreement"] == np.mean([a == b for a, b in zip(*answers)])
    figures = measure(graphs, made, PAIRS[:1], task, "int8-embedding", 1)
    before = [2, *PAIRS[0]["target_ids"][:-1]]
    pair = [along(each, encoded(each, PAIRS[0]), before) for each in (graphs, made)]
    expected = largest_difference([pair])
    assert figures["largest_log_prob_difference"] == pytest.approx(expected, rel=1e-3)


def generated(graphs):
    """What greedy decoding gives for each pair, token by token."""
    answers = []
    for pair in PAIRS:
        ids, state = [2], encoded(graphs, pair)
        while len(ids) < 7 and ids[-1] != 3:
            ids.append(int(along(graphs, state, ids)[-1].argmax()))
        answers.append(ids)
    return answers


def encoded(graphs, pair):
    token_ids = pair["token_ids"][None]
    return run(
        graphs["encoder"], {"token_ids": token_ids, "lengths": np.array(token_ids.shape[1:])}
    )
