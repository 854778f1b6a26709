"""Metrics of answers beside targets, against counts by hand, loops and regular expressions."""

import random

import numpy as np
import pytest
import sacrebleu

from seqkeras.metrics import (
    bleu,
    chrf,
    class_f1,
    class_scores,
    entity_f1,
    exact_match,
    matthews_correlation,
    pearson_correlation,
    relative_error,
    rouge,
    sequence_error_rate,
    signed_bleu,
    signed_chrf,
    spearman_correlation,
    squad_exact_match,
    squad_f1,
    squad_scores,
    tag_accuracy,
    token_error_rate,
)
from tests.references import metrics as references

METRICS = (bleu, chrf, entity_f1, exact_match, relative_error, rouge, sequence_error_rate)
METRICS += (squad_exact_match, squad_f1, squad_scores, tag_accuracy, token_error_rate)
METRICS += (class_f1, class_scores, matthews_correlation, pearson_correlation, spearman_correlation)


def test_exact_match_is_the_share_of_equal_values():
    assert exact_match(["a", "b", "c"], ["a", "B", "c"]) == pytest.approx(2 / 3)
    assert exact_match([{"a", "b"}, set()], [{"b", "a"}, {"a"}]) == 1 / 2


def test_chrf_counts_n_grams_of_characters():
    texts, targets = ["the cat sat down", "a dog"], ["the cat sat", "the dog ran"]
    assert chrf(texts, targets) == pytest.approx(references.chrf(texts, targets))
    assert chrf(texts, texts) == pytest.approx(1)


def test_bleu_counts_n_grams_of_words_and_says_how():
    texts = ["the cat sat down on a mat", "there is the dog ."]
    targets = ["the cat sat down on the mat", "here is the dog ."]
    assert bleu(texts, targets, "none") == pytest.approx(references.bleu(texts, targets))
    number, signature = signed_bleu(texts, targets, "char")
    expected = sacrebleu.corpus_bleu(texts, [targets], tokenize="char")
    assert number == pytest.approx(expected.score / 100) and "|tok:char|" in signature
    assert bleu(texts, texts) == pytest.approx(1)
    same = ["the cat sat on the mat"]
    assert bleu(same, same) == 1  # 1.0000000000000004 by sacrebleu, over the range that we state


def test_a_text_may_have_several_right_translations():
    texts = ["the cat sat down", "a dog runs off", "the sun is out"]
    targets = [["a cat sat", "the cat sat down"], "a dog runs away", ["x", "the sun is out", "y z"]]
    streams = [["a cat sat", "a dog runs away", "x"]]
    streams += [["the cat sat down", None, "the sun is out"], [None, None, "y z"]]
    assert signed_bleu(texts, targets)[1].startswith("nrefs:var|")
    expected = sacrebleu.corpus_bleu(texts, streams).score / 100
    assert bleu(texts, targets) == pytest.approx(expected)
    number, signature = signed_chrf(texts, targets)
    assert number == chrf(texts, targets) > chrf(texts, ["a cat sat", "a dog runs away", "x"])
    assert signature.startswith("nrefs:var|")


def edits(tokens, target):
    """Levenshtein's distance by its definition."""
    if not tokens or not target:
        return len(tokens) + len(target)
    changed = edits(tokens[1:], target[1:]) + (tokens[0] != target[0])
    return min(changed, 1 + edits(tokens[1:], target), 1 + edits(tokens, target[1:]))


def test_error_rates_are_of_the_nearest_target():
    draw = random.Random(0)
    words = [" ".join(draw.choices("ABC", k=draw.randint(0, 5))) for _ in range(43)]
    texts, targets = words[:21], [*map(list, zip(words[21:42], words[1:22]))]
    distances = lengths = wrong = 0
    for text, both in zip(texts, targets):
        found = [(edits(text.split(), each.split()), -len(each.split())) for each in both]
        distances, lengths = distances + min(found)[0], lengths - min(found)[1]
        wrong += all(text != each for each in both)
    assert token_error_rate(texts, targets) == pytest.approx(distances / lengths)
    assert sequence_error_rate(texts, targets) == pytest.approx(wrong / 21)
    assert token_error_rate(["K AE T"], ["K AE T S"]) == 1 / 4
    assert sequence_error_rate(["K AE T"], [["K AH T", "K AE T"]]) == 0
    with pytest.raises(ValueError, match="targets must hold at least one token"):
        token_error_rate(["a"], [""])


def test_tag_accuracy_counts_words():
    assert tag_accuracy([["A", "B"], [], ["C"]], [["A", "A"], [], ["C"]]) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="one target for each word; received the tags A, B and"):
        tag_accuracy([["A", "B"]], [["A"]])


def test_relative_error_is_what_is_off_beside_the_targets():
    generator = np.random.default_rng(3)
    values, targets = generator.normal(size=(2, 5, 7, 3))
    off = size = 0.0
    for value, target in zip(values.ravel(), targets.ravel()):
        off, size = off + abs(value - target), size + abs(target)
    assert relative_error(values, targets) == pytest.approx(off / size)
    assert relative_error([2.0, -3], [0, 0]) == 5
    assert type(relative_error(values, targets)) is float
    with pytest.raises(ValueError, match=r"the shape of its value, \(2,\); received \(3,\)"):
        relative_error([[1, 2]], [[1, 2, 3]])


@pytest.mark.parametrize("metric", METRICS)
def test_answers_and_targets_come_in_pairs(metric):
    with pytest.raises(ValueError, match=f"{metric.__name__}: .*received 1 answers and 2 targets"):
        metric(["a"], ["a", "b"])
    with pytest.raises(ValueError, match=f"{metric.__name__}: .*received 0 answers and 0 targets"):
        metric([], [])


@pytest.mark.parametrize(
    "text, target, measured",
    [
        ("北京市。", "北京", (4 / 5, 2 / 3, 4 / 5)),
        ("Кошка спит", "кошка не спит!", (4 / 5, 0.0, 4 / 5)),
        ("ไทย", "ไท", (4 / 5, 2 / 3, 4 / 5)),
        ("서울 날씨", "서울", (2 / 3, 0.0, 2 / 3)),
    ],
)
def test_rouge_knows_the_words_of_other_scripts(text, target, measured):
    names = ("rouge1", "rouge2", "rougeL")
    assert rouge([text], [target]) == pytest.approx(dict(zip(names, measured, strict=True)))


def test_rouge_of_latin_letters_is_googles():
    from rouge_score.rouge_scorer import RougeScorer

    text, target = "naïve walkers, don't walk 3.5 km", "The naïve walker doesn't walk 3 km"
    scores = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True).score(target, text)
    expected = {name: score.fmeasure for name, score in scores.items()}
    assert rouge([text], [target]) == pytest.approx(expected)
