"""SQuAD's scores, beside the definitions of its official script, question by question."""

import random

import numpy as np
import pytest

from seqkeras.metrics import best_no_answer_threshold, squad_exact_match, squad_f1, squad_scores
from tests.references import squad as official

PIECES = [
    *"the The an A cat cats dog the. A. U.S. us don't dont 1984 1,984 Émile naïve a_b".split(),
    *["서울대학교", "，", "—", "¿", "$", "...", "\u00a0", " ", "\n", "a-b", "ab", "(the)", "x"],
]


def cases(count, seed):
    """Texts and their right answers, some of which are none."""
    draw = random.Random(seed)

    def text(most):
        return draw.choice(["", " ", " ", " "]).join(draw.choices(PIECES, k=draw.randint(0, most)))

    texts, targets = [], []
    for _ in range(count):
        answers = [text(11) for _ in range(draw.randint(0, 4))]
        texts.append(draw.choice([*answers, text(9), "", f"the {text(2)}."]))
        targets.append(answers)
    return texts, targets


def test_exact_match_and_f1_are_those_of_the_official_script():
    texts, targets = cases(1_009, seed=0)
    exact = [official.exact(*pair) for pair in zip(texts, targets, strict=True)]
    f1 = [official.f1(*pair) for pair in zip(texts, targets, strict=True)]
    assert 0.2 < np.mean(exact) < np.mean(f1) < 0.9
    assert len({round(value, 6) for value in f1}) > 17
    for text, answers, is_equal, own in zip(texts, targets, exact, f1, strict=True):
        assert squad_exact_match([text], [answers]) == is_equal
        assert squad_f1([text], [answers]) == pytest.approx(own, rel=1e-12)
    assert squad_exact_match(texts, targets) == pytest.approx(np.mean(exact))
    assert squad_f1(texts, targets) == pytest.approx(np.mean(f1))


def test_chinese_is_scored_as_by_the_script_of_mlqa():
    draw = random.Random(3)
    pieces = [*"北京大学市。，《》·—$ 19", "the ", "iPhone", " Mate 20", "1990年", "\u3000"]

    def text():
        return "京" + "".join(draw.choices(pieces, k=draw.randint(0, 7)))

    scores = set()
    for _ in range(1_009):
        own, answers = text(), [text() for _ in range(draw.randint(1, 3))]
        expected = official.f1_of_chinese(own, answers)
        assert squad_f1([own], [answers]) == pytest.approx(expected, rel=1e-12)
        right = [official.words_of_chinese(answer) for answer in answers]
        is_equal = official.words_of_chinese(own) in right
        assert squad_exact_match([own], [answers]) == is_equal
        scores.add(round(expected, 6))
    assert len(scores) > 20
    assert squad_exact_match(["《北京》"], ["北京。"]) == 1.0


@pytest.mark.parametrize(
    "text, target, f1",
    [
        ("北京市", "北京", 0.8),
        ("東京とう", "東京", 2 / 3),
        ("カタカナ", "カナ", 2 / 3),
        ("กรุงเทพ", "กรุง", 2 * 4 / 11),
        ("ສະບາຍດີ", "ດີ", 2 * 2 / 9),
        ("서울특별시", "서울", 0.0),
    ],
)
def test_scripts_without_spaces_are_scored_by_their_characters(text, target, f1):
    assert squad_f1([text], [[target]]) == pytest.approx(f1)


def test_parts_are_of_the_questions_with_and_without_an_answer():
    texts, targets = cases(1_009, seed=1)
    scores = squad_scores(texts, targets)
    parts = {"with_answer": [], "without_answer": []}
    for text, answers in zip(texts, targets, strict=True):
        has_answer = official.golds(answers) != [""]
        parts["with_answer" if has_answer else "without_answer"].append((text, answers))
    for name, pairs in parts.items():
        assert scores[name] == {
            "questions": len(pairs),
            "exact_match": pytest.approx(np.mean([official.exact(*pair) for pair in pairs])),
            "f1": pytest.approx(np.mean([official.f1(*pair) for pair in pairs])),
        }
    assert scores["questions"] == 1_009
    answered = squad_scores(["cat"], ["the cat"])
    assert answered == {"questions": 1, "exact_match": 1.0, "f1": 1.0}


@pytest.mark.parametrize("seed", range(5))
def test_the_best_threshold_is_that_of_the_official_script_and_of_all(seed):
    texts, targets = cases(61, seed)
    texts = [text if official.words(text) else "x" for text in texts]  # never none
    generator = np.random.default_rng(seed)
    margins = generator.normal(size=61) + [answers != [] for answers in targets]
    threshold, f1 = best_no_answer_threshold(texts, targets, margins)
    expected, highest = official.best_threshold(texts, targets, [*-margins])
    assert f1 == pytest.approx(expected, rel=1e-12)
    if f1 > np.mean([official.golds(answers) == [""] for answers in targets]):
        assert [*(margins > threshold)] == [*(-margins <= highest)]

    def f1_at(threshold):
        kept = [text if own > threshold else "" for text, own in zip(texts, margins)]
        return squad_f1(kept, targets)

    assert f1_at(threshold) == pytest.approx(f1)
    assert max(map(f1_at, [-99, *margins, 99])) == pytest.approx(f1)
    assert min(abs(margins - threshold)) > 1e-9  # it is no margin itself


def test_equal_margins_stay_on_one_side_of_the_threshold():
    texts, targets = ["x"] * 5, ["x", "x", "", "x", ""]
    threshold, f1 = best_no_answer_threshold(texts, targets, [1, 0, 0, 0, -1])
    assert -1 < threshold < 0 and f1 == 4 / 5
    assert best_no_answer_threshold(["x"], [""], [7]) == (8, 1)
    assert best_no_answer_threshold(["x"], ["x"], [7]) == (6, 1)
    with pytest.raises(ValueError, match="one margin for each text; received 2 margins and 1 text"):
        best_no_answer_threshold(["x"], [""], [7, 8])
