"""A smoke run of every benchmark, and what it prints and writes; never a time."""

import importlib
import importlib.util
import itertools
import json
import os
import shutil
import sys
import types

import onnx
import pytest
from keras import ops
from PIL import Image

from benchmarks import encoders, generation, harness, layers, scaling, stream_hosts, text_beams
from seqkeras.export.families.shapes import infer_outputs
from seqkeras.export.onnx_graphs import convert
from seqkeras.pretrained import load_hugging_face
from seqkeras.serving.manifest import TensorSpec
from tests.serving import toy_bundle
from tests.training.pretrained_folders import hugging_face_folder
from tests.training.questions import questions, write
from tests.training.test_classification import sentences as reviews
from tests.training.test_tagging import sentences as names

COLOURS = ("red", "green", "blue", "white", "old", "new")
PRECISIONS = ("float32", "int8", "int8-embedding")


def has(*packages):
    return all(importlib.util.find_spec(package) for package in packages)


def crossed(form, *words):
    return {form.format(*row) for row in itertools.product(*words)}


def smoke_rows(benchmark, capsys, path, *arguments):
    """The rows that `--quick --json FILE` writes, after a look at what it prints."""
    benchmark = importlib.import_module(f"benchmarks.{benchmark}")
    status = benchmark.main(["--quick", "--json", str(path), *map(str, arguments)])
    printed = capsys.readouterr()
    assert (status, printed.err) == (0, "")
    last = f"quick: everything ran; these figures say nothing; rows written to {path}"
    assert printed.out.splitlines()[-1] == last
    rows = json.loads(path.read_text(encoding="utf-8"))
    for row in rows:
        assert list(row) == ["case", "ours", "rival", "unit", "ratio"]
        assert row["case"] in printed.out
        assert min(row["ours"], row["rival"], row["ratio"]) >= 0
    return {row["case"] for row in rows}


