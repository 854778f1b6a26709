"""Sentences, pairs of sentences, or frames of numbers, and their labels, from a user's file."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import numpy as np
from rich.table import Table

from seqkeras.data.stored import Stored, joined, taken
from seqkeras.losses import SmoothedCrossEntropy
from seqkeras.metrics import TokenAccuracy, class_scores, exact_match, matthews_correlation
from seqkeras.models import ClassificationHead
from seqkeras.models.linear_ngrams import linear_part
from seqkeras.runs import RunError
from seqkeras.serving.categories import category_text
from seqkeras.terminal import one_line
from seqkeras.training import none_of_these
from seqkeras.training.baselines import Measure, ratio, right_labels
from seqkeras.training.calibration import FEWEST, Chances, divide_logits, logits_of
from seqkeras.training.console import add_rows, console, say_merged, say_single
from seqkeras.training.parts.baselines.texts import classes_of_frames, classes_of_texts
from seqkeras.training.parts.carried_windows import in_training
from seqkeras.training.parts.delays import Delays
from seqkeras.training.parts.features import require_features
from seqkeras.training.parts.frames import FrameModelling, Frames
from seqkeras.training.parts.labelled_texts import LabelledTextModelling, LabelledTexts
from seqkeras.training.parts.linear_ngrams import (
    FEWEST_TEXTS,
    MOST_LABELS,
    balance,
    fitted_ngrams,
    logits_of_ngrams,
)
from seqkeras.training.parts.splitting import folds_apart, split
from seqkeras.training.parts.text_rows import parts
from seqkeras.training.task import Calibrating, Scoring
from seqkeras.training.wording import counted, listed

if TYPE_CHECKING:
    from seqkeras.data.batches import Batches
    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer
    from seqkeras.training.baselines import Method

LABEL = "label"  # the layer that gives the logits
UNLABELLED = -1  # the target of an example without a label, which a teacher answers
SHARES = ("precision", "recall", "f1")  # of a label
NONE = "none of these"  # in samples.txt
SHOWN = {  # the scores of a look, and their names in history.csv
    "accuracy": "validation examples right",
    "f1": "F1",
    "macro_f1": "macro F1",
    "matthews_correlation": "Matthews' correlation",
}


class Example(NamedTuple):
    """A text, or a tuple of two, and its label; None where a teacher gives it, and where a text has
    none of the labels."""

    text: str | tuple[str, str]
    target: str | None


class ClassificationReading(LabelledTexts):
    """Sentences, pairs or frames, and their labels."""

    target_option = "label_column"
    frames = None  # `Frames`, where inputs are no texts
    tells_none = False  # whether None is an answer of the model

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        options = self.options
        if options.recordings.reads_frames(options.file):
            self.frames = Frames(options, options.label_column, for_each_frame=False)
        require_features(options, self.frames)
        self.read_pretrained()
        rows = self._rows(options.file)
        labels = _labels(options.file, options.label_column, rows)
        self._require_positive(options.file, labels)
        self._require_strangers(rows)
        of_rows = Counter(row.target for _, row, _ in rows if row.target is not None)
        say_single(options.file, of_rows, unit="recording" if self.frames else "row")
        train = _examples(rows)
        if options.folds is not None:
            train, validation = folds_apart(train, [group for *_, group in rows], options)
            self._require_labels(train, labels)
        elif options.validation is None:
            train, validation = split(train, options, lambda example: [example.target])
        else:
            validation = self._of_known_labels(options.validation, labels, options.file)
            if self.frames:
                self.frames.require_size(train, validation)
        self._require_held_out(validation)
        console.print(
            f"{options.task}: {len(train):,} training and {len(validation):,} validation examples "
            f"of {len(labels):,} labels"
        )
        return train, validation

    def _rows(self, path):
        """Return (line, or place of a recording, example, group for --folds) of each row."""
        if self.frames:
            recordings = self.frames.read(path)
            return [
                (recording.where, recording, index) for index, recording in enumerate(recordings)
            ]
        rows = self.rows(path)
        distinct = {written for _, _, written, _ in rows}
        say_merged(path, self.options.label_column, distinct)
        label_of = {written: self._label(category_text(written)) for written in distinct}

        def row(read):
            line, text, written, group = read
            return line, Example(text, label_of[written]), group

        return rows.mapped(row)

    def _label(self, written):
        """Return the label of a row; None where it has none of the labels."""
        none = self.options.none_label
        return None if none is not None and written == category_text(none) else written

    def _require_strangers(self, rows):
        options = self.options
        if options.none_label is not None and all(row.target is not None for _, row, _ in rows):
            raise RunError(
                f"--none-label {options.none_label!r:.40}: must be the label of a row of "
                f"{options.file}; none has it. Name another, or leave the option out."
            )

    def _require_held_out(self, validation):
        """Raise a `RunError` unless the threshold of None can be chosen."""
        options = self.options
        if not options.none_of_these:
            return
        self.tells_none = options.none_label is not None
        count = sum(example.target is not None for example in validation)
        fewest = none_of_these.fewest(options.false_alarms) + 1  # one is left out, to tell of it
        if count < fewest:
            raise RunError(
                f"--none-of-these: at least {fewest:,} held-out examples with a label must choose "
                f"the threshold of {options.false_alarms:.1%} false alarms; there are {count:,}. "
                "Choose a larger --held-out, or more --false-alarms."
            )

    def _require_positive(self, path, labels):
        positive = self.positive
        if positive is not None and (len(labels) != 2 or positive not in labels):
            raise RunError(
                f"--positive-label {positive!r:.40}: must be one of two labels; {path} has "
                f"{listed(labels)}."
            )

    @property
    def positive(self) -> str | None:
        """--positive-label as labels are read."""
        positive = self.options.positive_label
        return None if positive is None else category_text(positive)

    def _require_labels(self, train, labels):
        missing = sorted({*labels} - {example.target for example in train})
        if missing:
            raise RunError(
                f"{self.options.file}: no row with the label {listed(missing)} is left for "
                "training; choose fewer --folds, or another --seed."
            )

    def examples_of(
        self, paths: Sequence[Path | str], settings: Mapping[str, Any]
    ) -> Sequence[Any]:
        if self.options.recordings.reads_frames(paths[0]) or settings.get("rows"):
            frames = Frames(self.options, self.options.label_column, for_each_frame=False)
            self.frames = frames.of_settings(settings)
        self.tells_none = settings.get(none_of_these.SETTING, False)
        if self.options.none_label is not None and not self.tells_none:
            raise RunError(
                "--none-label: null is no answer of this model; train it with --none-of-these, or "
                "leave the option out."
            )
        known = settings["labels"], "what was trained"
        examples = joined(self._of_known_labels(path, *known) for path in paths)
        if all(example.target is None for example in examples):
            raise RunError(
                f"{paths[0]}: must hold a row with a label; all {len(examples):,} rows have "
                f"{self.options.none_label!r:.40}."
            )
        return examples

    def _of_known_labels(self, path, labels, source):
        """Return the examples of a file with the labels of another file."""
        rows = self._rows(path)
        for location, example, _ in rows:
            if example.target is not None and example.target not in labels:
                where = location if self.frames else f"{path}, line {location}"
                raise RunError(
                    f"{where}: the label {example.target!r:.40} is not in {source}, which has "
                    f"{listed(labels)}."
                )
        return _examples(rows)

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        return {} if self.frames else super().tokenizers(examples)

    def kept(self, validation: Sequence[Any]) -> Sequence[Any]:
        return self.frames.kept(validation) if self.frames else validation

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        if self.frames:
            limits, settings = self.frames.record(examples)
        else:
            limits, settings = self.limits(), self.settings()
        labels = sorted({example.target for example in examples} - {None})
        none = {none_of_these.SETTING: True} if self.tells_none else {}
        return {
            "pipeline": "Classify",
            "limits": limits,
            "settings": {"labels": labels} | none | settings,
        }


class ClassificationModelling(FrameModelling, LabelledTextModelling):
    """Texts or frames to a model that gives each label a logit."""

    ignored = None  # the target that counts nothing: `UNLABELLED`, where there are such
    delays: Delays | None = None  # of a causal model of frames
    learned: tuple[Any, Any]  # token ids and targets of the training examples, of a linear part

    def arrays(self, examples: Sequence[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        labels = run.record.settings["labels"] + [None] * self.reading.tells_none
        index_of = {label: index for index, label in enumerate(labels)}
        targets = np.fromiter(
            (index_of.get(example.target, UNLABELLED) for example in examples), "int64"
        )
        if self.reading.frames:
            inputs, lengths = self.reading.frames.inputs(
                examples, run.record.limits["source_length"]
            )
            return inputs, targets, lengths
        return self.text_inputs(examples, targets, run)

    @property
    def validation_loss(self) -> bool:
        return not self.carries_state()  # else `measure` has the loss, of recordings of any length

    def measure(
        self, model: keras.Model, examples: Sequence[Any], run: RunFiles
    ) -> dict[str, float]:
        self.delays = self.delays or Delays(has_loss=not self.validation_loss)
        return self.delays(self, model, examples, run)

    def batches(self, examples: Sequence[Any], run: RunFiles) -> Batches:
        every = self.options.answer_every
        if self.carries_state():
            labels, every = run.record.settings["labels"], every or self.options.carry_every
            targets = [
                _at_ends(labels.index(example.target), len(example), every) for example in examples
            ]
            return self.reading.frames.carried(examples, targets, UNLABELLED)
        if every is not None:
            examples = [part for example in examples for part in example.beginnings(every)]
        batches = super().batches(examples, run)
        inputs, targets = batches.arrays
        if self.options.has_linear:
            self.learned = inputs["token_ids"], targets
            self._require_linear(targets, _classes(run))
        return batches

    def model(self, run: RunFiles) -> keras.Model:
        options = self.options
        if self.reading.pretrained:
            return self.reading.pretrained.with_heads(
                self.heads(run), options.frozen, options.pooling
            )
        if self.reading.frames:
            inputs, hidden, real = self.reading.frames.encoded(run.record.limits["source_length"])
            summary = self.summarized(inputs, hidden, real)
        else:
            inputs, summary = self.encoded(run)
        logits = keras.layers.Dense(_classes(run), name=LABEL)(summary)
        if linear := self._linear(run):
            logits = keras.layers.Add()([logits, linear(inputs["token_ids"])])
        return in_training(keras.Model(inputs, logits), self.options)

    def _require_linear(self, targets, num_labels):
        """Raise a `RunError` where a linear part is asked for that can not be."""
        if self.options.linear and (len(targets) < FEWEST_TEXTS or num_labels > MOST_LABELS):
            raise RunError(
                f"--linear: needs at least {FEWEST_TEXTS} training texts and at most {MOST_LABELS} "
                f"labels; there are {len(targets):,} and {num_labels:,}. Leave it out."
            )

    def _linear(self, run):
        """Return the layer of the linear part, if the options and the examples give one."""
        if not self.options.has_linear:
            return None
        tokenizer, seed = run.tokenizers["text"], self.options.seed
        return fitted_ngrams(tokenizer, *self.learned, _classes(run), seed)

    def heads(self, run: RunFiles) -> dict[str, keras.Layer]:
        """Return a dictionary: name -> head, of a pre-trained encoder."""
        return {"label": ClassificationHead(_classes(run), self.options.dropout)}

    def loss(self) -> Any:
        return SmoothedCrossEntropy(self.options.label_smoothing, self._ignored())

    def metrics(self) -> Any:
        return [TokenAccuracy(self._ignored(), "accuracy")]

    def _ignored(self):
        return UNLABELLED if self.carries_state() else self.ignored


class ClassificationScoring(Scoring):
    """Labels that are right, F1, Matthews' correlation."""

    score_formats = {"Matthews' correlation": ".3f"}

    def validation_scores(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, float]:
        scores = self._scores(*_in_scope(examples, answers))
        return {label: scores[name] for name, label in SHOWN.items() if name in scores}

    def scores_beside(self, examples: Sequence[Any], answers: Sequence[Any]) -> dict[str, float]:
        scores = self._scores(examples, answers)
        average = "" if "f1" in scores else "macro "
        return {
            SHOWN["accuracy"]: scores["accuracy"],
            **{
                f"{average}{name}": scores[f"{average}{name}".replace(" ", "_")]
                for name in SHARES[:2]
            },
            f"{average}F1": scores[f"{average}f1".replace(" ", "_")],
            SHOWN["matthews_correlation"]: scores["matthews_correlation"],
        }

    def _scores(self, examples, answers):
        """Return a dictionary: name -> number; "f1", with its precision and recall, is that of the
        positive one of two labels."""
        predictions = [label for answer in answers for label in answer.labels]
        targets, labels = [example.target for example in examples], sorted(answers[0].scores)
        by_label = class_scores(predictions, targets)
        by_label.pop(None, None)
        scores = {"accuracy": exact_match(predictions, targets)}
        if len(labels) == 2:
            scores |= by_label.get(self.reading.positive or labels[-1], dict.fromkeys(SHARES, 0.0))
        means = {
            f"macro_{name}": float(np.mean([of_label[name] for of_label in by_label.values()]))
            for name in SHARES
        }
        return scores | {
            **means,
            "matthews_correlation": matthews_correlation(predictions, targets),
            "by_label": {
                label: {"examples": targets.count(label), **of_label}
                for label, of_label in by_label.items()
            },
        }

    def sample(self, example: Any, answer: Any) -> dict[str, str]:
        frames = self.reading.frames
        given = frames.sample(example) if frames else {"input": " | ".join(parts(example.text))}
        return given | {"target": _named([example.target]), "answer": _named(answer.labels)}

    def methods(self, train: Sequence[Any], run: RunFiles) -> list[Method]:
        methods = classes_of_frames if self.reading.frames else classes_of_texts
        has_label = np.fromiter((example.target is not None for example in train), bool)
        labelled = taken(train, np.flatnonzero(has_label))
        return methods(labelled, run.record.settings["labels"], self.options.seed)

    def beside(
        self,
        scores: dict[str, Any],
        train: Sequence[Any],
        answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]],
        run: RunFiles,
    ) -> dict[str, Any]:
        answered = {name: _in_scope(*pair) for name, pair in answered.items()}
        return super().beside(scores, train, answered, run)

    def compared_by(self) -> Measure:
        return Measure(SHOWN["accuracy"], ratio)

    def sums(self, examples: Sequence[Any], answers: Sequence[Any]) -> np.ndarray:
        return right_labels(examples, answers)

    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        [pair] = answered.values()
        examples, answers = _in_scope(*pair)
        scores = {"examples": len(examples)} | self._scores(examples, answers)
        return scores | ({"none_of_these": _told(*pair)} if self.reading.tells_none else {})

    def table(self, scores: Mapping[str, Any]) -> Any:
        null = "; null is a wrong answer" if "none_of_these" in scores else ""
        table = Table(title=f"of {counted(scores['examples'], 'examples')}{null}")
        table.add_column("label")
        table.add_column("examples", justify="right")
        for name in ("precision", "recall", "F1"):
            table.add_column(name, justify="right")
        by_label = sorted(scores["by_label"].items(), key=lambda item: -item[1]["examples"])
        add_rows(
            table,
            [
                (
                    one_line(label),
                    f"{of_label['examples']:,}",
                    *(f"{of_label[name]:.2%}" for name in SHARES),
                )
                for label, of_label in by_label
            ],
        )
        table.add_section()
        means = (f"{scores[f'macro_{name}']:.2%}" for name in SHARES)
        table.add_row("all, macro", f"{scores['examples']:,}", *means)
        return table

    def summary(self, scores: Mapping[str, Any]) -> str:
        f1 = ""
        if "f1" in scores:
            f1 = (
                f"F1 is {scores['f1']:.2%} (precision {scores['precision']:.2%}, recall "
                f"{scores['recall']:.2%}), "
            )
        return (
            f"right are {scores['accuracy']:.2%}, {f1}macro F1 is {scores['macro_f1']:.2%}, "
            f"Matthews' correlation {scores['matthews_correlation']:.3f}"
        )


