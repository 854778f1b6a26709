"""The script of docs/pretraining.md prepares under Apache Beam what one process prepares."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from seqkeras.data.documents import Corpus
from seqkeras.data.token_records import begin_records, missing_shards, write_shard
from seqkeras.serving.text import word_piece

CHECKOUT = Path(__file__).resolve().parents[2]
VOCABULARY = "[PAD] [UNK] [CLS] [SEP] [MASK] the old house is 0 1 2 3 4 5 6 7 8 9".split()

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("apache_beam") is None,
    reason="needs requirements-beam.txt, in an environment of its own",
)


def test_the_documented_script_makes_the_same_records(tmp_path):
    (tmp_path / "text").mkdir()
    for number in range(3):
        lines = [f"the old house is {number} {place}" for place in range(40)]
        (tmp_path / f"text/{number}.txt").write_text("\n\n".join(lines), encoding="utf-8")
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
    page = (CHECKOUT / "docs/pretraining.md").read_text(encoding="utf-8")
    [script] = re.findall(r"```python\n(# prepare.py.*?)```", page, re.DOTALL)
    (tmp_path / "prepare.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "prepare.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert missing_shards(tmp_path / "records") == []
    corpus = Corpus.of_files(sorted((tmp_path / "text").iterdir()), "lines", held_out=0.05)
    for number in begin_records(tmp_path / "own", corpus, word_piece(VOCABULARY)):
        write_shard(tmp_path / "own", number)
    names = sorted(path.relative_to(tmp_path / "own") for path in (tmp_path / "own").rglob("*.*"))
    assert len(names) == 3 + 3 * 3
    for name in names:
        assert (tmp_path / "records" / name).read_bytes() == (tmp_path / "own" / name).read_bytes()
