"""Several tasks over one pre-trained encoder, trained at once."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seqkeras import files
from seqkeras.data.batches import Batches, Sequences
from seqkeras.data.mixing import MixedBatches
from seqkeras.models import WithHeads
from seqkeras.runs import MODEL, OPTIONS, SCORES, RunRecord
from seqkeras.runs.record import RUNS
from seqkeras.training.parts.classification import UNLABELLED
from seqkeras.training.parts.pretrained import Pretrained
from seqkeras.training.parts.splitting import NoneHeldOutError
from seqkeras.training.run import CALIBRATION, options_content
from seqkeras.training.run import TASKS as FOLDER
from seqkeras.training.task import Calibrating, Modelling, Reading, Scoring, Task

if TYPE_CHECKING:
    import keras

    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer
    from seqkeras.training.options import FitOptions

MEAN = "mean"  # of the tasks' first scores


class Text(NamedTuple):
    """A task's examples, and the task's name."""

    task: str
    text: Any


class Example(NamedTuple):
    """An example of a task, and the name of the task."""

    task: str
    example: Any

    @property
    def text(self) -> Text:
        return Text(self.task, self.example.text)

    @property
    def target(self) -> Any:
        return self.example.target


class Examples(Sequence):
    """The examples of all tasks, one task after another.

    Args:
        parts: name of a task -> its examples.
    """

    def __init__(self, parts: Mapping[str, Sequence[Any]]):
        self.parts = parts

    def __len__(self) -> int:
        return sum(map(len, self.parts.values()))

    def __getitem__(self, index: Any) -> Any:
        index = range(len(self))[index]
        for name, part in self.parts.items():
            if index < len(part):
                return Example(name, part[index])
            index -= len(part)

    def __iter__(self) -> Iterator[Any]:
        return (Example(name, example) for name, part in self.parts.items() for example in part)


class Several(Task):
    """Classes or numbers of texts and tags of words, with a head each on one encoder: a task of
    tasks.

    Every row has a target for each head, which counts nothing for the heads of other tasks.

    Attributes:
        tables: name -> `Table` of the options.
        tasks: name -> task.
    """

    def __init__(self, options: FitOptions):
        self.tables = options.tables()
        self.tasks = {name: table.options.make() for name, table in self.tables.items()}
        for task in self.tasks.values():
            task.modelling.ignored = UNLABELLED
        reading = SeveralReading(options, self.tasks)
        weights = {name: table.weight for name, table in self.tables.items()}
        modelling = SeveralModelling(options, reading, weights)
        parts = options, reading, modelling
        super().__init__(*parts, SeveralScoring(*parts), SeveralCalibrating(*parts))

    def prepared(
        self,
        folder: Path,
        examples: Sequence[Any],
        kept: Sequence[Any],
        tokenizers: Mapping[str, Tokenizer],
    ) -> tuple[Any, Any]:
        runs, answers = {}, {}
        for name, task in self.tasks.items():
            part, others = _of_task(name, examples), task.reading.kept(_of_task(name, kept))
            path = folder / FOLDER / name
            runs[name], answers[name] = task.prepared(path, part, others, tokenizers)
        return SeveralRuns(self, runs), SeveralAnswers(self.modelling, runs, answers)

    def fitting(
        self, run: Any, folder: Path, kept: Sequence[Any], answer: Any, model: keras.Model
    ) -> Any:
        fitting = {}
        for name, task in self.tasks.items():
            task_run, others = run.runs[name], task.reading.kept(_of_task(name, kept))
            part = self.modelling.part(model, name, task_run)
            path = folder / FOLDER / name
            fitting[name] = task.fitting(task_run, path, others, answer.answers[name], part)
        return SeveralRuns(self, fitting)

    def runs(self, folder: Path) -> list[Path]:
        return [folder / FOLDER / name for name in self.tasks]


class SeveralReading(Reading):
    """The examples of all tasks, each with the name of its task."""

    def __init__(self, options: FitOptions, tasks: Mapping[str, Task]):
        super().__init__(options)
        self.tasks = tasks

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        self.pretrained = Pretrained.read(self.options.pretrained)
        parts = {name: self._read(name, task) for name, task in self.tasks.items()}
        train, validation = (
            Examples({name: part[index] for name, part in parts.items()}) for index in (0, 1)
        )
        return train, validation

    def _read(self, name, task):
        try:
            return task.reading.read()
        except NoneHeldOutError as error:
            option = f"validation = … in the table [{name}] of {self.options.file}"
            raise NoneHeldOutError(*error.reasons, option=option) from error

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        return {"text": self.pretrained.tokenizer}

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        for name, task in self.tasks.items():
            yield from task.reading.texts_read(_of_task(name, examples), tokenizers)

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        """Return the record of the whole, which no pipeline serves."""
        runs = [f"{FOLDER}/{name}" for name in self.tasks]
        return {"pipeline": "", "limits": {}, "settings": {RUNS: runs}}


class SeveralModelling(Modelling):
    """The rows of all tasks to an encoder with a head for each."""

    def __init__(self, options: FitOptions, reading: SeveralReading, weights: Mapping[str, float]):
        super().__init__(options, reading)
        self.weights = weights
        self.tasks = {name: task.modelling for name, task in reading.tasks.items()}
        self._model, self._parts = None, {}

    def batches(self, examples: Sequence[Any], run: Any) -> Batches:
        parts = [
            modelling.arrays(_of_task(name, examples), run.runs[name])
            for name, modelling in self.tasks.items()
        ]
        lengths = [of_rows for _, _, of_rows in parts]
        inputs = _joined_inputs([arrays for arrays, _, _ in parts])
        targets = {
            name: _joined(
                [
                    target if other == index else _nothing(target, of_rows)
                    for other, of_rows in enumerate(lengths)
                ]
            )
            for index, (name, (_, target, _)) in enumerate(zip(self.tasks, parts, strict=True))
        }
        everything = np.concatenate(lengths)
        if self.options.batches == "mixed":
            order = self.order(everything)
            self.batches_per_pass = order.batches_per_pass
        else:
            orders = [self.order(of_rows) for of_rows in lengths]
            sizes = [len(of_rows) for of_rows in lengths]
            offsets = np.cumsum(sizes) - sizes
            shares = [size**self.options.alpha for size in sizes]
            order = MixedBatches(orders, offsets, shares, self.options.seed)
            self.batches_per_pass = sum(order.batches_per_pass for order in orders)
        return Batches(inputs, targets, order, tokens=everything)

    def num_steps(self, batches: Batches) -> int:
        return self.options.passes * self.batches_per_pass

    def model(self, run: Any) -> keras.Model:
        heads = {}
        for name, modelling in self.tasks.items():
            [heads[name]] = modelling.heads(run.runs[name]).values()
        pretrained = self.reading.pretrained
        return pretrained.with_heads(heads, self.options.frozen, self.options.pooling)

    def part(self, model: keras.Model, name: str, run: RunFiles) -> keras.Model:
        """Return the model of one task: the encoder with its head; the same until there is
        another."""
        if model is not self._model:
            self._model, self._parts = model, {}
        if name not in self._parts:
            [output] = self.tasks[name].heads(run)
            head = {output: model.heads[name]}
            part = WithHeads(model.encoder, head, model.frozen, model.pooling)
            part.build(None)
            self._parts[name] = part
        return self._parts[name]

    def loss(self) -> Any:
        return {name: modelling.loss() for name, modelling in self.tasks.items()}

    def loss_weights(self) -> Any:
        return self.weights

    def metrics(self) -> Any:
        return {name: modelling.metrics() for name, modelling in self.tasks.items()}


class SeveralScoring(Scoring):
    """The scores of each task, and the mean of their first ones."""

    def __init__(self, options: FitOptions, reading: SeveralReading, modelling: Modelling):
        super().__init__(options, reading, modelling)
        self.tasks = {name: task.scoring for name, task in reading.tasks.items()}
        self.score_formats = {
            _named(name, score): form
            for name, scoring in self.tasks.items()
            for score, form in scoring.score_formats.items()
        }

    def validation_scores(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, float]:
        named, firsts = {}, []
        for name, scoring in self.tasks.items():
            pairs = zip(examples, answers, strict=True)
            pairs = [(example.example, answer) for example, answer in pairs if example.task == name]
            task_scores = scoring.validation_scores(*map(list, zip(*pairs)))
            firsts.append(next(iter(task_scores.values())))
            named |= {_named(name, score): number for score, number in task_scores.items()}
        return {MEAN: float(np.mean(firsts)), **named}

    def sample(self, example: Any, answer: Any) -> dict[str, str]:
        return {"task": example.task, **self.tasks[example.task].sample(example.example, answer)}

    def tests(self, validation: Sequence[Any]) -> Iterable[tuple[str, list[Any]]]:
        for name in self.tasks:
            yield name, [example for example in validation if example.task == name]

    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        pairs = [pair for both in answered.values() for pair in zip(*both, strict=True)]
        examples, answers = map(list, zip(*pairs))
        mean = self.validation_scores(examples, answers)[MEAN]
        named = {
            name: scoring.scores({name: (_of_task(name, answered[name][0]), answered[name][1])})
            for name, scoring in self.tasks.items()
        }
        return {MEAN: mean, **named}

    def beside(
        self,
        scores: dict[str, Any],
        train: Sequence[Any],
        answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]],
        run: Any,
    ) -> dict[str, Any]:
        named = {}
        for name, scoring in self.tasks.items():
            examples, answers = answered[name]
            of_task = {name: (_of_task(name, examples), answers)}
            named[name] = scoring.beside(
                scores[name], _of_task(name, train), of_task, run.runs[name]
            )
        return scores | named

    def shown(self, scores: Mapping[str, Any]) -> Iterator[Any]:
        for name, scoring in self.tasks.items():
            yield f"{name}:"
            yield from scoring.shown(scores[name])

    def summary(self, scores: Mapping[str, Any]) -> str:
        parts = [f"{name}: {scoring.summary(scores[name])}" for name, scoring in self.tasks.items()]
        return "; ".join(parts)


class SeveralCalibrating(Calibrating):
    """The heads of several tasks, each by the task's own examples."""

    def calibrated(
        self,
        model: keras.Model,
        answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]],
        run: Any,
    ) -> dict[str, Any] | None:
        """Calibrate the head of each task; see `Calibrating.calibrated`.

        Returns:
            name of a task -> what scores.json says of it, or None.
        """
        calibrations = {}
        for name, task in self.reading.tasks.items():
            examples, answers = answered[name]
            of_task, part = run.runs[name], self.modelling.part(model, name, run.runs[name])
            pair = {name: (_of_task(name, examples), answers)}
            if calibration := task.calibrating.calibrated(part, pair, of_task):
                calibrations[name] = calibration
        return calibrations or None

    def draw(self, calibration: dict[str, Any], path: Path | str) -> None:
        """Draw nothing: each task has diagrams of its own."""

    def behind(
        self, calibration: Mapping[str, Any], run: Any, scores: dict[str, Any]
    ) -> tuple[Any, dict[str, Any]]:
        for name, of_task in calibration.items():
            scores[name]["calibration"] = of_task
        return run, scores


