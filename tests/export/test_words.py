"""Classifiers and taggers of words, not of subwords: run, bundle, answer, strings in TensorFlow."""

import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from seqkeras import serving
from seqkeras.export import save_run
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.export.text_graphs.reading import in_graph
from seqkeras.runs import RunError
from seqkeras.tokenizers import WordTable, from_text_vectorization, word_places
from tests.arrays import close, randomize
from tests.conftest import others_long
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


@pytest.mark.long
def test_a_classifier_of_vectorized_texts_answers_as_keras_does(vectorization, tmp_path):
    model = network(vectorization.vocabulary_size(), len(LABELS))
    save_run(
        tmp_path / "run",
        model,
        "Classify",
        [{"input": text} for text in TEXTS],
        {"source_length": 7},
        {"text": from_text_vectorization(vectorization)},
        settings={"labels": LABELS},
    )
    manifest = export(tmp_path / "run", tmp_path / "bundle")
    assert manifest.parity["saved_model_text_difference"] <= 1e-4
    classify = serving.load(tmp_path / "bundle")
    strings = tf.saved_model.load(tmp_path / "bundle" / "saved_model_text" / "1")
    in_strings = strings.signatures["serving_default"](text=tf.constant(TEXTS))
    expected = keras.ops.softmax(model(vectorization(TEXTS))).numpy()
    close(in_strings["scores"].numpy(), expected, rtol=1e-4, atol=1e-5)
    for row, answer in zip(expected, classify(TEXTS), strict=True):
        scores = np.array([answer.scores[label] for label in LABELS])
        close(scores, row, rtol=1e-4, atol=1e-5)
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

    def save(model, tokenizers):
        examples = [{"input": text} for text in TEXTS]
        limits, settings = {"source_length": 7}, {"labels": LABELS}
        save_run(
            tmp_path / "run", model, "Classify", examples, limits, tokenizers, settings=settings
        )

    with pytest.raises(RunError) as caught:
        save(model, None)
    said = re.search(
        r"run: the model begins with strings: save what is behind its TextVectorization, (.*), and "
        r"give tokenizers=(.*) of seqkeras.tokenizers\.$",
        str(caught.value),
    )
    names = {"keras": keras, "model": model, "from_text_vectorization": from_text_vectorization}
    save(*(eval(part, names) for part in said.groups()))
    export(tmp_path / "run", tmp_path / "bundle", options=ExportOptions(saved_models=False))
    expected = keras.ops.softmax(model(tf.constant(TEXTS))).numpy()
    for row, answer in zip(expected, serving.load(tmp_path / "bundle")(TEXTS), strict=True):
        scores = np.array([answer.scores[label] for label in LABELS])
        close(scores, row, rtol=1e-4, atol=1e-5)


def test_a_model_that_begins_with_strings_by_another_way_is_refused(tmp_path):
    text = keras.Input((), dtype="string")
    ids = layers.Hashing(11)(text)
    model = keras.Model(text, layers.Dense(3)(layers.Embedding(11, 5)(ids)))
    message = "the model begins with strings: save what reads token ids behind its tokenizer, and"
    with pytest.raises(RunError, match=message):
        save_run(tmp_path / "run", model, "Classify", [{"input": "a"}], {"source_length": 7})


@pytest.mark.long
def test_a_tagger_of_words_tags_each_of_them(tmp_path):
    table = WordTable.learn(
        [text[a:b] for text in TEXTS for a, b in word_places(text)], lowercase=True
    )
    model = network(len(table), 2, tags=True)
    given = [*TEXTS, ["The", "(and)", "cat's"]]
    said = []
    save_run(
        tmp_path / "run",
        model,
        "Tag",
        [{"input": each} for each in given],
        {"source_length": 9},
        {"text": table},
        settings={"labels": ["O", "B-X"]},
    )
    export(tmp_path / "run", tmp_path / "bundle", say=said.append)
    assert any(
        "a WordTable splits words by rules that no graph here knows" in each for each in said
    )
    tag = serving.load(tmp_path / "bundle")

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