TORCH = [*(["torch"] if has("torch") else [])]
CTRANSLATE2 = [*(["ctranslate2"] if has("ctranslate2") else [])]
HEADERS = os.environ.get("ONNXRUNTIME_INCLUDE_DIR")
CPP = ["--cpp", HEADERS] if HEADERS and shutil.which("cmake") else []
NODE = ["Node"] if shutil.which("node") and (stream_hosts.PACKAGE / "node_modules").is_dir() else []
GENERATED = "{} float32 beam {} b1 vs {}"
PROCESSOR_TIME = [" processor time"] if sys.platform == "linux" else []
FLOAT32 = ["--only", "transformer", "--precisions", "float32", "--rivals"]
DATES = crossed("dates {}{} vs dateparser", ("clean", "noisy"), ("", " b1", " b64"))
# Benchmark, what it needs that may be missing, arguments, its cases. {text}, {parallel}, {names},
# {dates} and {toy} are files and bundles.
SMOKES = [
    ("cached_generation", [], [], {"gpt2 step 256 vs step 16"}
        | crossed("gpt2 greedy b{} t32+64 vs keras_nlp", (1, 8))),
    ("cold_start", [], ["{dates}"],
        crossed("cold start vs {}", ("import numpy, onnxruntime", "1 s"))),
    ("dates", [], ["{dates}", "--by-locale"], DATES),
    ("denoising", [], ["events"], crossed("{} vs {}",
        ("BLEU", "exact %"), ("random weights", "from scratch"))),
    ("encoders", [], ["--only", "minilm"],
        crossed("minilm {} b2 t7 vs onnxruntime.transformers", PRECISIONS)
        | {"minilm float32 64 texts t8…128 vs one batch"}),
    ("export_time", [], ["--beside", harness.CHECKOUT, "{run}"],
        crossed(f"run vs {harness.CHECKOUT.name}{{}}", ("", ", processor", ", memory"))),
    ("generate_list", [], ["--before", harness.CHECKOUT],
        crossed("{} 7 texts vs {}", ("gpt", "transformer"), ("before", "in batches"))),
    ("generate_load", [], ["--before", harness.CHECKOUT],
        crossed("{} c3 vs {}", ("gpt", "transformer"), ["before", *CTRANSLATE2])
        | crossed("{} c3 first token, p95, vs 3 steps", ("gpt", "transformer"))
        | crossed("gpt light beside heavy vs {}", ("3 times alone", "before"))),
    ("generation", [], [*FLOAT32, "keras,keras_nlp"],
        crossed(GENERATED, ["transformer"], (1, 4), ("keras", "keras_nlp"))),
    ("generation", ["ctranslate2"], [*FLOAT32, "ctranslate2"],
        crossed(GENERATED, ["transformer"], (1, 4), ["ctranslate2"])),
    ("generation", [], ["--rivals", "saved_model"],
        crossed(GENERATED, ["rnn"], (1, 4), ["saved_model"])),
    ("kept_memory", [], ["--", "tagging", "{names}", "--batch-size", "8"],
        {"tagging, kept vs given back"}),
    ("language_speed", [], ["{text}"],
        {"step qrnn vs lstm"} | crossed("step gpt vs {}", TORCH)),
    ("layers", [], ["--only", "simplernn"],
        crossed("simplernn b2 t5 {} vs keras", ("static", "dynamic"))),
    ("layers", [], ["--only", "qrnn"],
        crossed("qrnn b2 t5 {} vs {} lstm", ("static", "dynamic"), ("our", "keras"))),
    ("limit", [], ["--only", "minilm", "--processor-time"],
        crossed("minilm {} b2 t7 vs the limit", PRECISIONS[:2])),
    ("loading", [], [], crossed("load 0 MB vs {}", ("a plain read", "the file's size"))),
    ("recurrent_export", [], [], crossed("{} b{} t5 vs {}",
        ("lstm", "gru", "bidirectional lstm", "rnn", "bidirectional rnn"), (8, 1),
        ("keras", "hand-built"))),
    ("server", ["starlette"], ["{toy}", "--before", harness.CHECKOUT],
        crossed("server c5{} vs {}", ["", *PROCESSOR_TIME], ("process b5", "before"))
        | crossed("server c1 vs {}", ("process b1 and 0.5 ms", "before"))),
    ("server", ["starlette"], ["minilm"],
        crossed("server c5{} vs process b5", ["", *PROCESSOR_TIME])
        | {"server c1 vs process b1 and 0.5 ms"}),
    ("startup", [], [], {"minilm import serving vs 0.3 s", "minilm ONNX int8 vs float32",
        "minilm ONNX int8-embedding vs 25 MB"}
        | crossed("minilm first answer {} vs 1 s", PRECISIONS)
        | crossed("minilm memory beside the weights {} vs 120 MB", PRECISIONS)),
    ("stream_hosts", [], ["--frames", "20", *CPP], crossed("{} in {} vs Python",
        ("LSTM, 2 layers", "GRU, 2 layers", "QRNN, 2 layers", "convolutions, 4 layers",
            "Transformer, 2 layers"),
        ["Python, int8", "TensorFlow", *NODE, *(["C++"] if CPP else [])])),
    ("streams", [], [*CPP], crossed("{} 2 layers frame vs {}", ("lstm", "gru"),
            ("session.run", "window", "stateful", "SavedModel"))
        | crossed("{} 2 layers frame in C++ vs session.run in C++", ("lstm", "gru") if CPP else ())
        | crossed("{} 2 layers frame {}", ("lstm", "gru"),
            ("of 64 streams vs one", "1,000,000 vs an early one"))
        | crossed("{} 2 layers row of a table vs session.run", ("lstm", "gru"))),
    ("text_beams", [], [], crossed("transformer beam 4, 11 texts, {} vs serving",
        ("time", "processors' time"))),
    ("transformer_layers", [], ["--only", "attention"],
        crossed("attention b2 t5{} vs keras", ("", " XLA"))),
    ("transformer_layers", [], ["--only", "decoder"],
        crossed("decoder block 512 b2 t5{} vs keras_nlp", ("", " XLA"))),
    ("transformer_layers", ["transformers"], ["--only", "minilm"],
        crossed("minilm b2 t5{} vs transformers", ("", " XLA"))),
    ("calibration_maps", [], [],
        crossed("{} vs temperature{}", ("nothing", "isotonic", "sigmoid", "ensemble", "biases"),
                ("", ", splits"))),
    ("none_of_these", [], [],
        crossed("{}, null vs {}", ("SST-2's sentences", "SQuAD's questions"),
                ("90 %", "the best label's score"))),
    ("series_baselines", [], ["--bands"], {"co2 ridge vs persistence"}),
    ("series_baselines", [], ["--train"], {"co2 model vs ridge"}),
    ("tuning", [], ["--trials", "2"], {"co2 tuned vs default"}),
    ("classifiers", [], ["languages"],
        crossed("languages vs {}", ("plain methods", "network alone"))),
    ("trees", [], [], {"binary tree lstm b3 vs node by node"}),
    ("window_steps", [], [],
        crossed("gpt step behind {} tokens vs no window", ("16", "512", "4,096"))
        | crossed("gpt prompt of {} tokens vs no window", (8, 16))),
    ("workers", [], ["{text}"], {"2 workers vs 1, batch 12"}),
]  # fmt: skip


