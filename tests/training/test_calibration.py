"""Scores that are probabilities, from a training to what a bundle answers."""

import itertools
import random
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.metrics.calibration import log_softmax
from seqkeras.models import Bert, ClassificationHead, MultipleChoiceHead, WithHeads
from seqkeras.runs import RunFiles
from seqkeras.serving.pipelines.answer import Settings
from seqkeras.serving.pipelines.questions import Question
from seqkeras.serving.pipelines.spans import Window
from seqkeras.serving.results import Choice, Span, Tagging, Word
from seqkeras.training.calibration import (
    TRIED,
    Chains,
    Chances,
    Softmaxes,
    calibrated,
    certainty_of,
    divide_logits,
    in_words,
    left_in_words,
    logits_of,
)
from seqkeras.training.parts.question_answering import Example as Asked
from seqkeras.training.parts.span_chances import NULL, RIGHT, span_chances
from seqkeras.training.parts.tagged_sentences import Example as Tagged
from seqkeras.training.parts.text_logits import logits_of_texts
from seqkeras.training.tasks.forecasting import ForecastingOptions
from seqkeras.training.tasks.multiple_choice import MultipleChoiceOptions
from seqkeras.training.tasks.question_answering import QuestionAnsweringOptions
from seqkeras.training.tasks.tagging import TaggingOptions
from tests.arrays import numbers, randomize
from tests.training.commands import exported, printed, scores_of
from tests.training.questions import PLACES, encoder_folder, questions, write

SHORT = "--embedding-dim 8 --max-steps 60 --looks 1 --baselines false".split()
CHEAP = [*SHORT, *"--units 8 --encoder convolution".split()]
LABELS = ("bad", "good", "mixed")


def noisy(path, count=400, wrong=0.3):
    """Sentences whose labels are wrong so often: no answer should be sure of itself."""
    draw = random.Random(0)
    lines = ["text,label"]
    for _ in range(count):
        label = draw.choice(["bad", "good"])
        word = {"bad": "dull", "good": "fine"}[label]
        told = label if draw.random() > wrong else draw.choice(LABELS)
        lines.append(f"a {word} {draw.choice(['film', 'play'])} {draw.randrange(9)},{told}")
    path.write_text("\n".join(lines) + "\n")
    return path


def noisy_tags(path, *rows):
    """Sentences of words with tags, which are wrong as often."""
    draw, lines = random.Random(0), []
    tags = [row.split()[1] for row in rows]
    for _ in range(300):
        for _ in range(draw.randrange(2, 6)):
            word, tag = draw.choice(rows).split()
            lines.append(f"{word} {tag if draw.random() > 0.3 else draw.choice(tags)}")
        lines.append("")
    path.write_text("\n".join(lines))
    return path


def logits_in(folder, texts):
    """What the model of the run in a folder gives texts."""
    model = keras.models.load_model(folder / "run/model.keras", compile=False)
    return logits_of_texts(model, RunFiles.read(folder / "run"), texts, "")


