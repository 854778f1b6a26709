"""predict, bench and inspect with the pipelines that answer in a single pass."""

import dataclasses
import json
import re

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.manifest import Precision, read_manifest, write_manifest
from seqkeras.serving.printing import as_content, as_line, as_size, marked
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
from tests.serving.pipelines.toys import forecaster, write_bundle
from tests.serving.zoo import SINGLE_PASS

# Pipeline -> its bundle in the zoo, and a line that it answers.
KINDS = {
    "Classify": ("classes", "the cat"),
    "Tag": ("tags", "the cat"),
    "Answer": ("answers", "who?\tthe cat sat"),
    "Choose": ("choices", "the cat\tsat\tran"),
    "Embed": ("vectors", "the cat"),
    "FillMask": ("masks", "the [MASK]"),
}


@pytest.fixture(scope="module")
def bundle(folders, tmp_path_factory):
    series = tmp_path_factory.mktemp("series")
    write_bundle(series, "Forecast", forecaster(1), tokenizer={})
    return {name: folders[key] for name, (key, _) in KINDS.items()} | {"Forecast": series}


@pytest.fixture
def language_model(folders):
    return folders["generator"]


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
def test_a_line_is_answered_as_what_it_holds(bundle, command, pipeline, line, given):
    folder = bundle[pipeline]
    answer = serving.load(folder)(given)
    assert command("predict", folder, line) == (0, f"{as_line(answer)}\n", "")
    assert command("predict", folder, stdin=line) == (0, f"{as_line(answer)}\n", "")
    status, output, _ = command("predict", folder, "--json-input", json.dumps(given), "--json")
    assert status == 0
    content = json.loads(output)
    assert content.pop("input") == json.loads(json.dumps(given))
    assert set(content) <= {field.name for field in dataclasses.fields(answer)}
    _, of_line, _ = command("predict", folder, line, "--json")
    assert of_line.partition(", ")[2] == output.partition(", ")[2]


ENTITIES = Entity("the cat", "PER", 0, 7, 0.5), Entity("Oslo", "LOC", 15, 19, 0.75)
LINES = [
    (Classification(("good",), 0.75, {"good": 0.75, "bad": 0.25}), "good\t0.7500"),
    (Classification(("a", "b"), 0.9, {"a": 0.9, "b": 0.8}), "a\t0.9000\tb\t0.8000"),
    (Classification((), 3.25, {}), "3.2500"),
    (Tagging((Word("the", "O", 0, 3, 0.5), Word("cat", "B-X", 4, 7, 0.5)), ()), "the/O cat/B-X"),
    (Span("the cat", 0, 7, 0.5), "the cat\t0.5000"),
    (Span("", None, None, 0.5), "\t0.5000"),
    (Choice("he ran", 1, 0.625, (0.375, 0.625)), "he ran\t0.6250"),
    # A new line within an answer begins none.
    (Generation("a\nb\tc\r", -1.0, "end"), r"a\nb\tc\r"),
    (Span("a\nb", 0, 3, 0.5), "a\\nb\t0.5000"),
    (Choice("a\tb", 0, 0.5, (0.5, 0.5)), "a\\tb\t0.5000"),
    (Filling("a\nb", ((Filler("b", 0.5),),)), "a\\nb\tb 0.5000"),
]
MARKED = [
    (Span("cat", 4, 7, 0.25), r"the [cat: 0.2500] sat\non Oslo"),
    (Span("sat\non", 8, 14, 0.5), r"the cat [sat\non: 0.5000] Oslo"),
    (Span("", None, None, 0.75), r"[no answer 0.7500] the cat sat\non Oslo"),
    (Tagging((), ENTITIES), r"[the cat: PER 0.5000] sat\non [Oslo: LOC 0.7500]"),
    (Tagging((), ()), r"the cat sat\non Oslo"),
]


def test_an_answer_is_a_line_to_read_and_marked_in_its_text():
    for answer, line in LINES:
        assert as_line(answer) == line
    for answer, line in MARKED:
        assert marked("the cat sat\non Oslo", answer) == line


@pytest.mark.parametrize(
    ("count", "size"),
    [
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (2**20 + 2**19, "1.5 MiB"),
        (3 * 2**30, "3,072.0 MiB"),
    ],
)
def test_a_size_has_the_largest_unit_of_which_it_is_one(count, size):
    assert as_size(count) == size


def test_what_has_its_default_is_left_out_of_json_and_nothing_else():
    alternatives = (Generation("b", -2.0, "end"),)
    assert as_content(Generation("a", -1.0, "end", ())).keys() == {"text", "score", "finish"}
    content = as_content(Generation("a", -1.0, "end", alternatives))
    assert content["alternatives"] == [{"text": "b", "score": -2.0, "finish": "end"}]
    assert as_content(Tagging((), ())) == {"words": [], "entities": []}
    assert as_content(Classification((), 3.25, {})) == {"labels": [], "score": 3.25}
    assert as_content(Forecasting(np.ones((1, 1), "float32"), {})) == {"values": [[1.0]]}


def test_top_prints_the_most_probable_labels_with_their_scores(bundle, command):
    folder = bundle["Classify"]
    (first, one), (second, other), _ = serving.load(folder)("the cat").scores.items()
    line = f"{first}\t{one:.4f}\t{second}\t{other:.4f}\n"
    assert command("predict", folder, "the cat", "--top", "2") == (0, line, "")
    answer = json.loads(command("predict", folder, "the cat", "--top", "1", "--json")[1])
    assert list(answer["scores"]) == [first]
    status, _, error = command("predict", bundle["Tag"], "the cat", "--top", "1")
    assert (status, error) == (1, "seqkeras predict: Tag has no option --top.\n")


