"""Pipelines on exported models give the numbers of the Keras models."""

import importlib.metadata

import keras
import numpy as np
import pytest

import serving
from export import onnx_files
from export.families import parts_of
from export.onnx_graphs import convert
from seqkeras import models
from seqkeras.models import best_answers
from serving.manifest import (
    DecodingDefaults,
    Graph,
    Limits,
    Manifest,
    describe_files,
    write_manifest,
)
from serving.text import word_piece
from tests.arrays import numbers, randomize

TOKENS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat ##s do ##g . , he big dog ran to paris new "
    "york ? who where old"
).split()
TOKENIZER = word_piece(TOKENS)
LIMIT = 29
TEXTS = [
    "The big dogs ran to Paris.",
    "he",
    "who sat on the old mat, the cat?",
    "New York, old cats",
]
PAIRS = [
    ("the cat sat", "he ran to new york"),
    ("who?", "the big dog"),
    ("to paris", "on the mats."),
]
LABELS, TAGS = ["good", "bad", "neither"], ["O", "B-X", "I-X", "B-Y", "I-Y"]


def bert():
    return models.Bert(len(TOKENS), 12, 2, 3, 17, max_length=LIMIT)


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Make a bundle's folder of a model, without its manifest; each model is converted once."""

    def export(model):
        folder = tmp_path_factory.mktemp("bundle")
        (folder / "onnx").mkdir()
        parts = parts_of(model)
        graphs = {
            role: convert(each.function, each.inputs, each.outputs, role)
            for role, each in parts.graphs.items()
        }
        weights = onnx_files.save(graphs, folder / "onnx")
        (folder / "tokenizer").mkdir()
        TOKENIZER.to_file(folder / "tokenizer/text.json")
        return folder, {
            role: Graph(
                f"onnx/{role}.onnx", tuple(each.inputs), tuple(each.outputs), tuple(weights[role])
            )
            for role, each in parts.graphs.items()
        }

    return export


def load(bundle, pipeline, settings):
    folder, graphs = bundle
    manifest = Manifest(
        schema_version=2,
        name="tiny",
        task="test",
        pipeline=pipeline,
        created="2026-01-02T03:04:05+00:00",
        versions={"keras": importlib.metadata.version("keras")},
        tokenizers={"text": "tokenizer/text.json"},
        text_prefix=None,
        limits=Limits(LIMIT),
        decoding=DecodingDefaults(),
        graphs=graphs,
        state=(),
        saved_models={},
        examples=(),
        scores={},
        parity={},
        files=describe_files(folder),
        settings=settings,
    )
    write_manifest(folder, manifest)
    return serving.load(folder, threads=2)


@pytest.fixture(scope="module")
def with_heads(exported):
    keras.utils.set_random_seed(0)
    model = models.WithHeads(
        bert(),
        {
            "label": models.ClassificationHead(len(LABELS)),
            "number": models.RegressionHead(1),
            "tag": models.TaggingHead(len(TAGS)),
            "span": models.SpanHead(),
            "token": models.MaskedLMHead(len(TOKENS)),
        },
    )
    model(arrays([TOKENIZER.analyze("the cat")]))
    randomize(model)
    return model, exported(model)


def arrays(encodings):
    return {
        "token_ids": np.array([each.token_ids for each in encodings]),
        "lengths": np.array([len(each) for each in encodings]),
        "segment_ids": np.array([each.segment_ids for each in encodings]),
    }


def outputs_of(model, *texts):
    """What the Keras model gives for one text or pair, alone."""
    encoding = TOKENIZER.analyze(*texts)
    return encoding, {
        name: keras.tree.map_structure(lambda each: each[0], value)
        for name, value in numbers(model(arrays([encoding]))).items()
    }


def softmax(logits):
    exps = np.exp(logits.astype("float64"))
    return exps / exps.sum(axis=-1, keepdims=True)


def test_classes_and_numbers(with_heads):
    model, bundle = with_heads
    classify = load(bundle, "Classify", {"output": "label", "labels": LABELS})
    regress = load(bundle, "Classify", {"output": "number"})
    inputs = [*TEXTS, *PAIRS]
    for each, answer, number in zip(inputs, classify(inputs), regress(inputs), strict=True):
        _, outputs = outputs_of(model, *([each] if isinstance(each, str) else each))
        expected = dict(zip(LABELS, softmax(outputs["label"])))
        assert answer.scores == pytest.approx(expected, abs=1e-5)
        assert number.score == pytest.approx(outputs["number"][0], abs=1e-5)


