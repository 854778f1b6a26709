"""Dates as people write them, in 28 locales, to ISO dates: made on the spot, trained in minutes.

A bidirectional recurrent encoder, additive attention and a recurrent decoder, over characters. The
dates are of 1950 to 2049; text that holds none of these is answered with "none". A constraint on
the search, which the bundle keeps, allows no other answer.
"""

import collections
import dataclasses
import shlex
import time

import click
import numpy as np
import tensorflow as tf
from keras import ops
from rich.table import Table

from seqkeras import files
from seqkeras.analysis.attention_maps import AttentionMap, plot_attention_maps
from seqkeras.data import dates
from seqkeras.data.batching import BucketedBatches
from seqkeras.data.dates_in_text import NONE
from seqkeras.decoding import Constraint, greedy, in_batches
from seqkeras.metrics import area_under_risk_coverage
from seqkeras.models import RNNSeq2Seq
from seqkeras.runs import (
    ATTENTION_MAP,
    CHECKPOINT,
    MODEL,
    SCORES,
    TOKENIZERS,
    VALIDATION,
    RunRecord,
)
from seqkeras.terminal import one_line
from seqkeras.tokenizers import BOS, EOS, PAD, CharacterTable, pad
from training.console import console, progress_bar
from training.fit import fit
from training.options import FRACTION, FitOptions, Number, at_least, option
from training.run import open_run

TARGET_LENGTH = 11  # ten characters and <eos>
SOURCE_LENGTH = 128  # room beyond the longest text of training
VALIDATION_EXAMPLES = 560
KINDS = {  # of test texts: the shares of `dates.sample`
    "clean": {"noisy": 0.0},
    "noisy": {"noisy": 1.0},
    "in text": {"in_text": 1.0},
}
MAPPED_LOCALES = ("de", "ru", "ar", "he", "ja", "ko")


class _Locales(click.ParamType):
    """Names of locales with commas between them, as a tuple."""

    name = "locales"

    def convert(self, value, parameter, context):
        names = value.split(",") if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not names or len(set(names)) < len(names):
            self.fail(f"needs one locale or more, each once; received {value!r}.")
        unknown = [name for name in names if name not in dates.LOCALES]
        if unknown:
            self.fail(f"unknown locale {unknown[0]!r}; known: {', '.join(dates.LOCALES)}.")
        return tuple(names)


@dataclasses.dataclass(frozen=True)
class DatesOptions(FitOptions):
    """Options of `python -m training dates`."""

    examples: int = option(200_000, at_least(1), "Training examples to make.")
    locales: tuple = option(
        dates.LOCALES, _Locales(), "Which, with commas between them; all 28 by default."
    )
    in_text: float = option(
        0.45, FRACTION, "Share of them that stand in text, or are text without a date."
    )
    noisy: float = option(0.5, FRACTION, "Share of the others that carry human noise.")
    test_examples: int = option(100, at_least(1), "Test texts per locale, of each kind.")
    cell: str = option("lstm", click.Choice(["gru", "lstm"]), "Recurrent cell of both sides.")
    embedding_dim: int = option(48, at_least(1), "Size of the character embeddings.")
    units: int = option(64, at_least(1), "Encoder state in each direction.")
    decoder_units: int = option(64, at_least(1), "Decoder state.")
    dropout: float = option(
        0.0, Number(0, 1, max_open=True), "Of embeddings and before the logits."
    )