@pytest.fixture
def given(tmp_path):
    """Files and bundles that arguments name."""
    lines = [f"the {colour} house has {number} doors" for colour in COLOURS for number in range(99)]
    (tmp_path / "text.txt").write_text("".join(f"{line}\n" for line in lines))
    return {
        "text": tmp_path / "text.txt",
        "names": names(tmp_path / "names.conll", 60),
        "toy": toy_bundle.write_bundle(tmp_path / "toy"),
    }


class Illiterate:
    """A dateparser that can read nothing."""

    def __init__(self, **options):
        pass

    def get_date_data(self, text):
        return types.SimpleNamespace(date_obj=None)


@pytest.fixture
def stand_ins(monkeypatch):
    """The rival of `encoders` is our own graph of its weights; that of `dates` reads nothing."""
    package = types.ModuleType("dateparser")
    package.DateDataParser, package.__version__ = Illiterate, "0"
    monkeypatch.setitem(sys.modules, "dateparser", package)

    def write(*arguments, python):
        folder, file = arguments[-2:]
        bert = load_hugging_face(folder).encoder

        def function(input_ids, attention_mask, token_type_ids):
            inputs = {"token_ids": input_ids, "segment_ids": token_type_ids}
            inputs["lengths"] = ops.sum(attention_mask, axis=1)
            return {"last_hidden_state": bert(inputs)["hidden"]}

        names = ("input_ids", "attention_mask", "token_type_ids")
        inputs = [TensorSpec(name, "int64", ("batch", "length")) for name in names]
        graph = convert(function, inputs, infer_outputs(function, inputs), "model")
        onnx.save(graph.whole(), file)

    monkeypatch.setattr(encoders.harness, "run_python", write)


def short(value):
    """The name of a parameter; a set has none, as its order is another in each process."""
    return None if isinstance(value, set) else str(value)[:30]


@pytest.mark.parametrize("name, needs, arguments, cases", SMOKES, ids=short)
def test_a_benchmark_runs(name, needs, arguments, cases, given, request, capsys, tmp_path):
    if not has(*needs) or (name == "workers" and sys.platform != "linux"):
        pytest.skip("needs benchmarks/requirements.txt, or Linux")
    if name in ("encoders", "dates"):
        request.getfixturevalue("stand_ins")
    if "{run}" in arguments:
        given["run"] = shutil.copytree(request.getfixturevalue("dates_run"), tmp_path / "run")
    if "{dates}" in arguments:
        given["dates"] = request.getfixturevalue("dates_bundle")
    arguments = [str(argument).format(**given) for argument in arguments]
    rows = smoke_rows(name, capsys, tmp_path / "rows.json", *arguments)
    assert rows >= cases if name == "loading" else rows == cases