class ClassificationCalibrating(Calibrating):
    """Probabilities of labels, and of none of them."""

    linear = LABEL

    def chances(
        self, model: keras.Model, examples: Sequence[Any], answers: Sequence[Any], run: RunFiles
    ) -> list[Chances]:
        labels = run.record.settings["labels"]
        return [
            Chances(
                logits_of([answer.scores[label] for label in labels]),
                labels.index(example.target),
                number,
            )
            for number, (example, answer) in enumerate(zip(examples, answers, strict=True))
            if example.target in labels and answer.scores  # none of NaN
        ]

    def certainty(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> list[tuple[float, bool]]:
        return [
            (answer.score, example.target in answer.labels)
            for example, answer in zip(*_in_scope(examples, answers), strict=True)
        ]

    def last_layers(self, model: keras.Model) -> list[keras.Layer]:
        return [*super().last_layers(model), *filter(None, [linear_part(model)])]

    def balanced(
        self,
        model: keras.Model,
        answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]],
        run: RunFiles,
    ) -> bool:
        [(examples, answers)] = answered.values()
        part, chances = linear_part(model), self.chances(model, examples, answers, run)
        if part is None or len(chances) < FEWEST:
            return False
        logits, targets = (np.array([chance[field] for chance in chances]) for field in (0, 1))
        scored = [examples[chance.example] for chance in chances]
        with console.capture():  # what `arrays` prints was said before
            inputs, _, _ = self.modelling.arrays(scored, run)
        linear = logits_of_ngrams(part, inputs["token_ids"])[:, : logits.shape[1]]
        divide_logits([part], 1 / balance(logits, linear, targets))
        return True

    def answering_none(
        self,
        model: keras.Model,
        run: RunFiles,
        train: Sequence[Any],
        answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]],
    ) -> tuple[keras.Model, RunFiles, dict[str, Any] | None]:
        if not self.options.none_of_these:
            return super().answering_none(model, run, train, answered)
        [pair] = answered.values()
        learned = self.reading.tells_none
        return none_of_these.answering_none(
            model, self.linear, self.modelling, run, train, pair, learned
        )


