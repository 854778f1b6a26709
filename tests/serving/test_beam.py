"""Beam's RunInference by its local runner, where requirements-beam.txt is installed."""

import pytest

from benchmarks import corpus
from seqkeras import serving

beam = pytest.importorskip("apache_beam", reason="needs requirements-beam.txt, apart from the rest")
from apache_beam.ml.inference.base import RunInference  # noqa: E402
from apache_beam.testing.util import assert_that  # noqa: E402

from seqkeras.serving.beam import BundleHandler  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")  # Beam's own


def test_a_corpus_has_the_answers_of_the_pipeline(shared_bundle):
    pipeline = serving.load(shared_bundle, threads=1)
    texts = ["up|bad", "down|egad", "up|cab", "down|fed"] * 5
    expected = {text: pipeline(text, num_beams=3) for text in texts}
    handler = BundleHandler(shared_bundle, threads=1, options={"num_beams": 3}, batch_size=7)

    def check(results):
        assert sorted(result.example for result in results) == sorted([*texts, "bad", "up|xyz"])
        for result in results:
            if result.example == "bad":
                assert isinstance(result.inference, ValueError)
                assert str(result.inference).startswith("Translate: text must begin with a direct")
            elif result.example in expected:
                answer = expected[result.example]
                assert result.inference.text == answer.text
                assert result.inference.score == pytest.approx(answer.score, abs=1e-5)

    with beam.Pipeline() as run:
        results = run | beam.Create([*texts, "bad", "up|xyz"]) | RunInference(handler)
        assert_that(results, check)


def test_wrong_options_end_the_run(shared_bundle):
    handler = BundleHandler(shared_bundle, threads=1, options={"num_beams": 0})
    with pytest.raises(Exception, match="num_beams must be a whole number"), beam.Pipeline() as run:
        run | beam.Create(["up|bad"]) | RunInference(handler)


def test_the_benchmark_of_a_corpus_runs(shared_bundle, capsys):
    assert corpus.main([str(shared_bundle), "--engine", "beam", "--quick"]) == 0
    assert " beam vs one process " in capsys.readouterr().out
