"""Signatures on strings: tokens as in `seqkeras.serving.text`, answers as Keras gives to them."""

import itertools
import re

import keras
import numpy as np
import pytest
import tensorflow as tf

from seqkeras.export.pipelines.record import TextModel
from seqkeras.export.pipelines.strings import text_signatures
from seqkeras.export.saved_model import foreign_operators
from seqkeras.export.signatures import Signature
from seqkeras.serving.manifest import DecodingDefaults, Limits, TensorSpec
from seqkeras.serving.text import WordTable
from tests.arrays import close, numbers
from tests.conftest import others_long
from tests.export.operators import require_answers_without_us
from tests.export.test_text_graphs import pairs
from tests.export.text_models import (
    LIMITS,
    PIPELINES,
    RIGHT,
    TAGS,
    TEXTS,
    ask,
    in_graphs,
    read,
    saved,
)

# Random inputs have classes, spans and choices: tests/random_inputs.
SHORT = ("Classify", "Tag", "Answer")


@pytest.mark.parametrize("pipeline", others_long(PIPELINES))
def test_beside_the_core_it_holds_the_operators_of_its_tokenizer(pipeline):
    operators = {"FastWordpieceTokenizeWithOffsets"}
    if pipeline == "Translate":
        operators = {"SentencepieceOp", "SentencepieceTokenizeWithOffsetsOp"}
    if pipeline == "Generate":  # byte-level pairs
        operators = set()
    assert foreign_operators(saved(pipeline)[-1]) == operators


@pytest.mark.long
def test_tags_lie_where_their_tokens_do():
    model, _, tokenizers, _ = saved("Tag")
    inputs, encodings = read(tokenizers["text"], TEXTS)
    scores = numbers(keras.ops.softmax(model(inputs)["tags"]))
    actual = ask("Tag", text=TEXTS)
    for row, encoding in enumerate(encodings):
        for place in range(scores.shape[1]):
            offset = encoding.offsets[place] if place < len(encoding) else None
            tag = TAGS[scores[row, place].argmax()] if offset else ""
            assert actual["tags"][row, place].decode() == tag
            start, end = actual["starts"][row, place], actual["ends"][row, place]
            assert (start, end) == (offset or (-1, -1))
            best = scores[row, place].max() if offset else 0
            np.testing.assert_allclose(actual["scores"][row, place], best, rtol=1e-4, atol=1e-5)


