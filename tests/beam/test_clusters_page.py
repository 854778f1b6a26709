"""The script of docs/clusters.md answers a file of texts under Apache Beam's local runner."""

import re
from pathlib import Path

import pytest

from seqkeras import serving
from tests.serving.toy_bundle import write_bundle

pytest.importorskip("apache_beam", reason="needs requirements-beam.txt, apart from the rest")

pytestmark = pytest.mark.filterwarnings("default")  # Beam's own
CHECKOUT = Path(__file__).resolve().parents[2]


def test_the_script_writes_the_answers_of_the_pipeline(tmp_path, monkeypatch):
    page = (CHECKOUT / "docs/clusters.md").read_text(encoding="utf-8")
    [script] = re.findall(r"```python\n(import apache_beam.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    bundle = write_bundle(tmp_path / "bundles/dates")
    texts = ["up|bad", "down|egad", "bad", "up|cab"]  # "bad" is refused
    (tmp_path / "dates.txt").write_text("\n".join(texts), encoding="utf-8")
    exec(compile(script, "clusters.md", "exec"), {})
    written = [
        line
        for path in tmp_path.glob("iso.txt-*")
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    expected = serving.load(bundle, threads=1)([texts[0], texts[1], texts[3]], num_beams=4)
    assert sorted(written) == sorted(answer.text for answer in expected)
