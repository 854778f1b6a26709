"""The attention of each head of each layer beside an answer, by each pipeline, against Keras's."""

import itertools

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.analysis import maps_of_heads
from seqkeras.models import (
    Bert,
    ClassificationHead,
    MaskedLMHead,
    MultipleChoiceHead,
    SentenceEncoder,
    SpanHead,
    TaggingHead,
    WithHeads,
)
from seqkeras.serving.manifest import Limits
from seqkeras.serving.printing import as_line
from seqkeras.tokenizers.learn import learn_word_piece
from tests.arrays import numbers, randomize
from tests.conftest import others_long
from tests.serving.exported import write_bundle

TEXTS = ["a small model of words", "the smallest words", "words of a model, and smaller ones"]
TOKENIZER = learn_word_piece(TEXTS, 43, masks=True)
V, LAYERS, HEADS, LIMIT = len(TOKENIZER), 2, 3, 37
LABELS = ["O", "B-X", "I-X"]
PAIRS = [("a small model", "the smallest words"), ("words", "smaller ones of the model")]
MASKED = ["a [MASK] model", "the smallest [MASK] and [MASK]"]


def with_heads(name, head):
    return lambda: WithHeads(Bert(V, 12, LAYERS, HEADS, 17, max_length=LIMIT), {name: head()})


def sentences():
    return SentenceEncoder(Bert(V, 12, LAYERS, HEADS, 17, max_length=LIMIT))


SPAN = {"start": "span_start_logits", "end": "span_end_logits", "question_length": 13}
# Pipeline -> its model, settings, inputs, and the texts that it reads of an input and its answer.
PIPELINES = {
    "Classify": (
        with_heads("label", lambda: ClassificationHead(3)),
        {"labels": LABELS},
        [*TEXTS, *PAIRS],
        lambda value, answer: value if isinstance(value, tuple) else (value,),
    ),
    "Tag": (
        with_heads("tags", lambda: TaggingHead(3)),
        {"labels": LABELS},
        TEXTS,
        lambda value, answer: (value,),
    ),
    "Embed": (sentences, {}, TEXTS, lambda value, answer: (value,)),
    "Answer": (with_heads("span", SpanHead), SPAN, PAIRS, lambda value, answer: value),
    "Choose": (
        with_heads("choice", MultipleChoiceHead),
        {},
        [(text, TEXTS) for text, _ in PAIRS],
        lambda value, answer: (value[0], answer.text),
    ),
    "FillMask": (
        with_heads("token", lambda: MaskedLMHead(V)),
        {},
        MASKED,
        lambda value, answer: (value,),
    ),
}


@pytest.fixture(scope="module", params=others_long(PIPELINES, 0))
def served(request, tmp_path_factory):
    """A model's encoder, its pipeline, inputs, and what it reads of them."""
    make, settings, inputs, texts_of = PIPELINES[request.param]
    model = make()
    ids = np.ones((1, 2, 2) if request.param == "Choose" else (1, 2), int)
    model({"token_ids": ids, "lengths": ids[..., 0] + 1})
    randomize(model)
    folder = write_bundle(
        tmp_path_factory.mktemp("bundles") / request.param,
        model,
        request.param,
        {"text": TOKENIZER},
        attention_heads=True,
        limits=Limits(LIMIT, LIMIT),
        settings=settings,
    )
    return model.encoder, serving.load(folder, threads=1), inputs, texts_of


def attention_of(encoder, encoding):
    """(L, N, T, T) of an `Encoding` alone, by Keras."""
    inputs = {
        "token_ids": np.array([encoding.token_ids]),
        "segment_ids": np.array([encoding.segment_ids]),
    }
    return numbers(encoder.attention_weights(inputs)["encoder"])[0]


def test_the_attention_of_a_bundle_is_that_of_the_keras_model(served):
    encoder, pipeline, inputs, texts_of = served
    answers = pipeline(inputs, attention="heads")
    means = pipeline(inputs, attention=True)
    for value, plain, answer, mean in zip(inputs, pipeline(inputs), answers, means, strict=True):
        assert as_line(answer) == as_line(plain)
        assert plain.attention is None
        encoding = TOKENIZER.analyze(*texts_of(value, answer))
        assert list(answer.source_tokens) == list(answer.target_tokens) == encoding.tokens
        expected = attention_of(encoder, encoding)
        assert expected.shape[:2] == (LAYERS, HEADS)
        np.testing.assert_allclose(answer.attention, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(mean.attention, expected[-1].mean(axis=0), rtol=1e-4, atol=1e-5)
        maps = maps_of_heads(answer.attention, answer.source_tokens, answer.target_tokens)
        assert len(maps) == LAYERS * HEADS


def test_words_that_are_split_are_whole(served):
    encoder, pipeline, inputs, texts_of = served
    for value, answer in zip(inputs, pipeline(inputs, attention="words"), strict=True):
        texts = texts_of(value, answer)
        encoding = TOKENIZER.analyze(*texts)
        words = [word for word in answer.source_tokens if word not in ("[CLS]", "[SEP]")]
        assert "".join(words) == "".join(" ".join(texts).split())
        assert len(words) == len(" ".join(texts).replace(",", " ,").split())
        whole = attention_of(encoder, encoding).astype("float64")
        numbers_of = [
            (segment, token if word is None else ("word", word))
            for token, (segment, word) in enumerate(
                zip(encoding.segment_ids, encoding.word_ids, strict=True)
            )
        ]
        runs = [
            [place for place, _ in run]
            for _, run in itertools.groupby(enumerate(numbers_of), key=lambda item: item[1])
        ]
        assert len(runs) < len(encoding) or len(answer.source_tokens) == len(encoding)
        for t, s in itertools.product(range(len(runs)), repeat=2):
            cells = whole[:, :, runs[t]][..., runs[s]]  # (L, N, tokens of t, tokens of s)
            np.testing.assert_allclose(
                answer.attention[:, :, t, s], cells.sum(-1).mean(-1), rtol=1e-4, atol=1e-5
            )