def drawn(temperature, n, rows=1):
    """Chances of examples, with so many rows each, whose targets are drawn at a temperature."""
    draw = np.random.default_rng(0)
    logits = draw.normal(scale=4, size=(n, 3))
    targets = (logits / temperature + draw.gumbel(size=logits.shape)).argmax(axis=1)
    return [Chances(*pair, number // rows) for number, pair in enumerate(zip(logits, targets))]


def test_what_is_told_is_cross_fitted_and_better():
    chances = drawn(3.0, 1009)
    told = calibrated(Softmaxes(chances), seed=0)
    assert told["temperature"] == pytest.approx(3, rel=0.15)
    assert told["before"]["expected_calibration_error"] > 0.1
    assert told["after"]["expected_calibration_error"] < 0.05
    counts, scores, shares = np.array(told["reliability"]["after"]).T
    error = np.sum(counts * np.abs(scores - shares)) / np.sum(counts)
    assert told["after"]["expected_calibration_error"] == pytest.approx(error)
    wrong = np.mean([row.logits.argmax() != row.target for row in chances])
    assert told["risk"][-1] == pytest.approx(wrong)
    assert told["risk"][0] < told["risk"][-1]


@pytest.mark.parametrize(
    "chances, why",
    [
        ([], "0 examples; 20 are needed"),
        (drawn(3.0, 19), "19 examples; 20 are needed"),
        (drawn(3.0, 10, rows=10), "1 example; 20 are needed"),
        (drawn(3.0, 190, rows=10), "19 examples; 20 are needed"),
        (drawn(1.0, 60), "a temperature does not lower their loss"),
    ],
    ids=("none", "few", "one", "few of many rows", "calibrated"),
)
def test_a_temperature_that_brings_nothing_is_left_out_and_why(chances, why):
    assert calibrated(Softmaxes(chances), seed=0) is None
    assert left_in_words(Softmaxes(chances)) == f"scores stay as they are: {why}"


@pytest.mark.parametrize("right, rises", [(59, True), (31, False)])
def test_the_line_says_what_decides_where_the_calibration_error_rises(right, rises):
    """Answers with a score of 1 nearly: one wrong answer of 60 is too sure, or half are."""
    logits = np.array([12.0, 0.0])
    chances = [Chances(logits, int(place >= right), place) for place in range(60)]
    told = calibrated(Softmaxes(chances), seed=0)
    before, after = (told[time]["expected_calibration_error"] for time in ("before", "after"))
    assert (after > before) == rises
    assert ("the loss decides" in in_words(told)) == rises


def test_a_training_tells_that_scores_stay_as_they_are(tmp_path):
    lines = printed(
        *("classification", noisy(tmp_path / "own.csv", 60), *CHEAP, "--held-out", 0.2),
        *("--max-steps", 2, "--linear", "false", "--out", tmp_path / "run"),
    )
    told = "  validation: scores stay as they are: 12 examples; 20 are needed"
    assert lines.count(told) == 1
    assert "calibration" not in scores_of(tmp_path / "run")


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
        divide_logits([head.output_layer], 2.5)
        np.testing.assert_allclose(model(inputs[name])[name], before / 2.5, rtol=1e-5)


def test_rows_may_have_different_numbers_of_classes():
    """Choices: a row of two counts as one of three whose third is impossible."""
    chances = drawn(3.0, 401)
    short = [row._replace(logits=row.logits[:2]) if row.target < 2 else row for row in chances]
    long = [
        row if len(row.logits) == 3 else row._replace(logits=np.append(row.logits, -np.inf))
        for row in short
    ]
    assert calibrated(Softmaxes(short), seed=0) == calibrated(Softmaxes(long), seed=0)


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
                    *("classification", file, *CHEAP, "--calibrate", name),
                    *("--out", folder / name / "run"),
                )
            ),
        )
        for name in ("true", "false")
    }


def test_a_run_tells_what_its_temperature_brings_if_it_has_one(both):
    folder, line = both["true"]
    told = scores_of(folder / "run")["calibration"]
    before, after = (told[time]["negative_log_likelihood"] for time in ("before", "after"))
    assert after < before
    assert f"scores divided by a temperature of {told['temperature']:.2f}" in line
    assert (folder / "run" / "calibration.png").stat().st_size > 5000
    card = (exported(folder) / "README.md").read_text()
    assert f"| before | temperature of {told['temperature']:.3f} |" in card
    assert f"| negative log likelihood | {before:.4f} | {after:.4f} |" in card
    filled = [row for row in told["reliability"]["after"] if row[0]]
    diagram = card.partition("| score, as exported |")[2].partition("\n\n")[0].splitlines()[2:]
    for row, (count, score, right) in zip(diagram, filled, strict=True):
        assert row.endswith(f" | {count:,.0f} | {score:.1%} | {right:.1%} |")
    assert f"| 50% | {told['risk'][9]:.1%} |" in card
    assert f"| 100% | {told['risk'][19]:.1%} |" in card
    folder, line = both["false"]
    assert "calibration" not in scores_of(folder / "run") and "temperature" not in line
    assert not (folder / "run" / "calibration.png").exists()


