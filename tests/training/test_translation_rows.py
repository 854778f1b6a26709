"""Rows of numbers and categories to texts: what is read, learned, served and refused."""

import random

import keras
import numpy as np
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from seqkeras import serving
from seqkeras.runs import RunFiles
from seqkeras.training.tasks.translation import TranslationOptions
from tests.training.commands import exported, printed, refused_files, scores_of_both
from tests.training.test_translation import FAST, SMALLEST, written

PINK = '3,"7,5 %",pink,a new pink one'  # a category of one row
OF_ROWS = "--numbers age,price --categories color --decimal-comma price".split()
OF_ROWS += "--target-column title --tokens words".split()
GIVEN = {"numbers": ("age", "price"), "categories": ("color",), "decimal_comma": ("price",)}
GIVEN |= {"target_column": "title", "tokens": "words"}


def titles(path, count, *more):
    """A table of things whose title tells their age, price and color; fields are missing."""
    draw, lines = random.Random(count), ["age,price,color,title", *more]
    for number in range(count):
        age, price, color = (
            draw.randint(1, 80),
            draw.randint(0, 9),
            draw.choice(["red", "blue", ""]),
        )
        words = "an old" if age > 40 else "a new", color or "plain", "one" if price > 4 else "bit"
        price = f'"{price},5 %"' if number % 7 else "NA"
        lines.append(f"{age if number % 11 else ''},{price},{color},{' '.join(words)}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def read_by_scikit_learn(train, rows):
    """What a model reads of rows: scaled numbers, flags of missing ones, categories."""

    def numbers(rows):
        ages = [float(row["age"] or "nan") for row in rows]
        prices = [row["price"].removesuffix(" %").replace(",", ".") for row in rows]
        prices = [np.nan if price == "NA" else float(price) / 100 for price in prices]
        return np.stack([ages, prices], axis=1)

    def colors(rows):
        return [[row["color"]] for row in rows]

    fill = SimpleImputer(strategy="median", add_indicator=True).fit(numbers(train))
    scale = StandardScaler().fit(numbers(train))
    known = sorted({row["color"] for row in train} - {""})
    hot = OneHotEncoder(categories=[known], handle_unknown="ignore").fit([[each] for each in known])
    filled = fill.transform(numbers(rows))
    parts = scale.transform(filled[:, :2]), filled[:, 2:], hot.transform(colors(rows)).toarray()
    return np.concatenate(parts, axis=1).astype("float32")


@pytest.mark.long
@pytest.mark.parametrize("model", ["cho", "transformer"])
def test_rows_become_the_texts_that_a_loop_over_the_model_writes(model, tmp_path):
    table = titles(tmp_path / "titles.csv", 120, PINK)
    options = [*OF_ROWS, *SMALLEST, *FAST, "--passes", 30, "--num-beams", 1, "--num-heads", 2]
    printed("translation", table, "--out", tmp_path / "run", *options, "--model", model)
    bundle, run = serving.load(exported(tmp_path)), RunFiles.read(tmp_path / "run")
    model = keras.models.load_model(tmp_path / "run" / "model.keras", compile=False)
    train, _ = TranslationOptions(file=str(table), **GIVEN).make().reading.read()
    new = titles(tmp_path / "new.csv", 13)
    test = TranslationOptions(file=str(new), **GIVEN).make().reading
    examples = test.examples_of([str(new)], run.record.settings)
    rows, said = [example.text for example in examples], [example.target for example in examples]
    read = read_by_scikit_learn([example.text for example in train], rows)
    expected = [written(model, run, [features]) for features in read]
    assert [answer.text for answer in bundle(rows)] == expected
    assert np.mean([answer == words for answer, words in zip(expected, said)]) > 0.7
    as_json = {"age": 7, "price": "3,5 %", "color": None}
    [features] = read_by_scikit_learn(
        [example.text for example in train], [{"age": "7", "price": "3,5 %", "color": ""}]
    )
    one = written(model, run, [features])
    assert bundle(as_json).text == bundle((as_json,)).text == one
    with pytest.raises(ValueError, match="'color' must be one of .*; received 'gold'"):
        bundle(as_json | {"color": "gold"})
    assert scores_of_both(tmp_path, new)["examples"] == 13


def test_a_row_with_a_category_of_its_own_stays_in_training(tmp_path):
    table = titles(tmp_path / "titles.csv", 40, PINK)
    for seed in range(20):
        options = TranslationOptions(file=str(table), held_out=0.3, seed=seed, **GIVEN)
        train, validation = options.make().reading.read()
        assert len(train) + len(validation) == 41
        assert "pink" in {example.text["color"] for example in train}
        assert not {example.source for example in train} & {e.source for e in validation}


def test_validation_of_an_unknown_category_is_refused_by_its_line(tmp_path):
    table, other = titles(tmp_path / "titles.csv", 40), titles(tmp_path / "other.csv", 3, PINK)
    options = TranslationOptions(file=str(table), validation=str(other), **GIVEN)
    with pytest.raises(ValueError, match="other.csv, line 2: 'color' must be one of 'blue', 'red'"):
        options.make().reading.read()


test_tables_that_nothing_can_be_learned_from_get_one_line = refused_files(
    "translation",
    "rows.csv",
    ("a,target\n1,hi\nx,hi\n", "--numbers a", "line 3: 'a' must be a number; received 'x'."),
    ("a,target\n1,hi\n", "--numbers b", "there is no column 'b'; there are 'a', 'target'."),
    ("a,target\n1,hi\n2,\n", "--numbers a", "line 3: 'target' is empty; remove the line."),
    ("a,target\nx,a\ny,b\n", "--categories a", "category that no row of training has; choose"),
    options="--batch-size 1 --held-out 0.5",
)
