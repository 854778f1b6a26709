"""Plain methods beside a model: each against its library's own call or a loop, and the interval of
the difference against SciPy's."""

import random
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.stats
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from seqkeras.data.recordings import Recording
from seqkeras.metrics import pearson_correlation
from seqkeras.serving.text.trees import Nodes, parse_tree
from seqkeras.training.baselines import (
    ERROR,
    NUMBER,
    Measure,
    answered,
    compared,
    interval,
    ratio,
    sampled,
)
from seqkeras.training.parts import regression, trees
from seqkeras.training.parts.baselines import phrases, tags, texts
from tests.training.commands import evaluated, exported, printed, scores_of

GOOD, BAD = ("fine", "warm", "clever", "great"), ("dull", "cold", "silly", "poor")
WORDS = ("the", "a", "film", "story", "scene", "actor", "and", "is", "was", "very")


def reviews(count, seed=0):
    """Rows of a text, a pair, a label and a number: how many good and bad words there are."""
    draw, rows = random.Random(seed), []
    for _ in range(count):
        text = [*draw.choices(WORDS, k=6), *draw.choices(GOOD + BAD, k=3)]
        draw.shuffle(text)
        number = sum(word in GOOD for word in text) - sum(word in BAD for word in text)
        label = "good" if number > 0 else "bad"
        rows.append(SimpleNamespace(text=" ".join(text), target=label, number=float(number)))
    return rows


def numbers_of(rows):
    return [SimpleNamespace(text=row.text, target=row.number) for row in rows]


def features_of(rows, others):
    """Features by scikit-learn alone, of rows and of others."""
    words = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"(?u)\b\w+\b", sublinear_tf=True)
    return words.fit_transform([row.text for row in rows]), words.transform(
        [other.text for other in others]
    )


def logistic(penalty):
    return OneVsRestClassifier(LogisticRegression(C=penalty, solver="liblinear", tol=1e-2))


def chosen(kind, penalties, x, y, seed):
    """The penalty that scores best on a tenth of the rows, by a loop."""
    order = np.random.default_rng(seed).permutation(len(y))
    held, rest = order[: round(len(y) / 10)], order[round(len(y) / 10) :]
    scores = [kind(penalty).fit(x[rest], y[rest]).score(x[held], y[held]) for penalty in penalties]
    return penalties[int(np.argmax(scores))]


def test_words_and_pairs_are_logistic_regression_of_scikit_learn():
    rows, others = reviews(211), reviews(97, seed=1)
    for row in (*rows, *others):
        row.target = row.target if abs(row.number) > 1 else "mixed"
    [_, method] = texts.classes_of_texts(rows, ["bad", "good", "mixed"], seed=3)
    answers = method.answer(others)
    x, asked = features_of(rows, others)
    y = np.array([row.target for row in rows])

    model = logistic(chosen(logistic, texts.PENALTIES, x, y, 3)).fit(x, y)
    expected = model.predict_proba(asked)
    found = [[answer.scores[label] for label in model.classes_] for answer in answers]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert [answer.labels[0] for answer in answers] == model.predict(asked).tolist()
    right = np.mean([a.labels[0] == other.target for a, other in zip(answers, others)])
    assert method.name == "words and pairs" and right > 0.7


def test_numbers_are_ridge_regression_of_scikit_learn():
    rows, others = reviews(211), reviews(97, seed=1)
    mean, method = texts.numbers_of_texts(numbers_of(rows), seed=3)
    found = [answer.score for answer in method.answer(others)]
    x, asked = features_of(rows, others)
    x, asked, y = x.toarray(), asked.toarray(), np.array([row.number for row in rows])
    penalty = chosen(lambda c: Ridge(alpha=1 / c), texts.PENALTIES, x, y, 3)
    z = x - x.mean(axis=0)  # the normal equations
    weights = np.linalg.solve(z.T @ z + np.eye(x.shape[1]) / penalty, z.T @ (y - y.mean()))
    expected = (asked - x.mean(axis=0)) @ weights + y.mean()
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert [answer.score for answer in mean.answer(others)] == [pytest.approx(y.mean())] * 97
    assert pearson_correlation(found, [other.number for other in others]) > 0.8


