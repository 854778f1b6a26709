import numpy as np
import pytest

from seqkeras.serving.results import Embedding
from tests.serving.pipelines.toys import TOKENIZER, Toy, load, texts_of_many_lengths


@pytest.fixture
def embed(tmp_path):
    return load(tmp_path, "Embed", Toy(5).graph("pooled"))


def cosine(a, b):
    a, b = (Toy(5).pooled(TOKENIZER.analyze(text)).astype("float64") for text in (a, b))
    return sum(a * b) / (sum(a * a) * sum(b * b)) ** 0.5


def test_vectors_are_the_models_of_length_1(embed):
    texts = texts_of_many_lengths(17)
    for text, answer in zip(texts, embed(texts), strict=True):
        vector = Toy(5).pooled(TOKENIZER.analyze(text))
        assert answer.vector.dtype == np.float32
        np.testing.assert_allclose(answer.vector, vector / np.linalg.norm(vector), atol=1e-6)
        np.testing.assert_allclose(embed(text, normalize=False).vector, vector, atol=1e-5)


@pytest.mark.parametrize("normalize", [True, False])
def test_similarity_is_the_cosine(embed, normalize):
    first, second = texts_of_many_lengths(3), texts_of_many_lengths(2, seed=1)
    expected = [[cosine(a, b) for b in second] for a in first]
    found = embed.similarity(first, second)
    assert (found.shape, found.dtype) == ((3, 2), np.float32)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    a, b = embed([first[2], second[0]], normalize=normalize)
    assert a.similarity(b) == pytest.approx(expected[2][0], abs=1e-6)
    assert embed.similarity([], second).shape == (0, 2)


def test_a_cosine_is_at_most_1(embed):
    texts = texts_of_many_lengths(97)
    assert np.abs(embed.similarity(texts, texts)).max() == 1
    for answer in embed(texts, normalize=False):
        assert Embedding(-answer.vector).similarity(answer) >= -1
        assert answer.similarity(answer) <= 1


def test_a_text_may_be_in_a_dictionary(embed):
    texts = ["the cat", "he ran"]
    given = [{"text": text} for text in texts]
    for answer, expected in zip(embed(given), embed(texts), strict=True):
        np.testing.assert_array_equal(answer.vector, expected.vector)
    np.testing.assert_array_equal(embed.similarity(given, texts), embed.similarity(texts, texts))
    with pytest.raises(ValueError, match="^Embed: text must be a tuple or a dictionary of text; r"):
        embed({"text": "the", "pair": "cat"})
    with pytest.raises(ValueError, match="^Embed: texts must be a list of strings; received dict"):
        embed.similarity(given[0], texts)


def test_a_vector_of_zeros_is_like_nothing(tmp_path):
    toy = Toy(5)
    toy.W[:] = 0
    embed = load(tmp_path, "Embed", toy.graph("pooled"))
    assert (embed("the cat").vector == 0).all()
    assert embed("the").similarity(Embedding(np.ones(5, "float32"))) == 0


def test_similarity_takes_what_yields_texts_and_the_options_that_it_heeds(embed):
    expected = embed.similarity(["the cat"], ["he ran", "a"])
    found = embed.similarity((each for each in ["the cat"]), iter(["he ran", "a"]))
    np.testing.assert_array_equal(found, expected)
    long = "the " * 40
    assert embed.similarity([long], [long], truncate=True).shape == (1, 1)
    with pytest.raises(TypeError, match="normalize"):
        embed.similarity(["the cat"], ["he ran"], normalize=False)
    for texts, others, options, message in (
        (["a"], "the cat", {}, "others must be a list of strings; received "),
        (["a"], None, {}, "others must be a list of strings; received "),
        ("the cat", ["a"], {}, "texts must be a list of strings; received 'the"),
        (["a"], ["a"], {"token_budget": 0}, "token_budget must be a whole number"),
    ):
        with pytest.raises(ValueError, match=f"^Embed: {message}"):
            embed.similarity(texts, others, **options)
    with pytest.raises(ValueError, match="^Embed: normalize must be True or False; received 'no'."):
        embed([], normalize="no")
