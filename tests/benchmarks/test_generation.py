"""Smoke runs of benchmarks/generation.py; never a time."""

import sys

import pytest

from benchmarks import generation, generation_rivals, harness
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
    rows = smoke_rows(generation, capsys, tmp_path / "rows.json", "--rivals", "saved_model")
    assert set(rows) == cases("rnn", "saved_model")


def test_rivals_that_have_no_model_are_refused(capsys):
    assert generation.main(["--quick", "--only", "rnn", "--rivals", "keras"]) == 1
    message = "none of --rivals is for what --only and --precisions leave."
    assert capsys.readouterr().err == f"python -m benchmarks.generation: {message}\n"


def test_answers_that_are_not_the_rivals_are_not_timed(capsys):
    ours, other = [1] * generation.TARGET, [2] * generation.TARGET
    generation._check("one float32 b10", "other", [ours] * 10, [ours] * 9 + [other])
    assert capsys.readouterr().out == "one float32 b10: 90% of the answers are those of other\n"
    message = "^one float32 b10: 90% of the answers must be those of other; received 80%.$"
    with pytest.raises(ValueError, match=message):
        generation._check("one float32 b10", "other", [ours] * 10, [ours] * 8 + [other] * 2)
    generation._check("one int8-embedding b10", "other", [ours] * 10, [other] * 10)


LIMITED = """
from benchmarks import generation_rivals, training_steps
training_steps.quiet_tensorflow()
generation_rivals.limit_tensorflow()
import tensorflow
print(tensorflow.ones(3).numpy().sum())
threading = tensorflow.config.threading
print(threading.get_intra_op_parallelism_threads(), threading.get_inter_op_parallelism_threads())
"""


def test_tensorflow_gets_the_threads_of_the_others():
    assert harness.run_python("-c", LIMITED).split() == ["3.0", "2", "2"]


@pytest.mark.parametrize(
    ("arguments", "limited", "rounds"),
    [
        (["--rounds", "2"], 1, "2 rounds, 10 of short cases"),
        (["--quick"], 0, "1 rounds, 1 of short cases"),
    ],
    ids=["full", "quick"],
)
def test_tensorflow_is_limited_where_times_count(arguments, limited, rounds, monkeypatch, capsys):
    calls = []
    row = harness.Row("case", 1, 2, "ms", 2.0)
    monkeypatch.setattr(generation_rivals, "limit_tensorflow", lambda: calls.append(1))
    monkeypatch.setattr(
        generation, "FAMILIES", {"rnn": (lambda folder, options: [row], generation.RIVALS)}
    )
    assert generation.main(arguments) == 0
    assert len(calls) == limited
    assert f"2 threads; {rounds}\n" in capsys.readouterr().out


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
