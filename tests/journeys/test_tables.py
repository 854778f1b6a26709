"""The page that leads from a table to a table: its file, its scripts and its commands."""

import shlex

import pandas as pd
import pytest

from tests.journeys.pages import files, page_of, printed, shown, write_files

PAGE = page_of("training/tables.md")
BUDGET = "--max-steps 6 --looks 1"


def run(line):
    return printed(shlex.split(line)[1:])


@pytest.fixture
def answered(tmp_path, monkeypatch):
    """A folder with what the page leaves, and a bundle of a few steps."""
    monkeypatch.chdir(tmp_path)
    classification = files(page_of("tasks/classification.md"))
    (tmp_path / "reviews.csv").write_text(classification["reviews.csv"])
    run(f"seqkeras train classification reviews.csv --out runs/reviews {BUDGET}")
    run("seqkeras export runs/reviews bundles/reviews")
    write_files(PAGE, tmp_path)
    for language, text in shown(PAGE):
        if language == "python":
            exec(compile(text, "tables.md", "exec"), {})
        for line in text.splitlines():
            if line.startswith("seqkeras "):
                run(f"{line} {BUDGET}" if " train " in line else line)
    return tmp_path


def test_tables_of_texts_and_of_series_become_tables_that_excel_opens(answered):
    answers = (answered / "answers.csv").read_bytes()
    assert answers.startswith("\ufeffid;text;label;score;error".encode())
    table = pd.read_csv("answers.csv", sep=";", decimal=",", encoding="utf-8-sig")
    assert table["id"].tolist() == [1, 2, 3]
    assert table["label"].isna().tolist() == table["error"].notna().tolist() == [False, True, False]
    assert {*table["label"].dropna()} <= {"good", "bad"}
    assert table["score"].dropna().between(0.5, 1).all()
    assert (answered / "forecast.csv").read_bytes().startswith(b"\xef\xbb\xbfshop;date;10%;50%;90%")
    table = pd.read_csv("forecast.csv", sep=";", decimal=",", encoding="utf-8-sig")
    plan = pd.read_csv("plan.csv").sort_values(["shop", "date"])
    assert table["shop"].tolist() == plan["shop"].tolist()
    assert table["date"].tolist() == plan["date"].tolist()
    assert (table["10%"] <= table["50%"]).all() and (table["50%"] <= table["90%"]).all()
    means = table.groupby("shop")["50%"].mean()
    assert means["north"] > 2 * means["south"] > 0
