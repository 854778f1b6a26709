"""Smoke runs of benchmarks/generation.py; never a time."""

import sys

import pytest

from benchmarks import generation
from tests.benchmarks.test_benchmarks import smoke_rows

FLOAT32 = ["--only", "transformer", "--precisions", "float32", "--rivals"]


def cases(family, *rivals):
    return {f"{family} float32 beam {beam} b1 vs {name}" for beam in (1, 4) for name in rivals}


def test_our_runtime_is_compared_with_generation_in_keras(capsys, tmp_path):
    rows = smoke_rows(generation, capsys, tmp_path / "rows.json", *FLOAT32, "keras,keras_nlp")
    assert set(rows) == cases("transformer", "keras", "keras_nlp")


def test_our_runtime_is_compared_with_ctranslate2(capsys, tmp_path):
    pytest.importorskip("ctranslate2", reason="needs benchmarks/requirements.txt")
    rows = smoke_rows(generation, capsys, tmp_path / "rows.json", *FLOAT32, "ctranslate2")
    assert set(rows) == cases("transformer", "ctranslate2")


def test_an_rnn_is_compared_with_its_saved_model(capsys, tmp_path):
    rows = smoke_rows(generation, capsys, tmp_path / "rows.json", "--only", "rnn")
    assert set(rows) == cases("rnn", "saved model")


def test_answers_that_are_not_the_rivals_are_not_timed():
    found = [[1] * generation.TARGET]
    with pytest.raises(ValueError, match="^one float32 b1: no answer is the same as that of other"):
        generation._check("one float32 b1", "other", found, [[2] * generation.TARGET])


def test_without_optimum_there_is_one_line_and_a_way_out(capsys):
    arguments = ["--quick", *FLOAT32, "optimum", "--optimum", sys.executable]
    if generation.main(arguments) == 0:
        pytest.skip("optimum is here")
    error = capsys.readouterr().err
    assert error.startswith("python -m benchmarks.generation: optimum and transformers: ")
    assert "optimum.onnxruntime is not installed" in error or "torch is not installed" in error
    assert error.count("\n") == 1 and "--rivals can leave them out" in error


def test_an_unknown_rival_is_refused(capsys):
    with pytest.raises(SystemExit):
        generation.main(["--rivals", "ctranslate2,marian"])
    assert "received 'marian'" in capsys.readouterr().err
