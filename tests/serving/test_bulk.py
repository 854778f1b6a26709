"""A column of a table; by Ray Data and Spark where requirements-bulk.txt is installed."""

import csv
import json
import pickle
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import corpus
from seqkeras import serving
from seqkeras.serving.bulk import BulkAnswers
from tests.conftest import CHECKOUT

pytestmark = pytest.mark.filterwarnings("default")  # Ray's and Spark's own
TEXTS = [*["up|bad", "down|egad", "up|cab"] * 9, "bad", "up|xyz"]
SCHEMA = "text string, answer string, error string"


APART = "needs requirements-bulk.txt, apart from the rest"


class Table(dict):
    """What `BulkAnswers` uses of a DataFrame: name -> array."""

    def assign(self, **columns):
        return Table(self, **{name: np.array(values, object) for name, values in columns.items()})


def assert_answered(table, bundle):
    """Each text has the pipeline's answer, and the refused one its error."""
    pipeline = serving.load(bundle, threads=1)
    assert sorted(table["text"]) == sorted(TEXTS)
    for text, answer, error in zip(*(table[name] for name in ("text", "answer", "error"))):
        if text == "bad":
            assert not isinstance(answer, str)  # pandas has NaN for None
            assert error.startswith("Translate: text must begin with a direction and")
        else:
            assert not isinstance(error, str)
            expected = pipeline(text, num_beams=3)
            found = json.loads(answer)
            assert found["text"] == expected.text
            assert found["score"] == pytest.approx(expected.score, abs=1e-5)


def answers_of(bundle):
    return BulkAnswers(bundle, options={"num_beams": 3})


def test_a_table_has_the_answers_of_the_pipeline(shared_bundle):
    table = Table(number=np.arange(len(TEXTS)), text=np.array(TEXTS, object))
    answers = answers_of(shared_bundle)
    found = answers(table)
    assert [*found] == ["number", "text", "answer", "error"] and [*table] == ["number", "text"]
    assert_answered(found, shared_bundle)
    other = pickle.loads(pickle.dumps(answers))  # it has opened the bundle
    [found] = other.of_partition([table])
    assert_answered(found, shared_bundle)
    empty = other(Table(text=np.array([], object)))
    assert [[*values] for values in empty.values()] == [[], [], []]


def test_wrong_options_and_columns_are_errors(shared_bundle):
    table = Table(text=np.array(["up|bad"], object))
    with pytest.raises(ValueError, match="num_beams must be a whole number"):
        BulkAnswers(shared_bundle, options={"num_beams": 0})(table)
    with pytest.raises(KeyError, match="line"):
        BulkAnswers(shared_bundle, column="line")(table)


def test_ray_answers_a_data_set(shared_bundle):
    ray = pytest.importorskip("ray", reason=APART)
    environment = {"env_vars": {"PYTHONPATH": str(CHECKOUT)}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env=environment)
    try:
        rows = ray.data.from_items([{"text": text} for text in TEXTS])
        options = {"batch_format": "pandas", "batch_size": 7}
        assert_answered(
            rows.map_batches(answers_of(shared_bundle), **options).to_pandas(), shared_bundle
        )
    finally:
        ray.shutdown()


def test_spark_answers_a_table(shared_bundle, monkeypatch):
    sql = pytest.importorskip("pyspark.sql", reason=APART)
    if not shutil.which("java"):
        pytest.skip("needs Java")
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    spark = (
        sql.SparkSession.builder.master("local[2]").config("spark.ui.enabled", False).getOrCreate()
    )
    try:
        table = spark.createDataFrame([(text,) for text in TEXTS], "text string").repartition(3)
        found = table.mapInPandas(answers_of(shared_bundle).of_partition, SCHEMA)
        assert_answered(found.toPandas(), shared_bundle)
    finally:
        spark.stop()


@pytest.mark.parametrize("engine", ["ray", "pyspark"])
def test_the_script_of_the_page_writes_the_answers(engine, shared_bundle, tmp_path, monkeypatch):
    pytest.importorskip(engine, reason=APART)
    if engine == "pyspark" and not shutil.which("java"):
        pytest.skip("needs Java")
    page = (CHECKOUT / "docs/clusters.md").read_text(encoding="utf-8")
    scripts = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    [script] = [text for text in scripts if re.search(f"^(import|from) {engine}", text)]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    (tmp_path / "bundles").mkdir()
    (tmp_path / "bundles/dates").symlink_to(shared_bundle)
    (tmp_path / "dates.csv").write_text("\n".join(["text", *TEXTS]), encoding="utf-8")
    script = script.replace('"bundles/dates"', repr(str(tmp_path / "bundles/dates")))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [
        row
        for path in [*tmp_path.glob("answers/*.csv"), *tmp_path.glob("answers/*.json")]
        for lines in [path.read_text(encoding="utf-8").splitlines()]
        for row in (csv.DictReader(lines) if path.suffix == ".csv" else map(json.loads, lines))
    ]
    assert sorted(row["text"] for row in rows) == sorted(TEXTS)
    assert {row["text"] for row in rows if row.get("error")} == {"bad"}
    assert all(json.loads(row["answer"]) for row in rows if row["text"] != "bad")


@pytest.mark.parametrize("engine", ["ray", "spark"])
def test_the_benchmark_of_a_corpus_runs(engine, shared_bundle, capsys, monkeypatch):
    pytest.importorskip(corpus.ENGINES[engine][0], reason=APART)
    if engine == "spark" and not shutil.which("java"):
        pytest.skip("needs Java")
    for name in ("PYTHONPATH", "PYSPARK_PYTHON"):  # it sets them
        monkeypatch.setenv(name, "")
    assert corpus.main([str(shared_bundle), "--engine", engine, "--quick"]) == 0
    assert f" {engine} vs one process " in capsys.readouterr().out


def test_an_engine_that_is_not_installed_is_named(shared_bundle, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    assert corpus.main([str(shared_bundle), "--engine", "beam", "--quick"]) == 1
    said = "apache_beam is not installed; pip install -r requirements-beam.txt, in an environment"
    assert said in capsys.readouterr().err
