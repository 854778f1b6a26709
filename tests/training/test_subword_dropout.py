"""--subword-dropout: words that each pass cuts anew, and targets that stay with them."""

import itertools
from collections import Counter

import keras
import numpy as np
import pytest

from seqkeras.tokenizers.varied import VariedWordPieces
from seqkeras.training.commands import command
from seqkeras.training.options import TASKS
from tests.training.commands import assert_goes_on, refusal
from tests.training.test_calibration import noisy
from tests.training.test_regression import rated

RATE = ["--subword-dropout", 0.3]
SIZES = ["--embedding-dim", 8, "--units", 8, "--baselines", "false", "--batch-size", 16]
TAGS = {"tall": "A", "tallest": "A", "dog": "N", "dogs": "N", "running": "V", "runs": "V"}


def tagged(path):
    random = np.random.default_rng(0)
    sentences = [random.choice([*TAGS], random.integers(2, 7)) for _ in range(120)]
    path.write_text(
        "\n".join("".join(f"{word} {TAGS[word]}\n" for word in words) for words in sentences)
    )
    return path


def paired(path):
    random = np.random.default_rng(0)
    words = {"red": "rot", "reddish": "roetlich", "house": "haus", "houses": "haeuser"}
    lines = {tuple(random.choice([*words], random.integers(2, 6))) for _ in range(300)}
    rows = [f"{' '.join(line)}\t{' '.join(map(words.get, line))}\n" for line in sorted(lines)]
    path.write_text("".join(rows))
    return path


TRANSLATION = ["--hidden-dim", 16, "--num-layers", 1, "--batch-size", 16, "--vocab-size", 40]
COMMANDS = {
    "classification": lambda folder: [noisy(folder / "own.csv", 200), *SIZES],
    "regression": lambda folder: [rated(folder / "own.csv"), *SIZES],
    "tagging": lambda folder: [tagged(folder / "own.conll"), *SIZES, "--vocab-size", 40],
    "translation": lambda folder: [paired(folder / "own.tsv"), *TRANSLATION],
}


def batches_of(task, folder, arguments=None):
    """The task's batches of training, and its run."""
    arguments = [*(arguments or COMMANDS[task](folder)), *RATE, "--out", folder / "run"]
    asked = command(task, TASKS[task]).main([*map(str, arguments)], standalone_mode=False)
    made = asked[0].make()
    train, validation = made.reading.read()
    tokenizers = made.reading.tokenizers(train)
    run, _ = made.prepared(folder / "run", train, validation, tokenizers)
    return made.modelling.batches(train, run), run


@pytest.mark.long
@pytest.mark.parametrize("task", COMMANDS)
def test_a_training_that_was_stopped_ends_as_one_that_was_not(task, tmp_path):
    arguments = [*COMMANDS[task](tmp_path), *RATE, "--passes", 3]
    assert_goes_on(tmp_path, task, *arguments, "--steps-per-save", 7)


def test_the_first_token_of_a_word_keeps_its_tag(tmp_path):
    batches, run = batches_of("tagging", tmp_path)
    tokenizer, labels = run.tokenizers["text"], run.record.settings["labels"]
    lengths = []
    for inputs, targets in itertools.islice(batches.from_step(0), 3 * len(batches)):
        lengths.append((inputs["token_ids"] != 0).sum())
        for ids, tags in zip(inputs["token_ids"], targets, strict=True):
            words = tokenizer.decode(ids[ids != 0]).split()
            assert [labels[tag] for tag in tags if tag >= 0] == [TAGS[word] for word in words]
            begins = [not tokenizer.token_of(index).startswith("##") for index in ids[1:]]
            real = ids[1:] > 4
            np.testing.assert_array_equal(tags[1:][real] >= 0, np.array(begins)[real])
    per_pass = np.sum(np.reshape(lengths, (3, -1)), axis=1)
    assert len({*per_pass.tolist()}) == 3
    assert min(per_pass) > batches.arrays[0]["token_ids"].lengths.sum()


@pytest.mark.parametrize("task", COMMANDS)
def test_a_batch_is_the_same_whatever_was_taken_before(task, tmp_path):
    batches, _ = batches_of(task, tmp_path)
    size = len(batches)
    taken = [*itertools.islice(batches.from_step(0), 2 * size)]
    for step in (1, size, 2 * size - 1):
        alone = next(batches.from_step(step))
        for a, b in zip(keras.tree.flatten(alone), keras.tree.flatten(taken[step]), strict=True):
            np.testing.assert_array_equal(a, b)


