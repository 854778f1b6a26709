"""predict, bench and inspect with the pipelines that answer in a single pass."""

import dataclasses
import io
import json
import re
import sys

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.__main__ import main
from seqkeras.serving.manifest import (
    DecodingDefaults,
    Precision,
    describe_files,
    read_manifest,
    write_manifest,
)
from seqkeras.serving.printing import as_content, as_line, marked
from seqkeras.serving.results import (
    Choice,
    Classification,
    Entity,
    Filler,
    Filling,
    Forecasting,
    Generation,
    Span,
    Tagging,
    Word,
)
from seqkeras.serving.text import BOS, EOS, CharacterTable
from tests.serving import toy_language_model
from tests.serving.pipelines import test_trees
from tests.serving.pipelines.test_forecast import graph as forecaster
from tests.serving.pipelines.toys import TOKENS, Toy, write_bundle
from tests.serving.toy_language_model import ToyLanguageModel

BUNDLES = {
    "Classify": (Toy(2).graph("pooled"), {"labels": ["good", "bad"]}),
    "Tag": (Toy(2).graph("tokens"), {"labels": ["O", "B-X"]}),
    "Answer": (
        Toy(2).graph("span"),
        {"start": "start", "end": "end", "window": 17, "question_length": 9, "no_answer": True},
    ),
    "Choose": (Toy(1).graph("choice"), {}),
    "Embed": (Toy(3).graph("pooled"), {}),
    "FillMask": (Toy(len(TOKENS)).graph("tokens"), {}),
    "Forecast": (forecaster(num_features=1), {}),
}


@pytest.fixture
def bundle(tmp_path):
    def bundle(pipeline, **changes):
        graph, settings = BUNDLES[pipeline]
        return write_bundle(tmp_path / pipeline, pipeline, graph, settings, **changes)

    return bundle


@pytest.fixture
def run(capsys, monkeypatch):
    def run(command, folder, *arguments, stdin=""):
        stream = io.TextIOWrapper(io.BytesIO(stdin.encode()))
        monkeypatch.setattr(sys, "stdin", stream)
        status = main([command, str(folder), *arguments])
        return status, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    "pipeline, line, given",
    [
        ("Classify", "the cat", "the cat"),
        ("Classify", "the cat\tsat on", ("the cat", "sat on")),
        ("Tag", "the\tcat", "the\tcat"),
        ("Answer", "who?\tthe cat sat", ("who?", "the cat sat")),
        ("Choose", "the cat\tsat\tran\the", ("the cat", ["sat", "ran", "he"])),
        ("Embed", "the cat", "the cat"),
        ("FillMask", "the [MASK]", "the [MASK]"),
        ("Forecast", "[1, 2, 3.5]", (1, 2, 3.5)),
    ],
)
def test_a_line_is_answered_as_what_it_holds(bundle, run, pipeline, line, given):
    folder = bundle(pipeline)
    answer = serving.load(folder)(given)
    assert run("predict", folder, line) == (0, f"{as_line(answer)}\n", "")
    assert run("predict", folder, stdin=line) == (0, f"{as_line(answer)}\n", "")
    status, output, _ = run("predict", folder, "--json-input", json.dumps(given), "--json")
    assert status == 0
    content = json.loads(output)
    assert content.pop("input") == json.loads(json.dumps(given))
    assert set(content) <= {field.name for field in dataclasses.fields(answer)}
    assert run("predict", folder, line, "--json")[1].partition(", ")[2] == output.partition(", ")[2]


def test_json_may_be_an_object(bundle, run):
    folder = bundle("Answer")
    line = json.dumps({"question": "who?", "context": "the cat sat"})
    expected = run("predict", folder, "who?\tthe cat sat")
    assert run("predict", folder, "--json-input", stdin=line) == expected


@pytest.mark.parametrize("pipeline", ["Classify", "Tag", "Embed", "FillMask"])
def test_a_text_may_be_an_object_with_its_name(bundle, run, pipeline):
    folder = bundle(pipeline)
    expected = run("predict", folder, "the [MASK]")
    line = json.dumps({"text": "the [MASK]"})
    assert run("predict", folder, "--json-input", stdin=line) == expected