def run(options, folder, overwrite=False):
    """Dates people write, in 28 locales, to ISO dates of 1950 to 2049; others are none."""
    if options.examples < options.batch_size:
        raise click.UsageError(
            f"--examples must be at least --batch-size, {options.batch_size}; "
            f"received {options.examples}."
        )
    if open_run(folder, "dates", options, overwrite):
        console.print(
            one_line(f"{folder}: finished already, with these options; see {folder / SCORES}")
        )
        return
    source = CharacterTable.learn(dates.characters())
    target = CharacterTable.learn(["0123456789-", NONE])
    (folder / "tokenizer").mkdir(exist_ok=True)
    source.to_file(folder / TOKENIZERS["source"])
    target.to_file(folder / TOKENIZERS["target"])
    translate = _Translator(source, target)

    began = time.monotonic()
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
    batches = _Batches(train, source, target, options)
    model = fit(
        lambda: _build_model(options, source, target),
        batches.dataset_from,
        options.passes * batches.buckets.batches_per_pass,
        options,
        folder,
        validate=lambda model: {
            "validation dates right": _share_right(model, validation, translate)
        },
    )

    scores = _evaluate(model, options, translate)
    files.write_json(folder / SCORES, scores)
    _draw_attention(model, source, target, options, folder / ATTENTION_MAP)
    files.write_json(
        folder / VALIDATION,
        [{"text": example.text, "target": example.target} for example in validation],
    )
    with files.written_aside(folder / MODEL) as aside:
        model.save(aside, include_optimizer=False)
    _record(options).write(folder)
    (folder / CHECKPOINT).unlink(missing_ok=True)
    console.print(_table(scores))
    console.print(
        f"{one_line(folder)}: {MODEL}, {SCORES} and {ATTENTION_MAP} are there; right are "
        f"{', '.join(f'{scores[kind]:.2%} {kind}' for kind in KINDS)}"
    )
    command = shlex.join([str(folder), f"bundles/{folder.name}"])
    console.print(f"next: python -m export {one_line(command)}")


def _build_model(options, source, target):
    model = RNNSeq2Seq(
        source_vocab_size=len(source),
        target_vocab_size=len(target),
        embedding_dim=options.embedding_dim,
        units=options.units,
        decoder_units=options.decoder_units,
        cell=options.cell,
        dropout=options.dropout,
    )
    model.build(None)
    return model


class _Batches:
    """The training examples as token ids, in batches of like length."""

    def __init__(self, examples, source, target, options):
        self.token_ids, self.lengths = pad([source.encode(example.text) for example in examples])
        targets = [[BOS, *target.encode(example.target), EOS] for example in examples]
        self.targets, _ = pad([*targets, [PAD] * (TARGET_LENGTH + 1)])  # the last one as wide
        self.buckets = BucketedBatches(self.lengths, options.batch_size, options.seed)

    def dataset_from(self, step):
        """`tf.data.Dataset` of (inputs, targets) from a step on, without end."""
        rows = self.buckets.batch_size
        inputs = {
            "token_ids": tf.TensorSpec((rows, None), tf.int64),
            "lengths": tf.TensorSpec((rows,), tf.int64),
            "target_ids": tf.TensorSpec((rows, TARGET_LENGTH), tf.int64),
        }
        targets = tf.TensorSpec((rows, TARGET_LENGTH), tf.int64)
        return tf.data.Dataset.from_generator(
            lambda: map(self._batch, self.buckets.from_step(step)),
            output_signature=(inputs, targets),
        ).prefetch(2)

    def _batch(self, rows):
        lengths, targets = self.lengths[rows], self.targets[rows]
        inputs = {
            "token_ids": self.token_ids[rows, : lengths.max()],
            "lengths": lengths,
            "target_ids": targets[:, :-1],
        }
        return inputs, targets[:, 1:]


class _Translator:
    """The greedy answers of a Keras model to texts, constrained; its graph is traced once."""

    def __init__(self, source, target):
        self.source, self.target = source, target
        self.constraint = Constraint.of_regex(dates.ANSWERS, target, EOS)
        self.model = None

    def __call__(self, model, texts, advance=None):
        """Return the answers and their scores."""
        if model is not self.model:
            self.model, self.decode = model, self._trace(model)
        rows = [self.source.encode(text) for text in texts]
        token_ids, scores = in_batches(self.decode, rows, pad, advance=advance)
        return [self.target.decode(row) for row in token_ids], scores

    def _trace(self, model):
        rows, lengths = tf.TensorSpec((None, None), tf.int64), tf.TensorSpec((None,), tf.int64)

        @tf.function(input_signature=[rows, lengths])
        def decode(token_ids, lengths):
            token_ids, _, scores = greedy(
                model.step,
                model.encode(token_ids, lengths),
                start_id=BOS,
                end_id=EOS,
                max_length=TARGET_LENGTH,
                constraint=self.constraint,
            )
            return token_ids, scores

        return decode


