"""Texts with choices, of which one is right, from a user's file."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
from rich.table import Table

from seqkeras.data.batches import Batches, Sequences
from seqkeras.data.choices import NameOptions, Names, read_choices
from seqkeras.data.nested import NestedSequences
from seqkeras.losses import SmoothedCrossEntropy
from seqkeras.metrics import exact_match
from seqkeras.models import MultipleChoiceHead
from seqkeras.runs import RunFiles
from seqkeras.serving.text import Encoding, Tokenizer
from seqkeras.training.calibration import Chances, logits_of
from seqkeras.training.console import console, say_left_out
from seqkeras.training.parts.encoded_texts import EncodedTexts
from seqkeras.training.parts.pretrained import known_tokenizer
from seqkeras.training.parts.splitting import split
from seqkeras.training.task import Calibrating, Modelling, Scoring

MOST_TOKENS = 128  # of a text with a choice, by default
NAME_OPTIONS = NameOptions("--text-column", "--choice-columns", "--answer-column")


class Example(NamedTuple):
    """A text with its choices, and the place of the right one."""

    text: dict
    target: int


class ChoiceReading(EncodedTexts):
    """Texts with choices, of which one is right."""

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        options = self.options
        self.read_pretrained()
        train = self._examples(options.file)
        if options.validation is None:
            train, validation = split(train, options)
        else:
            validation = self._examples(options.validation)
        sizes = sorted(Counter(len(example.text["choices"]) for example in train).items())
        console.print(
            f"{options.task}: {len(train):,} training and {len(validation):,} validation rows; "
            + ", ".join(f"{count:,} of {size} choices" for size, count in sizes)
        )
        return train, validation

    def _examples(self, path):
        options = self.options
        names = Names(options.text_column, options.choice_columns, options.answer_column)
        tokenizer = known_tokenizer(self)
        rows, left_out = read_choices(
            path, names, options.skip_bad, NAME_OPTIONS, lambda text: bool(tokenizer.encode(text))
        )
        say_left_out(left_out, "row")
        return [Example({"text": row.text, "choices": [*row.choices]}, row.answer) for row in rows]

    def examples_of(
        self, paths: Sequence[Path | str], settings: Mapping[str, Any]
    ) -> Sequence[Any]:
        return [example for path in paths for example in self._examples(path)]

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        return {"text": self.pretrained.tokenizer}

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        rows = [example.text for example in examples]
        yield "inputs", "text", [text for row in rows for text in (row["text"], *row["choices"])]

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        limit = self.pretrained.limit(self.options.max_length, MOST_TOKENS)
        return {"pipeline": "Choose", "limits": {"source_length": limit}}


class ChoiceModelling(Modelling):
    """Texts with choices to a model that gives each choice a logit."""

    validation_loss = True

    def arrays(self, examples: Sequence[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        rows = [choice_encodings(run, example.text) for example in examples]
        limit = run.record.limits["source_length"]
        full = sum(any(len(encoding) == limit for encoding in row) for row in rows)
        if full:
            console.print(f"  {full:,} rows reach --max-length {limit}, and may be cut off")
        inputs = {
            "token_ids": NestedSequences([[choice.token_ids for choice in row] for row in rows]),
            "lengths": Sequences([[*map(len, row)] for row in rows]),
        }
        if self.reading.pretrained.has_segments:
            segments = [[choice.segment_ids for choice in row] for row in rows]
            inputs["segment_ids"] = NestedSequences(segments)
        longest = np.array([max(map(len, row)) for row in rows])
        return inputs, np.array([example.target for example in examples]), longest

    def batches(self, examples: Sequence[Any], run: RunFiles) -> Batches:
        inputs, targets, lengths = self.arrays(examples, run)
        counts = [sum(map(len, row)) for row in inputs["token_ids"].rows]
        return Batches(inputs, targets, self.order(lengths), tokens=counts)

    def model(self, run: RunFiles) -> keras.Model:
        options = self.options
        head = MultipleChoiceHead(options.dropout)
        return self.reading.pretrained.with_heads({"choice": head}, options.frozen, options.pooling)

    def loss(self) -> Any:
        return SmoothedCrossEntropy(0.0)

    def metrics(self) -> Any:
        return [keras.metrics.SparseCategoricalAccuracy("accuracy")]


class ChoiceScoring(Scoring):
    """Choices that are right."""

    def validation_scores(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, float]:
        return {"right choices": exact_match(*_places(examples, answers))}

    def sample(self, example: Any, answer: Any) -> dict[str, str]:
        return {
            "input": example.text["text"],
            "target": example.text["choices"][example.target],
            "answer": answer.text,
        }

    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        [(examples, answers)] = answered.values()
        chance = np.mean([1 / len(example.text["choices"]) for example in examples])
        most = Counter(example.target for example in examples).most_common(1)[0][1]
        return {
            "examples": len(examples),
            "accuracy": exact_match(*_places(examples, answers)),
            "chance": float(chance),
            "most_frequent_place": most / len(examples),
            "by_choices": {
                str(size): {
                    "examples": len(pairs),
                    "accuracy": exact_match(*_places(*zip(*pairs, strict=True))),
                }
                for size, pairs in sorted(_by_size(examples, answers).items())
            },
        }

    def table(self, scores: Mapping[str, Any]) -> Any:
        if len(scores["by_choices"]) < 2:
            return None
        table = Table(title=f"of {scores['examples']:,} examples")
        table.add_column("choices")
        table.add_column("examples", justify="right")
        table.add_column("right", justify="right")
        for size, of_size in scores["by_choices"].items():
            table.add_row(size, f"{of_size['examples']:,}", f"{of_size['accuracy']:.2%}")
        return table

    def summary(self, scores: Mapping[str, Any]) -> str:
        return (
            f"{scores['accuracy']:.2%} of the choices are right, by chance "
            f"{scores['chance']:.2%} would be"
        )


class ChoiceCalibrating(Calibrating):
    """Probabilities of choices."""

    linear = "choice"

    def chances(
        self, model: keras.Model, examples: Sequence[Any], answers: Sequence[Any], run: RunFiles
    ) -> list[Chances]:
        return [
            Chances(logits_of(answer.scores), example.target, number)
            for number, (example, answer) in enumerate(zip(examples, answers, strict=True))
        ]

    def certainty(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> list[tuple[float, bool]]:
        return [
            (answer.score, answer.index == example.target)
            for example, answer in zip(examples, answers, strict=True)
        ]


def choice_encodings(run: RunFiles, text: Any) -> list[Encoding]:
    """Return the `Encoding` of a text with each of its choices; what is over the run's limit is cut
    off."""
    tokenizer, limit = run.tokenizers["text"], run.record.limits["source_length"]
    return [
        tokenizer.analyze(text["text"], choice, max_length=limit, truncate=True)
        for choice in text["choices"]
    ]


def _places(examples, answers):
    """Return the places of the choices, and of the right ones."""
    return [answer.index for answer in answers], [example.target for example in examples]


def _by_size(examples, answers):
    """Return a dictionary: number of choices -> (example, answer) pairs."""
    by_size = {}
    for example, answer in zip(examples, answers, strict=True):
        by_size.setdefault(len(example.text["choices"]), []).append((example, answer))
    return by_size