def test_the_words_of_a_pair_are_told_apart():
    """A label that says which of two texts has the word."""
    draw = random.Random(0)
    sides = [draw.random() < 0.5 for _ in range(157)]
    rows = [
        SimpleNamespace(
            text=("a fine film", "a film") if left else ("a film", "a fine film"),
            target="left" if left else "right",
        )
        for left in sides
    ]
    [_, method] = texts.classes_of_texts(rows, ["left", "right"], seed=0)
    assert [answer.labels[0] for answer in method.answer(rows)] == [row.target for row in rows]


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        (["a fine film", "dull from end to end"], "words and pairs"),
        (
            ["今天天气很好，我们去公园散步吧", "这部电影太无聊了，我不想再看一遍"],
            "1 to 4 characters",
        ),
        (["Haus", "maison", "house"], "1 to 4 characters"),
    ],
)
def test_texts_without_spaces_are_read_by_characters(rows, name):
    examples = [SimpleNamespace(text=row, target=str(place % 2)) for place, row in enumerate(rows)]
    [_, method] = texts.classes_of_texts(examples, ["0", "1"], seed=0)
    assert method.name == name
    names = texts.tf_idf(rows).fit(rows).get_feature_names_out()
    kind = {"analyzer": "char_wb", "ngram_range": (1, 4)}
    if name == "words and pairs":
        kind = {"token_pattern": r"(?u)\b\w+\b", "ngram_range": (1, 2)}
    expected = TfidfVectorizer(**kind).fit(rows).get_feature_names_out()
    assert [*names] == [f"0 {token}" for token in expected]


def test_recordings_are_summed_up_by_mean_deviation_and_last_frame():
    draw = np.random.default_rng(0)
    recordings = []
    for place in range(83):
        numbers = draw.normal(place % 3, 1, (int(draw.integers(2, 7)), 2))
        recordings.append(SimpleNamespace(numbers=numbers, target=f"{place % 3}"))
    numbers[0, 1] = np.nan
    summary = texts.summary_of(numbers)
    known = numbers[1:, 1]
    expected = [numbers[:, 0].mean(), known.mean(), numbers[:, 0].std(), known.std(), *numbers[-1]]
    np.testing.assert_allclose(summary, expected)
    [_, method] = texts.classes_of_frames(recordings, ["0", "1", "2"], seed=5)
    x = np.stack([texts.summary_of(recording.numbers) for recording in recordings])
    y = np.array([recording.target for recording in recordings])

    order = np.random.default_rng(5).permutation(83)
    held, rest = order[:8], order[8:]
    scaled = StandardScaler().fit(x[rest])
    scores = [
        logistic(c)
        .fit(scaled.transform(x[rest]), y[rest])
        .score(scaled.transform(x[held]), y[held])
        for c in texts.OF_NUMBERS
    ]
    scaled = StandardScaler().fit(x)
    model = logistic(texts.OF_NUMBERS[int(np.argmax(scores))]).fit(scaled.transform(x), y)
    found = [[*answer.scores.values()] for answer in method.answer(recordings)]
    np.testing.assert_allclose(found, model.predict_proba(scaled.transform(x)), rtol=1e-6)


