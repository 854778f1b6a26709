"""Scores that are probabilities, from a training to what a bundle answers."""

import random

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.metrics.calibration import log_softmax
from seqkeras.models import Bert, ClassificationHead, MultipleChoiceHead, WithHeads
from seqkeras.runs import RunFiles
from seqkeras.training.calibration import Chances, calibrated, divide_logits, logits_of
from seqkeras.training.parts.text_logits import logits_of_texts
from tests.arrays import numbers, randomize
from tests.training.commands import exported, printed, scores_of

SHORT = ["--embedding-dim", 8, "--units", 8, "--max-steps", 60, "--baselines", "false"]


def noisy(path, count=400, wrong=0.3):
    """Sentences whose labels are wrong so often: no answer should be sure of itself."""
    draw = random.Random(0)
    lines = ["text,label"]
    for _ in range(count):
        label = draw.choice(["bad", "good"])
        word = {"bad": "dull", "good": "fine"}[label]
        told = label if draw.random() > wrong else draw.choice(["bad", "good", "mixed"])
        lines.append(f"a {word} {draw.choice(['film', 'play'])} {draw.randrange(9)},{told}")
    path.write_text("\n".join(lines) + "\n")
    return path


def drawn(temperature, n, rows=1):
    """Chances of examples, with so many rows each, whose targets are drawn at a temperature."""
    draw = np.random.default_rng(0)
    logits = draw.normal(scale=4, size=(n, 3))
    targets = (logits / temperature + draw.gumbel(size=logits.shape)).argmax(axis=1)
    return [Chances(*pair, number // rows) for number, pair in enumerate(zip(logits, targets))]


def test_what_is_told_is_cross_fitted_and_better():
    chances = drawn(3.0, 1009)
    told = calibrated(chances, seed=0)
    assert told["temperature"] == pytest.approx(3, rel=0.15)
    assert told["before"]["expected_calibration_error"] > 0.1
    assert told["after"]["expected_calibration_error"] < 0.05
    counts, scores, shares = np.array(told["reliability"]["after"]).T
    error = np.sum(counts * np.abs(scores - shares)) / np.sum(counts)
    assert told["after"]["expected_calibration_error"] == pytest.approx(error)
    wrong = np.mean([row.logits.argmax() != row.target for row in chances])
    assert told["risk"][-1] == pytest.approx(wrong)
    assert told["risk"][0] < told["risk"][-1]


def test_a_temperature_that_brings_nothing_is_left_out():
    assert calibrated([], seed=0) is None
    assert calibrated(drawn(3.0, 19), seed=0) is None
    assert calibrated(drawn(3.0, 190, rows=10), seed=0) is None
    assert calibrated(drawn(1.0, 60), seed=0) is None


def test_the_last_weights_take_a_temperature_up():
    bert = Bert(17, 6, 1, 3, 11, max_length=7)
    heads = {"choice": MultipleChoiceHead(), "label": ClassificationHead(3)}
    inputs = {
        "choice": {"token_ids": np.arange(12).reshape(1, 3, 4), "lengths": np.array([[4, 2, 3]])},
        "label": {"token_ids": np.arange(8).reshape(2, 4), "lengths": np.array([4, 2])},
    }
    for name, head in heads.items():
        model = WithHeads(bert, {name: head})
        model.build()
        randomize(model)
        before = numbers(model(inputs[name])[name])
        divide_logits(model, name, 2.5)
        np.testing.assert_allclose(model(inputs[name])[name], before / 2.5, rtol=1e-5)


def test_rows_may_have_different_numbers_of_classes():
    """Choices: a row of two counts as one of three whose third is impossible."""
    chances = drawn(3.0, 401)
    short = [row._replace(logits=row.logits[:2]) if row.target < 2 else row for row in chances]
    long = [
        row if len(row.logits) == 3 else row._replace(logits=np.append(row.logits, -np.inf))
        for row in short
    ]
    assert calibrated(short, seed=0) == calibrated(long, seed=0)


def test_scores_of_zero_have_a_logarithm():
    np.testing.assert_allclose(logits_of([1.0, 0.0]), [0, np.log(1e-300)])


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """Folders of two runs that differ in --calibrate alone, and what is printed, by its value."""
    folder = tmp_path_factory.mktemp("calibrated")
    file = noisy(folder / "own.csv")
    return {
        name: (
            folder / name,
            " ".join(
                printed(
                    *("classification", file, *SHORT, "--calibrate", name),
                    *("--out", folder / name / "run"),
                )
            ),
        )
        for name in ("true", "false")
    }


def test_a_run_tells_what_its_temperature_brings(both):
    folder, line = both["true"]
    told = scores_of(folder / "run")["calibration"]
    before, after = (told[time]["negative_log_likelihood"] for time in ("before", "after"))
    assert after < before
    assert f"scores divided by a temperature of {told['temperature']:.2f}" in line
    assert (folder / "run" / "calibration.png").stat().st_size > 5000
    card = (exported(folder) / "README.md").read_text()
    assert f"| before | temperature of {told['temperature']:.3f} |" in card
    assert f"| negative log likelihood | {before:.4f} | {after:.4f} |" in card


def test_scores_are_left_as_they_are_on_request(both):
    folder, line = both["false"]
    assert "calibration" not in scores_of(folder / "run")
    assert "temperature" not in line
    assert not (folder / "run" / "calibration.png").exists()


def test_a_bundle_gives_the_softmax_at_the_temperature(both):
    told = scores_of(both["true"][0] / "run")["calibration"]
    texts = ["a fine film 3", "a dull play 4", "a play"]
    answers, plain = (
        serving.load(exported(both[name][0]), threads=1)(texts) for name in ("true", "false")
    )
    for answer, other in zip(answers, plain, strict=True):
        powers = {
            label: score ** (1 / told["temperature"]) for label, score in other.scores.items()
        }
        assert answer.labels == other.labels
        expected = {label: power / sum(powers.values()) for label, power in powers.items()}
        assert answer.scores == pytest.approx(expected, abs=1e-5)


def test_the_scores_of_tags_are_calibrated(tmp_path):
    """Words of a noisy file; the sum over tags needs their logits, which a bundle does not show."""
    draw, lines = random.Random(0), []
    for _ in range(300):
        for _ in range(draw.randrange(2, 6)):
            word, tag = draw.choice([("runs", "VERB"), ("dog", "NOUN"), ("old", "ADJ")])
            tag = tag if draw.random() > 0.3 else draw.choice(["VERB", "NOUN", "ADJ"])
            lines.append(f"{word} {tag}")
        lines.append("")
    file = tmp_path / "own.conll"
    file.write_text("\n".join(lines))
    for name in ("true", "false"):
        printed("tagging", file, *SHORT, "--calibrate", name, "--out", tmp_path / name / "run")
    told = scores_of(tmp_path / "true" / "run")["calibration"]
    assert told["answers"] > 60
    run = RunFiles.read(tmp_path / "true" / "run")
    texts = [("old", "dog", "runs")]
    logits, plain = (
        logits_of_texts(
            keras.models.load_model(tmp_path / name / "run/model.keras"), run, texts, ""
        )
        for name in ("true", "false")
    )
    np.testing.assert_allclose(logits[0], plain[0] / told["temperature"], rtol=1e-4, atol=1e-5)
    answer = serving.load(exported(tmp_path / "true"), threads=1)("old dog runs")
    expected = np.exp(log_softmax(plain[0], told["temperature"])).max(axis=1)
    np.testing.assert_allclose([word.score for word in answer.words], expected, atol=1e-5)
