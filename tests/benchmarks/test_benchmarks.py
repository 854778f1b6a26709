"""Smoke runs of the benchmarks, and what they print and write; never a time."""

import importlib.util
import json
import sys
import types

import pytest

from benchmarks import (
    cached_generation,
    cold_start,
    dates,
    finetuning,
    harness,
    kept_memory,
    language_speed,
    loading,
    recurrent_export,
    server,
    train_speed,
    transformer_layers,
    trees,
    workers,
)
from seqkeras.serving.manifest import Limits, TextPrefix
from tests.serving import toy_bundle
from tests.training.pretrained_folders import hugging_face_folder
from tests.training.questions import questions, write
from tests.training.test_classification import sentences as reviews
from tests.training.test_tagging import sentences as names

COLOURS = ("red", "green", "blue", "white", "old", "new")
FAST, SLOW = [0.002, 0.001, 0.004], [0.008, 0.002, 0.004]


def smoke_rows(benchmark, capsys, path, *arguments):
    """The rows that `--quick --json FILE` writes, after a look at what it prints."""
    status = benchmark.main(["--quick", "--json", str(path), *map(str, arguments)])
    printed = capsys.readouterr()
    assert status == 0, printed.err
    assert printed.err == ""
    last = f"quick: everything ran; these figures say nothing; rows written to {path}"
    assert printed.out.splitlines()[-1] == last
    rows = json.loads(path.read_text(encoding="utf-8"))
    for row in rows:
        assert list(row) == ["case", "ours", "rival", "unit", "ratio"]
        assert row["case"] in printed.out
        assert min(row["ours"], row["rival"], row["ratio"]) >= 0
    return {row["case"]: row for row in rows}


def test_recurrent_export_compares_four_layers_with_two_rivals(capsys, tmp_path):
    rows = smoke_rows(recurrent_export, capsys, tmp_path / "rows.json")
    assert set(rows) == {
        f"{layer} b{batch_size} t5 vs {rival}"
        for layer in ("lstm", "gru", "bidirectional lstm", "rnn")
        for batch_size in (8, 1)
        for rival in ("keras", "hand-built")
    }


def test_recurrent_export_times_only_graphs_that_agree(monkeypatch, capsys):
    monkeypatch.setattr(recurrent_export, "CASES", recurrent_export.CASES[:1])
    monkeypatch.setattr(recurrent_export, "TOLERANCE", -1.0)
    assert recurrent_export.main(["--quick"]) == 1
    message = "lstm b8 t5: the graphs do not agree at real steps: ours differs by "
    assert message in capsys.readouterr().err


DATES_ROWS = {
    f"dates {kind}{batch} vs dateparser"
    for kind in ("clean", "noisy")
    for batch in ("", " b1", " b64")
}


def test_dates_compares_with_dateparser(dates_bundle, capsys, tmp_path):
    pytest.importorskip("dateparser", reason="needs benchmarks/requirements.txt")
    rows = smoke_rows(dates, capsys, tmp_path / "rows.json", dates_bundle, "--by-locale")
    assert set(rows) == DATES_ROWS


@pytest.fixture
def illiterate_dateparser(monkeypatch):
    """A dateparser that can read nothing."""

    class DateDataParser:
        def __init__(self, **options):
            pass

        def get_date_data(self, text):
            return types.SimpleNamespace(date_obj=None)

    package = types.ModuleType("dateparser")
    package.DateDataParser, package.__version__ = DateDataParser, "0"
    monkeypatch.setitem(sys.modules, "dateparser", package)


@pytest.mark.parametrize("help", ["tuned", "default", "plain"])
def test_dates_takes_all_its_options(help, illiterate_dateparser, capsys, tmp_path):
    bundle = toy_bundle.write_bundle(
        tmp_path / "bundle",
        task="dates",
        text_prefix=TextPrefix(name="locale", separator="|", values=("de", "ja")),
        limits=Limits(source_length=100, target_length=3),
    )
    options = ["--threads", 1, "--by-locale", "--dateparser", help]
    rows = smoke_rows(dates, capsys, tmp_path / "rows.json", bundle, *options)
    assert set(rows) == DATES_ROWS


def test_dateparser_is_read_with_our_two_digit_years():
    pytest.importorskip("dateparser", reason="needs benchmarks/requirements.txt")
    rival = dates.Rival(["de", "en_GB", "en_US", "sv"], "tuned")
    assert rival("de|Samstag, 3. Mai 2014") == "2014-05-03"
    assert rival("en_US|3/5/61") == "1961-03-05"
    assert rival("en_GB|3/5/49") == "2049-05-03"
    assert rival("sv|1987-05-03") == "1987-05-03"
    assert rival("de|vorgestern ungefähr") is None