def test_answers_are_marked_in_their_contexts_and_entities_in_their_texts(bundle, command):
    folder = bundle["Answer"]
    answer = serving.load(folder)(("who?", "the cat sat"), n_best=3)
    spans = (answer, *answer.alternatives)
    expected = [marked("the cat sat", span) for span in spans]
    assert command("predict", folder, "who?\tthe cat sat", "--mark")[1] == f"{expected[0]}\n"
    options = "who?\tthe cat sat", "--n-best", "3"
    printed = command("predict", folder, "--mark", *options)[1]
    assert printed == "\n".join([*expected, "", ""])
    assert "[" in expected[0] and "]" in expected[0]
    plain = command("predict", folder, *options)
    assert plain == (0, "\n".join([*map(as_line, spans), "", ""]), "")
    folder = bundle["Tag"]
    for given in ("the cat", ("the", "cat")):
        line = marked("the cat", serving.load(folder)(given))
        asked = command("predict", folder, "--json-input", json.dumps(given), "--mark")
        assert asked == (0, f"{line}\n", "")


@pytest.mark.parametrize(
    "pipeline, arguments, message",
    [
        ("Answer", ["who?"], "argument 1: text must be question and context with a tab between; "),
        ("Classify", ["a\tb\tc"], "argument 1: text must be text and pair with a tab between; "),
        ("Choose", ["a\tb"], "argument 1: text, choices must be a list of two texts or more; "),
        ("Embed", ["--json-input", "{"], "argument 1: text must be JSON; received '{': Expecting"),
        ("Embed", ["--json-input", r'"the \ud800 cat"'], "argument 1: text must hold no lone surr"),
        ("Forecast", ["1 2"], "argument 1: series must be JSON; received '1 2': Extra data"),
        ("Forecast", ["[[1, 2, NaN]]"], "argument 1: series must be JSON; received '[[1, 2, NaN]]"),
        ("Forecast", ["[[1, 2, 1e39]]"], "argument 1: series must be finite numbers in float32; r"),
        ("Forecast", ["no.npy"], "argument 1: no.npy: No such file or directory.\n"),
        ("Embed", ["the " * 40], "argument 1: text has 42 tokens; the limit is 31. Nothing "),
        ("Embed", ["cat", "--num-beams", "2"], "Embed has no option --num-beams."),
        ("Embed", ["cat", "--stream"], "Embed has no option --stream."),
        ("Embed", ["cat", "--mark"], "Embed has no option --mark for this bundle."),
        ("Embed", ["cat", "--precision", "int8"], "load: precision must be one of the bundle's, "),
        ("Embed", ["cat", "--provider", "TPU"], "load: providers must be of this onnxruntime "),
    ],
)
def test_what_is_wrong_is_one_line(bundle, command, pipeline, arguments, message):
    status, output, error = command("predict", bundle[pipeline], *arguments)
    assert (status, output) == (1, "")
    assert error.startswith(f"seqkeras predict: {message}")
    assert error.count("\n") == 1 and len(error) < 400


def test_bench_takes_the_bundles_examples_and_inspect_shows_settings(command, tmp_path):
    _, graph, settings = SINGLE_PASS["classes"]
    examples = ("the cat", ["the cat", "sat"])
    folder = write_bundle(tmp_path / "toy", "Classify", graph, settings, examples=examples)
    status, output, error = command("bench", folder, "--repeats", "2", "--batch-sizes", "3")
    assert (status, error) == (0, "")
    assert "measured: toy, float32, 2 different inputs in turn" in output
    manifest = read_manifest(folder)
    precision = Precision(manifest.graphs, {"size": 0.25, "score": {"accuracy": 0.5}})
    write_manifest(folder, dataclasses.replace(manifest, precisions={"int8": precision}))
    status, output, error = command("inspect", folder)
    assert (status, error) == (0, ""), output
    for line in (
        '                ["the cat", "sat"]',
        "limits          31 tokens",
        'settings        labels ["x", "y", "z"]',
        "                score.accuracy 0.5",
    ):
        assert line in output.splitlines()
    assert re.search("^precision       int8, .* kB$", output, re.MULTILINE)
    assert "state" not in output and "decoding" not in output


def test_options_reach_a_pipeline_that_generates(language_model, command):
    generate = serving.load(language_model)
    options = {"sample": True, "seed": 3, "top_k": 4, "max_new_tokens": 5, "stop": ("f",)}
    flags = "--sample --seed 3 --top-k 4 --max-new-tokens 5 --stop f".split()
    expected = generate("bad", **options)
    assert command("predict", language_model, "bad", *flags) == (0, f"{expected.text}\n", "")
    assert command("predict", language_model, "bad", *flags, "--stream")[1] == f"{expected.text}\n"
    _, output, _ = command("predict", language_model, "bad", *flags, "--json")
    assert json.loads(output) == {"input": "bad", **as_content(expected)}


def test_options_that_contradict_each_other_are_refused_before_input_is_read(
    language_model, command
):
    status, output, error = command("predict", language_model, "--seed", "3", stdin="\x00")
    assert (status, output) == (1, "")
    assert error == "seqkeras predict: Generate: seed needs sample=True.\n"


def test_a_lone_surrogate_is_written_in_json_and_refused_as_text(language_model, command):
    arguments = ["--json-input", "--echo", "--max-new-tokens", "2"]
    line = r'"a\ud800b"'
    status, output, error = command("predict", language_model, *arguments, "--json", stdin=line)
    assert (status, error) == (0, "")
    assert json.loads(output)["text"].startswith("a\ud800b")
    status, output, error = command("predict", language_model, *arguments, stdin=line)
    assert (status, output) == (1, "")
    assert error == (
        "seqkeras predict: an answer must hold no lone surrogate to be printed; it holds "
        r"'\ud800'. Ask for --json." + "\n"
    )
