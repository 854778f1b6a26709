import re

import numpy as np
import pytest

from seqkeras.serving import BundleError
from seqkeras.serving.lines import inputs
from seqkeras.serving.manifest import Limits
from tests.serving.pipelines.test_tag import windows_of
from tests.serving.pipelines.toys import TOKENIZER, Toy, load, texts_of_many_lengths

LABELS = ["good", "bad", "neither"]


@pytest.fixture
def classify(tmp_path):
    return load(tmp_path, "Classify", Toy(3).graph("pooled"), {"labels": LABELS})


def softmax(logits):
    exps = [float(np.exp(np.float64(each))) for each in logits]
    return [each / sum(exps) for each in exps]


@pytest.mark.parametrize("top", [1, 2, 3, 7])
def test_top_leaves_the_most_probable_labels_and_changes_no_number(tmp_path, classify, top):
    texts = texts_of_many_lengths(5)
    for answer, whole in zip(classify(texts, top=top), classify(texts), strict=True):
        assert (answer.labels, answer.score) == (whole.labels, whole.score)
        assert [*answer.scores.items()] == [*whole.scores.items()][:top]
    settings = {"labels": LABELS, "multi_label": True, "threshold": 0.01}
    several = load(tmp_path / "several", "Classify", Toy(3).graph("pooled"), settings)
    for answer in several(texts, top=top):
        assert answer.labels == tuple(answer.scores)
        assert len(answer.scores) == min(top, 3)


def test_top_is_a_count_of_labels(tmp_path, classify):
    for top in (0, -1, 1.5, True, "2"):
        with pytest.raises(ValueError, match="Classify: top must be a whole number of at least 1"):
            classify("the cat", top=top)
    regress = load(tmp_path / "number", "Classify", Toy(1).graph("pooled"), {})
    with pytest.raises(ValueError, match="top counts labels; this model predicts a number"):
        regress("the cat", top=2)


def test_a_pair_is_a_tuple_or_a_dictionary(classify):
    expected = Toy(3).pooled(TOKENIZER.analyze("the cat", "sat on"))
    for pair in (("the cat", "sat on"), {"text": "the cat", "pair": "sat on"}):
        scores = classify(pair).scores
        assert scores == pytest.approx(dict(zip(LABELS, softmax(expected))), rel=1e-5)
    assert classify({"text": "the cat"}) == classify("the cat")


@pytest.mark.parametrize("stride", [1, 4, 50])
@pytest.mark.parametrize("labels", [LABELS, []])
def test_the_logits_of_a_text_in_windows_are_the_mean_of_theirs(tmp_path, stride, labels):
    toy = Toy(3 if labels else 1)
    settings = {"labels": labels, "pairs": False, "stride": stride}
    classify = load(tmp_path, "Classify", toy.graph("pooled"), settings, limits=Limits(11))
    texts = ["cat", *(" ".join(["the old cats", "he ran"] * count) for count in (1, 3, 9))]
    counts = set()
    for text, answer in zip(texts, classify(texts, token_budget=30), strict=True):
        begin, *token_ids, end = TOKENIZER.analyze(text).token_ids
        windows = windows_of(token_ids, 9, stride)
        counts.add(len(windows))
        rows = [[begin, *token_ids[own.start : own.stop], end] for own in windows]
        logits = np.mean([(toy.E[row] + toy.S[0]).mean(axis=0) @ toy.W for row in rows], axis=0)
        if labels:
            expected = dict(zip(labels, softmax(logits)))
            assert answer.scores == pytest.approx(expected, rel=1e-5)
        else:
            assert answer.score == pytest.approx(logits[0], rel=1e-4)
            assert (answer.labels, answer.scores) == ((), {})
        assert classify(text, truncate=True).score == pytest.approx(answer.score, rel=1e-5)
    assert 1 in counts and len(counts) > 2
    with pytest.raises(ValueError, match="text must be one text, and no pair"):
        classify(("the", "cat"))


def test_several_labels_at_once_have_probabilities_of_their_own(tmp_path):
    settings = {"labels": LABELS, "multi_label": True, "threshold": 0.8}
    classify = load(tmp_path, "Classify", Toy(3).graph("pooled"), settings)
    numbers = set()
    for text in texts_of_many_lengths(29, most=2):
        logits = Toy(3).pooled(TOKENIZER.analyze(text)).astype("float64")
        expected = dict(zip(LABELS, 1 / (1 + np.exp(-logits))))
        answer = classify(text)
        assert answer.scores == pytest.approx(expected, rel=1e-5)
        assert set(answer.labels) == {each for each in LABELS if expected[each] > 0.8}
        assert [*answer.labels] == [*answer.scores][: len(answer.labels)]
        numbers.add(len(answer.labels))
    assert numbers >= {0, 1, 2}