@dataclasses.dataclass(frozen=True)
class SeveralRuns:
    """The runs of the tasks, and the whole, from whose encoder another training may begin.

    Attributes:
        task: the `Several`.
        runs: name -> `seqkeras.runs.RunFiles`.
    """

    task: Several
    runs: dict

    def write_tokenizers(self, folder: Path) -> None:
        next(iter(self.runs.values())).write_tokenizers(folder)

    def write(self, folder: Path, model: keras.Model, scores: Mapping[str, Any]) -> None:
        """Write the files like `RunFiles.write`; the record of the whole is last."""
        for name, run in self.runs.items():
            path, table = folder / FOLDER / name, self.task.tables[name]
            path.mkdir(parents=True, exist_ok=True)
            files.write_json(path / OPTIONS, options_content(table.task, table.options))
            run.write(path, self.task.modelling.part(model, name, run), scores[name])
            if calibration := scores[name].get("calibration"):
                self.task.tasks[name].calibrating.draw(calibration, path / CALIBRATION)
        self.write_tokenizers(folder)
        with files.written_aside(folder / MODEL) as aside:
            model.save(aside)
        files.write_json(folder / SCORES, scores)
        tokenizers = next(iter(self.runs.values())).record.tokenizers
        record = self.task.reading.record([], {})
        RunRecord(
            self.task.name, decoding={}, text_prefix=None, tokenizers=tokenizers, **record
        ).write(folder)


