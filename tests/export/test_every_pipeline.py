"""From a model of each kind to its bundle and to an answer."""

import numpy as np
import pytest

import serving
from export.bundle import ExportError, Options, export
from seqkeras.models import (
    GPT,
    Bert,
    BiDAF,
    ClassificationHead,
    Forecaster,
    MaskedLMHead,
    NextSentenceHead,
    RNNLanguageModel,
    SentenceEncoder,
    TaggingHead,
    Transformer,
    TreeClassifier,
    WithHeads,
)
from seqkeras.runs import save_run
from seqkeras.tokenizers import CharacterTable, WordTable, word_places
from seqkeras.tokenizers.learn import learn_byte_pairs, learn_word_piece
from serving.manifest import read_manifest, verify_files
from tests.arrays import floats, randomize

TEXTS = [
    "A model may be small.",
    "Small words, and smaller ones!",
    "What is here is there.",
    "The model reads a few words.",
    "Nothing else is said here.",
    "Words are made of parts.",
]
LIMIT = 24


def encoder(vocab_size):
    return Bert(vocab_size, 16, 2, 2, 24, max_length=LIMIT)


def classify(folder):
    tokenizer = learn_word_piece(TEXTS, 80)
    model = WithHeads(encoder(len(tokenizer)), {"label": ClassificationHead(3)})
    settings = {"output": "label", "labels": ["low", "middle", "high"]}
    return _saved(folder, model, "Classify", tokenizer, TEXTS, settings=settings)


def tag(folder):
    tokenizer = learn_word_piece(TEXTS, 80)
    model = WithHeads(encoder(len(tokenizer)), {"tags": TaggingHead(3)})
    settings = {"output": "tags", "labels": ["O", "B-THING", "I-THING"]}
    return _saved(folder, model, "Tag", tokenizer, TEXTS, settings=settings)


def fill_mask(folder):
    tokenizer = learn_word_piece(TEXTS, 80)
    heads = {"token": MaskedLMHead(len(tokenizer)), "next": NextSentenceHead()}
    texts = [text.replace("a", "[MASK]", 2) for text in TEXTS]
    texts = [text for text in texts if "[MASK]" in text]
    model = WithHeads(encoder(len(tokenizer)), heads)
    return _saved(folder, model, "FillMask", tokenizer, texts, settings={"output": "token"})


def answer_of_words(folder):
    words = [text[start:end] for text in TEXTS for start, end in word_places(text)]
    tables = {"words": WordTable.learn(words), "characters": CharacterTable.learn(TEXTS)}
    sizes = [len(table) for table in tables.values()]
    model = BiDAF(sizes[0], 5, sizes[1], 3, 7, 5)
    model.build(None)
    settings = {"start": "start_logits", "end": "end_logits", "question_length": 9}
    pairs = [("What is small?", text) for text in TEXTS]
    return _saved(folder, model, "Answer", tables, pairs, settings=settings)


TREES = ["(3 (2 A) (4 (2 small) (2 model)))", "((a) (film))", "(2 words)"]


def classify_trees(folder):
    model = TreeClassifier(9, 5, 7, 3)
    model.build(None)
    tables = {"words": WordTable.learn(["a", "small", "model", "words"])}
    settings = {"labels": ["low", "middle", "high"]}
    return _saved(folder, model, "Classify", tables, TREES, settings=settings)


def embed(folder):
    tokenizer = learn_word_piece(TEXTS, 80)
    return _saved(folder, SentenceEncoder(encoder(len(tokenizer))), "Embed", tokenizer, TEXTS)


def forecast(folder):
    model = Forecaster(horizon=5, units=7, num_targets=2)
    model.build({"window": (None, None, 3)})
    windows = [floats(length, 3, seed=length).tolist() for length in (11, 13, 17)]
    return _saved(folder, model, "Forecast", None, windows)


def generate(folder):
    tokenizer = learn_byte_pairs(TEXTS, 300)
    model = GPT(len(tokenizer), 16, 2, 2, 24, LIMIT)
    return _saved(folder, model, "Generate", tokenizer, TEXTS, target_length=LIMIT)