def test_training_is_compared_from_files_to_steps(given, capsys, tmp_path):
    targets = tmp_path / "train.de"
    targets.write_text("\n".join(line[::-1] for line in given["text"].read_text().splitlines()))
    rows = smoke_rows("train_speed", capsys, tmp_path / "rows.json", given["text"], targets)
    steps = crossed("step dropout {} vs {}", ("0", "0.3"), ["keras_nlp", *TORCH])
    [budget] = [case for case in rows if case.startswith("token budget vs ")]
    assert rows == {*steps, "input alone vs its step", budget, "start vs 20 s"}


@pytest.mark.parametrize("task", ["classification", "tagging", "question-answering"])
def test_fine_tuning_is_compared_with_keras_nlp_and_transformers(task, capsys, tmp_path):
    file = {
        "classification": lambda: reviews(tmp_path / "reviews.csv"),
        "tagging": lambda: names(tmp_path / "names.conll", 60),
        "question-answering": lambda: write(tmp_path / "squad.json", questions(60)),
    }[task]()
    more = "question_length = 8\nstride = 5\n" if task == "question-answering" else ""
    folder, recipe = hugging_face_folder(tmp_path / "bert"), tmp_path / "recipe.toml"
    recipe.write_text(f'task = "{task}"\nschedule = "linear"\nmax_length = 31\n{more}')
    rows = smoke_rows("finetuning", capsys, tmp_path / "rows.json", recipe, folder, file)
    rivals = ["keras_nlp", *(["transformers"] if has("transformers") else [])]
    assert rows == {*crossed("step vs {}", rivals), "step in bfloat16 vs float32"}


def test_strings_are_compared_with_ids_and_with_an_earlier_version(capsys, tmp_path):
    given = "text_signatures", capsys, tmp_path / "rows.json", "--only", "unigrams"
    by_ids = crossed("unigrams b{} vs serving.text and ids", (1, 64))
    assert smoke_rows(*given, "--bundles", tmp_path / "bundles") == by_ids
    rows = smoke_rows(*given, "--before", (tmp_path / "bundles").rename(tmp_path / "before"))
    assert rows == by_ids | crossed("unigrams b{} vs before", (1, 64))


def test_every_layer_is_measured_at_every_length(capsys, tmp_path):
    files = ["--json", tmp_path / "rows.json", "--png", tmp_path / "scaling.png"]
    assert scaling.main(["--quick", *map(str, files)]) == 0
    others = {"simplernn", "lstm", "qrnn", "convolution", "restricted attention"}
    printed = capsys.readouterr().out
    assert all(
        f"{case}: " in printed
        for case in crossed("{} t{}", {"full attention", *others}, (8, 16, 32))
    )
    rows = {row["case"] for row in json.loads((tmp_path / "rows.json").read_text())}
    assert crossed("{} t{} {} vs full attention", others, (8, 16, 32), ("time", "memory")) <= rows
    with Image.open(tmp_path / "scaling.png") as image:
        assert image.size == (1320, 576)


# A benchmark, what is changed in it, arguments, and why it ends.
REFUSALS = [
    ("recurrent_export", ("TOLERANCE", -1.0), [], "the graphs do not agree at real steps: ours"),
    ("encoders", ("TOLERANCE", -1.0), ["--only", "minilm"], "b2 t7: the graphs do not agree."),
    ("text_signatures", ("TOLERANCE", -1.0), ["--only", "WordPiece"], "do not have the same scor"),
    ("loading", ("np.array_equal", lambda *_: False), [], "what was loaded is not what was saved"),
    ("layers", None, ["--only", "perceptron"], "no case has 'perceptron' in its name.\n"),
    ("generation", None, ["--only", "rnn", "--rivals", "keras"], "none of --rivals is for what -"),
    ("dates", None, ["{none}"], "there is no such folder"),
    ("cold_start", None, ["{none}"], "there is no such folder"),
    ("workers", None, ["{empty}"], "python -m training: "),
    ("server", None, ["{untold}"], "a bundle whose examples are texts is needed"),
]


