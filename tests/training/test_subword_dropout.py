"""--subword-dropout: words that each pass cuts anew, and targets that stay with them."""

import itertools

import numpy as np
import pytest

from seqkeras.training.commands import command
from seqkeras.training.options import TASKS
from tests.conftest import others_long
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


def batches_of(task, folder):
    """The task's batches of training, and its run."""
    arguments = [*COMMANDS[task](folder), *RATE, "--out", folder / "run"]
    asked = command(task, TASKS[task]).main([*map(str, arguments)], standalone_mode=False)
    made = asked[0].make()
    train, validation = made.reading.read()
    tokenizers = made.reading.tokenizers(train)
    run, _ = made.prepared(folder / "run", train, validation, tokenizers)
    return made.modelling.batches(train, run), run


@pytest.mark.parametrize("task", others_long(COMMANDS))
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


@pytest.mark.parametrize(
    ("task", "options", "message"),
    [
        (
            "translation",
            ["--tokens", "byte-pairs", "--vocab-size", 300],
            "the source needs tokens of the kinds word-piece",
        ),
        ("translation", ["--target-tokens", "words"], "the target needs tokens of the kinds word"),
        ("classification", ["--encoder", "tree"], "--subword-dropout: --encoder tree has none"),
    ],
)
def test_words_that_are_cut_in_one_way_are_refused(task, options, message, tmp_path):
    arguments = [*COMMANDS[task](tmp_path), *RATE, *options]
    status = 2 if "--encoder" in options else 1
    assert message in refusal(task, *arguments, out=tmp_path / "run", status=status)


def test_frames_have_no_words(tmp_path):
    (tmp_path / "own.csv").write_text(FRAMES)
    arguments = [tmp_path / "own.csv", "--numbers", "x", "--series-column", "series", *RATE]
    line = refusal("classification", *arguments, out=tmp_path / "run", status=2)
    assert "--subword-dropout: not with --numbers; leave one of them out." in line