def test_a_word_has_its_most_frequent_tag():
    sentences = [
        ("Ada lives in Oslo", "B-PER O O B-LOC"),
        ("Oslo is big", "B-LOC O O"),
        ("Oslo Ibsen walks", "B-PER I-PER O"),
        ("May sings in May", "O O O B-PER"),
        ("Moslo saw Moslo", "B-PER O B-PER"),
    ]
    examples = [
        SimpleNamespace(text=tuple(words.split()), target=tags.split()) for words, tags in sentences
    ]
    [method] = tags.tags_of_words(examples, lambda example: range(len(example.text)))
    asked = SimpleNamespace(text=("Oslo", "May", "Coslo", "thinks", "Zürich"))
    [answer] = method.answer([asked])
    # May has two tags as often; more words that end as Coslo are persons; none ends as the others.
    expected = ["B-LOC", "B-PER", "B-PER", "O", "O"]
    assert [word.tag for word in answer.words] == expected


def test_frames_are_tagged_by_logistic_regression_of_scikit_learn():
    draw, recordings = np.random.default_rng(0), []
    for _ in range(7):
        places = draw.integers(0, 3, 23)
        numbers = draw.normal(places[:, None], 0.3, (23, 2))
        recordings.append(Recording("", numbers, [f"{place}" for place in places]))
    most, method = tags.tags_of_frames(recordings, seed=5)
    x = np.concatenate([recording.numbers for recording in recordings])
    y = np.array([tag for recording in recordings for tag in recording.target])

    def kind(penalty):
        return make_pipeline(StandardScaler(), logistic(penalty))

    model = kind(chosen(kind, texts.OF_NUMBERS, x, y, 5)).fit(x, y)
    found = [word.tag for answer in method.answer(recordings) for word in answer.words]
    assert found == model.predict(x).tolist()
    [first, *_] = most.answer(recordings)
    assert {word.tag for word in first.words} == {max("012", key=y.tolist().count)}


def test_nodes_of_trees_are_classified_by_the_words_under_them():
    draw, examples = random.Random(0), []
    for _ in range(61):
        words = draw.choices(GOOD + BAD + WORDS, k=5)
        text = "".join(f"({2 * (w in GOOD) + (w in BAD)} {w}) " for w in words[1:])
        root = 2 if sum(w in GOOD for w in words) > sum(w in BAD for w in words) else 1
        tree = parse_tree(f"({root} (0 {words[0]}) ({text}))")
        examples.append(trees.Example("", str(root), Nodes(tree), ""))
    most, method = phrases.classes_of_trees(examples, ["0", "1", "2"], seed=3)
    rows = []
    for root_alone in (True, False):  # roots come first
        for example in examples:
            leaves = [example.nodes.trees[place] for place in example.nodes.written]
            words = [leaf.word for leaf in leaves if leaf.word is not None]
            if root_alone:
                rows.append(SimpleNamespace(text=" ".join(words), target=example.target))
            else:
                labelled = [leaf for leaf in leaves[1:] if leaf.label is not None]
                rows += [
                    SimpleNamespace(text=leaf.word, target=str(leaf.label)) for leaf in labelled
                ]
    x, y = TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), sublinear_tf=True), []
    x, y = x.fit_transform([row.text for row in rows]), np.array([row.target for row in rows])

    model = logistic(chosen(logistic, texts.PENALTIES, x, y, 3)).fit(x, y)
    answers = method.answer(examples)
    assert method.name == "1 to 4 characters"  # of single words
    assert [answer.labels[0] for answer in answers] == model.predict(x[:61]).tolist()
    leaves = [
        node.labels[0]
        for example, answer in zip(examples, answers)
        for node, place in zip(answer.nodes, example.nodes.written, strict=True)
        if example.nodes.trees[place].word is not None
    ]
    assert leaves == model.predict(x[61:]).tolist()
    assert answers[0].nodes[0].scores == answers[0].scores
    [first, *_] = most.answer(examples)
    roots, nodes = [row.target for row in rows[:61]], y.tolist()
    assert first.labels[0] == max("12", key=roots.count)
    assert {node.labels[0] for node in first.nodes[1:]} == {max("012", key=nodes.count)}