def test_evaluate_tells_the_calibration_of_a_file(both, tmp_path):
    """By the scores that the bundle gives, in loops over the bins."""
    folder, _ = both["true"]
    data, bundle = noisy(tmp_path / "test.csv", count=150), exported(folder)
    out = ["--out", tmp_path / "scores.json"]
    [line] = [
        line
        for line in printed("evaluate", bundle, "--data", data, *out)
        if "calibration error" in line
    ]
    told = scores_of(tmp_path)["calibration"]
    rows = [row.split(",") for row in data.read_text().splitlines()[1:]]
    known = serving.load(bundle)([text for text, _ in rows])
    pairs = sorted(
        ((answer.score, answer.labels[0] == label) for answer, (_, label) in zip(known, rows)),
        key=lambda pair: -pair[0],
    )
    assert told["answers"] == len(pairs) == 150
    error = 0.0
    for number in range(15):
        within = [pair for pair in pairs if number / 15 < pair[0] <= (number + 1) / 15]
        error += abs(sum(score - is_right for score, is_right in within)) / 150
    assert told["expected_calibration_error"] == pytest.approx(error, abs=1e-6)
    assert f"calibration error of 150 scores {error:.2%} (15 bins)" in line
    assert told["risk"][-1] == pytest.approx(1 - np.mean([is_right for _, is_right in pairs]))
    assert told["area_under_risk_coverage"] < told["risk"][-1]


def choice(index, score):
    return Choice("", index, score, ())


CERTAIN = {
    "tagging": (
        TaggingOptions(file="a.conll"),
        [Tagged(("New", "York", "is"), ["B-X", "I-X", "O"])],
        # "is" is cut off, and a part of "New" is no word of the file
        [
            Tagging(
                (
                    Word("New", "B-X", 0, 3, 0.9),
                    Word("w", "B-X", 2, 3, 0.8),
                    Word("York", "O", 4, 8, 0.6),
                ),
                (),
            )
        ],
        [(0.9, True), (0.8, False), (0.6, False)],
    ),
    "question-answering": (
        QuestionAnsweringOptions(file="a.json", model="bidaf"),
        [Asked({}, target, None, "") for target in (["the Cat", "dog"], ["cat"], "", ["cat"])],
        [
            Span("cat!", 0, 4, 0.7),
            Span("a dog", 0, 5, 0.6),
            Span("", None, None, 0.5),
            Span("", None, None, 0.4),
        ],
        [(0.7, True), (0.6, False), (0.5, True), (0.4, False)],
    ),
    "multiple-choice": (
        MultipleChoiceOptions(file="a.csv"),
        [SimpleNamespace(target=2), SimpleNamespace(target=0)],
        [choice(2, 0.5), choice(1, 0.4)],
        [(0.5, True), (0.4, False)],
    ),
    "forecasting": (ForecastingOptions(file="a.csv", targets=("x",)), [None], [None], []),
}


@pytest.mark.parametrize("name", CERTAIN)
def test_the_certainty_of_answers_is_their_score_and_whether_they_are_right(name):
    options, examples, answers, expected = CERTAIN[name]
    assert options.make().calibrating.certainty(examples, answers) == expected


def test_a_score_that_is_no_number_has_no_part_in_the_calibration():
    told = certainty_of([(0.5, True), (np.nan, False), (1 + 1e-7, True)])
    assert told["answers"] == 2 and told["expected_calibration_error"] == pytest.approx(0.25)
    assert certainty_of([(np.nan, False)]) is certainty_of([]) is None