def test_a_missing_rival_is_refused_with_the_way_to_get_it(dates_bundle, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "dateparser", None)
    assert dates.main([str(dates_bundle), "--quick"]) == 1
    assert capsys.readouterr().err == (
        "python -m benchmarks.dates: dateparser is not installed; "
        "pip install -r benchmarks/requirements.txt\n"
    )


def test_cold_start_says_where_the_time_goes(dates_bundle, capsys, tmp_path):
    rows = smoke_rows(cold_start, capsys, tmp_path / "rows.json", dates_bundle)
    assert set(rows) == {"cold start vs import numpy, onnxruntime", "cold start vs 1 s"}


def test_trees_compares_levels_with_a_loop_over_nodes(capsys, tmp_path):
    rows = smoke_rows(trees, capsys, tmp_path / "rows.json")
    assert set(rows) == {"binary tree lstm b3 vs node by node"}


def test_loading_is_compared_with_a_plain_read_and_with_the_size(capsys, tmp_path):
    rows = smoke_rows(loading, capsys, tmp_path / "rows.json")
    assert {"load 0 MB vs a plain read", "load 0 MB vs the file's size"} <= set(rows)


def test_loading_is_timed_only_where_it_is_right(monkeypatch, capsys):
    monkeypatch.setattr(loading.np, "array_equal", lambda *arrays: False)
    assert loading.main(["--quick"]) == 1
    assert "what was loaded is not what was saved." in capsys.readouterr().err


def test_transformer_blocks_are_compared_with_those_of_keras_and_keras_nlp(capsys, tmp_path):
    rows = smoke_rows(transformer_layers, capsys, tmp_path / "rows.json", "--only", "attention")
    assert set(rows) == {"attention b2 t5 vs keras", "attention b2 t5 XLA vs keras"}
    rows = smoke_rows(transformer_layers, capsys, tmp_path / "rows.json", "--only", "decoder")
    assert set(rows) == {
        "decoder block 512 b2 t5 vs keras_nlp",
        "decoder block 512 b2 t5 XLA vs keras_nlp",
    }


def test_encoders_are_compared_with_transformers(capsys, tmp_path):
    pytest.importorskip("transformers", reason="needs benchmarks/requirements.txt")
    rows = smoke_rows(transformer_layers, capsys, tmp_path / "rows.json", "--only", "minilm")
    assert set(rows) == {"minilm b2 t5 vs transformers", "minilm b2 t5 XLA vs transformers"}


def test_training_is_compared_from_files_to_steps(capsys, tmp_path):
    sources, targets = tmp_path / "train.en", tmp_path / "train.de"
    lines = [f"the {colour} house has {number} doors" for colour in COLOURS for number in range(40)]
    sources.write_text("\n".join(lines))
    targets.write_text("\n".join(line[::-1] for line in lines))
    rows = smoke_rows(train_speed, capsys, tmp_path / "rows.json", sources, targets)
    rivals = ["keras_nlp", *(["torch"] if importlib.util.find_spec("torch") else [])]
    steps = [f"step dropout {rate} vs {rival}" for rate in ("0", "0.3") for rival in rivals]
    [budget] = [case for case in rows if case.startswith("token budget vs ")]
    assert {*rows} == {*steps, "input alone vs its step", budget, "start vs 20 s"}


@pytest.mark.parametrize("task", ["classification", "tagging", "question-answering"])
def test_fine_tuning_is_compared_with_keras_nlp_and_transformers(task, capsys, tmp_path):
    files = {
        "classification": lambda: reviews(tmp_path / "reviews.csv"),
        "tagging": lambda: names(tmp_path / "names.conll", 60),
        "question-answering": lambda: write(tmp_path / "squad.json", questions(60)),
    }
    folder, recipe = hugging_face_folder(tmp_path / "bert"), tmp_path / "recipe.toml"
    recipe.write_text(f'task = "{task}"\nschedule = "linear"\nmax_length = 31\n')
    if task == "question-answering":
        recipe.write_text(recipe.read_text() + "question_length = 8\nstride = 5\n")
    arguments = [recipe, folder, files[task]()]
    rows = smoke_rows(finetuning, capsys, tmp_path / "rows.json", *arguments)
    rivals = ["keras_nlp", *(["transformers"] if importlib.util.find_spec("transformers") else [])]
    steps = {f"step vs {rival}" for rival in rivals}
    assert {*rows} == {*steps, "step in bfloat16 vs float32"}


def test_memory_that_is_kept_is_compared_with_memory_that_is_given_back(capsys, tmp_path):
    arguments = ["--", "tagging", names(tmp_path / "names.conll", 60), "--batch-size", "8"]
    rows = smoke_rows(kept_memory, capsys, tmp_path / "rows.json", *arguments)
    assert {*rows} == {"tagging, kept vs given back"}


