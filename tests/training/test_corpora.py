"""Trainings of several corpora: how often a batch is of each, and that nothing else decides it."""

import collections
import itertools

import numpy as np
import pytest

from seqkeras.data.batching import BucketedBatches, TokenBatches
from seqkeras.data.mixing import MixedBatches
from seqkeras.data.windows import RandomStarts, mixed_windows
from seqkeras.training.run_of_task import run_files
from seqkeras.training.tasks.language_model import LanguageModelOptions
from seqkeras.training.tasks.translation import TranslationOptions
from tests.training.commands import assert_goes_on, refusal
from tests.training.test_translation import FAST, TINY, sentences, tab_separated

SIZES, WEIGHTS = (23, 41, 61), (3.0, 1.0, 2.0)
OFFSETS = (0, 23, 64)


def orders(kind):
    lengths = [1 + np.arange(size) % 7 for size in SIZES]
    kinds = {
        "bucketed": lambda own: BucketedBatches(own, 5, 11),
        "tokens": lambda own: TokenBatches(own, 29, 11),
        "windows": lambda own: RandomStarts(len(own), 3, 5, 11),
    }
    return [kinds[kind](own) for own in lengths]


def taken(order, count, step=0):
    return [rows.tolist() for rows in itertools.islice(order.from_step(step), count)]


@pytest.mark.parametrize("kind", ["bucketed", "tokens", "windows"])
def test_the_batches_of_a_step_depend_on_seed_and_step_alone(kind):
    order = MixedBatches(orders(kind), OFFSETS, WEIGHTS, 7)
    whole = taken(order, 97)
    for step in (0, 1, 31, 90):
        again = MixedBatches(orders(kind), OFFSETS, WEIGHTS, 7)
        assert taken(again, 97 - step, step) == whole[step:]
    assert taken(MixedBatches(orders(kind), OFFSETS, WEIGHTS, 8), 97) != whole


def test_batches_are_of_one_corpus_by_weight_each_read_pass_by_pass():
    order = MixedBatches(orders("bucketed"), OFFSETS, WEIGHTS, 7)
    bounds = [0, *np.cumsum(SIZES)]
    counts, seen = np.zeros(3), [[], [], []]
    for rows in taken(order, 6000):
        [corpus] = {*np.searchsorted(bounds, rows, side="right") - 1}
        counts[corpus] += 1
        seen[corpus].append([row - OFFSETS[corpus] for row in rows])
    expected = 6000 * np.array(WEIGHTS) / 6
    assert (((counts - expected) ** 2) / expected).sum() < 13.8  # chi-square of 2, p = 0.001
    for corpus, alone in enumerate(orders("bucketed")):
        assert seen[corpus] == taken(alone, len(seen[corpus]))
    assert order.batches_per_pass == 8  # 4 of the first corpus, which is half of all
    assert [rows.tolist() for rows in order.of_pass(3)] == taken(order, 8, step=24)


def test_windows_of_several_streams_cross_no_border():
    streams = [np.full(size, place) for place, size in enumerate(SIZES)]
    batches = mixed_windows(streams, 5, 7, WEIGHTS, 3)
    for inputs, targets in itertools.islice(batches.from_step(0), 50):
        assert len({*inputs["token_ids"].flat, *targets.flat}) == 1


def corpora(folder):
    """Three files of pairs, the first of few."""
    pairs = sentences()
    others = [[(f"{en} {mark}", f"{de} {mark}") for en, de in pairs] for mark in ("!", "?")]
    parts = [pairs[:40], pairs[30:] + others[0], others[1]]
    paths = [folder / str(place) for place in range(len(parts))]
    for path in paths:
        path.mkdir()
    return [tab_separated(path, part) for path, part in zip(paths, parts)]


def test_what_is_held_out_of_the_first_corpus_is_in_none(tmp_path):
    file, *also = corpora(tmp_path)
    options = {"file": file, "batch_size": 5, "held_out": 0.5, "vocab_size": 90}
    task = TranslationOptions(also=tuple(also), weights=(6, 1, 1), **options).make()
    train, validation = task.reading.read()
    assert collections.Counter(example.corpus for example in train)[0] == len(validation) == 20
    assert not {example.text for example in train} & {example.text for example in validation}
    marks = {text[-1] for text, *_ in train}
    assert marks == {".", "!", "?"} and {example.corpus for example in validation} == {0}
    run = run_files(task, tmp_path, train, validation, task.reading.tokenizers(train))
    batches = task.modelling.batches(train, run)
    found = collections.Counter()
    for inputs, _ in itertools.islice(batches.from_step(0), 300):
        first = [
            run.tokenizers["source"].decode([int(token) for token in row[:length]])
            for row, length in zip(inputs["token_ids"], inputs["lengths"])
        ]
        found.update("." if all(text.strip().endswith(".") for text in first) else "more")
    assert found["."] > 300 * 0.65


@pytest.mark.long
def test_a_mixture_goes_on_where_it_was_stopped(tmp_path):
    file, *also = corpora(tmp_path)
    options = ["--also", ",".join(also), "--weights", "3,1,2", "--vocab-size", "90", *TINY, *FAST]
    options += ["--max-steps", "12", "--steps-per-save", "3", "--looks", "1", "--keep", "last"]
    assert_goes_on(tmp_path, "translation", file, *options, "--model", "bahdanau", count=2)


def test_a_language_model_reads_several_corpora_and_holds_out_of_the_first(tmp_path):
    paths = [tmp_path / name for name in ("a.txt", "b.txt")]
    for path, letter in zip(paths, "ab"):
        path.write_text(f"{letter} {letter * 5}\n" * 100)
    options = {"files": (str(paths[0]),), "also": (str(paths[1]),), "weights": (1.0, 3.0)}
    task = LanguageModelOptions(context=7, batch_size=5, **options).make()
    texts, validation = task.reading.read()
    assert "b" in "".join(texts[1]) and not any("b" in passage.text for passage in validation)
    tokenizers = task.reading.tokenizers(texts)
    record = collections.namedtuple("Record", "decoding")(
        task.reading.record(texts, tokenizers)["decoding"]
    )
    run = collections.namedtuple("Run", "tokenizers record")(tokenizers, record)
    letter = tokenizers["text"].id_of("b")
    batches = itertools.islice(task.modelling.batches(texts, run).from_step(0), 400)
    share = np.mean([(inputs["token_ids"] == letter).any() for inputs, _ in batches])
    assert 0.68 < share < 0.82


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("{a} --also {b} --weights 1", "--weights: expected 2, for FILE and each file of --also"),
        ("{a} --also {b} --weights 1,-1", "needs positive numbers with commas between them"),
        ("{a} --also {b}.none", "no such file"),
        ("{a} --also {b} --also-targets {b}", "a file for each of --also where FILE has --t"),
        ("--weights 3", "Missing"),
    ],
)
def test_corpora_that_do_not_go_together_get_one_line(options, message, tmp_path):
    file, other, _ = corpora(tmp_path)
    given = options.format(a=file, b=other).split()
    assert message in refusal("translation", *given, out=tmp_path / "run", status=2)


def test_a_recurrent_model_that_goes_on_takes_no_second_corpus(tmp_path):
    file = tab_separated(tmp_path)
    command = ["language-model", file, "--also", file, "--model", "gru"]
    assert "choose --windows random" in refusal(*command, out=tmp_path / "run", status=2)
