"""Bundles of Keras models that generate give the answers of those models."""

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.attention import MultiHeadAttention
from seqkeras.decoding import MinLength, RepetitionPenalty, beam, greedy
from seqkeras.models import GPT, RNNLanguageModel, RNNSeq2Seq, Transformer
from seqkeras.recurrent import QRNN
from seqkeras.serving.manifest import DecodingDefaults, Limits
from seqkeras.serving.text import CharacterTable, pad
from tests.arrays import numbers, randomize
from tests.conftest import others_long
from tests.serving.exported import write_bundle

TABLE = CharacterTable.learn(["abcdefghijklm"])
V, LIMIT, BOS, EOS = len(TABLE), 11, 5, 7  # ids that are not those of the table
DECODING = DecodingDefaults(start_id=BOS, end_id=EOS)
TEXTS = ["a", "hijkl", "fed", "deadbeef", "lj"]
T5 = {"positions": "bias", "pre_norm": True, "norm": "rms", "use_bias": False, "gated": True}
T5 |= {"head_dim": 5, "activation": "gelu_tanh", "shared_embeddings": "source"}
MODELS = {
    "gpt": lambda: GPT(V, 24, 2, 3, 40, LIMIT),
    "transformer": lambda: Transformer(V, V, 24, 2, 3, 40, max_length=LIMIT),
    "seq2seq": lambda: RNNSeq2Seq.bahdanau(V, V, 5, 6, 6, attention=MultiHeadAttention(2, 3)),
    "gpt restricted": lambda: GPT(V, 24, 2, 3, 40, LIMIT, attention_window=2),
    "gpt relative": lambda: GPT(V, 24, 2, 3, 40, LIMIT, positions="relative"),
    "gpt bias": lambda: GPT(V, 24, 2, 3, 40, LIMIT, positions="bias", attention_window=2),
    "transformer bias": lambda: Transformer(V, V, 24, 2, 3, 40, max_length=LIMIT, positions="bias"),
    "t5": lambda: Transformer(V, V, 24, 2, 3, 40, max_length=LIMIT, **T5),
    "key-value": lambda: RNNLanguageModel(
        V, 13, 12, attention="key_value_predict", attention_window=2
    ),
    "rnn": lambda: RNNLanguageModel(V, 13, 11, num_layers=2, cell="gru"),
    "qrnn": lambda: RNNLanguageModel(V, 13, 11, num_layers=2, cell=QRNN(1, 3, "ifo")),
}


@pytest.fixture(scope="module", params=others_long(MODELS))
def served(request, tmp_path_factory):
    """The name of a kind of model, a model of it, and its pipeline."""
    name = request.param
    model = MODELS[name]()
    translates = hasattr(model, "encode")
    model.build(None if translates else {"token_ids": (None, None)})
    randomize(model)
    folder = write_bundle(
        tmp_path_factory.mktemp("bundles") / name,
        model,
        "Translate" if translates else "Generate",
        {"source": TABLE, "target": TABLE} if translates else {"text": TABLE},
        attention_heads=translates,
        limits=Limits(LIMIT, LIMIT),
        decoding=DECODING,
    )
    return name, model, serving.load(folder, threads=1)


def expected(name, model, texts, num_beams=1, length_penalty=0.0, processors=()):
    """For each text its translation, or what follows it, with its score: what Keras gives."""
    token_ids, lengths = pad([TABLE.encode(text) for text in texts])
    options = {"end_id": EOS, "max_length": LIMIT, "processors": processors}
    if hasattr(model, "encode"):
        more = {"max_length": LIMIT} if isinstance(model, Transformer) else {}
        state = model.encode(token_ids, lengths, **more)
        options["start_id"], prompts = BOS, np.zeros_like(lengths)
    else:
        state, prompts = model.initial_state(len(texts)), lengths - 1
        options |= {"start_id": token_ids[:, 0], "prompt": (token_ids[:, 1:], prompts)}
        options["max_length"] = LIMIT - 1
    if num_beams > 1:
        options |= {"num_beams": num_beams, "length_penalty": length_penalty}
        found = [each[:, 0] for each in numbers(beam(model.step, state, **options))]
    else:
        found = numbers(greedy(model.step, state, **options))
    answers = []
    for ids, length, score, begin in zip(*found, prompts):
        ids = ids[begin:length].tolist()
        answers.append((TABLE.decode(ids[:-1] if ids[-1] == EOS else ids), score))
    return answers


@pytest.mark.parametrize("num_beams, length_penalty", [(1, 0.0), (3, 0.7)])
def test_answers_are_those_of_the_keras_model(served, num_beams, length_penalty):
    name, model, pipeline = served
    answers = pipeline(TEXTS, num_beams=num_beams, length_penalty=length_penalty)
    found = expected(name, model, TEXTS, num_beams, length_penalty)
    for answer, (text, score) in zip(answers, found, strict=True):
        assert answer.text == text
        assert answer.score == pytest.approx(score, rel=1e-4)


@pytest.mark.parametrize("num_beams", [1, 3])
def test_attention_is_that_of_the_keras_model(served, num_beams):
    name, model, pipeline = served
    if not hasattr(model, "encode"):
        pytest.skip("a language model attends to no source")
    for text in ("hijkl", "fed"):
        answer = pipeline(text, num_beams=num_beams, attention="heads")
        mean = pipeline(text, num_beams=num_beams, attention=True)
        assert answer.text == mean.text and answer.source_tokens == tuple(text)
        token_ids, lengths = pad([TABLE.encode(text)])
        target_ids = np.array([[BOS, *map(TABLE.id_of, answer.target_tokens[:-1])]])
        inputs = {"token_ids": token_ids, "lengths": lengths, "target_ids": target_ids}
        [expected] = numbers(model.attention_weights(inputs)["cross"])
        expected = expected[:, :, : len(answer.target_tokens)]  # an answer may have no token
        np.testing.assert_allclose(answer.attention, expected, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(mean.attention, expected[-1].mean(axis=0), rtol=1e-3, atol=1e-5)


def test_processed_logits_give_the_answers_of_the_keras_model(served):
    name, model, pipeline = served
    if hasattr(model, "encode"):
        pytest.skip("Translate has no such options")
    texts = ["ccc", "hih"]  # Keras does not count the first token, which is there again
    processors = [RepetitionPenalty(1.7), MinLength(2 + 4, EOS)]
    found = expected(name, model, texts, processors=processors)
    answers = pipeline(texts, min_new_tokens=4, repetition_penalty=1.7)
    assert [each.text for each in answers] == [text for text, _ in found]
