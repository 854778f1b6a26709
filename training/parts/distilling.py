"""Distillation: a task around a task, whose model learns the answers of another run, too."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.data.augmenting import altered
from seqkeras.data.batches import Batches, FrameSequences, Sequences
from seqkeras.data.stored import Stored, joined, mapped, taken
from seqkeras.losses import DistanceLoss
from seqkeras.models import Distillation
from seqkeras.models.distillation import LOGITS
from seqkeras.runs import RunError
from seqkeras.training.console import console
from seqkeras.training.parts.classification import UNLABELLED
from seqkeras.training.parts.classification import Example as Labelled
from seqkeras.training.parts.pretrained import spread
from seqkeras.training.parts.read_words import read_words
from seqkeras.training.parts.regression import Example as Numbered
from seqkeras.training.parts.tagging import NO_TAG
from seqkeras.training.parts.teacher import Teacher
from seqkeras.training.parts.text_rows import parts
from seqkeras.training.task import Modelling, Reading, Task
from seqkeras.training.wording import counted

if TYPE_CHECKING:
    import keras

    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer

WEIGHTS = {"hidden": "distil_hidden", "attention": "distil_attention"}  # of what, its option


def distilled(task: Task) -> Task:
    """Return a task around one of classification, regression or tagging with a --teacher."""
    read, model = DISTILLED[task.name]
    reading = read(task.reading)
    modelling = model(task.modelling, reading)
    return Task(task.options, reading, modelling, task.scoring, task.calibrating)


class DistilledReading(Reading):
    """Examples of a task, and its teacher.

    Args:
        inner: the `Reading` of the task.
    """

    pipeline: str  # of the teacher's run

    def __init__(self, inner: Any):
        super().__init__(inner.options)
        self.inner = inner

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        options = self.options
        self.teacher = Teacher(options.teacher, self.pipeline)
        if options.pretrained is None and options.encoder == "bert":
            self.inner.pretrained = self.teacher.small(options)
        train, validation = self.inner.read()
        if options.keep_layers is not None:
            self.inner.pretrained = self.inner.pretrained.with_layers(options.keep_layers)
        more = self.unlabelled(train)
        return joined([train, more]) if more else train, validation

    def unlabelled(self, train: Sequence[Any]) -> Sequence[Any]:
        """Return examples without labels."""
        return []

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        return self.inner.tokenizers(examples)

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        return self.inner.texts_read(examples, tokenizers)

    @property
    def compared(self) -> list[str]:
        """Which of the layers are compared: "hidden", "attention"."""
        return [name for name, option in WEIGHTS.items() if getattr(self.options, option)]

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        has_label = np.fromiter((example.target is not None for example in examples), bool)
        record = self.inner.record(taken(examples, np.flatnonzero(has_label)), tokenizers)
        theirs = self.teacher.run.record.settings
        for name in ("labels", "pairs"):
            example, other = record["settings"].get(name), theirs.get(name)
            if (example or None) != (other or None):
                raise RunError(
                    f"--teacher {self.options.teacher}: must have the {name} of "
                    f"{self.options.file}, {_shown(example)}; it has {_shown(other)}."
                )
        if self.compared:
            student = self.inner.pretrained
            limit, pairs = record["limits"]["source_length"], record["settings"].get("pairs")
            self.teacher.require_same_tokens(student, limit, pairs)
            heads = self.teacher.encoder.config["num_heads"]
            if "attention" in self.compared and student.config["num_heads"] != heads:
                raise RunError(
                    f"--distil-attention: the student must have the {heads} heads of the teacher; "
                    f"it has {student.config['num_heads']}. Choose --num-heads {heads}, or leave "
                    "it out."
                )
        return record


class DistilledTexts(DistilledReading):
    """Texts and pairs, some of which may have no label."""

    pipeline = "Classify"

    def unlabelled(self, train: Sequence[Any]) -> Sequence[Any]:
        if self.options.unlabelled is None and not self.options.augment:
            return []
        texts = {example.text: None for example in train}
        known = len(texts)
        texts |= dict.fromkeys(self._more())
        for number in range(self.options.augment):
            copies = [
                altered(pair, [self.options.seed, number, index])
                for index, pair in enumerate(zip(*(parts(example.text) for example in train)))
            ]
            copies = copies[0] if self.options.pair_column is None else zip(*copies)
            has_token = self.inner.has_token
            texts |= dict.fromkeys(copy for copy in copies if all(map(has_token, parts(copy))))
        if len(texts) > known:
            more = counted(
                len(texts) - known, "texts without a label are", "text without a label is"
            )
            console.print(f"  {more} the teacher's")
        return Stored(map(self.without_label, itertools.islice(texts, known, None)))

    def without_label(self, text: Any) -> Any:
        """Return the example of a text."""
        return Labelled(text, None)

    def _more(self):
        """Return the texts of --unlabelled."""
        options = self.options
        if options.unlabelled is None:
            return []
        names = [name for name in ("text_column", "pair_column") if getattr(options, name)]
        columns = [getattr(options, name) for name in names]
        rows = self.inner.filled_rows(options.unlabelled, columns, names)
        return [values if len(columns) > 1 else values[0] for _, values in rows]


class DistilledNumbers(DistilledTexts):
    """Texts and pairs with a number each."""

    def without_label(self, text: Any) -> Any:
        return Numbered(text, float("nan"))


class DistilledSentences(DistilledReading):
    """Sentences whose words have tags."""

    pipeline = "Tag"


class DistilledModelling(Modelling):
    """A `Distillation` around the task's model.

    The teacher's logits are computed once, before the training, and kept in the run's folder while
    it lasts; hidden states and attention are computed at each step.

    Args:
        inner: the `Modelling` of the task.
        reading: a `DistilledReading`.
    """

    ignored = UNLABELLED  # the target of what has no label

    def __init__(self, inner: Any, reading: Reading):
        super().__init__(inner.options, reading)
        self.inner, self.validation_loss = inner, inner.validation_loss
        inner.ignored = self.ignored

    def arrays(self, examples: Sequence[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        inputs, labels, lengths = self.inner.arrays(examples, run)
        texts = mapped(examples, operator.attrgetter("text"))
        answers = self.reading.teacher.answers(texts, self.folder)
        logits, soft = self.soft_targets(answers, examples, run)
        targets = {"labels": labels, "soft": soft}
        targets |= {name: np.zeros(len(examples), "float32") for name in self.reading.compared}
        return {**inputs, LOGITS: logits}, targets, lengths

    def soft_targets(
        self, answers: Sequence[Any], examples: Sequence[Any], run: RunFiles
    ) -> tuple[Any, Any]:
        """Return the teacher's logits as an input of the model, and the targets of their
        distance."""
        return answers, np.zeros(len(examples), "float32")

    def batches(self, examples: Sequence[Any], run: RunFiles) -> Batches:
        inputs, targets, lengths = self.arrays(examples, run)
        return Batches(inputs, targets, self.order(lengths), tokens=lengths)

    def begun(self, folder: Path) -> None:
        self.reading.teacher.keep(folder)

    def model(self, run: RunFiles) -> keras.Model:
        options, student = self.options, self.inner.model(run)
        teacher: Any = None
        pairs: dict[str, Any] = {}
        if self.reading.compared:
            teacher = self.reading.teacher.load()
            layers, others = (
                model.encoder.config["num_layers"]
                for model in (student, self.reading.teacher.model)
            )
            blocks = [*zip(range(1, layers + 1), spread(layers, others), strict=True)]
            pairs = {"hidden": [(0, 0), *blocks], "attention": blocks}
            pairs = {name: pairs[name] for name in self.reading.compared}
        soft = {"temperature": options.distil_temperature, "soft": options.distil_loss}
        model = Distillation(student, teacher, **pairs, **soft | self.of_numbers())
        model.build(None)
        return model

    def of_numbers(self) -> dict[str, Any]:
        """Return arguments of the `Distillation` where answers are no logits."""
        return {}

    def trained(self, model: keras.Model) -> keras.Model:
        return model.student

    def loss(self) -> Any:
        distances = {name: DistanceLoss(self.ignored) for name in ("soft", *self.reading.compared)}
        return {"labels": self.inner.loss(), **distances}

    def loss_weights(self) -> Any:
        options = self.options
        weights = {"labels": 1 - options.distil_weight, "soft": options.distil_weight}
        return weights | {name: getattr(options, WEIGHTS[name]) for name in self.reading.compared}

    def metrics(self) -> Any:
        return {"labels": self.inner.metrics()}


class DistilledNumberModelling(DistilledModelling):
    """Numbers, which are compared in units of the deviation."""

    ignored = None

    def of_numbers(self) -> dict[str, Any]:
        return {"soft": "mse", "scale": self.reading.inner.deviation}

    def metrics(self) -> Any:
        return {}


class DistilledTagModelling(DistilledModelling):
    """Tags; the teacher answers for the words' first tokens."""

    ignored = NO_TAG

    def soft_targets(
        self, answers: Sequence[Any], examples: Sequence[Any], run: RunFiles
    ) -> tuple[Any, Any]:
        rows, targets = [], []
        for example, of_words in zip(examples, answers, strict=True):
            read = read_words(run, example.text)
            row = np.zeros((len(read), of_words.shape[-1]), "float32")
            counts = np.full(len(read), NO_TAG)
            for number, token in zip(read.numbers, read.first_tokens, strict=True):
                if not np.isnan(of_words[number, 0]):  # else the teacher did not read the word
                    row[token], counts[token] = of_words[number], 0
            rows.append(row)
            targets.append(counts.tolist())
        return FrameSequences(rows), Sequences(targets, padding=NO_TAG)


DISTILLED = {  # name of a task -> what reads, what models
    "classification": (DistilledTexts, DistilledModelling),
    "regression": (DistilledNumbers, DistilledNumberModelling),
    "tagging": (DistilledSentences, DistilledTagModelling),
}


def _shown(value):
    return ", ".join(map(repr, value)) if isinstance(value, list) else repr(value)