def _classes(run):
    """Return how many logits a model has."""
    settings = run.record.settings
    return len(settings["labels"]) + settings.get(none_of_these.SETTING, False)


def _named(labels):
    return ", ".join(NONE if label is None else label for label in labels)


def _in_scope(examples, answers):
    """Return the examples that have a label, and their answers."""
    places = [index for index, example in enumerate(examples) if example.target is not None]
    return [examples[index] for index in places], [answers[index] for index in places]


def _told(examples, answers):
    """Return what is told of the answer None."""
    pairs = [(example.target, answer.labels) for example, answer in zip(examples, answers)]
    return none_of_these.told(
        np.array([labels == (None,) for _, labels in pairs]),
        np.array([target is not None for target, _ in pairs]),
        np.array([labels == (target,) for target, labels in pairs]),
    )


def _at_ends(label, length, every):
    """Return (frames,) targets of a recording: the label at every so many frames and at the end."""
    targets = np.full(length, UNLABELLED)
    targets[every - 1 :: every] = targets[-1] = label
    return targets


def _examples(rows):
    """Return the examples of rows, of recordings as a list."""
    if isinstance(rows, Stored):
        return rows.mapped(operator.itemgetter(1))
    return [example for _, example, _ in rows]


def _labels(path, column, rows):
    """Return the labels of a file, in order."""
    labels = sorted({example.target for _, example, _ in rows} - {None})
    if len(labels) < 2:
        raise RunError(
            f"{path}: {column!r} must hold two labels at least; all {len(rows):,} rows have "
            f"{listed(labels) or repr(NONE)}."
        )
    if len(labels) == len(rows):
        raise RunError(
            f"{path}: each of the {len(rows):,} rows has another {column!r}, so nothing can be "
            "learned; choose another --label-column."
        )
    return labels
