"""--attention-heads: what a bundle then shows is what Keras gives, and the rest stays as it is."""

import dataclasses

import keras
import numpy as np
import onnx
import pytest
from keras import layers

from seqkeras import serving
from seqkeras.attention import AdditiveScore, Attention, StructuredSelfAttention
from seqkeras.export.bundle import export
from seqkeras.tokenizers import word_places
from tests.arrays import close, numbers
from tests.conftest import others_long
from tests.export.bundles import ONNX_ALONE
from tests.export.test_own_models import TOKENIZER, save
from tests.zoo import (
    TEXTS,
    answer_of_words,
    classify,
    classify_trees,
    embed_words,
    forecast,
    generate,
)

OPTIONS = dataclasses.replace(ONNX_ALONE, attention_heads=True)


@pytest.fixture
def bundle(tmp_path):
    """Export what a maker makes: the model, the inputs, the manifest and the pipeline."""

    def made(make, **changes):
        inputs = make(tmp_path / "run")
        options = dataclasses.replace(OPTIONS, **changes)
        manifest = export(tmp_path / "run", tmp_path / "bundle", options=options)
        model = keras.models.load_model(tmp_path / "run/model.keras", compile=False)
        return model, inputs, manifest, serving.load(tmp_path / "bundle")

    return made


@pytest.mark.long
def test_the_graph_of_answers_is_that_of_a_bundle_without_attention(bundle, tmp_path):
    _, inputs, manifest, pipeline = bundle(classify, precisions=("int8",))
    assert 0 < manifest.parity["onnx_attention_difference"] <= 1e-4
    plain = export(tmp_path / "run", tmp_path / "plain", options=ONNX_ALONE)
    assert [*manifest.graphs] == [*plain.graphs, "attention"]
    assert [*manifest.precisions["int8"].graphs] == [*plain.graphs]
    written = [tmp_path / name / "onnx/model.onnx" for name in ("bundle", "plain")]
    nodes = [
        sorted(node.op_type for node in onnx.load(path, load_external_data=False).graph.node)
        for path in written
    ]
    assert nodes[0] == nodes[1]
    card = (tmp_path / "bundle/README.md").read_text()
    assert "ONNX, attention of each head of each layer" in card
    of_int8 = serving.load(tmp_path / "bundle", precision="int8")
    shown = [each(inputs[0], attention="heads").attention for each in (pipeline, of_int8)]
    np.testing.assert_array_equal(*shown)


@pytest.mark.long
def test_bidaf_shows_both_directions_on_words(bundle):
    model, inputs, manifest, pipeline = bundle(answer_of_words)
    assert 0 < manifest.parity["onnx_attention_difference"] <= 1e-4
    ways = [True, "heads", "words", "context_to_query", "query_to_context"]
    for value in inputs:
        question, context = value
        row = pipeline.encode(value).windows.rows[0]
        feed = {name: np.array(each) for name, each in pipeline._model._arrays([row]).items()}
        expected = numbers(model.attention_weights(feed))
        shown = dict(zip(ways, (pipeline(value, attention=way) for way in ways), strict=True))
        for way in ways[1:4]:
            close(shown[way].attention, expected["context_to_query"][0])
        close(shown[True].attention, expected["context_to_query"][0, 0, 0])
        words = [context[start:end] for start, end in word_places(context)]
        assert list(shown["heads"].target_tokens) == words
        assert shown["heads"].source_tokens == ("What", "is", "small", "?")
        other = shown["query_to_context"]
        close(other.attention, expected["query_to_context"][0])
        assert other.source_tokens == shown["heads"].target_tokens
        assert other.target_tokens == ("query 0",)