def test_a_tree_is_answered_with_its_nodes_where_they_are_asked_for(run, tmp_path):
    _, graph = test_trees.graph()
    settings, words = {"labels": test_trees.LABELS}, {"words": test_trees.WORDS}
    folder = write_bundle(tmp_path, "Classify", graph, settings, tokenizer=words)
    answer = serving.load(folder)(test_trees.TREE, nodes=True)
    assert run("predict", folder, test_trees.TREE, "--nodes")[1] == f"{as_line(answer)}\n"
    status, output, _ = run("predict", folder, "--nodes", "--json", stdin=test_trees.TREE)
    assert status == 0
    assert len(json.loads(output)["nodes"]) == len(answer.nodes) == 7
    status, _, error = run("predict", folder, "(3 (2 a)")
    assert status == 1
    assert error == (
        "seqkeras-serving: argument 1: text must be a tree in brackets, as (3 (2 A) (2 film)): "
        "expected 1 more closing brackets; received '(3 (2 a)'.\n"
    )


@pytest.mark.parametrize(
    "answer, line",
    [
        (Classification(("good",), 0.75, {"good": 0.75, "bad": 0.25}), "good\t0.7500"),
        (Classification(("a", "b"), 0.9, {"a": 0.9, "b": 0.8}), "a\t0.9000\tb\t0.8000"),
        (Classification((), 3.25, {}), "3.2500"),
        (
            Tagging((Word("the", "O", 0, 3, 0.5), Word("cat", "B-X", 4, 7, 0.5)), ()),
            "the/O cat/B-X",
        ),
        (Span("the cat", 0, 7, 0.5), "the cat\t0.5000"),
        (Span("", None, None, 0.5), "\t0.5000"),
        (Choice("he ran", 1, 0.625, (0.375, 0.625)), "he ran\t0.6250"),
    ],
)
def test_an_answer_is_a_line_to_read(answer, line):
    assert as_line(answer) == line


@pytest.mark.parametrize(
    "answer, line",
    [
        (Generation("a\nb\tc\r", -1.0, "end"), r"a\nb\tc\r"),
        (Span("a\nb", 0, 3, 0.5), "a\\nb\t0.5000"),
        (Choice("a\tb", 0, 0.5, (0.5, 0.5)), "a\\tb\t0.5000"),
        (Filling("a\nb", ((Filler("b", 0.5),),)), "a\\nb\tb 0.5000"),
    ],
)
def test_a_new_line_within_an_answer_begins_none(answer, line):
    assert as_line(answer) == line


def test_what_has_its_default_is_left_out_of_json_and_nothing_else():
    alternatives = (Generation("b", -2.0, "end"),)
    assert as_content(Generation("a", -1.0, "end", ())).keys() == {"text", "score", "finish"}
    content = as_content(Generation("a", -1.0, "end", alternatives))
    assert content["alternatives"] == [{"text": "b", "score": -2.0, "finish": "end"}]
    assert as_content(Tagging((), ())) == {"words": [], "entities": []}
    assert as_content(Classification((), 3.25, {})) == {"labels": [], "score": 3.25}
    assert as_content(Forecasting(np.ones((1, 1), "float32"), {})) == {"values": [[1.0]]}


def test_top_prints_the_most_probable_labels_with_their_scores(bundle, run):
    folder = bundle("Classify")
    scores = serving.load(folder)("the cat").scores
    (first, one), (second, other) = scores.items()
    line = f"{first}\t{one:.4f}\t{second}\t{other:.4f}\n"
    assert run("predict", folder, "the cat", "--top", "2") == (0, line, "")
    assert run("predict", folder, "the cat", "--top", "1") == (0, f"{first}\t{one:.4f}\n", "")
    answer = json.loads(run("predict", folder, "the cat", "--top", "1", "--json")[1])
    assert list(answer["scores"]) == [first]
    status, _, error = run("predict", bundle("Tag"), "the cat", "--top", "1")
    assert (status, error) == (1, "seqkeras-serving: Tag has no option --top.\n")


@pytest.mark.parametrize("pipeline", BUNDLES)
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_an_empty_line_fails_alone(bundle, run, pipeline, options):
    folder = bundle(pipeline)
    line = {"Answer": "who?\tthe cat sat", "Choose": "the cat\tsat\tran", "Forecast": "[1, 2, 3]"}
    line = line.get(pipeline, "the [MASK]")
    expected = run("predict", folder, line, *options)[1]
    status, output, error = run("predict", folder, *options, stdin=f"{line}\n\n{line}\n")
    first, refused, last = output.splitlines()
    assert (status, f"{first}\n", f"{last}\n") == (1, expected, expected)
    assert refused == "" if not options else json.loads(refused).keys() == {"error"}
    assert error.startswith("seqkeras-serving: standard input, line 2: ")
    assert error.count("\n") == 1


