"""Signatures on strings: tokens as in `serving.text`, answers as Keras gives to them."""

import functools
import itertools
import json
import re
import tempfile
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from export import saved_model
from export.families import parts_of
from export.signatures import Signature
from export.text_graphs.pipelines.fill_mask import Masks
from export.text_graphs.signatures import text_signatures
from seqkeras.models import (
    GPT,
    Bert,
    ClassificationHead,
    MaskedLMHead,
    MultipleChoiceHead,
    RNNLanguageModel,
    SentenceEncoder,
    SpanHead,
    TaggingHead,
    Transformer,
    WithHeads,
)
from serving.manifest import DecodingDefaults, Limits, TensorSpec, TextPrefix
from serving.pipelines.pieces import Detokenizer
from serving.text import CharacterTable, WordTable, pad
from tests.arrays import close, numbers, randomize
from tests.conftest import run_python
from tests.export.operators import require_core
from tests.export.test_text_graphs import pairs, pieces, wordpieces
from tests.serving.pipelines.test_fill_mask import CONTINUED

SIZES = {"hidden_dim": 12, "num_layers": 1, "num_heads": 2, "feed_forward_dim": 14}
LIMITS = Limits(source_length=19, target_length=23)
TAGS = ["O", "B-X", "I-X"]
TEXTS = ["the cat sat on the mat", "a line, and tabs!", "\u00e9t\u00e9 \u65e5\u672c"]
FOLDER = tempfile.TemporaryDirectory(prefix="text-signatures-")


def bert(heads, **options):
    encoder = Bert(len(wordpieces()), **SIZES, max_length=29, **options)
    return WithHeads(encoder, heads) if heads else SentenceEncoder(encoder, "mean", False)