def test_a_bundle_gives_the_softmax_at_the_temperature(both):
    """Of the logits of the model that was not calibrated."""
    (folder, _), (plain, _) = both["true"], both["false"]
    told = scores_of(folder / "run")["calibration"]
    texts = ["a fine film 3", "a dull play 4", "a play"]
    answers = serving.load(exported(folder), threads=1)(texts)
    for answer, logits in zip(answers, logits_in(plain, texts), strict=True):
        assert answer.labels == (LABELS[logits.argmax()],)
        expected = np.exp(log_softmax(logits, told["temperature"]))
        assert answer.scores == pytest.approx(dict(zip(LABELS, expected)), abs=1e-5)


@pytest.mark.long
@pytest.mark.parametrize("crf, pretrained", [(False, False), (True, False), (True, True)])
def test_the_scores_of_tags_are_calibrated(crf, pretrained, tmp_path):
    """The sum over tags needs the logits of words, which a bundle does not show."""
    file = noisy_tags(tmp_path / "own.conll", "was VERB", "dog NOUN", "out ADJ")
    options = [*CHEAP, "--crf", str(crf).lower()]
    if pretrained:
        options[: len(CHEAP)] = ["--pretrained", encoder_folder(tmp_path / "encoder"), *SHORT[2:]]
    for name in ("true", "false"):
        out = tmp_path / name / "run"
        printed("tagging", file, *options, "--calibrate", name, "--out", out)
    told = scores_of(tmp_path / "true" / "run")["calibration"]
    assert told["answers"] > 60
    texts = [("out", "dog", "was")]
    logits, plain = (logits_in(tmp_path / name, texts) for name in ("true", "false"))
    np.testing.assert_allclose(logits[0], plain[0] / told["temperature"], rtol=1e-4, atol=1e-5)
    if not crf:
        answer = serving.load(exported(tmp_path / "true"), threads=1)("out dog was")
        expected = np.exp(log_softmax(plain[0], told["temperature"])).max(axis=1)
        np.testing.assert_allclose([word.score for word in answer.words], expected, atol=1e-5)


def doubtful(count, seed):
    """Questions with two places in a context, of which one is right; those of nobody have none."""
    draw, rows = random.Random(seed), []
    for question, context, answer in questions(count, seed, without=0.3, filler=4):
        places = draw.sample(PLACES, 2)
        right = answer and draw.choice(places)
        rows.append((question, f"{context} lives in {places[0]} or {places[1]} .", right))
    return rows


@pytest.mark.long
def test_the_scores_of_spans_are_calibrated_and_no_answer_changes(tmp_path):
    """No answer included: its threshold is divided with the logits."""
    file = write(tmp_path / "own.json", doubtful(64, 0))
    dev = doubtful(60, 1)
    options = ["--pretrained", encoder_folder(tmp_path / "encoder"), "--max-steps", 200, "--looks"]
    options += [1, "--learning-rate", "5e-3", "--validation", write(tmp_path / "dev.json", dev)]
    options += "--question-length 9 --max-length 21 --stride 5 --tensorboard false".split()
    for name in ("true", "false"):
        out = tmp_path / name / "run"
        printed("question-answering", file, *options, "--calibrate", name, "--out", out)
    scores = scores_of(tmp_path / "true" / "run")
    told = scores["calibration"]
    assert told["answers"] == 60 and told["temperature"] > 1.05
    assert 1 - told["risk"][-1] == pytest.approx(scores["exact_match"])
    pipeline, plain = (serving.load(exported(tmp_path / name)) for name in ("true", "false"))
    asked = [row[:2] for row in dev]
    answers, others = (each(asked, n_best=10_000) for each in (pipeline, plain))
    assert {answer.text == "" for answer in answers} == {True, False}
    for answer, other in zip(answers, others, strict=True):
        assert (answer.text, answer.start) == (other.text, other.start)
        assert answer.margin == pytest.approx(other.margin / told["temperature"], abs=1e-4)
    ratio = np.log([span.score for span in (answers[0], *answers[0].alternatives)])
    ratio -= ratio[0]
    expected = np.log([span.score for span in (others[0], *others[0].alternatives)])
    np.testing.assert_allclose(ratio, (expected - expected[0]) / told["temperature"], atol=1e-3)