@pytest.mark.parametrize("name, change, arguments, message", REFUSALS)
def test_what_is_not_timed_is_one_line(
    name, change, arguments, message, stand_ins, monkeypatch, capsys, tmp_path
):
    benchmark = importlib.import_module(f"benchmarks.{name}")
    if change:
        monkeypatch.setattr(f"benchmarks.{name}.{change[0]}", change[1])
    (tmp_path / "empty").touch()
    toy_bundle.write_bundle(tmp_path / "untold", examples=(["no", "text"],))
    paths = {name: tmp_path / name for name in ("none", "empty", "untold")}
    assert benchmark.main(["--quick", *(text.format(**paths) for text in arguments)]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"python -m benchmarks.{name}: ") and message in error


def test_a_missing_rival_is_refused_with_the_way_to_get_it(dates_bundle, monkeypatch, capsys):
    benchmark = importlib.import_module("benchmarks.dates")
    monkeypatch.setitem(sys.modules, "dateparser", None)
    assert benchmark.main([str(dates_bundle), "--quick"]) == 1
    message = "dateparser is not installed; pip install -r benchmarks/requirements.txt"
    assert capsys.readouterr().err == f"python -m benchmarks.dates: {message}\n"


def test_only_answers_that_are_the_rivals_are_timed(capsys):
    ours, other = [1] * generation.TARGET, [2] * generation.TARGET
    generation._check("one float32 b10", "other", [ours] * 10, [ours] * 9 + [other])
    assert capsys.readouterr().out == "one float32 b10: 90% of the answers are those of other\n"
    message = "^one float32 b10: 90% of the answers must be those of other; received 80%.$"
    with pytest.raises(ValueError, match=message):
        generation._check("one float32 b10", "other", [ours] * 10, [ours] * 8 + [other] * 2)
    generation._check("one int8-embedding b10", "other", [ours] * 10, [other] * 10)
    for found, message in (
        (["a", "ab", "abc", "x"], "all answers must be those of serving; received 75%."),
        (["a", "ab", "abc", ""], "answers must have 4 lengths and 10% of 0 at most; received"),
    ):
        with pytest.raises(ValueError, match=message):
            text_beams._check(found, ["a", "ab", "abc", ""])


def test_layers_that_compute_something_else_are_not_timed(capsys, monkeypatch):
    [case] = [case for case in layers.cases() if case.name == "simplernn"]
    make = case.rivals["keras"]

    def other(units):
        layer = make(units)
        layer.cell.activation = lambda x: 0.5 * x
        return layer

    monkeypatch.setitem(case.rivals, "keras", other)
    monkeypatch.setattr(layers, "cases", lambda: [case])
    assert layers.main(["--quick"]) == 1
    message = "simplernn b2 t5 static: loss and gradients do not agree: ours differ by "
    assert message in capsys.readouterr().err


def test_a_process_that_fails_is_the_last_line_of_its_error():
    assert harness.run_python("-c", "print('seen')") == "seen\n"
    with pytest.raises(ValueError, match="^python3?: KeyError: 'none'$"):
        harness.run_python("-c", "{}['none']")
    with pytest.raises(ValueError, match="^qrnn t8: (.|\n)*expected a whole number from 1"):
        scaling._point_in_a_process("qrnn", 8, rounds=0)


def test_short_cases_are_timed_more_often_but_once_in_a_smoke_run():
    options = types.SimpleNamespace(rounds=3, quick=False)
    assert harness.rounds_of(options) == 3
    assert harness.rounds_of(options, short=True) == 3 * harness.OFTEN
    assert harness.rounds_told(options) == "3 rounds, 15 of short cases"
    options.quick = True
    assert harness.rounds_of(options) == harness.rounds_of(options, short=True) == 1