# Pipeline -> its model, tokenizers by role, and settings.
PIPELINES = {
    "Classify": lambda: (
        bert({"label": ClassificationHead(3)}),
        {"text": wordpieces()},
        {"labels": ["x", "y", "z"]},
    ),
    "Tag": lambda: (bert({"tags": TaggingHead(3)}), {"text": wordpieces()}, {"labels": TAGS}),
    "Embed": lambda: (bert({}), {"text": wordpieces()}, {}),
    "Answer": lambda: (
        bert({"span": SpanHead()}),
        {"text": wordpieces()},
        {
            "start": "span_start_logits",
            "end": "span_end_logits",
            "answer_length": 3,
            "question_length": 9,
        },
    ),
    "Choose": lambda: (
        bert({"choice": MultipleChoiceHead()}),
        {"text": wordpieces()},
        {"output": "choice"},
    ),
    "FillMask": lambda: (
        bert({"class": ClassificationHead(2), "token": MaskedLMHead(len(wordpieces()))}),
        {"text": wordpieces()},
        {"output": "token"},
    ),
    "Generate": lambda: (
        GPT(len(pairs()), **SIZES, max_length=23),
        {"text": pairs()},
        {},
    ),
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
    if pipeline == "Generate":
        model.build(None)
    elif pipeline == "Translate":
        ids = np.ones((1, 2), int)
        model({"token_ids": ids, "lengths": np.array([2]), "target_ids": ids})
    else:
        ids = np.ones((1, 2, 2) if pipeline == "Choose" else (1, 2), int)
        model({"token_ids": ids, "lengths": ids[..., 0] + 1, "segment_ids": 0 * ids})
    randomize(model)
    by_ids = parts_of(
        model, max_length=LIMITS.target_length, decoding=decoding, pipeline=pipeline
    ).saved_model
    by_text = text_signatures(pipeline, by_ids, tokenizers, LIMITS, decoding, settings)
    folder = Path(FOLDER.name) / pipeline
    saved_model.write(model, by_text, folder)
    return model, by_ids, tokenizers, folder


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


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_it_holds_core_operators_only(pipeline):
    require_core(saved(pipeline)[-1])


def test_classes_are_those_of_keras():
    model, _, tokenizers, _ = saved("Classify")
    inputs, _ = read(tokenizers["text"], TEXTS)
    expected = numbers(keras.ops.softmax(model(inputs)["label"]))
    actual = ask("Classify", text=TEXTS)
    close(actual["scores"], expected, rtol=1e-4, atol=1e-5)
    best = [["x", "y", "z"][place] for place in expected.argmax(-1)]
    assert [each.decode() for each in actual["label"]] == best
    inputs, _ = read(tokenizers["text"], TEXTS, TEXTS[::-1])
    expected = keras.ops.softmax(model(inputs)["label"])
    actual = ask("Classify", "pair", text=TEXTS, pair=TEXTS[::-1])
    close(actual["scores"], expected, rtol=1e-4, atol=1e-5)


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


def test_vectors_have_length_1():
    model, _, tokenizers, _ = saved("Embed")
    inputs, _ = read(tokenizers["text"], TEXTS)
    vectors = numbers(model(inputs))
    expected = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    close(ask("Embed", text=TEXTS)["embedding"], expected, rtol=1e-4, atol=1e-5)


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


@pytest.mark.parametrize(("first", "last"), [(10, 11), (11, 12), (13, 13), (11, 17), (16, 14)])
def test_an_answer_has_no_white_space_around_it_and_is_more_than_that(first, last):
    tokenizer = pairs("roberta")
    question = "the cat sat"  # longer than a context
    contexts = [" \n\u3000a c  ", "  at\u0301 the  ", "a \u2003 \x1c b"]
    by_text = text_signatures(
        "Answer",
        {"serving_default": spans_around(first, last)},
        {"text": tokenizer},
        Limits(source_length=29),
        DecodingDefaults(),
        {"start": "start", "end": "end"},
    )["serving_default"]
    found = numbers(by_text.function(tf.constant([question] * 3), tf.constant(contexts)))
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


@pytest.mark.parametrize("threshold", [-1e9, 1e9])
def test_where_no_answer_is_better_there_is_none(threshold):
    model, by_ids, tokenizers, _ = saved("Answer")
    settings = {"start": "span_start_logits", "end": "span_end_logits", "no_answer": True}
    settings["no_answer_threshold"] = threshold
    made = text_signatures("Answer", by_ids, tokenizers, LIMITS, DecodingDefaults(), settings)[
        "serving_default"
    ]
    found = made.function(question=tf.constant(["the"]), context=tf.constant(["a mat"]))
    assert (
        (found["start"].numpy()[0] == -1) == (found["answer"].numpy()[0] == b"") == (threshold > 0)
    )


def test_the_choice_is_the_best_of_its_row():
    model, _, tokenizers, _ = saved("Choose")
    choices = [["the mat", "a line", "tabs!"], ["sat", "cats", "the cat sat"], ["!", "a", "on"]]
    pairs_of = [(text, each) for text, row in zip(TEXTS, choices, strict=True) for each in row]
    inputs, _ = read(tokenizers["text"], *zip(*pairs_of, strict=True))
    inputs = {name: value.reshape(3, 3, *value.shape[1:]) for name, value in inputs.items()}
    expected = numbers(keras.ops.softmax(model(inputs)["choice"]))
    actual = ask("Choose", text=TEXTS, choices=choices)
    close(actual["scores"], expected, rtol=1e-4, atol=1e-5)
    assert actual["index"].tolist() == expected.argmax(-1).tolist()
    best = [row[place] for row, place in zip(choices, expected.argmax(-1), strict=True)]
    assert [each.decode() for each in actual["choice"]] == best


def test_masks_are_filled_with_the_best_tokens():
    model, _, tokenizers, _ = saved("FillMask")
    tokenizer = tokenizers["text"]
    texts = ["the [MASK] sat on the [MASK]", "[MASK], and tabs!", "a line [MASK]"]
    inputs, encodings = read(tokenizer, texts)
    logits = numbers(model(inputs | {"masked_positions": np.tile(np.arange(8), (3, 1))})["token"])
    scores = numbers(keras.ops.softmax(logits))
    actual = ask("FillMask", text=texts)
    assert actual["tokens"].shape == actual["scores"].shape == (3, 2, 5)
    for row, encoding in enumerate(encodings):
        places = [p for p, each in enumerate(encoding.tokens) if each == "[MASK]"]
        filled = texts[row]
        for number, place in enumerate(places):
            best = np.argsort(-scores[row, place])[:5]
            tokens = [tokenizer.token_of(int(each)) for each in best]
            assert [each.decode() for each in actual["tokens"][row, number]] == tokens
            close(actual["scores"][row, number], scores[row, place, best], rtol=1e-4, atol=1e-6)
            mask = r"(?:(?<=\S)\s*)?\[MASK\]" if tokens[0].startswith("##") else r"\[MASK\]"
            filled = re.sub(mask, tokens[0].removeprefix("##"), filled, count=1)
        assert actual["text"][row].decode() == filled
        assert not actual["scores"][row, len(places) :].any()
        assert set(actual["tokens"][row, len(places) :].ravel()) <= {b""}


@pytest.mark.parametrize(
    ("texts", "fillers", "expected"),
    [
        (
            ["the [MASK] [MASK].", "[MASK]", "a \u3000[MASK]"],
            ["cat", "##s", "##s", "##ing"],
            ["the cats.", "s", "aing"],
        ),
        (["[MASK][MASK] "], ["the", "cat"], ["thecat "]),
    ],
)
def test_word_pieces_that_go_on_a_word_join_it(texts, fillers, expected):
    tokenizer = wordpieces()
    filled = Masks(tokenizer, "[MASK]").filled(texts, [tokenizer.id_of(each) for each in fillers])
    assert [each.decode() for each in filled.numpy()] == expected


@pytest.mark.parametrize(("text", "expected"), CONTINUED)
def test_word_pieces_stand_where_serving_puts_them(text, expected):
    tokenizer = wordpieces()
    fillers = [tokenizer.id_of("##s")] * text.count("[MASK]")
    [filled] = Masks(tokenizer, "[MASK]").filled([text], fillers)
    assert filled.numpy().decode() == expected


def test_byte_pairs_begin_with_a_space_or_join():
    tokenizer = pairs("roberta")
    texts = ["at <mask> at", "at <mask>", "at<mask>", "<mask><mask>", " <mask>\n <mask>", " <mask>"]
    fillers = ["\u0120the", "the", *["\u0120the"] * 3, "the", "the", "\u0120the"]
    filled = Masks(tokenizer, "<mask>").filled(texts, [tokenizer.id_of(each) for each in fillers])
    expected = ["at the at", "atthe", "at the", "the the", " the\n the", " the"]
    assert [each.decode() for each in filled.numpy()] == expected


def test_characters_are_generated_one_by_one():
    table = CharacterTable.learn(TEXTS)
    model = RNNLanguageModel(len(table), 5, 7)
    model.build(None)
    randomize(model)
    defaults = DecodingDefaults()
    by_ids = parts_of(model, max_length=40, decoding=defaults, pipeline="Generate").saved_model
    limits = Limits(source_length=30, target_length=40)
    by_text = text_signatures("Generate", by_ids, {"text": table}, limits, defaults)
    token_ids, lengths = pad([table.encode(text) for text in TEXTS])
    expected = numbers(by_ids["generate"].function(tf.constant(token_ids), tf.constant(lengths)))
    actual = by_text["serving_default"].function(tf.constant(TEXTS))
    close(actual["score"], expected["scores"], rtol=1e-4, atol=1e-4)
    for row, length in enumerate(lengths):
        ids = expected["generated_ids"][row, length : expected["generated_lengths"][row]]
        assert actual["text"][row].numpy().decode() == table.decode(ids)


def test_what_follows_a_prompt_is_what_is_generated_from_its_ids():
    _, by_ids, tokenizers, _ = saved("Generate")
    tokenizer, texts = tokenizers["text"], TEXTS[:2]
    token_ids, lengths = pad([tokenizer.encode(text) for text in texts])
    expected = numbers(by_ids["generate"].function(tf.constant(token_ids), tf.constant(lengths)))
    actual = ask("Generate", text=texts)
    close(actual["score"], expected["scores"], rtol=1e-4, atol=1e-4)
    for row, length in enumerate(lengths):
        ids = expected["generated_ids"][row, length : expected["generated_lengths"][row]]
        assert len(ids)
        assert actual["text"][row].decode() == tokenizer.decode(ids[ids != 0])


@pytest.mark.parametrize(
    ("tokenizer", "end_id"),
    [(pieces("unigram"), 2), (wordpieces(), 3)],
    ids=["pieces", "words"],
)
def test_what_follows_a_prompt_may_begin_with_a_space(tokenizer, end_id):
    texts, whole = ["the cat", "the cat sat"], "the cat sat, on"
    prompts = [without(end_id, tokenizer.analyze(text).token_ids) for text in texts]
    ids = tokenizer.analyze(whole).token_ids

    def generate(token_ids, lengths):
        assert lengths.numpy().tolist() == [len(each) for each in prompts]
        return {
            "generated_ids": tf.constant([ids] * len(texts)),
            "generated_lengths": tf.fill([len(texts)], len(ids)),
            "scores": tf.zeros(len(texts)),
        }

    made = text_signatures(
        "Generate",
        {"generate": Signature(generate, [], [])},
        {"text": tokenizer},
        LIMITS,
        DecodingDefaults(end_id=end_id),
    )["serving_default"]
    found = [each.decode() for each in made.function(tf.constant(texts))["text"].numpy()]
    assert found == [whole.removeprefix(text) for text in texts]
    assert found == [
        Detokenizer(tokenizer, each).text(without(end_id, ids[len(each) :])) for each in prompts
    ]


def without(end_id, token_ids):
    return [each for each in token_ids if each != end_id]


def test_a_translation_is_what_is_generated_from_the_ids():
    _, by_ids, tokenizers, _ = saved("Translate")
    token_ids, lengths = pad([tokenizers["source"].encode(text) for text in TEXTS])
    expected = numbers(by_ids["generate"].function(tf.constant(token_ids), tf.constant(lengths)))
    actual = ask("Translate", text=TEXTS)
    close(actual["score"], expected["scores"], rtol=1e-4, atol=1e-4)
    for row in range(len(TEXTS)):
        ids = expected["generated_ids"][row, : expected["generated_lengths"][row]]
        assert actual["text"][row].decode() == tokenizers["target"].decode(ids[ids != 2])


@pytest.mark.parametrize(
    ("pipeline", "texts", "message"),
    [
        ("Classify", {"text": ""}, "text: must not be empty or blank"),
        ("Tag", {"text": " \u2003\n"}, "text: must not be empty or blank"),
        ("Embed", {"text": b"a\xff"}, "text: must be UTF-8"),
        ("Generate", {"text": "the " * 30}, "text: at most 19 tokens; nothing was truncated"),
        ("Translate", {"text": "cat " * 30}, "text: at most 19 tokens; nothing was truncated"),
        ("Answer", {"question": " ", "context": "a"}, "question: must not be empty or blank"),
        ("Answer", {"question": "a", "context": ""}, "context: must not be empty or blank"),
        ("Answer", {"question": "a", "context": "a " * 30}, "question and context: at most 19 tok"),
        ("Answer", {"question": "a " * 10, "context": "a"}, "question: at most 9 tokens; nothing"),
        ("FillMask", {"text": "the cat"}, r"text: must hold a mask; write \[MASK\] for what"),
        ("FillMask", {"text": "a " * 30 + "[MASK]"}, "text: at most 19 tokens; nothing was trunc"),
        ("Choose", {"text": "a", "choices": ["a", ""]}, "choices: must not be empty or blank"),
        ("Choose", {"text": "", "choices": ["a", "a"]}, "text: must not be empty or blank"),
        ("Choose", {"text": "a", "choices": ["a", "a " * 30]}, "text and choices: at m"),
    ],
)
def test_what_serving_refuses_is_refused_in_the_graph(pipeline, texts, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        ask(pipeline, **{name: [RIGHT[pipeline][name], each] for name, each in texts.items()})


def test_a_single_choice_is_refused():
    message = "choices: must be two at least"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        ask("Choose", text=["the"], choices=[["a"]])


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_batch_without_a_text_is_refused(pipeline):
    right = {name: np.array([each]) for name, each in RIGHT[pipeline].items()}
    message = f"({'|'.join(right)}): must be one at least"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        ask(pipeline, **{name: each[:0] for name, each in right.items()})


def of_text(score):
    """A signature on ids that says by its score who was asked."""

    def generate(token_ids, lengths):
        rows = tf.shape(token_ids)[0]
        ids = tf.concat([tf.cast(token_ids, tf.int32), tf.fill([rows, 1], 2)], axis=1)
        found = {"generated_lengths": tf.cast(lengths, tf.int32) + 1}
        return found | {"generated_ids": ids, "scores": tf.fill([rows], score)}

    specs = [TensorSpec(name, "int64", ()) for name in ("token_ids", "lengths")]
    return Signature(generate, specs, [])


@pytest.mark.parametrize("pipeline", ["Generate", "Translate", "Translate of characters"])
def test_texts_are_generated_by_the_beams_that_are_the_default(pipeline):
    both = {"generate": of_text(-1.0), "generate_beam": of_text(-2.0)}
    pipeline, _, of_characters = pipeline.partition(" of ")
    tokenizers = PIPELINES[pipeline]()[1]
    if of_characters:
        tokenizers = dict.fromkeys(tokenizers, CharacterTable.learn(TEXTS))
    for signatures, score in ((both, -2), ({"generate": both["generate"]}, -1)):
        made = text_signatures(pipeline, signatures, tokenizers, LIMITS, DECODING[pipeline])
        found = made["serving_default"].function(text=tf.constant(["the cat"]))
        assert found["score"].numpy() == score


def test_a_text_without_its_prefix_is_refused():
    _, by_ids, tokenizers, _ = saved("Translate")
    prefix = TextPrefix("language", ":", ("de", "fr"))
    made = text_signatures(
        "Translate", by_ids, tokenizers, LIMITS, DECODING["Translate"], None, prefix
    )["serving_default"]
    assert made.function(text=tf.constant(["de:the cat"]))["text"].shape == (1,)
    with pytest.raises(tf.errors.InvalidArgumentError, match="text: must be a language, then : "):
        made.function(text=tf.constant(["it:the cat"]))


def test_pipelines_without_strings_have_no_signatures():
    assert text_signatures("Forecast", {}, {}, LIMITS, None) == {}
    with pytest.raises(ValueError, match="text graph: Answer of words or trees is not known"):
        text_signatures("Answer", {}, {"words": WordTable.learn("ab")}, LIMITS, None)


LOAD_AND_ANSWER = """
import json, sys
sys.modules["keras"] = None
import tensorflow as tf
answers = {}
for folder, inputs in json.loads(sys.argv[1]):
    results = tf.saved_model.load(folder).signatures["serving_default"](
        **{name: tf.constant(value) for name, value in inputs.items()}
    )
    answers[folder] = {name: len(value.numpy()) for name, value in results.items()}
print(json.dumps(answers))
"""


def test_all_load_and_answer_where_neither_we_nor_keras_are():
    wanted = []
    for pipeline in PIPELINES:
        inputs = {name: [each, each] for name, each in RIGHT[pipeline].items()}
        wanted.append([str(saved(pipeline)[-1]), inputs])
    finished = run_python("-I", "-c", LOAD_AND_ANSWER, json.dumps(wanted))
    assert finished.returncode == 0, finished.stderr
    answers = json.loads(finished.stdout)
    assert len(answers) == len(PIPELINES)
    assert {size for each in answers.values() for size in each.values()} == {2}
