"""Classifiers and taggers of words, not of subwords: run, bundle, answer, strings in TensorFlow."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from seqkeras.export.bundle import ExportOptions
from seqkeras.export.text_graphs.reading import in_graph
from seqkeras.runs import RunError
from seqkeras.tokenizers import WordTable, from_text_vectorization, word_places
from tests.arrays import close, randomize
from tests.conftest import others_long
from tests.export.bundles import bundled
from tests.seqkeras.tokenizers.texts import random_texts

TEXTS = ["The cat's hat!", "a dog (and a CAT), here", "nothing that is known", "the -- the"]
LABELS = ["low", "middle", "high"]


@pytest.fixture(scope="module")
def vectorization():
    layer = layers.TextVectorization()
    layer.adapt(TEXTS[:2] + random_texts(60))
    return layer


def network(size, outputs, tags=False):
    """The usual one of Keras's guides, on the ids of the layer."""
    token_ids = keras.Input((None,), dtype="int64", name="token_ids")
    x = layers.Embedding(size, 5, mask_zero=True)(token_ids)
    x = layers.Bidirectional(layers.LSTM(3, return_sequences=tags))(x)
    return randomize(keras.Model(token_ids, layers.Dense(outputs)(x)))


def require_scores(classify, expected):
    for row, answer in zip(expected, classify(TEXTS), strict=True):
        close(np.array([answer.scores[label] for label in LABELS]), row, rtol=1e-4, atol=1e-5)


@pytest.mark.long
def test_a_classifier_of_vectorized_texts_answers_as_keras_does(vectorization, tmp_path):
    model = network(vectorization.vocabulary_size(), len(LABELS))
    tokenizers = {"text": from_text_vectorization(vectorization)}
    given = {"settings": {"labels": LABELS}, "options": ExportOptions()}
    classify = bundled(tmp_path, model, "Classify", TEXTS, 7, tokenizers, **given)
    assert classify.manifest.parity["saved_model_text_difference"] <= 1e-4
    strings = tf.saved_model.load(tmp_path / "bundle" / "saved_model_text" / "1")
    in_strings = strings.signatures["serving_default"](text=tf.constant(TEXTS))
    expected = keras.ops.softmax(model(vectorization(TEXTS))).numpy()
    close(in_strings["scores"].numpy(), expected, rtol=1e-4, atol=1e-5)
    require_scores(classify, expected)
    with pytest.raises(ValueError, match="has 8 words; the limit is 7"):
        classify("a b c d e f g h")
    with pytest.raises(ValueError, match="has no token"):
        classify("...")
    assert "Text of at most 7 words." in (tmp_path / "bundle" / "README.md").read_text()


def functional(vectorization, network):
    text = keras.Input((), dtype="string")
    return keras.Model(text, network(vectorization(text)))


def sequential(vectorization, network):
    model = keras.Sequential([vectorization, *network.layers[1:]])
    model(tf.constant(TEXTS))
    return model


@pytest.mark.parametrize("make", others_long([functional, sequential]))
def test_a_model_that_begins_with_strings_is_refused_with_the_calls_that_save_it(
    make, vectorization, tmp_path
):
    own = layers.TextVectorization(vocabulary=vectorization.get_vocabulary()[2:])
    model = make(own, network(own.vocabulary_size(), len(LABELS)))

    settings = {"labels": LABELS}
    with pytest.raises(RunError) as caught:
        bundled(tmp_path, model, "Classify", TEXTS, 7, settings=settings)
    said = re.search(
        r"run: the model begins with strings: save what is after its TextVectorization, (.*), and "
        r"give tokenizers=(.*) of seqkeras.tokenizers\.$",
        str(caught.value),
    )
    names = {"keras": keras, "model": model, "from_text_vectorization": from_text_vectorization}
    behind, tokenizers = (eval(part, names) for part in said.groups())
    classify = bundled(tmp_path, behind, "Classify", TEXTS, 7, tokenizers, settings=settings)
    require_scores(classify, keras.ops.softmax(model(tf.constant(TEXTS))).numpy())


def test_a_model_that_begins_with_strings_by_another_way_is_refused(tmp_path):
    text = keras.Input((), dtype="string")
    ids = layers.Hashing(11)(text)
    model = keras.Model(text, layers.Dense(3)(layers.Embedding(11, 5)(ids)))
    message = "the model begins with strings: save what reads token ids after its tokenizer, and"
    with pytest.raises(RunError, match=message):
        bundled(tmp_path, model, "Classify", ["a"], 7)


@pytest.mark.long
def test_a_tagger_of_words_tags_each_of_them(tmp_path):
    words = [text[a:b] for text in TEXTS for a, b in word_places(text)]
    table = WordTable.learn(words, lowercase=True)
    model = network(len(table), 2, tags=True)
    given = [*TEXTS, ["The", "(and)", "cat's"]]
    settings = {"settings": {"labels": ["O", "B-X"]}}
    tag = bundled(tmp_path, model, "Tag", given, 9, {"text": table}, **settings)

    def tags_of(words):
        ids = np.array([[table.lookup(word) for word in words]])
        return [["O", "B-X"][each] for each in model(ids).numpy()[0].argmax(-1)]

    for text in TEXTS:
        words = [text[start:end] for start, end in word_places(text)]
        assert [each.text for each in tag(text).words] == words
        assert [each.tag for each in tag(text).words] == tags_of(words)
    words = ("The", "(and)", "cat's")
    assert [each.text for each in tag(words).words] == [*words]
    assert [each.tag for each in tag(words).words] == tags_of(words)  # each looked up whole


@pytest.mark.parametrize("standardize", ["lower_and_strip_punctuation", "lower", None])
def test_a_graph_splits_texts_as_the_layer_does(standardize):
    texts = TEXTS + random_texts(200)
    layer = layers.TextVectorization(standardize=standardize)
    layer.adapt([*texts[::2], "x" * 300])
    table = from_text_vectorization(layer)
    texts += ["", " . ", "x" * 50, "x" * 300]
    tokens = in_graph(table)(tf.constant(texts))
    expected = [[each for each in row if each] for row in layer(texts).numpy().tolist()]
    assert tokens.token_ids.to_list() == expected
    places = [[*zip(*each)] for each in zip(tokens.starts.to_list(), tokens.ends.to_list())]
    for text, own in zip(texts, places):
        assert own == table.places(text)
