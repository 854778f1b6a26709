"""Distillation: a task's model learns the answers of another run beside the labels."""

import numpy as np

from seqkeras.data.augmenting import altered
from seqkeras.data.batches import Batches, FrameSequences, Sequences
from seqkeras.losses import DistanceLoss
from seqkeras.models import Distillation
from seqkeras.models.distillation import LOGITS
from seqkeras.runs import RunError
from seqkeras.training.answering.tag import read_words
from seqkeras.training.console import console
from seqkeras.training.tasks.classification import UNLABELLED, Classification
from seqkeras.training.tasks.classification import Example as Labelled
from seqkeras.training.tasks.labelled_texts import parts
from seqkeras.training.tasks.pretrained import spread
from seqkeras.training.tasks.regression import Example as Numbered
from seqkeras.training.tasks.regression import Regression
from seqkeras.training.tasks.tagging import NO_TAG, Tagging
from seqkeras.training.tasks.teacher import Teacher
from seqkeras.training.wording import counted

WEIGHTS = {"hidden": "distil_hidden", "attention": "distil_attention"}  # of what, its option


class Distilling:
    """A part of a task with a `Distillation` as its model; stands before the task's class.

    The teacher's logits are computed once, before the training, and kept in the run's folder while
    it lasts; hidden states and attention are computed at each step.
    """

    pipeline: str  # of the teacher's run
    ignored = UNLABELLED  # the target of what has no label

    def read(self):
        options = self.options
        self.teacher = Teacher(options.teacher, self.pipeline)
        if options.pretrained is None and options.encoder == "bert":
            self.pretrained = self.teacher.small(options)
        train, validation = super().read()
        if options.keep_layers is not None:
            self.pretrained = self.pretrained.with_layers(options.keep_layers)
        return train + self.unlabelled(train), validation

    def unlabelled(self, train):
        """Return examples without labels."""
        return []

    @property
    def compared(self):
        """Which of the layers are compared: "hidden", "attention"."""
        return [name for name, option in WEIGHTS.items() if getattr(self.options, option)]

    def record(self, examples):
        record = super().record([own for own in examples if own.target is not None])
        theirs = self.teacher.run.record.settings
        for name in ("labels", "pairs"):
            own, other = record["settings"].get(name), theirs.get(name)
            if (own or None) != (other or None):
                raise RunError(
                    f"--teacher {self.options.teacher}: must have the {name} of "
                    f"{self.options.file}, {_shown(own)}; it has {_shown(other)}."
                )
        if self.compared:
            limit, pairs = record["limits"]["source_length"], record["settings"].get("pairs")
            self.teacher.require_same_tokens(self.pretrained, limit, pairs)
            heads = self.teacher.encoder.config["num_heads"]
            if "attention" in self.compared and self.pretrained.config["num_heads"] != heads:
                raise RunError(
                    f"--distil-attention: the student must have the {heads} heads of the teacher; "
                    f"it has {self.pretrained.config['num_heads']}. Choose --heads {heads}, or "
                    "leave it out."
                )
        return record

    def arrays(self, examples, run):
        inputs, labels, lengths = super().arrays(examples, run)
        answers = self.teacher.answers([own.text for own in examples], self.folder)
        logits, soft = self.soft_targets(answers, examples, run)
        targets = {"labels": labels, "soft": soft}
        targets |= {name: np.zeros(len(examples), "float32") for name in self.compared}
        return {**inputs, LOGITS: logits}, targets, lengths

    def soft_targets(self, answers, examples, run):
        """Return the teacher's logits as an input of the model, and the targets of their
        distance."""
        return answers, np.zeros(len(examples), "float32")

    def batches(self, examples, run):
        inputs, targets, lengths = self.arrays(examples, run)
        return Batches(inputs, targets, self.order(lengths), tokens=lengths)

    def begun(self, folder):
        self.teacher.keep(folder)

    def model(self, run):
        options, student = self.options, super().model(run)
        teacher, pairs = None, {}
        if self.compared:
            teacher = self.teacher.load()
            own, others = (
                model.encoder.config["num_layers"] for model in (student, self.teacher.model)
            )
            blocks = [*zip(range(1, own + 1), spread(own, others), strict=True)]
            pairs = {"hidden": [(0, 0), *blocks], "attention": blocks}
            pairs = {name: pairs[name] for name in self.compared}
        soft = {"temperature": options.distil_temperature, "soft": options.distil_loss}
        model = Distillation(student, teacher, **pairs, **soft | self.of_numbers())
        model.build(None)
        return model

    def of_numbers(self):
        """Return arguments of the `Distillation` where answers are no logits."""
        return {}

    def trained(self, model):
        return model.student

    def loss(self):
        distances = {name: DistanceLoss(self.ignored) for name in ("soft", *self.compared)}
        return {"labels": super().loss(), **distances}

    def loss_weights(self):
        options = self.options
        weights = {"labels": 1 - options.distil_weight, "soft": options.distil_weight}
        return weights | {name: getattr(options, WEIGHTS[name]) for name in self.compared}

    def metrics(self):
        return {"labels": super().metrics()}


class TextDistilling(Distilling):
    """The same of texts and pairs, some of which may have no label."""

    pipeline = "Classify"
    example: type  # of (text, target)
    no_label: object  # the target of an example without one

    def unlabelled(self, train):
        texts = {example.text: None for example in train}
        known = len(texts)
        texts |= dict.fromkeys(self._more())
        for number in range(self.options.augment):
            copies = [
                altered(own, [self.options.seed, number, place])
                for place, own in enumerate(zip(*(parts(example.text) for example in train)))
            ]
            copies = copies[0] if self.options.pair_column is None else zip(*copies)
            texts |= dict.fromkeys(copy for copy in copies if all(map(self.has_token, parts(copy))))
        if len(texts) > known:
            more = counted(
                len(texts) - known, "texts without a label are", "text without a label is"
            )
            console.print(f"  {more} the teacher's")
        return [self.example(text, self.no_label) for text in [*texts][known:]]

    def _more(self):
        """Return the texts of --unlabelled."""
        options = self.options
        if options.unlabelled is None:
            return []
        names = [name for name in ("text_column", "pair_column") if getattr(options, name)]
        columns = [getattr(options, name) for name in names]
        rows = self.filled_rows(options.unlabelled, columns, names)
        return [
            tuple(value.values()) if len(columns) > 1 else value[columns[0]] for _, value in rows
        ]


class DistilledClassification(TextDistilling, Classification):
    """`Classification` with a teacher."""

    example, no_label = Labelled, None


class DistilledRegression(TextDistilling, Regression):
    """`Regression` with a teacher, whose numbers are compared in units of the deviation."""

    example, no_label = Numbered, float("nan")
    ignored = None

    def of_numbers(self):
        return {"soft": "mse", "scale": self.deviation}

    def metrics(self):
        return {}


class DistilledTagging(Distilling, Tagging):
    """`Tagging` with a teacher, which answers for the words' first tokens."""

    pipeline = "Tag"
    ignored = NO_TAG

    def soft_targets(self, answers, examples, run):
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


DISTILLED = {
    "classification": DistilledClassification,
    "regression": DistilledRegression,
    "tagging": DistilledTagging,
}


def _shown(value):
    return ", ".join(map(repr, value)) if isinstance(value, list) else repr(value)