def test_tags(with_heads):
    model, bundle = with_heads
    tag = load(bundle, "Tag", {"output": "tag", "labels": TAGS})
    for text, answer in zip(TEXTS, tag(TEXTS), strict=True):
        encoding, outputs = outputs_of(model, text)
        firsts = [
            place
            for place, token in enumerate(encoding.tokens)
            if encoding.offsets[place] and not token.startswith("##")
        ]
        scores = softmax(outputs["tag"][firsts])
        assert [word.tag for word in answer.words] == [TAGS[i] for i in scores.argmax(axis=-1)]
        assert [word.score for word in answer.words] == pytest.approx(scores.max(axis=-1), abs=1e-5)


def test_answers_and_none(with_heads):
    model, bundle = with_heads
    settings = {
        "start": "span_start_logits",
        "end": "span_end_logits",
        "question_length": 9,
        "answer_length": 3,
        "no_answer": True,
    }
    ask = load(bundle, "Answer", settings)
    seen = set()
    for (question, context), answer in zip(PAIRS, ask(PAIRS), strict=True):
        encoding, outputs = outputs_of(model, question, context)
        span = outputs["span"]
        second = np.cumsum([offset is None for offset in encoding.offsets]) == 2
        in_context = [second & [offset is not None for offset in encoding.offsets]]
        [start], [end], [score] = map(
            numbers,
            best_answers(
                span["start_logits"][None], span["end_logits"][None], np.array(in_context), 3
            ),
        )
        assert answer.margin == pytest.approx(score, abs=1e-5)
        seen.add(bool(answer.text))
        if score > 0:
            place = encoding.offsets[start][0], encoding.offsets[end][1]
            assert (answer.start, answer.end) == place
            assert answer.text == context[slice(*place)]
        else:
            assert (answer.text, answer.start) == ("", None)
    assert seen == {True, False}


def test_masks(with_heads):
    model, bundle = with_heads
    fill = load(bundle, "FillMask", {"output": "token"})
    texts = ["The [MASK] sat on the [MASK].", "[MASK] ran"]
    for text, answer in zip(texts, fill(texts, top_k=3), strict=True):
        encoding, outputs = outputs_of(model, text)
        masks = [place for place, token in enumerate(encoding.tokens) if token == "[MASK]"]
        for place, fillers in zip(masks, answer.masks, strict=True):
            scores = softmax(outputs["token"][place])
            best = np.argsort(-scores)[:3]
            assert [each.token for each in fillers] == [TOKENS[index] for index in best]
            assert [each.score for each in fillers] == pytest.approx(scores[best], abs=1e-5)


def test_choices(exported):
    model = models.WithHeads(bert(), {"choice": models.MultipleChoiceHead()})
    inputs = [("the cat", ["sat on the mat.", "he"]), ("who ran?", ["the dogs", "he", "new york"])]
    batches = [
        {name: value[None] for name, value in padded(text, choices).items()}
        for text, choices in inputs
    ]
    model(batches[0])
    randomize(model)
    choose = load(exported(model), "Choose", {})
    for (_, choices), batch, answer in zip(inputs, batches, choose(inputs), strict=True):
        expected = softmax(numbers(model(batch))["choice"][0])
        assert answer.scores == pytest.approx(tuple(expected), abs=1e-5)
        assert answer.text == choices[expected.argmax()]


def padded(text, choices):
    encodings = [TOKENIZER.analyze(text, choice) for choice in choices]
    lengths = [len(each) for each in encodings]
    rows = {"token_ids": np.zeros((len(choices), max(lengths)), int)}
    rows["segment_ids"] = np.zeros_like(rows["token_ids"])
    for row, encoding in enumerate(encodings):
        rows["token_ids"][row, : lengths[row]] = encoding.token_ids
        rows["segment_ids"][row, : lengths[row]] = encoding.segment_ids
    return rows | {"lengths": np.array(lengths)}


def test_vectors(exported):
    model = models.SentenceEncoder(bert(), normalize=False)
    model(arrays([TOKENIZER.analyze("the cat")]))
    randomize(model)
    embed = load(exported(model), "Embed", {})
    for text, answer in zip(TEXTS, embed(TEXTS), strict=True):
        [vector] = numbers(model(arrays([TOKENIZER.analyze(text)])))
        np.testing.assert_allclose(answer.vector, vector / np.linalg.norm(vector), atol=1e-6)
