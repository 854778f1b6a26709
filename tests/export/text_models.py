"""Models of every pipeline whose signatures take strings, saved once for all tests."""

import functools
import tempfile
from pathlib import Path

import tensorflow as tf

from seqkeras.export import saved_model
from seqkeras.export.families import plan_export
from seqkeras.export.pipelines.record import TextModel
from seqkeras.export.pipelines.strings import text_signatures
from seqkeras.export.signatures import to_trace
from seqkeras.models import (
    GPT,
    Bert,
    ClassificationHead,
    MaskedLMHead,
    MultipleChoiceHead,
    SentenceEncoder,
    SpanHead,
    TaggingHead,
    Transformer,
    WithHeads,
)
from seqkeras.serving.manifest import DecodingDefaults, Limits
from seqkeras.serving.text import pad
from tests.arrays import numbers, randomize
from tests.export.test_text_graphs import pairs, pieces, wordpieces

SIZES = {"hidden_dim": 12, "num_layers": 1, "num_heads": 2, "feed_forward_dim": 14}
LIMITS = Limits(source_length=19, target_length=23)
TAGS = ["O", "B-X", "I-X"]
TEXTS = ["the cat sat on the mat", "a line, and tabs!", "\u00e9t\u00e9 \u65e5\u672c"]
FOLDER = tempfile.TemporaryDirectory(prefix="text-signatures-")


def bert(heads, **options):
    encoder = Bert(len(wordpieces()), **SIZES, max_length=29, **options)
    return WithHeads(encoder, heads) if heads else SentenceEncoder(encoder, "mean", False)


WORDS = {"text": wordpieces()}
SPANS = {"start": "span_start_logits", "end": "span_end_logits"}
SPANS |= {"answer_length": 3, "question_length": 9}
# Pipeline -> its model, tokenizers by role, and settings.
PIPELINES = {
    "Classify": lambda: (bert({"label": ClassificationHead(3)}), WORDS, {"labels": [*"xyz"]}),
    "Tag": lambda: (bert({"tags": TaggingHead(3)}), WORDS, {"labels": TAGS}),
    "Embed": lambda: (bert({}), WORDS, {}),
    "Answer": lambda: (bert({"span": SpanHead()}), WORDS, SPANS),
    "Choose": lambda: (bert({"choice": MultipleChoiceHead()}), WORDS, {"output": "choice"}),
    "FillMask": lambda: (
        bert({"class": ClassificationHead(2), "token": MaskedLMHead(len(wordpieces()))}),
        WORDS,
        {"output": "token"},
    ),
    "Generate": lambda: (GPT(len(pairs()), **SIZES, max_length=23), {"text": pairs()}, {}),
    "Translate": lambda: (
        Transformer(len(pieces("unigram")), len(pieces("bpe")), **SIZES, max_length=29),
        {"source": pieces("unigram"), "target": pieces("bpe")},
        {},
    ),
}
# Pipeline -> an input that is right.
RIGHT = {
    **dict.fromkeys(PIPELINES, {"text": "the cat"}),
    "Answer": {"question": "the cat", "context": "a"},
    "Choose": {"text": "the cat", "choices": ["a", "on"]},
    "FillMask": {"text": "the [MASK]"},
}
DECODING = {
    "Generate": DecodingDefaults(start_id=0, end_id=0),
    "Translate": DecodingDefaults(start_id=1, end_id=2),
}


@functools.cache
def saved(pipeline):
    """A model, its signatures on ids, its tokenizers, and the folder of that on strings."""
    model, tokenizers, settings = PIPELINES[pipeline]()
    decoding = DECODING.get(pipeline, DecodingDefaults())
    model.build(None if pipeline != "Choose" else {"token_ids": (None, None, None)})
    randomize(model)
    by_ids = plan_export(model, max_length=LIMITS.target_length, decoding=decoding).saved_model
    by_text = text_signatures(pipeline, TextModel(by_ids, tokenizers, LIMITS, decoding, settings))
    folder = Path(FOLDER.name) / pipeline
    saved_model.write(model, by_text, folder)
    return model, by_ids, tokenizers, folder


def in_graph(signature):
    """A signature's function of tensors by keyword, traced as for a SavedModel."""
    traced = to_trace(signature.function, signature.inputs)
    return lambda **tensors: numbers(traced(*(tensors[each.name] for each in signature.inputs)))


def in_graphs(signatures):
    return {name: in_graph(each) for name, each in signatures.items()}


@functools.cache
def loaded(pipeline):
    return tf.saved_model.load(str(saved(pipeline)[-1])).signatures


def ask(pipeline, signature="serving_default", **texts):
    named = {name: tf.constant(each) for name, each in texts.items()}
    return numbers(dict(loaded(pipeline)[signature](**named)))


def read(tokenizer, *texts):
    """A batch of texts, or pairs of them, as the model takes it; and their encodings."""
    encodings = [tokenizer.analyze(*each) for each in zip(*texts, strict=True)]
    token_ids, lengths = pad([each.token_ids for each in encodings], 0)
    segment_ids, _ = pad([each.segment_ids for each in encodings], 0)
    inputs = {"token_ids": token_ids, "lengths": lengths, "segment_ids": segment_ids}
    return inputs, encodings
