"""The figures of a precision, against counts and sums done by hand."""

import functools

import numpy as np
import pytest

from export import measuring
from export.graph import Graph
from export.measuring import PrecisionError, Task, measure
from export.quantize import quantize
from export.scores import Scores
from export.tolerances import UNLIMITED, Tolerances
from seqkeras.values import BANNED_LOGIT
from tests.arrays import floats
from tests.export.running import run
from tests.export.test_decoders import advance, empty_caches, exported
from tests.export.written import graph

KERNEL, OTHER = floats(19, 5), floats(19, 5) + 0.5 * floats(19, 5, seed=1)
NONE = Tolerances(score=0, agreement=1, log_prob=0)
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
    figures = measure(scorer(KERNEL), scorer(OTHER), EXAMPLES, Task(("y",)), "other", UNLIMITED)
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
    figures = measure(scorer(KERNEL), scorer(2 * KERNEL), EXAMPLES, Task(), "other", UNLIMITED)
    squares = sum(np.square(each["x"] @ KERNEL).sum() for each in EXAMPLES)
    sums = sum(np.square(each["x"].sum(-1)).sum() for each in EXAMPLES)
    expected = np.sqrt(squares / (squares + sums))
    assert figures["relative_difference"] == pytest.approx(expected, rel=1e-5)
    assert "agreement" not in figures


def test_of_vectors_the_direction_counts():
    vectors = Task(vectors=True)
    as_long = measure(scorer(KERNEL), scorer(2 * KERNEL), EXAMPLES, vectors, "other", Tolerances())
    cosines = []
    for each in EXAMPLES:
        for a, b in ((each["x"] @ KERNEL, 2 * each["x"] @ KERNEL), 2 * (each["x"].sum(-1),)):
            cosines.append(np.vdot(a, b) / np.linalg.norm(a) / np.linalg.norm(b))
    assert as_long["mean_cosine"] == pytest.approx(np.mean(cosines), rel=1e-5)
    assert "relative_difference" not in as_long
    message = r"agreement with float32 on 4 examples is \S+% \(at least: 90%, by --agreement\)"
    with pytest.raises(PrecisionError, match=message):
        turned = scorer(-KERNEL)
        measure(scorer(KERNEL), turned, EXAMPLES, vectors, "other", Tolerances(agreement=0.9))


ZERO = scorer(np.zeros((19, 5), "float32"))  # whatever it answers


def scored(float32, other):
    """A task whose answers have these scores."""
    names = ("chrF", "exact match")
    by_precision = {"float32": float32, "other": other}
    return Task(("y",), scores=Scores(3, lambda name: dict(zip(names, by_precision[name]))))


def test_scores_decide_where_they_say_something():
    task = scored((0.5, 0.25), (0.75, 0.25))
    tolerances = Tolerances(score=0)
    figures = measure(scorer(KERNEL), ZERO, EXAMPLES, task, "other", tolerances)
    assert figures["scored_examples"] == 3
    assert figures["float32_scores"] == {"chrF": 0.5, "exact match": 0.25}
    assert figures["scores"] == {"chrF": 0.75, "exact match": 0.25}
    assert figures["tolerances"] == {"score": 0, "agreement": 0.99, "log_prob": 0.1}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ((0.375, 0.25), "its chrF on 3 examples is lower than float32's by 0.12"),
        ((0.75, 0.0), "its exact match on 3 examples is lower than float32's by 0.25"),
    ],
)
def test_no_score_may_fall_by_more_than_the_tolerance(other, message):
    message = f"^other: {message} .at most: 0.1, by --tolerance.. Leave it out, or allow more.$"
    with pytest.raises(PrecisionError, match=message):
        task, tolerances = scored((0.5, 0.25), other), Tolerances(score=0.1)
        measure(scorer(KERNEL), scorer(KERNEL), EXAMPLES, task, "other", tolerances)