def test_the_chances_of_spans_hold_each_span_and_no_answer_once():
    """Scores by loops; those of equal logits, but for an eighth, are counted together."""
    draw = np.random.default_rng(0)
    start, end = draw.normal(scale=3, size=(2, 9)).astype("float32")
    windows = [Window(start, end, range(2, 9), 0)]
    text = "a b c d e f g"
    question = Question(text, None, [(2 * i, 2 * i + 1) for i in range(7)])
    settings = Settings("s", "e", answer_length=3, no_answer=True)
    spans = {
        (i, j): float(start[2 + i]) + float(end[2 + j])
        for i in range(7)
        for j in range(i, min(i + 3, 7))
    }
    null = float(start[0]) + float(end[0])
    total = np.logaddexp.reduce([*spans.values(), null])
    best = max(spans, key=spans.get)
    given = Span("x", *best, np.exp(spans[best] - total))
    for target, score in (((2, 3), spans[2, 3]), (NULL, null), (RIGHT, spans[best])):
        row = span_chances(question, windows, given, target, settings, 5)
        assert row.logits[row.answer] == pytest.approx(spans[best])
        assert row.logits[row.target] == pytest.approx(score)
        assert row.counts.sum() == len(spans) + 1
        log_prob = log_softmax(row.logits, 1.7, row.counts)[row.answer]
        expected = spans[best] / 1.7 - np.logaddexp.reduce(np.array([*spans.values(), null]) / 1.7)
        assert log_prob == pytest.approx(expected, abs=0.02)
    for target in ((0, 3), None):  # longer than an answer may be; not read
        assert span_chances(question, windows, given, target, settings, 5) is None


def test_chains_have_the_temperature_that_their_tags_were_drawn_at():
    """The temperature of drawn tags comes back; most probable tags do not change."""
    draw = np.random.default_rng(1)
    sentences, log_probs = [], []
    for _ in range(211):
        potentials = draw.normal(scale=3, size=(5, 4, 3))
        paths = [*itertools.product(range(3), repeat=5)]
        energies = np.array(
            [
                sum(potentials[t, path[t - 1] if t else -1, path[t]] for t in range(5))
                for path in paths
            ]
        )
        probs = np.exp(log_softmax(energies, 2.0))
        sentences.append((potentials, np.array(paths[draw.choice(len(paths), p=probs)])))
        log_probs += [
            [np.log(sum(p for p, path in zip(probs, paths) if path[t] == k)) for k in range(3)]
            for t in range(5)
        ]
    chains = Chains(sentences)
    words = len(chains.targets)
    np.testing.assert_allclose(chains.log_probs(np.full(words, 2.0)), log_probs, rtol=1e-9)
    told = calibrated(chains, seed=0)
    assert told["temperature"] == pytest.approx(2, rel=0.15)
    assert told["after"]["expected_calibration_error"] < 0.05
    known = [(potentials, np.where(tags == 2, -1, tags)) for potentials, tags in sentences]
    assert len(Chains(known).targets) == sum((tags >= 0).sum() for _, tags in known) < words


@pytest.mark.parametrize("factor", [0.1, 1.0, 100.0])
def test_the_temperature_of_chains_is_the_best_of_those_between_its_ends(factor):
    draw = np.random.default_rng(2)
    chains = Chains(
        [(factor * draw.normal(size=(7, 4, 3)), draw.integers(0, 3, 7)) for _ in range(29)]
    )
    everyone = np.ones(len(chains.targets), bool)
    n = len(chains.targets)

    def loss(temperature):
        log_probs = chains.log_probs(np.full(n, temperature))
        right = log_probs[np.arange(n), chains.targets]
        q = (n + 1) / (n + 2)
        return -np.mean(q * right + (1 - q) / 2 * (log_probs.sum(axis=1) - right))

    grid = TRIED[0] * (TRIED[-1] / TRIED[0]) ** np.linspace(0, 1, 200)
    best = min(map(loss, grid))
    assert loss(chains.fitted(everyone)) == pytest.approx(best, rel=2e-3)