@pytest.mark.long
def test_a_gpt_shows_the_prompt_and_what_it_wrote(bundle):
    model, inputs, manifest, pipeline = bundle(generate)
    assert 0 < manifest.parity["onnx_attention_difference"] <= 1e-4
    tokenizer = pipeline._tokenizer
    for answer in pipeline(inputs, max_new_tokens=5, attention="heads", num_beams=2, n_best=2):
        for shown in (answer, *answer.alternatives):
            token_ids = np.array([[tokenizer.id_of(token) for token in shown.source_tokens]])
            expected = numbers(model.attention_weights({"token_ids": token_ids}))["decoder"]
            close(shown.attention, expected[0], rtol=1e-4, atol=1e-5)
            assert shown.target_tokens == shown.source_tokens
            assert tokenizer.decode(token_ids[0]).endswith(shown.text)
    with pytest.raises(ValueError, match=r'^Generate: attention must .* "heads"; received .words.'):
        pipeline("a", attention="words")
    with pytest.raises(ValueError, match=r"^Generate: a stream gives no attention; leave .* out\."):
        pipeline.stream("a", attention=True)


def own_classifier(attend):
    """A maker of a functional classifier of a user's."""

    def make(folder):
        ids = keras.Input((None,), dtype="int64", name="token_ids")
        x = layers.Embedding(len(TOKENIZER), 8, mask_zero=True)(ids)
        save(folder, keras.Model(ids, layers.Dense(3)(attend(x, ids))))
        return TEXTS

    return make


def structured(x, ids):
    x = layers.Bidirectional(layers.LSTM(5, return_sequences=True))(x)
    return StructuredSelfAttention(7, 3)(x)[0]


def by_keras(x, ids):
    mask = keras.ops.not_equal(ids, 0)[:, None]
    attentions = [layers.MultiHeadAttention(2, 3) for _ in range(2)]
    return layers.Add()([each(x, x, attention_mask=mask)[:, 0] for each in attentions])


def additive(x, ids):
    return layers.GlobalAveragePooling1D()(Attention(AdditiveScore(7))(x, x, x)[0])


@pytest.mark.long
@pytest.mark.parametrize(
    ("attend", "sizes"),
    others_long([(structured, (1, 1, 3)), (by_keras, (2, 2, None)), (additive, (1, 1, None))]),
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_functional_model_shows_what_its_layers_attend_to(attend, sizes, bundle):
    model, inputs, manifest, pipeline = bundle(own_classifier(attend))
    assert 0 < manifest.parity["onnx_attention_difference"] <= 1e-4
    answers = pipeline(inputs, attention="heads")
    assert [each.labels for each in answers] == [each.labels for each in pipeline(inputs)]
    for text, answer in zip(inputs, answers, strict=True):
        tokens = TOKENIZER.analyze(text).tokens
        assert answer.attention.shape == (*sizes[:2], sizes[2] or len(tokens), len(tokens))
        assert list(answer.source_tokens) == tokens
        close(answer.attention.sum(axis=-1), np.ones(answer.attention.shape[:-1]))
        whole = pipeline(text, attention="words")
        words = len(whole.source_tokens)
        assert whole.attention.shape[2:] == (sizes[2] or words, words)
        if attend is structured:
            assert answer.target_tokens == ("query 0", "query 1", "query 2")
            summary = model.get_layer(index=3).output
            reader = keras.Model(model.inputs, summary)
            token_ids = np.array([TOKENIZER.analyze(text).token_ids])
            _, weights = numbers(reader([token_ids]))
            close(answer.attention[0, 0], weights[0], rtol=1e-4, atol=1e-5)


NONE_GIVES = (
    "a Functional can not be exported: none of its layers gives attention weights; leave out "
    r"--attention-heads, or give the model a method attention_weights\(inputs\) that "
)


@pytest.mark.parametrize(
    "make, message",
    [
        (classify_trees, r"a \w+ can not be exported: .*not attend; leave "),
        (embed_words, r"a \w+ can not be exported: .*not attend; leave "),
        (forecast, r"a \w+ can not be exported: .*gives attention weights; leave "),
        (own_classifier(lambda x, ids: layers.GlobalAveragePooling1D()(x)), NONE_GIVES),
    ],
)
def test_a_model_without_attention_is_refused(make, message, bundle, tmp_path):
    with pytest.raises(ValueError, match=f"attention of {message}"):
        bundle(make)
    assert not (tmp_path / "bundle").exists()
