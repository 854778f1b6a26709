"""Scores that are probabilities, from a training to what a bundle answers."""

import random

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.models import Bert, ClassificationHead, MultipleChoiceHead, WithHeads
from seqkeras.training.calibration import calibrated, divide_logits, logits_of
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


def drawn(temperature, n):
    """Log-probabilities of a model, and targets drawn at a temperature."""
    draw = np.random.default_rng(0)
    logits = draw.normal(scale=4, size=(n, 3))
    return logits, (logits / temperature + draw.gumbel(size=logits.shape)).argmax(axis=1)


def test_what_is_told_is_cross_fitted_and_better():
    logits, targets = drawn(3.0, 1009)
    told = calibrated(logits, targets, seed=0)
    assert told["temperature"] == pytest.approx(3, rel=0.15)
    assert told["before"]["expected_calibration_error"] > 0.1
    assert told["after"]["expected_calibration_error"] < 0.05
    counts, scores, shares = np.array(told["reliability"]["after"]).T
    error = np.sum(counts * np.abs(scores - shares)) / np.sum(counts)
    assert told["after"]["expected_calibration_error"] == pytest.approx(error)
    wrong = np.mean(logits.argmax(axis=1) != targets)
    assert told["risk"][-1] == pytest.approx(wrong)
    assert told["risk"][0] < told["risk"][-1]


def test_a_temperature_that_brings_nothing_is_left_out():
    assert calibrated(*drawn(3.0, 19), seed=0) is None
    assert calibrated(*drawn(1.0, 60), seed=0) is None


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


def test_choices_of_different_number_are_rows_of_their_own():
    logits = logits_of([(0.25, 0.75), (0.5, 0.25, 0.25)])
    expected = np.log([[0.25, 0.75, 1e-9], [0.5, 0.25, 0.25]])
    expected[0, 2] = -np.inf
    np.testing.assert_allclose(logits, expected)


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
