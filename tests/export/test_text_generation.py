"""Texts that are generated in a graph: what is generated from their ids, as a text."""

import pytest
import tensorflow as tf

from seqkeras.export.pipelines.record import TextModel
from seqkeras.export.pipelines.strings import text_signatures
from seqkeras.export.signatures import Signature
from seqkeras.serving.manifest import DecodingDefaults, TensorSpec, TextPrefix
from seqkeras.serving.pipelines.pieces import Detokenizer
from seqkeras.serving.text import CharacterTable, pad
from tests.arrays import close
from tests.conftest import others_long
from tests.export.test_text_graphs import pieces, wordpieces
from tests.export.text_models import DECODING, LIMITS, PIPELINES, TEXTS, ask, in_graphs, saved


def test_what_follows_a_prompt_is_what_is_generated_from_its_ids():
    _, by_ids, tokenizers, _ = saved("Generate")
    tokenizer, texts = tokenizers["text"], TEXTS[:2]
    token_ids, lengths = map(tf.constant, pad([tokenizer.encode(text) for text in texts]))
    expected = in_graphs(by_ids)["generate"](token_ids=token_ids, lengths=lengths)
    actual = ask("Generate", text=texts)
    close(actual["score"], expected["scores"], rtol=1e-4, atol=1e-4)
    for row, length in enumerate(lengths):
        ids = expected["generated_ids"][row, length : expected["generated_lengths"][row]]
        assert len(ids)
        assert actual["text"][row].decode() == tokenizer.decode(ids[ids != 0])


@pytest.mark.long
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
        sizes = tf.constant([len(each) for each in prompts], tf.int64)
        tf.debugging.assert_equal(lengths, sizes)
        rows = tf.shape(lengths)
        found = {"generated_lengths": tf.fill(rows, len(ids)), "scores": tf.zeros(rows)}
        return found | {"generated_ids": tf.tile([ids], [rows[0], 1])}

    by_ids, decoding = {"generate": Signature(generate, [], [])}, DecodingDefaults(end_id=end_id)
    made = text_signatures("Generate", TextModel(by_ids, {"text": tokenizer}, LIMITS, decoding))
    answer = in_graphs(made)["serving_default"](text=tf.constant(texts))
    found = [each.decode() for each in answer["text"]]
    assert found == [whole.removeprefix(text) for text in texts]
    assert found == [
        Detokenizer(tokenizer, each).text(without(end_id, ids[len(each) :])) for each in prompts
    ]


def without(end_id, token_ids):
    return [each for each in token_ids if each != end_id]


@pytest.mark.long
def test_a_translation_is_what_is_generated_from_the_ids():
    _, by_ids, tokenizers, _ = saved("Translate")
    token_ids, lengths = pad([tokenizers["source"].encode(text) for text in TEXTS])
    given = {"token_ids": tf.constant(token_ids), "lengths": tf.constant(lengths)}
    expected = in_graphs(by_ids)["generate"](**given)
    actual = ask("Translate", text=TEXTS)
    close(actual["score"], expected["scores"], rtol=1e-4, atol=1e-4)
    for row in range(len(TEXTS)):
        ids = expected["generated_ids"][row, : expected["generated_lengths"][row]]
        assert actual["text"][row].decode() == tokenizers["target"].decode(ids[ids != 2])


def of_text(score):
    """A signature on ids that says by its score who was asked."""

    def generate(token_ids, lengths):
        rows = tf.shape(token_ids)[0]
        ids = tf.concat([tf.cast(token_ids, tf.int32), tf.fill([rows, 1], 2)], axis=1)
        found = {"generated_lengths": tf.cast(lengths, tf.int32) + 1}
        return found | {"generated_ids": ids, "scores": tf.fill([rows], score)}

    specs = [TensorSpec(name, "int64", ()) for name in ("token_ids", "lengths")]
    return Signature(generate, specs, [])


@pytest.mark.parametrize(
    "pipeline", others_long(["Generate", "Translate", "Translate of characters"])
)
def test_texts_are_generated_by_the_beams_that_are_the_default(pipeline):
    both = {"generate": of_text(-1.0), "generate_beam": of_text(-2.0)}
    pipeline, _, of_characters = pipeline.partition(" of ")
    tokenizers = PIPELINES[pipeline]()[1]
    if of_characters:
        tokenizers = dict.fromkeys(tokenizers, CharacterTable.learn(TEXTS))
    for signatures, score in ((both, -2), ({"generate": both["generate"]}, -1)):
        made = text_signatures(
            pipeline, TextModel(signatures, tokenizers, LIMITS, DECODING[pipeline])
        )
        found = in_graphs(made)["serving_default"](text=tf.constant(["the cat"]))
        assert found["score"] == score


def test_a_text_without_its_prefix_is_refused():
    by_ids, tokenizers = {"generate": of_text(-1.0)}, PIPELINES["Translate"]()[1]
    prefix = TextPrefix("language", ":", ("de", "fr"))
    given = LIMITS, DECODING["Translate"], None, prefix
    made = in_graphs(text_signatures("Translate", TextModel(by_ids, tokenizers, *given)))[
        "serving_default"
    ]
    well, refused = made(text=tf.constant(["de:the cat", "it:the cat"]))["error"]
    assert well == b"" and refused.startswith(b"text: must be a language, then : ")
