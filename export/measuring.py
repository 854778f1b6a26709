"""What another precision wins and costs beside float32, measured on real examples.

Both run the same inputs, by role: a model that answers in a single pass; an encoder-decoder, along
the real targets for its log-probabilities, and greedily for its answers; a language model, along
its texts. Knows nothing of strings: scores come as a function of a precision's name.
"""

import dataclasses
import operator
import statistics
import time

import numpy as np

from export.onnx_files import FLOAT32, stored_bytes
from export.quantize import STEP
from export.scores import Scores
from export.tolerances import shortfalls
from seqkeras.values import BANNED_LOGIT
from serving.pipelines.arrays import FRAMES, PADDING
from serving.pipelines.forecast import WINDOW

BATCH = 16
ROUNDS = 5


class PrecisionError(ValueError):
    """A precision answers too differently; the message says by how much, and names a way out."""


@dataclasses.dataclass(frozen=True)
class Task:
    """What must be known of a model to compare its answers.

    Attributes:
        logits: names of the outputs of a graph "model" that are logits over their last axis.
        vectors: whether its other outputs are vectors, of which the direction counts.
        start_id, end_id, target_length: of what an encoder-decoder generates.
        scores: of the bundle's answers beside the run's targets; None where there are none.
    """

    logits: tuple[str, ...] = ()
    vectors: bool = False
    start_id: int = 2
    end_id: int = 3
    target_length: int = 1
    scores: Scores | None = None


def measure(graphs, quantized, examples, task, precision, tolerances):
    """Compare a precision with float32, and refuse it if its answers are worse by too much.

    Args:
        graphs, quantized: role -> `export.graph.Graph`, in float32 and in the precision.
        examples: list of {name: array}, the inputs of one example without the batch's axis. Of a
            graph "model" all its inputs; of an encoder-decoder `token_ids` (S,) and `target_ids`
            (T,), which begins after <bos>; of a language model `token_ids` (T,).
        task: a `Task`.
        precision: its name, for the error.
        tolerances: `export.tolerances.Tolerances`.

    Returns:
        The figures for the manifest. A speed is how many times as fast as float32 it is: the median
        of runs in turn. What begins with "batching" compares batches of 16 with single examples,
        both in the precision.

    Raises:
        PrecisionError: if it is worse by more than that, or a number is not finite.
    """
    float32, other = (_runner(each, task) for each in (graphs, quantized))
    beside_float32, by_batching = _Differences(task.vectors), _Differences(task.vectors)
    for begin in range(0, len(examples), BATCH):
        batch = examples[begin : begin + BATCH]
        expected, actual = float32.answers(batch), other.answers(batch)
        alone = [answer for each in batch for answer in other.answers([each])]
        beside_float32.add(expected, actual)
        by_batching.add(alone, actual)
    if not beside_float32.finite:
        raise PrecisionError(f"{precision}: it gives numbers that are not finite. Leave it out.")
    figures = {
        "examples": len(examples),
        "tolerances": dataclasses.asdict(tolerances),
        "float32_bytes": stored_bytes(graphs),
        "bytes": stored_bytes(quantized),
        "speed_batch_1": _speed(float32, other, examples[:1]),
        f"speed_batch_{BATCH}": _speed(float32, other, examples[:BATCH]),
        **beside_float32.figures(),
        **{f"batching_{name}": value for name, value in by_batching.figures().items()},
    }
    if task.scores:
        figures |= {
            "scored_examples": task.scores.examples,
            "float32_scores": task.scores.of(FLOAT32),
            "scores": task.scores.of(precision),
        }
    if reasons := shortfalls(figures, tolerances):
        raise PrecisionError(f"{precision}: {'; '.join(reasons)}. Leave it out, or allow more.")
    return figures


@dataclasses.dataclass(frozen=True)
class _Answer:
    """Of one example: lists of log-probabilities and of other numbers, and what was chosen."""

    log_probs: list
    numbers: list
    choices: list