def test_the_interval_is_scipys_paired_bootstrap():
    draw = np.random.default_rng(0)
    model, method = (draw.random(113) < share for share in (0.9, 0.8))
    sums = [np.stack([right, np.ones(113)], axis=1).astype(float) for right in (model, method)]
    found = interval(Measure("right", ratio), *sums, seed=7)
    expected = scipy.stats.bootstrap(
        (model, method),
        lambda a, b, axis: a.mean(axis) - b.mean(axis),
        n_resamples=1000,
        paired=True,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(7),
    ).confidence_interval
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_interval_of_correlations_is_scipys_paired_bootstrap():
    draw = np.random.default_rng(0)
    y = draw.normal(1e3, 1, 71)
    x, z = y + draw.normal(0, 0.5, 71), y + draw.normal(0, 1, 71)
    examples = [SimpleNamespace(target=number) for number in y]
    sums = [
        regression._moments(examples, [SimpleNamespace(score=number) for number in numbers])
        for numbers in (x, z)
    ]
    measure = Measure("correlation", regression._correlation, NUMBER)
    assert measure.value(sums[0].sum(axis=0)) == pytest.approx(np.corrcoef(x, y)[0, 1])
    expected = scipy.stats.bootstrap(
        (x, z, y),
        lambda x, z, y: np.corrcoef(x, y)[0, 1] - np.corrcoef(z, y)[0, 1],
        n_resamples=1000,
        paired=True,
        vectorized=False,
        method="percentile",
        rng=np.random.default_rng(7),
    ).confidence_interval
    np.testing.assert_allclose(interval(measure, *sums, seed=7), expected, rtol=1e-9)


def test_equal_answers_have_no_correlation():
    examples = [SimpleNamespace(target=number) for number in (1e9, 1e9 + 1, 1e9 + 5)]
    sums = regression._moments(examples, [SimpleNamespace(score=1e9 + 0.1)] * 3)
    assert regression._correlation(sums.sum(axis=0)) == 0


def rows_of(right, of):
    """Sums of `right` rows of so many that are right."""
    return np.array([(float(place < right), 1.0) for place in range(of)])


@pytest.mark.parametrize(
    ("kind", "model", "best", "expected"),
    [
        ("share", 912, 893, r"model 91.2 %, words 89.3 %: ahead by 1.9 points \(1.\d to 2.\d\)"),
        ("share", 893, 912, r"model 89.3 %, words 91.2 %: behind by 1.9 points \(1.\d to 2.\d\)"),
        (NUMBER, 912, 893, r"score: model 0.912, words 0.893: ahead by 0.019 \(0.01\d to 0.02\d\)"),
        (ERROR, 912, 893, r"score: model 0.912, words 0.893: behind by 2.1 % \(1.\d to [23].\d\)"),
    ],
)
def test_the_line_says_which_is_ahead_and_by_how_much(kind, model, best, expected):
    sums = {"model": rows_of(model, 1000), "most": rows_of(1000 * (kind == ERROR), 1000)}
    sums["words"] = rows_of(best, 1000)
    scores = {name: {"score": rows[:, 0].mean()} for name, rows in sums.items()}
    found = compared(Measure("score", ratio, kind), scores, sums, {"score": ".2%"}, 0, {})
    assert found["best"] == "words"
    assert re.fullmatch(expected, found["summary"]), found["summary"]


def test_a_method_that_fails_is_told_and_stops_nothing(capsys):
    def fails():
        raise MemoryError("no room\nfor it")

    assert answered("words and pairs", fails) is None
    said = " ".join(capsys.readouterr().out.split())
    assert said == "no baseline 'words and pairs': MemoryError: no room for it"


def test_a_sample_is_spread_and_told():
    rows, words = sampled(range(1000), 5)
    assert rows == [0, 249, 499, 749, 999] and words == "5 of 1,000 rows"
    assert sampled(range(3), 5) == ([0, 1, 2], "")