def test_n_best_prints_a_line_for_each_and_an_empty_one(bundle, run):
    status, output, _ = run("predict", bundle("Answer"), "who?\tthe cat sat", "--n-best", "3")
    assert status == 0
    assert re.fullmatch(r"([a-z ]*\t\d\.\d{4}\n){3}\n", output)


@pytest.mark.parametrize(
    "answer, line",
    [
        (Span("cat", 4, 7, 0.25), r"the [cat: 0.2500] sat\non Oslo"),
        (Span("sat\non", 8, 14, 0.5), r"the cat [sat\non: 0.5000] Oslo"),
        (Span("", None, None, 0.75), r"[no answer 0.7500] the cat sat\non Oslo"),
        (
            Tagging((), (Entity("the cat", "PER", 0, 7, 0.5), Entity("Oslo", "LOC", 15, 19, 0.75))),
            r"[the cat: PER 0.5000] sat\non [Oslo: LOC 0.7500]",
        ),
        (Tagging((), ()), r"the cat sat\non Oslo"),
    ],
)
def test_what_an_answer_found_is_marked_in_the_text(answer, line):
    assert marked("the cat sat\non Oslo", answer) == line


def test_answers_are_marked_in_their_contexts_and_entities_in_their_texts(bundle, run):
    folder = bundle("Answer")
    answer = serving.load(folder)(("who?", "the cat sat"), n_best=2)
    expected = [marked("the cat sat", each) for each in (answer, *answer.alternatives)]
    assert run("predict", folder, "who?\tthe cat sat", "--mark")[1] == f"{expected[0]}\n"
    printed = run("predict", folder, "who?\tthe cat sat", "--mark", "--n-best", "2")[1]
    assert printed == "\n".join([*expected, "", ""])
    assert "[" in expected[0] and "]" in expected[0]
    folder = bundle("Tag")
    for given in ("the cat", ("the", "cat")):
        line = marked("the cat", serving.load(folder)(given))
        asked = run("predict", folder, "--json-input", json.dumps(given), "--mark")
        assert asked == (0, f"{line}\n", "")


@pytest.mark.parametrize(
    "pipeline, arguments, message",
    [
        ("Answer", ["who?"], "argument 1: text must be question and context with a tab between; "),
        ("Classify", ["a\tb\tc"], "argument 1: text must be text and pair with a tab between; "),
        ("Choose", ["a\tb"], "argument 1: text, choices must be a list of two texts or more; "),
        ("Embed", ["--json-input", "{"], "argument 1: text must be JSON; received '{': Expecting"),
        ("Forecast", ["1 2"], "argument 1: series must be JSON; received '1 2': Extra data"),
        ("Embed", ["the " * 40], "argument 1: text has 42 tokens; the limit is 31. Nothing "),
        ("Embed", ["cat", "--num-beams", "2"], "Embed has no option --num-beams."),
        ("Embed", ["cat", "--stream"], "Embed has no option --stream."),
        ("Embed", ["cat", "--mark"], "Embed has no option --mark for this bundle."),
        ("Embed", ["cat", "--precision", "int8"], "load: precision must be one of the bundle's, "),
        ("Embed", ["cat", "--provider", "TPU"], "load: providers must be of this onnxruntime "),
    ],
)
def test_what_is_wrong_is_one_line(bundle, run, pipeline, arguments, message):
    status, output, error = run("predict", bundle(pipeline), *arguments)
    assert (status, output) == (1, "")
    assert error.startswith(f"seqkeras-serving: {message}")
    assert error.count("\n") == 1


def test_a_line_that_names_a_file_that_is_not_there_is_refused_alone(bundle, run):
    folder = bundle("Forecast")
    expected = run("predict", folder, "[1, 2, 3.5]")[1]
    status, output, error = run("predict", folder, stdin="[1, 2, 3.5]\nno.npy\n[1, 2, 3.5]\n")
    assert (status, output) == (1, f"{expected}\n{expected}")
    assert error == (
        "seqkeras-serving: standard input, line 2: no.npy: No such file or directory.\n"
    )


