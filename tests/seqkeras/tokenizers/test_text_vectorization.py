"""Keras's TextVectorization as a table of words, beside the layer itself."""

import keras
import pytest

from seqkeras.tokenizers import VectorizedWords, from_text_vectorization, read_tokenizer
from tests.seqkeras.tokenizers.texts import random_texts

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="the layer gives tensors of TensorFlow here"
)
TEXTS = [
    "The cat's \t hat, isn't (here).",
    "ÉTÉ été İstanbul\u00a0x\u2003y 日本 [UNK] <pad> <unk> -- ...",
    "a\x0bb\x0cc\x1cd\x85e don't_stop! A\u0301B",
]


@pytest.mark.parametrize(
    "standardize", ["lower_and_strip_punctuation", "lower", "strip_punctuation", None]
)
def test_words_are_those_of_the_layer(standardize, tmp_path):
    texts = TEXTS + random_texts(120)
    layer = keras.layers.TextVectorization(standardize=standardize)
    layer.adapt(texts[::2])
    table = from_text_vectorization(layer)
    table.to_file(tmp_path / "text.json")
    assert read_tokenizer(tmp_path / "text.json") == table
    assert len(table) == layer.vocabulary_size()
    strips = standardize in ("lower_and_strip_punctuation", "strip_punctuation")
    for text in texts:
        expected = [each for each in layer([text]).numpy()[0].tolist() if each]
        encoding = table.analyze(text)
        assert table.encode(text) == encoding.token_ids == expected, text
        for (start, end), token_id in zip(encoding.offsets, expected):
            assert table.lookup(text[start:end]) == token_id
            assert text[start:end].strip("\t\n ")
            assert not strips or text[start:end].strip(".,()'!") == text[start:end]
        assert encoding.word_ids == list(range(len(encoding)))


def test_a_text_is_cut_or_refused():
    table = VectorizedWords(["<pad>", "<unk>", "the", "cat"])
    assert table.analyze("The -- (CAT) the dog.").token_ids == [2, 3, 2, 1]
    assert table.analyze("The (CAT) the", max_length=2, truncate=True).offsets == [(0, 3), (5, 8)]
    with pytest.raises(ValueError, match="^VectorizedWords: there must be at most max_length, 2"):
        table.analyze("The (CAT) the", max_length=2)
    with pytest.raises(ValueError, match="^VectorizedWords: standardize must be one of"):
        VectorizedWords(["<pad>", "<unk>"], "upper")


@pytest.mark.parametrize(
    "options, reason",
    [
        ({"standardize": lambda text: text}, "standardize must be the name of one, not a function"),
        ({"split": "character"}, "split must be 'whitespace'; received 'character': join the"),
        ({"split": lambda text: text}, "split must be 'whitespace'; received a function"),
        ({"ngrams": 2}, "ngrams must be None; received 2: train on single words"),
        ({"output_mode": "multi_hot"}, "output_mode must be 'int'; received 'multi_hot'"),
        ({"vocabulary": None}, "it must have a vocabulary: adapt it"),
    ],
)
def test_what_a_table_can_not_do_is_refused_by_name(options, reason):
    layer = keras.layers.TextVectorization(**{"vocabulary": ["cat", "the"], **options})
    with pytest.raises(ValueError, match=f"^from_text_vectorization: {reason}"):
        from_text_vectorization(layer)