def generate_by_characters(folder):
    tokenizer = CharacterTable.learn(TEXTS)
    model = RNNLanguageModel(len(tokenizer), 5, 7)
    return _saved(folder, model, "Generate", tokenizer, TEXTS, target_length=LIMIT + 9)


def translate(folder):
    table = CharacterTable.learn(TEXTS)
    model = Transformer(len(table), len(table), 16, 2, 2, 24, max_length=11)
    model.build()
    randomize(model)
    save_run(
        folder,
        model,
        "Translate",
        [{"text": text, "target": text[::-1][:8]} for text in TEXTS],
        {"source_length": 40, "target_length": 11},
        {"source": table, "target": table},
        decoding={"beam_size": 2},
    )
    return TEXTS


def _saved(folder, model, pipeline, tokenizer, inputs, target_length=1, settings=None):
    if not model.built:
        model.build({"token_ids": (None, None)})
    randomize(model)
    save_run(
        folder,
        model,
        pipeline,
        [{"input": each} for each in inputs],
        {
            "source_length": LIMIT if target_length == 1 else LIMIT + 8,
            "target_length": target_length,
        },
        tokenizer if isinstance(tokenizer, dict | None) else {"text": tokenizer},
        settings=settings,
        decoding={"start_id": 0, "end_id": 1} if target_length > 1 else None,
    )
    return inputs


MAKERS = [
    classify,
    classify_trees,
    tag,
    fill_mask,
    answer_of_words,
    embed,
    forecast,
    generate,
    generate_by_characters,
    translate,
]


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_run_becomes_a_bundle_that_answers(make, tmp_path):
    inputs = make(tmp_path / "run")
    export(tmp_path / "run", tmp_path / "bundle")
    manifest = read_manifest(tmp_path / "bundle")
    verify_files(tmp_path / "bundle", manifest)
    differences = [v for name, v in manifest.parity.items() if name.endswith("_difference")]
    assert len(differences) >= 2  # ONNX and SavedModel
    assert 0 <= max(differences) <= 1e-4
    answers = serving.load(tmp_path / "bundle")(inputs)
    assert len(answers) == len(inputs)
    card = (tmp_path / "bundle/README.md").read_text(encoding="utf-8")
    assert f"serving predict {tmp_path / 'bundle'}" in card


@pytest.mark.parametrize("make", [classify, generate], ids=lambda make: make.__name__)
def test_another_precision_answers_too(make, tmp_path):
    inputs = make(tmp_path / "run")
    options = Options(precisions=("int8",), tolerance=1.0, saved_models=False)
    manifest = export(tmp_path / "run", tmp_path / "bundle", options=options)
    figures = manifest.precisions["int8"].figures
    assert figures["bytes"] < figures["float32_bytes"]
    pipeline = serving.load(tmp_path / "bundle", precision="int8")
    assert len(pipeline(inputs)) == len(inputs)


@pytest.mark.parametrize("make", [generate, translate], ids=lambda make: make.__name__)
@pytest.mark.parametrize("portable", [False, True])
def test_a_bundle_may_hold_one_graph_that_generates(make, portable, tmp_path):
    make(tmp_path / "run")
    options = Options(generate_in_graph=True, portable=portable, saved_models=False)
    manifest = export(tmp_path / "run", tmp_path / "bundle", options=options)
    graph = manifest.graphs["generate"]
    assert [spec.name for spec in graph.inputs] == ["token_ids", "lengths"]
    import onnxruntime

    session = onnxruntime.InferenceSession(tmp_path / "bundle" / graph.file)
    token_ids = np.array([[4, 5, 6], [7, 8, 9]])
    ids, lengths, scores = session.run(None, {"token_ids": token_ids, "lengths": np.array([3, 2])})
    assert ids.shape == (2, manifest.limits.target_length)
    assert np.isfinite(scores).all() and (lengths > 0).all()


def test_a_pipeline_that_generates_nothing_refuses_to_generate_in_a_graph(tmp_path):
    classify(tmp_path / "run")
    with pytest.raises(ExportError, match="^Classify generates nothing; leave out --generate-in"):
        export(tmp_path / "run", tmp_path / "bundle", options=Options(generate_in_graph=True))
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
