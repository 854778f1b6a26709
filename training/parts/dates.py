"""Dates as people write them, in 28 locales, to ISO dates: made on the spot, trained in minutes.

A bidirectional recurrent encoder, additive attention and a recurrent decoder, over characters. The
dates are of 1950 to 2049; text that holds none of these is answered with "none". A constraint on
the search, which the bundle keeps, allows no other answer.
"""

import collections
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import ops
from rich.table import Table

from seqkeras.analysis.attention_maps import AttentionMap, plot_attention_maps
from seqkeras.data import dates
from seqkeras.data.batches import Sequences
from seqkeras.data.columns import read_columns
from seqkeras.data.dates_in_text import NONE
from seqkeras.losses import SmoothedCrossEntropy
from seqkeras.metrics import area_under_risk_coverage
from seqkeras.models import RNNSeq2Seq
from seqkeras.runs import RunError, RunFiles
from seqkeras.serving.text import Tokenizer
from seqkeras.tokenizers import BOS, EOS, CharacterTable, pad
from seqkeras.training.answering.translate import Translate
from seqkeras.training.console import console
from seqkeras.training.task import Modelling, Reading, Scoring

TARGET_LENGTH = 11  # ten characters and <eos>
SOURCE_LENGTH = 128  # room beyond the longest text of training
VALIDATION_EXAMPLES = 560
KINDS = {  # of test texts: the shares of `dates.sample`
    "clean": {"noisy": 0.0},
    "noisy": {"noisy": 1.0},
    "in text": {"in_text": 1.0},
}
GIVEN = "given"  # of a user's file
MAPPED_LOCALES = ("de", "ru", "ar", "he", "ja", "ko")


class DateReading(Reading):
    """Dates in 28 locales to ISO dates, or none.

    Attributes:
        of_files: the examples of files that are scored in place of those that are made.
    """

    of_files: list[Any] | None = None

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        began, options = time.monotonic(), self.options
        train = dates.sample(
            "train", options.examples, options.seed, options.noisy, options.locales, options.in_text
        )
        validation = dates.sample(
            "validation", VALIDATION_EXAMPLES, options.seed, 0.5, options.locales, in_text=0.5
        )
        console.print(
            f"dates: {len(train):,} training examples in {len(options.locales)} locales, "
            f"made in {time.monotonic() - began:.0f} s"
        )
        return train, validation

    def evaluation(self) -> dict[str, Any]:
        return {}  # a file is always read alike

    def examples_of(
        self, paths: Sequence[Path | str], settings: Mapping[str, Any]
    ) -> Sequence[Any]:
        self.of_files = [
            _example(text, date, f"{path}, line {line}")
            for path in paths
            for line, (text, date) in read_columns(path, ("text", "date"))
        ]
        return self.of_files

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        return {
            "source": CharacterTable.learn(dates.characters()),
            "target": CharacterTable.learn(["0123456789-", NONE]),
        }

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        yield "inputs", "source", [example.text for example in examples]
        yield "targets", "target", [example.target for example in examples]

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        return {
            "pipeline": "Translate",
            "limits": {"source_length": SOURCE_LENGTH, "target_length": TARGET_LENGTH},
            "decoding": {"num_beams": 1, "length_penalty": 0.0, "regex": dates.ANSWERS},
            "text_prefix": {
                "name": "locale",
                "separator": "|",
                "values": sorted(self.options.locales),
            },
        }