class _Differences:
    """Sums over pairs of answers.

    Args:
        vectors: whether numbers that are no log-probabilities are vectors.
    """

    def __init__(self, vectors):
        self.vectors = vectors
        self.largest, self.total, self.count = 0.0, 0.0, 0  # of log-probabilities
        self.square, self.expected_square, self.cosines = 0.0, 0.0, []  # of others
        self.equal, self.choices = 0, 0
        self.finite = True

    def add(self, expected, actual):
        for one, other in zip(expected, actual, strict=True):
            for a, b in zip(one.log_probs, other.log_probs, strict=True):
                differences = np.abs(a - b, dtype=np.float64)[a > BANNED_LOGIT / 2]
                self.finite &= bool(np.isfinite(b).all())
                self.largest = max(self.largest, differences.max(initial=0))
                self.total += differences.sum()
                self.count += differences.size
            for a, b in zip(one.numbers, other.numbers, strict=True):
                a, b = (np.asarray(each, np.float64) for each in (a, b))
                self.finite &= bool(np.isfinite(b).all())
                self.square += np.square(a - b).sum()
                self.expected_square += np.square(a).sum()
                lengths = np.linalg.norm(a) * np.linalg.norm(b)
                self.cosines.append(float(np.vdot(a, b) / lengths) if lengths else 1.0)
            self.choices += len(one.choices)
            self.equal += sum(map(operator.eq, one.choices, other.choices))

    def figures(self):
        figures = {}
        if self.choices:
            figures |= {
                "agreement": self.equal / self.choices,
                "largest_log_prob_difference": float(self.largest),
                "mean_log_prob_difference": float(self.total / self.count),
            }
        if self.cosines and self.vectors:
            figures["mean_cosine"] = float(np.mean(self.cosines))
        elif self.cosines:
            size = self.expected_square or 1
            figures["relative_difference"] = float(np.sqrt(self.square / size))
        return figures


def _speed(float32, other, examples):
    """How many times as fast the other is, run in turn after a first time that does not count."""
    ratios = []
    for _ in range(ROUNDS + 1):
        seconds = []
        for runner in (float32, other):
            begin = time.perf_counter()
            runner.run(examples)
            seconds.append(time.perf_counter() - begin)
        ratios.append(seconds[0] / seconds[1])
    return statistics.median(ratios[1:])


def _runner(graphs, task):
    if "encoder" in graphs:
        return _EncoderDecoder(graphs, task)
    return (_LanguageModel if STEP in graphs else _OneGo)(graphs, task)


class _OneGo:
    """All inputs, all outputs."""

    def __init__(self, graphs, task):
        [graph] = graphs.values()
        self.session, self.task = graph.session(), task

    def run(self, examples):
        names = [each.name for each in self.session.get_inputs()]
        batch = {name: _stack([example[name] for example in examples]) for name in names}
        return self.session.run(None, batch)

    def answers(self, examples):
        return [answer for group in self._groups(examples) for answer in self._answers(group)]

    def _groups(self, examples):
        """The examples, or each alone where the graph can not tell its numbers from padding."""
        names = {each.name for each in self.session.get_inputs()}
        padded = names & PADDING or not names & {FRAMES, WINDOW}
        return [examples] if padded else [[each] for each in examples]

    def _answers(self, examples):
        outputs = self.run(examples)
        return [
            self._answer(example, [output[row] for output in outputs])
            for row, example in enumerate(examples)
        ]

    def _answer(self, example, outputs):
        sizes = {
            axis: size
            for each in self.session.get_inputs()
            for axis, size in zip(each.shape[1:], np.shape(example[each.name]), strict=True)
        }
        log_probs, numbers = [], []
        for each, output in zip(self.session.get_outputs(), outputs, strict=True):
            # As long as the example itself: what is behind that is padding.
            output = output[tuple(slice(sizes.get(axis)) for axis in each.shape[1:])]
            if each.name in self.task.logits:
                if each.shape[-1] == 1:  # the logit of the second of two: that of the first is 0
                    output = np.concatenate([np.zeros_like(output), output], axis=-1)
                log_probs.append(_log_softmax(output))
            else:
                numbers.append(output)
        return _Answer(log_probs, numbers, _best(log_probs))


