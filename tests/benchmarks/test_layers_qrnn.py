from benchmarks import layers
from tests.benchmarks.test_benchmarks import smoke_rows

QRNN = [case for case in layers.cases() if case.name == "qrnn"]


def test_layers_compares_the_qrnn_with_lstms(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(layers, "cases", lambda: QRNN[:1])
    rows = smoke_rows(layers, capsys, tmp_path / "rows.json")
    assert set(rows) == {
        f"qrnn b2 t5 {lengths} vs {rival}"
        for lengths in ("static", "dynamic")
        for rival in ("our lstm", "keras lstm")
    }
