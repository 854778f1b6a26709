"""The linear part of a classifier: its weights, its balance with the network, and its options."""

import random

import keras
import numpy as np
import pytest
from sklearn.svm import LinearSVC

from seqkeras import serving
from seqkeras.data.batches import Sequences
from seqkeras.metrics.calibration import log_softmax
from seqkeras.models.linear_ngrams import linear_part
from seqkeras.runs import RunFiles
from seqkeras.serving.text.word_piece import word_piece
from seqkeras.tokenizers import learn_word_piece
from seqkeras.training.parts import linear_ngrams
from seqkeras.training.parts.encoded_texts import share_of_accents
from seqkeras.training.parts.linear_ngrams import (
    balance,
    counted_ngrams,
    fitted_ngrams,
    logits_of_ngrams,
    num_buckets,
    weigh,
)
from seqkeras.training.parts.text_logits import logits_of_texts
from tests.arrays import numbers
from tests.conftest import others_long
from tests.training.commands import exported, printed, refusal, scores_of

ENDINGS = {"verb": ("ieren", "elt"), "noun": ("ung", "heit"), "adjective": ("lich", "bar")}
SMALL = "--encoder convolution --embedding-dim 8 --units 8 --vocab-size 300 --looks 1".split()
SMALL += ["--baselines", "false"]
STEMS = ("mal", "les", "fahr", "sing", "denk", "halt", "spiel", "trag", "wend", "zeig", "hand")


def words(count, seed=0):
    """Made words, and which ending each has; no two are equal."""
    draw, made = random.Random(seed), {}
    while len(made) < count:
        label = draw.choice([*ENDINGS])
        letters = "".join(draw.choice("aeioulmnrst") for _ in range(3))
        made[draw.choice(STEMS) + letters + draw.choice(ENDINGS[label])] = label
    return [*made], [*made.values()]


def fitted(texts, labels, size=400):
    names = sorted({*labels})
    tokenizer = learn_word_piece(texts, size, True)
    rows = Sequences([tokenizer.encode(text) for text in texts])
    targets = np.array([names.index(label) for label in labels])
    return fitted_ngrams(tokenizer, rows, targets, len(names), 0), tokenizer, rows, targets


def test_words_that_training_lacks_are_told_by_their_endings():
    texts, labels = words(700)
    layer, tokenizer, _, _ = fitted(texts[:500], labels[:500])
    others = Sequences([tokenizer.encode(text) for text in texts[500:]])
    told = logits_of_ngrams(layer, others).argmax(axis=1)
    right = [sorted({*labels})[place] == label for place, label in zip(told, labels[500:])]
    assert np.mean(right) > 0.9


def matching(logits, features, known, targets, **options):
    """Of how many penalties a support vector machine, fitted on known features, has the logits but
    for a scale."""
    matches = []
    for penalty in (0.1, 1.0):
        machine = LinearSVC(C=penalty, tol=1e-2, random_state=0, **options).fit(known, targets)
        decisions = machine.decision_function(features)
        if decisions.ndim == 1:
            decisions = np.stack([-decisions / 2, decisions / 2], axis=1)
        scale = np.sum(logits * decisions) / np.sum(decisions**2)
        matches.append(np.allclose(logits, scale * decisions, atol=1e-3) and scale > 0)
    return sum(matches)


@pytest.mark.parametrize("kinds", others_long([3, 2]))
def test_its_logits_are_those_of_a_support_vector_machine_times_a_scale(kinds):
    texts, labels = words(300)
    kept = [place for place, label in enumerate(labels) if label in [*ENDINGS][:kinds]]
    texts, labels = [texts[place] for place in kept], [labels[place] for place in kept]
    layer, _, rows, targets = fitted(texts, labels)
    counts = counted_ngrams(layer, rows, np.arange(len(texts))).toarray()
    shares = (counts > 0).sum(axis=0)
    features = counts * (np.log((1 + len(texts)) / (1 + shares)) + 1)
    logits = logits_of_ngrams(layer, rows)
    assert matching(logits, features, features, targets) == 1


def test_weights_of_many_texts_are_those_of_nine_tenths_which_the_others_judge(monkeypatch):
    texts, labels = words(300)
    found = {}
    for many in (10, 1000):
        monkeypatch.setattr(linear_ngrams, "MANY_TEXTS", many)
        layer, _, rows, targets = fitted(texts, labels)
        found[many] = logits_of_ngrams(layer, rows)
    order = np.random.default_rng(0).permutation(len(texts))
    rest = order[: len(texts) - round(0.1 * len(texts))]
    features = counted_ngrams(layer, rows, order)
    weigh(features)
    known = features[: len(rest)]
    assert matching(found[10][order], features, known, targets[rest], max_iter=50) == 1
    assert not np.allclose(found[10], found[1000], atol=1e-3)