@pytest.fixture
def play(tmp_path):
    """A text of some length."""
    path = tmp_path / "play.txt"
    path.write_text(
        "".join(f"the {colour} house has {n} doors\n" for n in range(99) for colour in COLOURS)
    )
    return path


@pytest.mark.skipif(sys.platform != "linux", reason="gives each worker a core, as Linux can")
def test_two_workers_are_compared_with_one(play, capsys, tmp_path):
    rows = smoke_rows(workers, capsys, tmp_path / "rows.json", play)
    assert {*rows} == {"2 workers vs 1, batch 12"}


def test_a_worker_that_fails_ends_the_benchmark_with_its_line(capsys, tmp_path):
    (tmp_path / "empty.txt").touch()
    assert workers.main(["--quick", str(tmp_path / "empty.txt")]) == 1
    assert capsys.readouterr().err.startswith("python -m benchmarks.workers: training: ")


def test_language_models_are_compared_with_torch_and_with_each_other(play, capsys, tmp_path):
    rows = smoke_rows(language_speed, capsys, tmp_path / "rows.json", play)
    torch = {"step gpt vs torch"} if importlib.util.find_spec("torch") else set()
    assert {*rows} == {"step qrnn vs lstm", *torch}


def test_generation_is_compared_with_a_sampler_of_keras_nlp(capsys, tmp_path):
    rows = smoke_rows(cached_generation, capsys, tmp_path / "rows.json")
    assert set(rows) == {
        "gpt2 step 256 vs step 16",
        "gpt2 greedy b1 t32+64 vs keras_nlp",
        "gpt2 greedy b8 t32+64 vs keras_nlp",
    }


@pytest.mark.parametrize("benchmark", [dates, cold_start], ids=["dates", "cold_start"])
def test_a_missing_bundle_is_one_line(benchmark, capsys, tmp_path):
    assert benchmark.main([str(tmp_path / "none")]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"python -m benchmarks.{benchmark.__name__.split('.')[-1]}: ")
    assert "there is no such folder" in error and error.count("\n") == 1


def test_a_ratio_is_the_median_of_the_rounds_and_over_one_if_we_are_ahead():
    row = harness.compare_times("case", FAST, SLOW, "ms", 1000, goal=3)
    assert (row.ours, row.rival, row.ratio) == (2.0, 4.0, 2.0)  # of the ratios 4, 2, 1
    assert row.verdict == "MISSED"
    assert harness.compare_times("case", FAST, SLOW, "ms", 1000, goal=2).verdict == "met"
    assert harness.compare_times("case", FAST, SLOW, "ms", 1000).verdict == ""


def test_contenders_take_turns_and_warm_up_rounds_do_not_count():
    calls = []
    times = harness.times_in_turn(
        {name: lambda number, name=name: calls.append((name, number)) for name in "ab"},
        rounds=3,
        warm_up=1,
    )
    assert {name: len(each) for name, each in times.items()} == {"a": 3, "b": 3}
    order = "".join(name for name, _ in calls)
    assert order == "baabbaab"
    assert [number for name, number in calls if name == "a"] == [-1, 0, 1, 2]


def test_short_cases_are_timed_more_often_but_once_in_a_smoke_run():
    options = types.SimpleNamespace(rounds=3, quick=False)
    assert harness.rounds_of(options) == 3
    assert harness.rounds_of(options, short=True) == 3 * harness.OFTEN
    assert harness.rounds_told(options) == "3 rounds, 15 of short cases"
    options.quick = True
    assert harness.rounds_of(options) == harness.rounds_of(options, short=True) == 1


def test_the_last_line_counts_the_goals(capsys, tmp_path):
    rows = [
        harness.Row("with a goal", 1, 2, "ms", 2.0, goal=1),
        harness.Row("missed", 1, 2, "ms", 2.0, goal=3),
        harness.Row("without", 1, 2, "ms", 2.0),
    ]
    parser = harness.make_parser("name", "words")
    assert harness.run(parser, lambda options: rows, []) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 of 2 goals met"


def test_the_server_is_compared_with_its_pipeline(capsys, tmp_path):
    pytest.importorskip("starlette", reason="needs serving/requirements-http.txt")
    bundle = toy_bundle.write_bundle(tmp_path / "bundle")
    rows = smoke_rows(server, capsys, tmp_path / "rows.json", bundle)
    assert set(rows) == {"server c5 vs process b5", "server c1 vs process b1 and 1 ms"}


def test_a_bundle_without_texts_is_refused(capsys, tmp_path):
    bundle = toy_bundle.write_bundle(tmp_path / "bundle", examples=(["no", "text"],))
    assert server.main([str(bundle), "--quick"]) == 1
    assert "a bundle whose examples are texts is needed" in capsys.readouterr().err
