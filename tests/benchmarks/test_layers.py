import dataclasses

from benchmarks import layers
from tests.benchmarks.test_benchmarks import smoke_rows

RECURRENT = ("lstm", "gru", "simplernn", "bidirectional lstm")


def test_layers_compares_recurrent_layers_with_kerass(capsys, tmp_path, monkeypatch):
    cases = layers.cases()
    monkeypatch.setattr(layers, "cases", lambda: [c for c in cases if c.name in RECURRENT])
    rows = smoke_rows(layers, capsys, tmp_path / "rows.json")
    assert set(rows) == {
        f"{name} b2 t5 {lengths} vs keras"
        for name in RECURRENT
        for lengths in ("static", "dynamic")
    }


def test_only_takes_the_cases_with_a_word_in_their_name(capsys, tmp_path):
    rows = smoke_rows(layers, capsys, tmp_path / "rows.json", "--only", "simplernn")
    assert {name.split()[0] for name in rows} == {"simplernn"}


def test_a_word_in_no_name_is_one_line(capsys):
    assert layers.main(["--only", "perceptron"]) == 1
    assert capsys.readouterr().err == (
        "python -m benchmarks.layers: no case has 'perceptron' in its name.\n"
    )


def test_layers_that_compute_something_else_are_not_timed(capsys, monkeypatch):
    case = next(each for each in layers.cases() if each.name == "simplernn")
    make = case.rivals["keras"]

    def other(units):
        layer = make(units)
        layer.cell.activation = lambda x: 0.5 * x
        return layer

    wrong = dataclasses.replace(case, rivals={"keras": other})
    monkeypatch.setattr(layers, "cases", lambda: [wrong])
    assert layers.main(["--quick"]) == 1
    message = "simplernn b2 t5 static: loss and gradients do not agree: ours differ by "
    assert message in capsys.readouterr().err