def test_one_logit_is_that_of_the_second_of_two_labels(tmp_path):
    classify = load(tmp_path, "Classify", Toy(1).graph("pooled"), {"labels": ["no", "yes"]})
    for text in texts_of_many_lengths(7):
        [logit] = Toy(1).pooled(TOKENIZER.analyze(text)).astype("float64")
        yes = 1 / (1 + np.exp(-logit))
        answer = classify(text)
        assert answer.scores == pytest.approx({"yes": yes, "no": 1 - yes}, rel=1e-5)
        assert answer.labels == ("yes" if logit > 0 else "no",)


def test_the_last_logit_is_that_of_none_of_the_labels(tmp_path):
    settings = {"labels": LABELS, "none_of_these": True}
    classify = load(tmp_path, "Classify", Toy(4).graph("pooled"), settings)
    found = set()
    texts = texts_of_many_lengths(31, most=3)
    for text, answer, cut in zip(texts, classify(texts), classify(texts, top=1), strict=True):
        *expected, none = softmax(Toy(4).pooled(TOKENIZER.analyze(text)))
        assert answer.scores == pytest.approx(dict(zip(LABELS, expected)), rel=1e-5)
        assert [*answer.scores.values()] == sorted(answer.scores.values(), reverse=True)
        is_none = none > max(expected)
        assert answer.labels == ((None,) if is_none else tuple(answer.scores)[:1])
        assert answer.score == pytest.approx(none if is_none else max(expected), rel=1e-5)
        assert (cut.labels, cut.score, len(cut.scores)) == (answer.labels, answer.score, 1)
        line = answer.line(ranked=True).split("\t")
        assert line[::2] == ["null"] * is_none + [*answer.scores]
        assert answer.line() == "\t".join(line[:2])
        found.add(is_none)
    assert found == {True, False}


@pytest.mark.parametrize(
    "pairs, given, message",
    [
        (True, "the cat", "text must be a pair of texts."),
        (False, ("the cat", "sat"), "text must be one text, and no pair."),
        (None, ("the cat", ""), "text, pair is empty; write something to answer."),
        (None, (3, "sat"), "text, text must be a string; received int 3."),
        (None, ("a", "b", "c"), "text must be a tuple or a dictionary of text and pair; received "),
        (None, {"text": "a", "pairs": "b"}, "text must be a tuple or a dictionary of text and "),
    ],
)
def test_a_pair_where_there_should_be_none_is_refused(tmp_path, pairs, given, message):
    settings = {"labels": LABELS, "pairs": pairs}
    classify = load(tmp_path, "Classify", Toy(3).graph("pooled"), settings)
    with pytest.raises(ValueError, match=f"^Classify: {re.escape(message)}"):
        classify(given)


@pytest.mark.parametrize(
    "pairs, given",
    [(False, "the cat\tsat"), (True, ("the cat", "sat")), (None, ("the cat", "sat"))],
)
def test_a_tab_parts_the_texts_of_a_line_where_pairs_are_taken(tmp_path, pairs, given):
    settings = {"labels": LABELS, "pairs": pairs}
    classify = load(tmp_path, "Classify", Toy(3).graph("pooled"), settings)
    [(_, value)] = inputs(classify, [("line 1", "the cat\tsat")])
    assert value == given
    assert classify(value) == classify([given])[0]


TWO = {"labels": ["a", "a"], "threshold": 1}
STRIDE = {"labels": LABELS, "stride": 5}


@pytest.mark.parametrize(
    "outputs, settings, message",
    [
        (3, TWO | {"labl": 3}, "labl is unknown."),
        (
            3,
            TWO,
            "labels names 2 labels; the model's output has 3 logits; settings.labels must be "
            "distinct; settings.threshold must be between 0 and 1; received 1.0.",
        ),
        (3, {}, "labels is missing, and the model's output has 3 logits."),
        (1, {"labels": LABELS}, "labels names 3 labels; the model's output has 1 logit. "),
        (1, {"labels": ["a", "b"], "multi_label": True}, "labels names 2 labels; the model's outp"),
        (3, {"labels": LABELS, "none_of_these": True}, "labels names 3 labels, and none_of_these"),
        (2, {"none_of_these": True}, "none_of_these needs labels, of which a text has one"),
        (
            4,
            {"labels": LABELS, "multi_label": True, "none_of_these": True},
            "none_of_these needs labels, of which a text has one",
        ),
        (3, STRIDE | {"stride": 0, "pairs": False}, "stride must be at least 1; received 0"),
        (3, STRIDE, "stride needs settings.pairs false: a pair is not read in wind"),
        (3, {"output": "logits", "multi_label": True}, "output must be one of output; received 'l"),
        (3, {"labels": "abc", "multi_label": 1}, 'labels must be a list; received "abc"; settings'),
    ],
)
def test_wrong_settings_are_refused_with_every_reason(tmp_path, outputs, settings, message):
    with pytest.raises(BundleError) as caught:
        load(tmp_path, "Classify", Toy(outputs).graph("pooled"), settings)
    assert str(caught.value).startswith(f"{tmp_path}: manifest.json: settings.{message}".rstrip())
    assert str(caught.value).endswith(" Export the bundle again.")