def test_a_text_counts_each_ngram_over_the_root_of_their_number():
    texts, labels = words(60)
    layer, _, rows, _ = fitted(texts, labels)
    counts = counted_ngrams(layer, rows, np.arange(20, 60))
    assert counts.shape == (40, layer.buckets)
    whole = np.array(counts.sum(axis=1))[:, 0]
    for text, total in zip(texts[20:], whole):
        length = min(len(text), 16) + 2
        expected = sum(length - n + 1 for n in range(2, 6)) + 1  # and the word
        assert total == pytest.approx(np.sqrt(expected))
    others = counted_ngrams(layer, rows, np.arange(20, 60)[::-1])
    np.testing.assert_array_equal(others.toarray(), counts.toarray()[::-1])
    before = counts.toarray()
    weights = weigh(counts)
    assert weights.min() >= 1
    np.testing.assert_allclose(counts.toarray(), before * weights)


def test_few_texts_and_texts_of_one_class_have_none():
    texts, labels = words(60)
    assert fitted(texts[:49], labels[:49])[0] is None
    assert fitted(texts, ["noun"] * 60)[0] is None


def test_buckets_are_fewer_for_more_labels():
    assert [num_buckets(count) for count in (2, 5, 77, 512)] == [65_535, 65_535, 16_383, 4_095]


def test_the_balance_is_the_one_by_which_targets_were_drawn():
    draw = np.random.default_rng(0)
    network, linear = draw.normal(scale=2, size=(2, 3000, 4))
    chances = np.exp(log_softmax((network + 3 * linear) / 2))
    targets = (chances.cumsum(axis=1) > draw.random((3000, 1))).argmax(axis=1)
    assert balance(log_softmax(network + linear), linear, targets) == pytest.approx(3, rel=0.15)
    few = balance(log_softmax(network + linear)[:5], linear[:5], targets[:5])
    assert 0.5 < few < 3


def test_accents_are_counted_as_they_are_taken_away():
    assert share_of_accents(["cafe", "!? 1"]) == 0
    assert share_of_accents(["Café", "naïve"]) == pytest.approx(2 / 9)
    assert share_of_accents(["が"]) == 1  # か without its mark
    lower = word_piece(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cafe"], True, in_texts=())
    assert lower.encode("Café") == lower.encode("cafe")


def written(path, texts, labels):
    lines = map(",".join, zip(texts, labels))
    path.write_text("\n".join(["text,label", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a trained run."""
    folder = tmp_path_factory.mktemp("words")
    file = written(folder / "words.csv", *words(300))
    printed("classification", file, "--out", folder / "run", *SMALL, "--passes", 2)
    return folder


def model_of(folder):
    return keras.models.load_model(folder / "run/model.keras", compile=False)


def test_a_classifier_of_texts_has_a_linear_part_by_default(folder):
    assert scores_of(folder / "run")["accuracy"] > 0.85  # the network alone knows no ending yet
    assert numbers(linear_part(model_of(folder)).kernel).any()


def test_a_bundle_answers_as_the_model(folder):
    texts, _ = words(320, seed=1)
    answers = serving.load(exported(folder))(texts)
    files = RunFiles.read(folder / "run")
    rows = logits_of_texts(model_of(folder), files, texts, "answering")
    labels = files.record.settings["labels"]
    for answer, logits in zip(answers, rows, strict=True):
        scores = [answer.scores[label] for label in labels]
        np.testing.assert_allclose(scores, np.exp(log_softmax(logits)), atol=1e-5)


def test_it_can_be_left_out(tmp_path):
    file = written(tmp_path / "words.csv", *words(80))
    options = [*SMALL, "--max-steps", 1, "--linear", "false"]
    printed("classification", file, *options, "--out", tmp_path / "run")
    assert linear_part(model_of(tmp_path)) is None


@pytest.mark.parametrize("option", [("--pair-column", "other"), ("--encoder", "tree")])
def test_it_is_for_single_texts(option, tmp_path):
    file = written(tmp_path / "words.csv", *words(80))
    line = refusal(
        "classification", file, "--linear", "true", *option, out=tmp_path / "run", status=2
    )
    assert "--linear is for single texts that --encoder reads" in line


def test_a_linear_part_that_can_not_be_is_refused(tmp_path):
    file = written(tmp_path / "words.csv", *words(30))
    options = ["--linear", "true", "--batch-size", 4]
    line = refusal("classification", file, *options, out=tmp_path / "run")
    assert "--linear: needs at least 50 training texts and at most 512 labels; there are" in line


def test_many_labels_have_none():
    texts, _ = words(1100)
    labels = [f"{place % 513:03}" for place in range(1100)]
    assert fitted(texts, labels)[0] is None


@pytest.mark.long
def test_start_from_takes_the_network_and_finds_the_linear_part_anew(folder, tmp_path):
    """The other file has other letters, so that no n-gram has the bucket that it has there."""
    texts, labels = words(300, seed=2)
    others = [text.translate(str.maketrans("aeioulmnrst", "uioaervdwpk")) for text in texts]
    file = written(tmp_path / "words.csv", others, labels)
    options = [*SMALL, "--max-steps", 2, "--start-from", folder / "run"]
    printed("classification", file, *options, "--out", tmp_path / "run")
    assert scores_of(tmp_path / "run")["accuracy"] > 0.8