class SeveralAnswers:
    """Texts of several tasks to the answers of each.

    Args:
        modelling: the `SeveralModelling`.
        runs: name -> `seqkeras.runs.RunFiles`.
        answers: name -> what answers, of `seqkeras.training.answering`.
    """

    def __init__(
        self, modelling: SeveralModelling, runs: Mapping[str, RunFiles], answers: Mapping[str, Any]
    ):
        self.modelling, self.runs, self.answers = modelling, runs, answers

    def __call__(
        self,
        model: keras.Model,
        texts: Sequence[Text],
        advance: Callable[[int], object] | None = None,
    ) -> Any:
        """Answer as the answerers of `seqkeras.training.answering` do."""
        answers = [None] * len(texts)
        for name, answer in self.answers.items():
            indices = [index for index, text in enumerate(texts) if text.task == name]
            if indices:
                part = self.modelling.part(model, name, self.runs[name])
                task_answers = answer(
                    part, [texts[index].text for index in indices], advance=advance
                )
                for index, answered in zip(indices, task_answers, strict=True):
                    answers[index] = answered
        return answers


def _of_task(name, examples):
    """Return the examples of one task, as it read them."""
    if isinstance(examples, Examples):
        return examples.parts[name]
    return [example.example for example in examples if example.task == name]


def _named(task, score):
    """Return the name of a task's score among the scores of several tasks."""
    return f"{task}: {score}"


def _joined_inputs(parts):
    """Return the inputs of all tasks; where only some have segments, the others' are 0."""
    names = dict.fromkeys(name for part in parts for name in part)
    for part in parts:
        for name in names:
            if name not in part:
                part[name] = Sequences([[0] * length for length in part["lengths"]])
    return {name: _joined([part[name] for part in parts]) for name in names}


def _joined(arrays):
    kind = type(arrays[0])
    return kind.joined(arrays) if issubclass(kind, Sequences) else np.concatenate(arrays)


def _nothing(target, lengths):
    """Return targets of the form of others that count nothing, of rows of these lengths."""
    if isinstance(target, Sequences):
        return Sequences([[UNLABELLED] * length for length in lengths], padding=UNLABELLED)
    if target.dtype.kind == "f":
        return np.full((len(lengths), *target.shape[1:]), np.nan, target.dtype)
    return np.full((len(lengths), *target.shape[1:]), UNLABELLED, target.dtype)