class _Steps:
    """A decoder step, with one beam for each example."""

    def __init__(self, graphs, task):
        self.task = task
        self.sessions = {role: graph.session() for role, graph in graphs.items()}
        step = self.sessions[STEP]
        self.inputs = {each.name: each.shape for each in step.get_inputs()}
        self.after = [e.name for e in step.get_outputs() if e.name.startswith("next_")]

    def along(self, token_ids, state):
        """(B, T, V) logits behind each of the (B, T) tokens."""
        logits, state = [], self.begin(len(token_ids), state)
        for tokens in token_ids.T:
            each, state = self.step(tokens, state)
            logits.append(each)
        return np.stack(logits, axis=1)

    def begin(self, rows, state):
        """The state before the first step: what is given, and else no cache yet, or zeros."""
        sizes = {"past_length": 0, "previous_beam": 1}
        missing = self.inputs.keys() - state.keys() - {"token_ids", "beam_index", "k"}
        return state | {
            name: np.zeros((rows, *(sizes.get(size, size) for size in self.inputs[name][1:])), "f4")
            for name in missing
        }

    def step(self, tokens, state):
        """(B, V) logits behind the (B,) tokens, and the state after."""
        one_each = (1,) * (len(self.inputs["token_ids"]) - 1)
        inputs = {
            "token_ids": tokens.reshape(-1, *one_each),
            "beam_index": np.arange(len(tokens))[:, None],
            "k": np.array(1),
        }
        logits, *values = self.sessions[STEP].run(["logits", *self.after], inputs | state)
        names = [name.removeprefix("next_") for name in self.after]
        return logits[:, 0], state | dict(zip(names, values, strict=True))


class _LanguageModel(_Steps):
    """What follows each token of a text."""

    def run(self, examples):
        return self.along(_stack([example["token_ids"] for example in examples]), {})

    def answers(self, examples):
        answers = []
        for example, logits in zip(examples, self.run(examples), strict=True):
            log_probs = [_log_softmax(logits[: len(example["token_ids"])])]
            answers.append(_Answer(log_probs, [], _best(log_probs)))
        return answers


class _EncoderDecoder(_Steps):
    """What follows each token of the real target, and what greedy decoding gives."""

    def run(self, examples):
        targets = _stack([example["target_ids"] for example in examples])
        begin = np.full((len(examples), 1), self.task.start_id)
        before = np.concatenate([begin, targets[:, :-1]], axis=1)
        return self.along(before, self._encode(examples))

    def answers(self, examples):
        answers = []
        generated = self._generate(examples)
        for example, logits, ids in zip(examples, self.run(examples), generated, strict=True):
            log_probs = [_log_softmax(logits[: len(example["target_ids"])])]
            answers.append(_Answer(log_probs, [], [ids]))
        return answers

    def _encode(self, examples):
        encoder = self.sessions["encoder"]
        [name] = {each.name for each in encoder.get_inputs()} - {"lengths"}
        sources = [example[name] for example in examples]
        lengths = np.array([len(each) for each in sources])
        values = encoder.run(None, {name: _stack(sources), "lengths": lengths})
        return dict(zip([each.name for each in encoder.get_outputs()], values, strict=True))

    def _generate(self, examples):
        state = self.begin(len(examples), self._encode(examples))
        tokens = np.full(len(examples), self.task.start_id)
        ended, generated = np.zeros(len(examples), bool), []
        while not ended.all() and len(generated) < self.task.target_length:
            logits, state = self.step(tokens, state)
            tokens = np.where(ended, self.task.end_id, logits.argmax(-1))
            ended |= tokens == self.task.end_id
            generated.append(tokens)
        return [tuple(ids[ids != self.task.end_id].tolist()) for ids in np.stack(generated, axis=1)]


def _stack(arrays):
    """Arrays of a rank as one of a rank more, with zeros behind what is shorter."""
    arrays = [np.asarray(each) for each in arrays]
    sizes = np.max([each.shape for each in arrays], axis=0).astype(int)
    stacked = np.zeros((len(arrays), *sizes), arrays[0].dtype)
    for row, each in enumerate(arrays):
        stacked[(row, *map(slice, each.shape))] = each
    return stacked


def _log_softmax(logits):
    with np.errstate(invalid="ignore"):  # who compares sees that it is not finite
        logits = logits - logits.max(-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def _best(log_probs):
    return [int(best) for each in log_probs for best in each.argmax(-1).ravel()]