def test_long_files_are_learned_in_part(monkeypatch):
    rows = reviews(100)
    monkeypatch.setattr(texts, "MOST_CHARACTERS", sum(len(row.text) for row in rows) / 4)
    for methods in (
        texts.classes_of_texts(rows, ["bad", "good"], seed=0),
        texts.numbers_of_texts(numbers_of(rows), seed=0),
    ):
        assert [method.learned_on for method in methods] == ["", "25 of 100 rows"]


def test_the_library_imports_no_library_of_plain_methods():
    code = (
        "import sys, seqkeras, seqkeras.serving, seqkeras.training.tasks.classification\n"
        "print({'sklearn', 'statsmodels', 'pandas', 'scipy'} & {*sys.modules})"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "set()\n"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a file of labels, one of numbers, and runs of both."""
    folder = tmp_path_factory.mktemp("baselines")
    rows = reviews(500)
    for name, column in (("label", "target"), ("number", "number")):
        lines = (f"{row.text},{getattr(row, column)}" for row in rows)
        (folder / f"{name}.csv").write_text("\n".join([f"text,{name}", *lines]) + "\n")
    return folder


SMALL = tuple("--max-steps 2 --looks 1 --units 5 --embedding-dim 5 --encoder convolution".split())


@pytest.fixture(scope="module")
def trained(files):
    """The folder of a classifier, and what was printed."""
    run = files / "run"
    command = "classification", files / "label.csv", *SMALL, "--linear", "false", "--out", run
    return run, printed(*command)


def test_a_training_prints_and_keeps_what_plain_methods_reach(trained):
    run, lines = trained
    scores = scores_of(run)
    comparison = scores["baselines"]
    methods = comparison["methods"]
    assert [*methods] == ["model", "most frequent class", "words and pairs"]
    assert methods["model"]["validation examples right"] == scores["accuracy"]
    assert comparison["best"] == "words and pairs" and comparison["ahead"] < 0
    model, words = (
        methods[name]["validation examples right"] for name in ("model", "words and pairs")
    )
    assert comparison["ahead"] == pytest.approx(model - words)
    assert comparison["interval"][0] <= comparison["ahead"] <= comparison["interval"][1]
    assert f"  {comparison['summary']}" in lines
    assert f"words and pairs {100 * words:.1f} %: behind by " in comparison["summary"]
    table = " ".join(lines)
    assert "beside plain methods" in table and f"{words:.2%}" in table
    assert evaluated(run, run.parent / "label.csv").get("baselines") is None


def test_the_model_card_has_the_table_and_the_line(trained):
    run, _ = trained
    exported(run.parent)
    card = (run.parent / "bundle" / "README.md").read_text()
    comparison = scores_of(run)["baselines"]
    assert "| beside plain methods | validation examples right | precision | recall | F1 | " in card
    words = comparison["methods"]["words and pairs"]
    names = ("validation examples right", "precision", "recall", "F1")
    row = " | ".join(("| words and pairs", *(f"{words[name]:.2%}" for name in names)))
    assert row in card and f"\n{comparison['summary']}.\n" in card


@pytest.mark.long
def test_numbers_are_compared_by_correlation(files):
    printed("regression", files / "number.csv", *SMALL, "--out", files / "numbers")
    comparison = scores_of(files / "numbers")["baselines"]
    assert [*comparison["methods"]] == ["model", "mean", "words and pairs"]
    assert comparison["compared_by"] == "Pearson's correlation"
    mean, scores = comparison["methods"]["mean"], scores_of(files / "numbers")
    assert mean["Pearson's correlation"] == 0
    assert comparison["methods"]["model"]["MAE"] == scores["mean_absolute_error"]
    assert comparison["methods"]["model"]["RMSE"] == scores["root_mean_squared_error"]
    assert 0 < comparison["methods"]["words and pairs"]["MAE"] < mean["MAE"] < mean["RMSE"]


@pytest.mark.long
def test_tags_are_compared_by_entities(files):
    lines = []
    for place in range(60):
        name = ("Ada", "Alan", "Grace")[place % 3]
        lines += [f"{name} B-PER", "lives O", "in O", f"{('Oslo', 'Rome')[place % 2]} B-LOC", ""]
    (files / "names.conll").write_text("\n".join(lines))
    printed("tagging", files / "names.conll", *SMALL, "--out", files / "names")
    comparison = scores_of(files / "names")["baselines"]
    assert [*comparison["methods"]] == ["model", "most frequent tag of a word"]
    assert comparison["compared_by"] == "F1 of entities"
    of_words = comparison["methods"]["most frequent tag of a word"]
    names = ("precision", "recall", "F1 of entities", "words right")
    assert of_words == dict.fromkeys(names, 1.0)
    model = comparison["methods"]["model"]["F1 of entities"]
    assert comparison["ahead"] == pytest.approx(model - 1)


@pytest.mark.long
def test_trees_are_compared_by_roots(files):
    draw = random.Random(0)
    lines = []
    for _ in range(90):
        good = draw.random() < 0.5
        lines.append(f"({int(good)} (0 the) ({int(good)} {draw.choice(GOOD if good else BAD)}))")
    (files / "trees.txt").write_text("\n".join(lines))
    printed("trees", files / "trees.txt", *SMALL[:-2], "--out", files / "trees")
    scores = scores_of(files / "trees")
    comparison = scores["baselines"]
    assert comparison["compared_by"] == "roots right" and comparison["best"] == "1 to 4 characters"
    assert comparison["methods"]["model"]["roots right"] == scores["roots"]["accuracy"]
    assert comparison["methods"]["model"]["all nodes right"] == scores["all_nodes"]["accuracy"]
    assert comparison["methods"]["1 to 4 characters"]["roots right"] == 1


def test_plain_methods_are_left_out_on_request(files):
    options = (*SMALL, "--linear", "false", "--baselines", "false", "--out", files / "alone")
    lines = printed("classification", files / "label.csv", *options)
    assert "baselines" not in scores_of(files / "alone")
    assert "plain methods" not in " ".join(lines)


def test_a_series_that_a_method_forecasts_without_error_is_compared():
    sums = {"model": rows_of(5, 10), "ridge": rows_of(0, 10)}
    scores = {name: {"MAE": 0.0} for name in sums}
    found = compared(Measure("MAE", ratio, ERROR), scores, sums, {"MAE": ".4g"}, 0, {})
    assert found["ahead"] == -1 and found["interval"] == [-1, -1]
    sums["model"] = rows_of(0, 10)
    found = compared(Measure("MAE", ratio, ERROR), scores, sums, {"MAE": ".4g"}, 0, {})
    assert found["summary"] == "MAE: model 0, ridge 0: equal"


def test_what_neither_finds_is_not_compared():
    """Validation sentences without an entity, in which none is found."""
    sums = {name: np.zeros((3, 2)) for name in ("model", "words")}
    scores = {name: {"F1": 0.0} for name in sums}
    assert compared(Measure("F1", ratio), scores, sums, {"F1": ".2%"}, 0, {}) == {}


@pytest.mark.parametrize("count", [1, 2, 9])
def test_few_rows_have_no_interval(count):
    sums = {"model": rows_of(count, count), "words": rows_of(0, count)}
    scores = {name: {"right": 0.0} for name in sums}
    found = compared(Measure("right", ratio), scores, sums, {"right": ".2%"}, 0, {})
    assert found["interval"] is None
    line = "model 100.0 %, words 0.0 %: ahead by 100.0 points (too few for an interval)"
    assert found["summary"] == line


def test_no_end_of_an_interval_is_minus_zero():
    line = Measure("r", ratio, NUMBER).in_words({"model": 0.1, "mean": 0.5}, -0.4, [-2.0, 0.0001])
    assert line == "r: model 0.100, mean 0.500: behind by 0.400 (0.000 to 2.000)"
