"""Smoke runs of the benchmarks of texts in TensorFlow; never a time."""

import pytest

from benchmarks import text_beams, text_signatures
from tests.benchmarks.test_benchmarks import smoke_rows


def test_strings_are_compared_with_ids_and_with_an_earlier_version(capsys, tmp_path):
    given = ["--only", "unigrams", "--bundles", tmp_path / "bundles"]
    by_ids = {f"unigrams b{size} vs serving.text and ids" for size in (1, 64)}
    rows = smoke_rows(text_signatures, capsys, tmp_path / "rows.json", *given)
    assert set(rows) == by_ids
    before = (tmp_path / "bundles").rename(tmp_path / "before")
    given = ["--only", "unigrams", "--before", before]
    rows = smoke_rows(text_signatures, capsys, tmp_path / "rows.json", *given)
    assert set(rows) == by_ids | {f"unigrams b{size} vs before" for size in (1, 64)}


def test_strings_are_timed_only_where_scores_agree(monkeypatch, capsys):
    monkeypatch.setattr(text_signatures, "TOLERANCE", -1.0)
    assert text_signatures.main(["--quick", "--only", "WordPiece"]) == 1
    message = "WordPiece: strings and ids do not have the same scores.\n"
    assert capsys.readouterr().err == f"python -m benchmarks.text_signatures: {message}"


def test_texts_by_beams_are_compared_with_serving(capsys, tmp_path):
    rows = smoke_rows(text_beams, capsys, tmp_path / "rows.json")
    cases = ("time", "processors' time")
    assert set(rows) == {f"transformer beam 4, 11 texts, {case} vs serving" for case in cases}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (["a", "ab", "abc", "x"], "all answers must be those of serving; received 75%."),
        (["a", "ab", "abc", ""], "answers must have 4 lengths and 10% of 0 at most; received"),
    ],
)
def test_beams_are_timed_only_where_texts_agree_and_say_something(found, message):
    expected = ["a", "ab", "abc", ""]
    with pytest.raises(ValueError, match=message):
        text_beams._check(found, expected)