def test_batches_cut_words_as_often_as_all_texts_at_once(tmp_path):
    batches, run = batches_of("tagging", tmp_path)
    tokenizer, counts = run.tokenizers["text"], (Counter(), Counter())
    whole = batches.arrays[0]["token_ids"].rows()
    at_once = VariedWordPieces(tokenizer, RATE[1])(100 * whole, seed=1)
    in_batches = itertools.islice(batches.from_step(0), 100 * len(batches))
    rows = itertools.chain.from_iterable(inputs["token_ids"].tolist() for inputs, _ in in_batches)
    for count, cut in zip(counts, (rows, (ids for ids, _ in at_once)), strict=True):
        count.update(word for ids in cut for word in words_of(tokenizer, ids))
    words = [Counter(), Counter()]
    for of_words, count in zip(words, counts, strict=True):
        for cut, times in count.items():
            of_words[tokenizer.decode(cut)] += times
    assert len(counts[1]) > 2 * len(TAGS)
    for cut in {*counts[0], *counts[1]}:
        word = tokenizer.decode(cut)
        (few, of_few), (many, of_many) = (
            (count[cut], of_words[word]) for count, of_words in zip(counts, words, strict=True)
        )
        share = (few + many) / (of_few + of_many)
        error = (share * (1 - share) * (1 / of_few + 1 / of_many)) ** 0.5
        assert few / of_few == pytest.approx(many / of_many, abs=5 * error)


def words_of(tokenizer, ids):
    """The words of a row without special tokens, each a tuple of its token ids."""
    words = []
    for index in ids:
        if tokenizer.token_of(index).startswith("##"):
            words[-1] = (*words[-1], index)
        elif index > 4:
            words.append((index,))
    return words


def test_both_sides_of_a_pair_are_cut_and_stay_together(tmp_path):
    batches, run = batches_of("translation", tmp_path)
    seen = {"source": set(), "target": set()}
    examples = dict(line.split("\t") for line in (tmp_path / "own.tsv").read_text().splitlines())
    for inputs, targets in itertools.islice(batches.from_step(0), 3 * len(batches)):
        for ids, length, wanted in zip(inputs["token_ids"], inputs["lengths"], targets):
            source = run.tokenizers["source"].decode(ids[:length])
            target = run.tokenizers["target"].decode(wanted[wanted != 0])
            assert examples[source] == target
            seen["source"].add((source, tuple(ids[:length])))
            seen["target"].add((target, tuple(wanted[wanted != 0])))
    for pairs in seen.values():
        assert len(pairs) > len({text for text, _ in pairs})


FRAMES = "series,x,label\n" + "".join(f"{row // 3},0.1,a\n" for row in range(30))


KINDS = "--subword-dropout: cuts tokens of the kinds word-piece, unigram, bpe; choose one with"


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        ("translation", ["--tokens", "byte-pairs"], KINDS),
        ("translation", ["--target-tokens", "words"], KINDS),
        ("classification", ["--encoder", "tree"], "--subword-dropout: --encoder tree has none"),
    ],
)
def test_words_that_are_cut_in_one_way_are_refused(task, options, message, tmp_path):
    arguments = [*COMMANDS[task](tmp_path), *RATE, *options]
    assert message in refusal(task, *arguments, out=tmp_path / "run", status=2)


@pytest.mark.parametrize("task", ["classification", "tagging"])
def test_frames_have_no_words(task, tmp_path):
    (tmp_path / "own.csv").write_text(FRAMES)
    (tmp_path / "own.npz").touch()
    for arguments in (["own.csv", "--numbers", "x", "--series-column", "series"], ["own.npz"]):
        given = [tmp_path / arguments[0], *arguments[1:], *RATE]
        line = refusal(task, *given, out=tmp_path / "run", status=2)
        assert "--subword-dropout: cuts words; the inputs are numbers. Leave it out." in line


def test_both_texts_of_a_pair_are_cut(tmp_path):
    lines = [line.replace("\t", ",") for line in paired(tmp_path / "p").read_text().splitlines()]
    rows = [f"{line},{'same' if place % 2 else 'other'}" for place, line in enumerate(lines)]
    (tmp_path / "own.csv").write_text("\n".join(["text,pair,label", *rows]))
    given = ["--pair-column", "pair", *SIZES, "--vocab-size", 40, "--max-length", 12]
    batches, run = batches_of("classification", tmp_path, [tmp_path / "own.csv", *given])
    tokenizer = run.tokenizers["text"]
    for inputs, _ in itertools.islice(batches.from_step(0), 20):
        for ids, segments in zip(inputs["token_ids"], inputs["segment_ids"], strict=True):
            real = ids != 0
            assert real.sum() <= 12
            first = [*ids].index(tokenizer.id_of("[SEP]"))
            np.testing.assert_array_equal(segments[real], np.arange(real.sum()) > first)
