"""The attention of each head of each layer, out of a bundle."""

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.analysis import maps_of_heads
from seqkeras.attention import MultiHeadAttention
from seqkeras.models import RNNSeq2Seq, Transformer
from seqkeras.serving.manifest import DecodingDefaults, Limits
from seqkeras.serving.text import CharacterTable, pad
from tests.arrays import numbers, randomize
from tests.conftest import others_long
from tests.serving.exported import write_bundle

TABLE = CharacterTable.learn(["abcdefghijklm"])
V, LIMIT, BOS, EOS = len(TABLE), 7, 5, 7
MODELS = {
    "transformer": (lambda: Transformer(V, V, 24, 2, 3, 40, max_length=LIMIT), (2, 3)),
    "heads": (
        lambda: RNNSeq2Seq.bahdanau(V, V, 5, 6, 6, attention=MultiHeadAttention(2, 3)),
        (1, 2),
    ),
    "additive": (lambda: RNNSeq2Seq.bahdanau(V, V, 5, 6, 6), (1, 1)),
}


@pytest.fixture(scope="module", params=others_long(MODELS, 0))
def served(request, tmp_path_factory):
    """A model, how many layers and heads it has, and its pipeline."""
    make, heads = MODELS[request.param]
    model = make()
    model.build()
    randomize(model)
    folder = write_bundle(
        tmp_path_factory.mktemp("bundles") / request.param,
        model,
        "Translate",
        {"source": TABLE, "target": TABLE},
        attention_heads=True,
        limits=Limits(LIMIT, LIMIT),
        decoding=DecodingDefaults(start_id=BOS, end_id=EOS),
    )
    return model, heads, serving.load(folder, threads=1)


@pytest.mark.parametrize("num_beams", [1, 3])
def test_the_heads_of_a_bundle_are_those_of_the_keras_model(served, num_beams):
    model, heads, pipeline = served
    texts = ["hijkl", "fed"]
    answers = pipeline(texts, num_beams=num_beams, attention="heads")
    means = pipeline(texts, num_beams=num_beams, attention=True)
    for text, answer, mean in zip(texts, answers, means, strict=True):
        assert answer.text == mean.text
        length = len(answer.target_tokens)
        assert answer.attention.shape == (*heads, length, len(text))
        token_ids, lengths = pad([TABLE.encode(text)])
        target_ids = np.array([[BOS, *map(TABLE.id_of, answer.target_tokens[:-1])]])
        inputs = {"token_ids": token_ids, "lengths": lengths, "target_ids": target_ids}
        [expected] = numbers(model.attention_weights(inputs)["cross"])
        expected = expected[:, :, :length]  # an answer may have no token
        np.testing.assert_allclose(answer.attention, expected, rtol=1e-3, atol=1e-5)
        np.testing.assert_allclose(
            mean.attention, answer.attention[-1].mean(axis=0), rtol=1e-3, atol=1e-5
        )
        if length:
            maps = maps_of_heads(answer.attention, answer.source_tokens, answer.target_tokens)
            assert len(maps) == heads[0] * heads[1]


def test_a_bundle_without_them_says_so(pipeline):
    message = r'^Translate: attention must be False or True, not "heads"; .* --attention-heads\.$'
    with pytest.raises(ValueError, match=message):
        pipeline("up|bad", attention="heads")