@pytest.mark.long
def test_vectors_have_length_1():
    model, _, tokenizers, _ = saved("Embed")
    inputs, _ = read(tokenizers["text"], TEXTS)
    vectors = numbers(model(inputs))
    expected = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    close(ask("Embed", text=TEXTS)["embedding"], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.long
def test_an_answer_is_the_best_span_of_the_context():
    model, _, tokenizers, _ = saved("Answer")
    questions = ["the cat", "a line", "tabs"]
    inputs, encodings = read(tokenizers["text"], questions, TEXTS)
    span = numbers(model(inputs)["span"])
    starts, ends = span["start_logits"], span["end_logits"]
    actual = ask("Answer", question=questions, context=TEXTS)
    for row, encoding in enumerate(encodings):
        own = [p for p, each in enumerate(encoding.segment_ids) if each and encoding.offsets[p]]
        spans = {(i, j): starts[row, i] + ends[row, j] for i in own for j in own if 0 <= j - i < 3}
        i, j = max(spans, key=spans.get)
        start, end = encoding.offsets[i][0], encoding.offsets[j][1]
        assert (actual["start"][row], actual["end"][row]) == (start, end)
        assert actual["answer"][row].decode() == TEXTS[row][start:end]
        np.testing.assert_allclose(actual["score"][row], spans[i, j], rtol=1e-4, atol=1e-4)
        null = starts[row, 0] + ends[row, 0]
        np.testing.assert_allclose(actual["null_score"][row], null, rtol=1e-4, atol=1e-4)


def spans_around(first, last):
    """A signature on ids whose best span is that from one place to another."""

    def near(token_ids, place):
        distances = -abs(tf.range(tf.shape(token_ids)[1]) - place)
        return tf.broadcast_to(tf.cast(distances, tf.float32), tf.shape(token_ids))

    def span(token_ids):
        return {"start": near(token_ids, first), "end": near(token_ids, last)}

    return Signature(span, [TensorSpec("token_ids", "int64", ("batch", "length"))], [])


@pytest.mark.long
@pytest.mark.parametrize(("first", "last"), [(10, 11), (11, 12), (13, 13), (11, 17), (16, 14)])
def test_an_answer_has_no_white_space_around_it_and_is_more_than_that(first, last):
    tokenizer = pairs("roberta")
    question = "the cat sat"  # longer than a context
    contexts = [" \n\u3000a c  ", "  at\u0301 the  ", "a \u2003 \x1c b"]
    by_ids = {"serving_default": spans_around(first, last)}
    settings = {"start": "start", "end": "end"}
    given = {"text": tokenizer}, Limits(source_length=29), DecodingDefaults(), settings
    answer = in_graphs(text_signatures("Answer", TextModel(by_ids, *given)))["serving_default"]
    texts = {"question": tf.constant([question] * 3), "context": tf.constant(contexts)}
    found = answer(**texts)
    _, encodings = read(tokenizer, [question] * 3, contexts)
    size = len(tokenizer.encode(question))
    for row, (context, encoding) in enumerate(zip(contexts, encodings, strict=True)):
        own = [place for place, each in enumerate(encoding.offsets) if each][size:]
        scores = {
            -abs(i - first) - abs(j - last)
            for i, j in itertools.combinations_with_replacement(own, 2)
            if context[encoding.offsets[i][0] : encoding.offsets[j][1]].strip()
        }
        assert found["score"][row] == max(scores)
        text = context[found["start"][row] : found["end"][row]]
        assert found["answer"][row].decode() == text == text.strip() != ""


@pytest.mark.long
@pytest.mark.parametrize("threshold", [1e9, -1e9])
def test_where_no_answer_is_better_there_is_none(threshold):
    _, by_ids, tokenizers, _ = saved("Answer")
    settings = {"start": "span_start_logits", "end": "span_end_logits", "no_answer": True}
    given = LIMITS, DecodingDefaults(), settings | {"no_answer_threshold": threshold}
    source = TextModel(by_ids, tokenizers, *given)
    made = in_graphs(text_signatures("Answer", source))["serving_default"]
    found = made(question=tf.constant(["the"]), context=tf.constant(["a mat"]))
    assert (found["start"][0] == -1) == (found["answer"][0] == b"") == (threshold > 0)


REFUSED = [
    ("Classify", {"text": ""}, "text: must not be empty or blank"),
    ("Classify", {"text": b"a\xff"}, "text: must be UTF-8"),
    ("Tag", {"text": " \u2003\n"}, "text: must not be empty or blank"),
    ("Tag", {"text": "the " * 30}, "text: at most 19 tokens; nothing was truncated"),
    ("Answer", {"question": " ", "context": "a"}, "question: must not be empty or blank"),
    ("Answer", {"question": "a", "context": ""}, "context: must not be empty or blank"),
    ("Answer", {"question": "a", "context": "a " * 30}, "question and context: at most 19 tok"),
    ("Answer", {"question": "a " * 10, "context": "a"}, "question: at most 9 tokens; nothing"),
    ("Embed", {"text": b"a\xff"}, "text: must be UTF-8"),
    ("Generate", {"text": "the " * 30}, "text: at most 19 tokens; nothing was truncated"),
    ("Translate", {"text": "cat " * 30}, "text: at most 19 tokens; nothing was truncated"),
    ("FillMask", {"text": "the cat"}, r"text: must hold a mask; write \[MASK\] for what"),
    ("FillMask", {"text": "a " * 30 + "[MASK]"}, "text: at most 19 tokens; nothing was trunc"),
    ("Choose", {"text": "a", "choices": ["a", ""]}, "choices: must not be empty or blank"),
    ("Choose", {"text": "", "choices": ["a", "a"]}, "text: must not be empty or blank"),
    ("Choose", {"text": "a", "choices": ["a", "a " * 30]}, "text and choices: at m"),
]


@pytest.mark.parametrize(("pipeline", "texts", "message"), others_long(REFUSED, short=8))
def test_what_serving_refuses_is_refused_in_the_graph(pipeline, texts, message):
    texts = {name: [RIGHT[pipeline][name], each] for name, each in texts.items()}
    found = ask(pipeline, **texts)
    alone = ask(pipeline, **{name: [text] for name, (text, _) in texts.items()})
    well, refused = found.pop("error")
    assert well == b"" and re.match(message, refused.decode())
    assert alone.pop("error") == [b""]
    for name, (right, nothing) in found.items():
        expected = np.asarray(alone[name][0])
        right = np.asarray(right)[tuple(map(slice, expected.shape))]
        if right.dtype.kind == "f":
            close(right, expected, rtol=1e-4, atol=1e-5)
        else:
            assert np.array_equal(right, expected)
        assert set(np.ravel(nothing)) <= {{"f": 0, "i": -1}.get(right.dtype.kind, b"")}


@pytest.mark.long
def test_a_single_choice_is_refused():
    message = "choices: must be two at least"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        ask("Choose", text=["the"], choices=[["a"]])


@pytest.mark.parametrize(
    "pipeline", others_long(sorted(PIPELINES, key=lambda name: name not in SHORT), len(SHORT))
)
def test_a_batch_without_a_text_is_refused(pipeline):
    right = {name: np.array([each]) for name, each in RIGHT[pipeline].items()}
    message = f"({'|'.join(right)}): must be one at least"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        ask(pipeline, **{name: each[:0] for name, each in right.items()})


def test_pipelines_without_strings_have_no_signatures():
    assert text_signatures("Forecast", TextModel({}, {}, LIMITS, None)) == {}
    with pytest.raises(ValueError, match="text graph: Answer of words or trees is not known"):
        text_signatures("Answer", TextModel({}, {"words": WordTable.learn("ab")}, LIMITS, None))


@pytest.mark.long
def test_all_load_and_answer_where_neither_we_nor_keras_are():
    wanted, expected = [], {}
    for pipeline in PIPELINES:
        inputs = {name: [each, each] for name, each in RIGHT[pipeline].items()}
        folder = str(saved(pipeline)[-1])
        wanted.append([folder, "serving_default", inputs])
        expected[folder] = ask(pipeline, **inputs)
    require_answers_without_us(wanted, expected)
