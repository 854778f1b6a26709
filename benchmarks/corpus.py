"""A corpus answered by Apache Beam, Ray Data or Spark, in turn with the pipeline in one process.

    .venv-beam/bin/python -m benchmarks.corpus bundles/dates --engine beam
    .venv-bulk/bin/python -m benchmarks.corpus bundles/dates --engine spark  # or ray

`make test-bulk` makes these environments. The engine runs on this machine, and each of its workers
answers on one thread. The texts are the bundle's examples, over and over. The engine is started,
and has answered all of them once, before time is taken.
"""

import contextlib
import itertools
import os
import statistics
import sys
from importlib.metadata import version

from benchmarks import harness
from seqkeras import serving
from seqkeras.serving.bulk import BulkAnswers

BATCH = 256  # texts
WORKERS = {"beam": 1, "ray": 2, "spark": 2}
SCHEMA = "text string, answer string, error string"
MILLION, HOUR = 1e6, 3600
OWN = "requirements-{}.txt, in an environment of its own"


@contextlib.contextmanager
def _beam(bundle):
    harness.import_rival("apache_beam", OWN.format("beam"))
    import apache_beam as beam
    from apache_beam.ml.inference.base import RunInference
    from apache_beam.testing.util import assert_that, equal_to

    from seqkeras.serving.beam import BundleHandler

    def answer(texts):
        with beam.Pipeline() as run:
            found = run | beam.Create(texts) | RunInference(BundleHandler(bundle, threads=1))
            refused = found | beam.Filter(lambda result: isinstance(result.inference, ValueError))
            assert_that(refused, equal_to([]), "none is refused")
            assert_that(found | beam.combiners.Count.Globally(), equal_to([len(texts)]))

    yield answer


@contextlib.contextmanager
def _ray(bundle):
    data = harness.import_rival("ray.data", OWN.format("bulk"))
    import ray

    environment = {"env_vars": {"PYTHONPATH": str(harness.CHECKOUT)}}
    ray.init(
        num_cpus=WORKERS["ray"],
        include_dashboard=False,
        log_to_driver=False,
        runtime_env=environment,
    )
    data.DataContext.get_current().enable_progress_bars = False

    def answer(texts):
        rows = data.from_items([{"text": text} for text in texts])
        options = {"batch_format": "pandas", "batch_size": BATCH}
        _require_answered(rows.map_batches(BulkAnswers(bundle), **options).to_pandas(), texts)

    try:
        yield answer
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _spark(bundle):
    sql = harness.import_rival("pyspark.sql", OWN.format("bulk"))
    os.environ |= {"PYTHONPATH": str(harness.CHECKOUT), "PYSPARK_PYTHON": sys.executable}
    master = sql.SparkSession.builder.master(f"local[{WORKERS['spark']}]")
    spark = master.config("spark.ui.enabled", False).getOrCreate()

    def answer(texts):
        rows = spark.createDataFrame([(text,) for text in texts], "text string")
        table = rows.repartition(WORKERS["spark"])
        found = table.mapInPandas(BulkAnswers(bundle).of_partition, SCHEMA)
        _require_answered(found.toPandas(), texts)

    try:
        yield answer
    finally:
        spark.stop()


ENGINES = {"beam": ("apache-beam", _beam), "ray": ("ray", _ray), "spark": ("pyspark", _spark)}


def _require_answered(table, texts):
    count = int(table["error"].isna().sum())
    if (count, len(table)) != (len(texts), len(texts)):
        raise ValueError(f"{count} of {len(table)} texts are answered; expected {len(texts)}")


def measure(options):
    """Return the rates of the engine and of the pipeline in this process."""
    pipeline = serving.load(options.bundle, threads=1)
    count = BATCH if options.quick else options.texts
    texts = [*itertools.islice(itertools.cycle(pipeline.manifest.examples), count)]

    def in_process(_):
        for start in range(0, count, BATCH):
            pipeline(texts[start : start + BATCH])

    package, engine = ENGINES[options.engine]
    with engine(options.bundle) as answer:
        contenders = {"ours": lambda _: answer(texts), "rival": in_process}
        times = harness.times_in_turn(contenders, harness.rounds_of(options), warm_up=1)
    workers = WORKERS[options.engine]
    names = {"ours": f"{package} {version(package)}, workers: {workers}", "rival": "one process"}
    for name, cores in (("ours", workers), ("rival", 1)):
        hours = cores * statistics.median(times[name]) / HOUR * MILLION / count
        print(f"{names[name]}: {hours:.2f} core hours for a million texts")
    ours, rival = (count / statistics.median(times[name]) for name in ("ours", "rival"))
    case = f"{pipeline.manifest.name} {options.engine} vs one process"
    return [harness.Row(case, ours, rival, "texts/s", ours / rival)]


def main(arguments=None):
    parser = harness.make_parser("corpus", __doc__.partition("\n")[0])
    parser.add_argument("bundle", help="Bundle that answers one text.")
    parser.add_argument("--engine", choices=ENGINES, required=True)
    parser.add_argument("--texts", type=harness.count, default=20_000, metavar="N")
    parser.add_argument("--rounds", type=harness.count, default=1)
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