@pytest.mark.parametrize(
    "task",
    [Task(("y",)), scored((0.0, 0.0), (0.0, 0.0)), scored((0.0, -0.5), (0.25, 0.25))],
    ids=["no targets", "0 beside 0", "worse than nothing"],
)
def test_where_no_score_says_anything_agreement_and_log_probabilities_decide(task):
    def held(graphs, **tolerances):
        measure(scorer(KERNEL), graphs, EXAMPLES, task, "other", Tolerances(**tolerances))

    held(scorer(KERNEL), agreement=1, log_prob=1e-6)
    with pytest.raises(PrecisionError, match=r"^other: its agreement with .* \(at least: 99%, by"):
        held(scorer(OTHER), log_prob=99)
    sharper = scorer(3 * KERNEL)  # the same best, with more in them
    held(sharper, log_prob=99)
    message = (
        r"^other: its log-probabilities are off by \S+ on average \(at most: 0\.1, by --log-prob"
    )
    with pytest.raises(PrecisionError, match=message):
        held(sharper)
    with pytest.raises(PrecisionError, match="its agreement .*; its log-probabilities "):
        held(scorer(-KERNEL))


def test_a_score_of_zero_says_nothing_beside_one_that_is_not():
    figures = measure(
        scorer(KERNEL), ZERO, EXAMPLES, scored((0.5, 0.0), (0.5, 0.0)), "other", Tolerances()
    )
    assert figures["agreement"] < 0.99


@pytest.mark.parametrize("task", [Task(("y",)), Task()])
def test_what_differs_by_more_than_the_tolerance_or_is_no_number_is_refused(task):
    with pytest.raises(PrecisionError, match=r"^other: its agreement .* \(at least: 95%,"):
        allowed = Tolerances(agreement=0.95)
        measure(scorer(KERNEL), scorer(OTHER), EXAMPLES, task, "other", allowed)
    for number in (np.nan, np.inf):
        broken = scorer(number * np.ones_like(KERNEL))
        with pytest.raises(PrecisionError, match="^other: it gives numbers that are not finite."):
            measure(scorer(KERNEL), broken, EXAMPLES, task, "other", UNLIMITED)


def test_batches_change_int8_and_the_change_is_told(monkeypatch):
    examples = [{"x": size * floats(3, 19, seed=size)} for size in (1, 30, 3, 10)]
    whole = quantize(scorer(floats(19, 29)), "int8")
    changed = measure(scorer(floats(19, 29)), whole, examples, Task(("y",)), "int8", UNLIMITED)
    assert changed["batching_largest_log_prob_difference"] > 0.05
    monkeypatch.setattr(measuring, "BATCH", 1)
    alone = measure(scorer(floats(19, 29)), whole, examples, Task(("y",)), "int8", UNLIMITED)
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
    return max(np.abs(a - b)[a > BANNED_LOGIT / 2].max() for a, b in pairs)


@pytest.fixture
def open_sessions(monkeypatch):
    """A graph opens one session, not one for each token."""
    monkeypatch.setattr(Graph, "session", functools.cache(Graph.session))


def test_a_language_model_is_compared_along_its_texts(open_sessions):
    graphs, made = exported("gpt")[1], whole("gpt")
    figures = measure(graphs, graphs, TEXTS, Task(), "same", NONE)
    assert figures["agreement"] == 1
    assert figures["largest_log_prob_difference"] == 0
    assert figures["batching_largest_log_prob_difference"] < 1e-4
    figures = measure(graphs, made, TEXTS[:1], Task(), "int8-embedding", UNLIMITED)
    a, b = (along(each, {}, TEXTS[0]["token_ids"]) for each in (graphs, made))
    expected = largest_difference([(a, b)])
    assert figures["largest_log_prob_difference"] == pytest.approx(expected, rel=1e-3)
    assert figures["agreement"] == np.mean(a.argmax(-1) == b.argmax(-1))
    assert figures["bytes"] < figures["float32_bytes"]


def test_an_encoder_decoder_is_compared_along_targets_and_by_what_it_generates(open_sessions):
    graphs, made = exported("transformer")[1], whole("transformer")
    task = Task(target_length=6)
    answers = [generated(each) for each in (graphs, made)]
    figures = measure(graphs, made, PAIRS, task, "int8-embedding", UNLIMITED)
    assert figures["agreement"] == np.mean([a == b for a, b in zip(*answers)])
    figures = measure(graphs, made, PAIRS[:1], task, "int8-embedding", UNLIMITED)
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