class DateModelling(Modelling):
    """Dates as written to an encoder with a decoder of characters."""

    def arrays(self, examples: Sequence[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        source, target = run.tokenizers["source"], run.tokenizers["target"]
        texts = Sequences([source.encode(example.text) for example in examples])
        targets = [[BOS, *target.encode(example.target), EOS] for example in examples]
        inputs = {
            "token_ids": texts,
            "lengths": texts.lengths,
            "target_ids": Sequences([row[:TARGET_LENGTH] for row in targets], TARGET_LENGTH),
        }
        return inputs, Sequences([row[1:] for row in targets], TARGET_LENGTH), texts.lengths

    def model(self, run: RunFiles) -> keras.Model:
        model = RNNSeq2Seq.bahdanau(
            source_vocab_size=len(run.tokenizers["source"]),
            target_vocab_size=len(run.tokenizers["target"]),
            embedding_dim=self.options.embedding_dim,
            units=self.options.units,
            decoder_units=self.options.decoder_units,
            cell=self.options.cell,
            dropout=self.options.dropout,
        )
        model.build(None)
        return model

    def loss(self) -> Any:
        if self.options.label_smoothing:
            return SmoothedCrossEntropy(self.options.label_smoothing, ignore_class=0)
        return keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=0, reduction="mean_with_sample_weight"
        )


class DateScoring(Scoring):
    """Dates that are right, by locale and noise."""

    def validation_scores(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, float]:
        return {"validation dates right": float(np.mean(_right(examples, answers)))}

    def tests(self, validation: Sequence[Any]) -> Iterable[tuple[str, list[Any]]]:
        if self.reading.of_files is not None:
            yield GIVEN, self.reading.of_files
            return
        options = self.options
        count = options.test_examples * len(options.locales)
        for kind, shares in KINDS.items():
            examples = dates.sample("test", count, options.seed, locales=options.locales, **shares)
            yield kind, examples

    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        """Return exact match of each kind: over all, per locale, per noise; and the AURC.

        The area under the risk-coverage curve says how well the scores rank right above wrong.
        """
        scores, aurc = {}, {}
        by_locale = collections.defaultdict(dict)
        for name, (examples, answers) in answered.items():
            kind = name if name in KINDS else GIVEN
            scores["examples"] = len(examples)
            right = collections.defaultdict(list)
            for example, is_right in zip(examples, _right(examples, answers), strict=True):
                noise = [f"noise {name}" for name in example.noise]
                for group in ("all", example.locale, *noise):
                    right[group].append(is_right)
            scores[kind] = float(np.mean(right["all"]))
            aurc[kind] = area_under_risk_coverage(
                [answer.score for answer in answers], right["all"]
            )
            for locale in self.options.locales:
                if locale in right:
                    by_locale[locale][kind] = float(np.mean(right[locale]))
            if any(example.noise for example in examples):
                name = "by_noise" if kind == "noisy" else "by_writing"
                scores[name] = {
                    group.removeprefix("noise "): float(np.mean(right[group]))
                    for group in sorted(right)
                    if group.startswith("noise ")
                }
        return scores | {"aurc": aurc, "by_locale": by_locale}

    def draw(self, model: keras.Model, run: RunFiles, path: Path | str) -> None:
        """Draw where the decoder looks as it writes its answer, for one unseen date in full in each
        of a few locales; dates with an empty answer are left out."""
        source, target = run.tokenizers["source"], run.tokenizers["target"]
        known = self.options.locales
        locales = [name for name in MAPPED_LOCALES if name in known] or known[:1]
        days = dates.days("test")[:: len(dates.days("test")) // 6]
        texts = [
            dates.clean_example(day, locale, "full").text for locale, day in zip(locales, days)
        ]
        maps = []
        for text, answer in zip(texts, Translate(run)(model, texts), strict=True):
            state = model.encode(*pad([source.encode(text)]))
            rows = []
            for token in [BOS, *target.encode(answer.text)[:-1]]:
                (_, weights), state = model.step(np.array([[token]]), state)
                rows.append(ops.convert_to_numpy(weights)[0, 0])
            if answer.text:
                maps.append(AttentionMap(text, answer.text, np.stack(rows)))
        if maps:
            plot_attention_maps(maps, path)

    def table(self, scores: Mapping[str, Any]) -> Any:
        kinds = [*scores["aurc"]]
        noun = "clean, noisy and in text each" if kinds == [*KINDS] else ", ".join(kinds)
        table = Table(title=f"dates right, of {scores['examples']:,} {noun}")
        table.add_column("locale")
        for kind in kinds:
            table.add_column(kind, justify="right")
        for locale, right in scores["by_locale"].items():
            table.add_row(locale, *(f"{right[kind]:.1%}" for kind in kinds))
        table.add_section()
        table.add_row("all", *(f"{scores[kind]:.2%}" for kind in kinds))
        table.add_row("AURC", *(f"{scores['aurc'][kind]:.5f}" for kind in kinds))
        return table

    def summary(self, scores: Mapping[str, Any]) -> str:
        return f"right are {', '.join(f'{scores[kind]:.2%} {kind}' for kind in scores['aurc'])}"


def _example(text, date, where):
    """Return the `Example` of a row of a file."""
    locale, separator, written = text.partition("|")
    if not separator or locale not in dates.LOCALES or not written.strip():
        raise RunError(
            f"{where}: 'text' must be a locale, '|' and the date as it is written, as "
            f"'de|3. Mai 2014'; received {text!r:.40}."
        )
    if not re.fullmatch(dates.ANSWERS, date):
        raise RunError(
            f"{where}: 'date' must be a day from 1950-01-01 to 2049-12-31, or {NONE}; received "
            f"{date!r:.40}."
        )
    return dates.Example(text, date, locale, "text")


def _right(examples, answers):
    return [a.text == e.target for a, e in zip(answers, examples, strict=True)]