def _share_right(model, examples, translate):
    answers, _ = translate(model, [example.text for example in examples])
    return float(np.mean([a == e.target for a, e in zip(answers, examples, strict=True)]))


def _evaluate(model, options, translate):
    """Exact match on test texts of each kind: over all, per locale, per noise; and the AURC.

    The area under the risk-coverage curve says how well the scores rank right above wrong.
    """
    count = options.test_examples * len(options.locales)
    scores = {"examples": count}
    by_locale, aurc = {locale: {} for locale in options.locales}, {}
    with progress_bar() as bar:
        for kind, shares in KINDS.items():
            examples = dates.sample("test", count, options.seed, locales=options.locales, **shares)
            task = bar.add_task(f"scoring test dates {kind}", total=count)
            answers, sure = translate(
                model,
                [example.text for example in examples],
                advance=lambda rows, task=task: bar.advance(task, rows),
            )
            right = collections.defaultdict(list)
            for answer, example in zip(answers, examples, strict=True):
                for group in (
                    "all",
                    example.locale,
                    *[f"noise {each}" for each in example.noise],
                ):
                    right[group].append(answer == example.target)
            scores[kind] = float(np.mean(right["all"]))
            aurc[kind] = area_under_risk_coverage(sure, right["all"])
            for locale in options.locales:
                by_locale[locale][kind] = float(np.mean(right[locale]))
            if any(example.noise for example in examples):
                name = "by_noise" if kind == "noisy" else "by_writing"
                scores[name] = {
                    group.removeprefix("noise "): float(np.mean(right[group]))
                    for group in sorted(right)
                    if group.startswith("noise ")
                }
    return scores | {"aurc": aurc, "by_locale": by_locale}


def _table(scores):
    table = Table(title=f"dates right, of {scores['examples']:,} clean, noisy and in text each")
    table.add_column("locale")
    for kind in KINDS:
        table.add_column(kind, justify="right")
    for locale, right in scores["by_locale"].items():
        table.add_row(locale, *(f"{right[kind]:.1%}" for kind in KINDS))
    table.add_section()
    table.add_row("all", *(f"{scores[kind]:.2%}" for kind in KINDS))
    table.add_row("AURC", *(f"{scores['aurc'][kind]:.5f}" for kind in KINDS))
    return table


def _draw_attention(model, source, target, options, path):
    """A PNG of where the decoder looks, for one unseen date in full in each of a few locales."""
    locales = [each for each in MAPPED_LOCALES if each in options.locales] or options.locales[:1]
    maps = []
    for locale, day in zip(locales, dates.days("test")[:: len(dates.days("test")) // 6]):
        example = dates.clean_example(day, locale, "full")
        state = model.encode(*pad([source.encode(example.text)]))
        rows = []
        for token in [BOS, *target.encode(example.target)[:-1]]:
            (_, weights), state = model.step(np.array([[token]]), state)
            rows.append(ops.convert_to_numpy(weights)[0, 0])
        maps.append(AttentionMap(example.text, example.target, np.stack(rows)))
    plot_attention_maps(maps, path)


def _record(options):
    return RunRecord(
        task="dates",
        pipeline="Translate",
        limits={"source_length": SOURCE_LENGTH, "target_length": TARGET_LENGTH},
        decoding={"num_beams": 1, "length_penalty": 0.0, "regex": dates.ANSWERS},
        text_prefix={"name": "locale", "separator": "|", "values": sorted(options.locales)},
    )