def test_options_reach_the_pipeline(bundle, run):
    folder = bundle("FillMask")
    _, output, _ = run("predict", folder, "the [MASK]", "--top-k", "2", "--json")
    assert len(json.loads(output)["masks"][0]) == 2
    assert run("predict", folder, "[MASK] " * 40, "--truncate")[0] == 0
    assert run("predict", folder, "the [MASK]", "--provider", "CPU", "--threads", "1")[0] == 0


@pytest.mark.parametrize(
    "pipeline, examples",
    [
        ("Classify", ("the cat", ["the cat", "sat"])),
        ("Forecast", ([1, 2, 3], {"series": [4, 5]})),
        ("Choose", (["the", ["cat", "dog"]],)),
    ],
)
def test_bench_takes_the_bundles_examples(bundle, run, pipeline, examples):
    folder = bundle(pipeline, examples=examples)
    status, output, error = run("bench", folder, "--repeats", "2", "--batch-sizes", "3")
    assert (status, error) == (0, "")
    assert f"measured: toy, float32, {len(examples)} different inputs in turn" in output


def test_inspect_shows_settings_and_precisions(bundle, run):
    folder = bundle("Classify", examples=(["the cat", "sat"],))
    manifest = read_manifest(folder)
    precision = Precision(manifest.graphs, {"size": 0.25, "score": {"accuracy": 0.5}})
    write_manifest(
        folder,
        dataclasses.replace(manifest, precisions={"int8": precision}, files=describe_files(folder)),
    )
    status, output, error = run("inspect", folder)
    assert (status, error) == (0, "")
    for line in (
        'example         ["the cat", "sat"]',
        "limits          31 tokens",
        'settings        labels ["good", "bad"]',
        "                score.accuracy 0.5",
    ):
        assert line in output.splitlines()
    assert re.search("^precision       int8, .* kB$", output, re.MULTILINE)
    assert "state" not in output and "decoding" not in output


@pytest.fixture(scope="module")
def language_model(tmp_path_factory):
    table = CharacterTable.learn(["abcdefg"])
    decoding = DecodingDefaults(start_id=BOS, end_id=EOS)
    folder = tmp_path_factory.mktemp("bundles") / "letters"
    return toy_language_model.write_bundle(
        folder, ToyLanguageModel(len(table), 17), table, decoding=decoding
    )


def test_options_reach_a_pipeline_that_generates(language_model, run):
    generate = serving.load(language_model)
    options = {"sample": True, "seed": 3, "top_k": 4, "max_new_tokens": 5, "stop": ("f",)}
    flags = "--sample --seed 3 --top-k 4 --max-new-tokens 5 --stop f".split()
    expected = generate("bad", **options)
    assert run("predict", language_model, "bad", *flags) == (0, f"{expected.text}\n", "")
    assert run("predict", language_model, "bad", *flags, "--stream")[1] == f"{expected.text}\n"
    _, output, _ = run("predict", language_model, "bad", *flags, "--json")
    assert json.loads(output) == {
        "input": "bad",
        "text": expected.text,
        "score": expected.score,
        "finish": expected.finish,
    }


def test_options_that_contradict_each_other_are_refused_before_input_is_read(language_model, run):
    status, output, error = run("predict", language_model, "--seed", "3", stdin="\x00")
    assert (status, output) == (1, "")
    assert error == "seqkeras-serving: Generate: seed needs sample=True.\n"


def test_a_lone_surrogate_is_written_in_json_and_refused_as_text(language_model, run):
    arguments = ["--json-input", "--echo", "--max-new-tokens", "2"]
    line = r'"a\ud800b"'
    status, output, error = run("predict", language_model, *arguments, "--json", stdin=line)
    assert (status, error) == (0, "")
    assert json.loads(output)["text"].startswith("a\ud800b")
    status, output, error = run("predict", language_model, *arguments, stdin=line)
    assert (status, output) == (1, "")
    assert error == (
        "seqkeras-serving: predict: an answer must hold no lone surrogate to be printed; it holds "
        r"'\ud800'. Ask for --json." + "\n"
    )


def test_equal_lines_have_equal_samples_of_a_seed(language_model, run):
    flags = "--sample --seed 3".split()
    _, output, _ = run("predict", language_model, *flags, stdin="bad\ncab\nbad\n" * 100)
    lines = output.splitlines()
    assert len(lines) == 300
    assert set(lines[::3]) == set(lines[2::3]) == {lines[0]}
    assert run("predict", language_model, "bad", *flags)[1].strip() == lines[0]
    assert run("predict", language_model, "bad", *flags, "--stream")[1].strip() == lines[0]
