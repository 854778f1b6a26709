"""Tokenizers of KerasNLP as ours, beside KerasNLP itself: on strings, and in `tf.data`."""

import json
import unicodedata

import keras
import numpy as np
import pytest

from seqkeras.preprocessors import unlike_preprocessor
from seqkeras.tokenizers import (
    SentencePieces,
    from_keras_nlp,
    learn_byte_pairs,
    learn_sentence_pieces,
    word_piece,
)
from tests.conftest import others_long
from tests.seqkeras.tokenizers.texts import random_texts

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="KerasNLP reads texts by TensorFlow here"
)
TEXTS = [
    "Straße, ΣΊΣΥΦΟΣ ς ﬁne İstanbul naïve café e\u0301te\u0301 ẞ ŉ ǰ ᾳ \ua64d",
    "日本語の文 漢字abc\u00a0x soft\u00adhyphen zero\u200bw tab\there\r\nline",
    "[MASK] the [CLS]x [mask] it's don't 12,345.67 … — «q» $^`~ ꭰ Ꭰ",
    "the cat's <mask> </s>sat  on   12345 mats, we'll\n\nsee!  ",
    "x" * 100 + " " + "y" * 101,
]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="module")
def texts():
    return TEXTS + random_texts(120)


def in_tf_data(layer, texts):
    """What a layer gives for texts in `tf.data`, as lists."""
    import tensorflow as tf

    [rows] = tf.data.Dataset.from_tensors(texts).map(layer)
    return rows.to_list()


def characters(texts):
    """All that may become of the characters of texts, so that few words are unknown."""
    forms = "".join(texts) + "".join(texts).casefold()
    found = sorted({*forms, *unicodedata.normalize("NFD", forms)})
    return [each for each in found if not each.isspace() and each != "\0"]


def becomes_a_sign(character):
    """Whether what is no sign becomes one with others, as ⑴ becomes (1)."""
    form = unicodedata.normalize("NFKC", character)
    signs = [each for each in form if unicodedata.category(each)[0] in "PS"]
    return form != character and bool(signs) and unicodedata.category(character)[0] != "P"


FLAGS = [
    (False, False, True, False),
    (False, True, False, True),
    (True, False, True, True),
    (True, True, True, False),
    (True, True, False, True),
]


@pytest.mark.parametrize("lowercase, strip_accents, split_on_cjk, in_strings", others_long(FLAGS))
def test_word_pieces_are_those_of_keras_nlp(
    lowercase, strip_accents, split_on_cjk, in_strings, texts
):
    from keras_nlp.models import BertTokenizer

    known = characters(texts)
    letters = [f"##{each}" for each in known if unicodedata.category(each)[0] in "LMN"]
    theirs = BertTokenizer(
        [*SPECIAL, *known, *letters, "the", "##at", "..."],
        lowercase=lowercase,
        strip_accents=strip_accents,
        split_on_cjk=split_on_cjk,
        special_tokens_in_strings=in_strings,
    )
    ours = from_keras_nlp(theirs)
    if lowercase:  # of a sign within a word there may be tokens, see `from_keras_nlp`
        texts = [text for text in texts if not any(map(becomes_a_sign, text))]
        assert len(texts) > 70
    for text, by_python, in_graph in zip(texts, theirs(texts), in_tf_data(theirs, texts)):
        assert ours.encode(text) == list(by_python) == in_graph, text
    assert ours.analyze("the").tokens == ["[CLS]", "the", "[SEP]"]


def test_other_prefixes_and_unknown_words_are_kept():
    from keras_nlp.tokenizers import WordPieceTokenizer

    vocabulary = ["<unk>", "a", "@b", "c", "@c"]
    theirs = WordPieceTokenizer(vocabulary, suffix_indicator="@", oov_token="<unk>")
    ours = from_keras_nlp(theirs)
    assert ours.analyze("ab c acd cc").token_ids == [1, 2, 3, 0, 3, 4]
    assert list(theirs("ab c acd cc")) == [1, 2, 3, 0, 3, 4]
    assert ours.decode([1, 2, 3]) == "ab c"


def pairs_of(texts, special=()):
    learned = json.loads(learn_byte_pairs(texts, 400, min_count=1).to_json())["model"]
    tokens = [*special, *learned["vocab"]]
    merges = [each if isinstance(each, str) else " ".join(each) for each in learned["merges"]]
    return {token: place for place, token in enumerate(tokens)}, merges


@pytest.mark.long
def test_byte_pairs_are_those_of_keras_nlp(texts):
    from keras_nlp.models import GPT2Tokenizer, RobertaTokenizer
    from keras_nlp.tokenizers import BytePairTokenizer

    vocabulary, merges = pairs_of(TEXTS, ["<s>", "<pad>", "</s>", "<mask>"])
    made = [
        GPT2Tokenizer(vocabulary, merges),
        RobertaTokenizer(vocabulary, merges),
        BytePairTokenizer(vocabulary, merges, unsplittable_tokens=["<s>"]),
    ]
    for theirs in made:
        ours = from_keras_nlp(theirs)
        single = [" ".join(text.split()) for text in texts if text.split()]
        for text, expected in zip(single, in_tf_data(theirs, single)):
            assert ours.encode(text) == expected, text
        assert ours.decode(ours.encode("the cat")) == "the cat"
        on_strings = from_keras_nlp(theirs, in_tf_data=False)
        for text, expected in zip(texts, theirs(texts)):
            assert on_strings.encode(text) == list(expected), text
    spaced = BytePairTokenizer(vocabulary, merges, add_prefix_space=True)
    ours, plain = from_keras_nlp(spaced), ["the cat", " the"]
    assert [ours.encode(each) for each in plain] == in_tf_data(spaced, plain)
    assert made[0].vocabulary_size() == len(from_keras_nlp(made[0]))


@pytest.mark.parametrize("around", [False, True])
def test_sentence_pieces_are_those_of_keras_nlp(around):
    from keras_nlp.tokenizers import SentencePieceTokenizer

    model = learn_sentence_pieces(TEXTS * 9, 90).model
    theirs = SentencePieceTokenizer(model, add_bos=around, add_eos=around)
    ours = from_keras_nlp(theirs)
    assert isinstance(ours, SentencePieces)
    for text, expected in zip(TEXTS, in_tf_data(theirs, TEXTS)):
        assert ours.analyze(text).token_ids == expected


def test_what_a_preprocessor_packs_around_texts_is_packed_here():
    from keras_nlp.models import (
        BertTextClassifierPreprocessor,
        BertTokenizer,
        RobertaTextClassifierPreprocessor,
        RobertaTokenizer,
    )

    first, second = ["the cat", "a mat"], ["sat on it", "the the"]
    words = BertTokenizer([*SPECIAL, "the", "cat", "a", "mat", "sat", "on"])
    pairs = RobertaTokenizer(*pairs_of(TEXTS, ["<s>", "<pad>", "</s>", "<mask>"]))
    for preprocessor in (
        BertTextClassifierPreprocessor(words, sequence_length=29),
        RobertaTextClassifierPreprocessor(pairs, sequence_length=29),
    ):
        ours = from_keras_nlp(preprocessor)
        for texts in ((first,), (first, second)):
            given = {name: np.asarray(each) for name, each in preprocessor(x=texts).items()}
            for place, row in enumerate(zip(*texts)):
                real, encoding = given["padding_mask"][place] > 0, ours.analyze(*row)
                for name in {"token_ids", "segment_ids"} & given.keys():
                    assert getattr(encoding, name) == given[name][place][real].tolist()
        assert from_keras_nlp(preprocessor.tokenizer) == ours


def test_a_tokenizer_that_is_read_otherwise_is_refused():
    from keras_nlp.models import CLIPTokenizer
    from keras_nlp.tokenizers import BytePairTokenizer, WordPieceTokenizer

    pairs, small = pairs_of(TEXTS, ["<|startoftext|>"]), {"a": 0, "b": 1, "ab": 2}
    for tokenizer, message in (
        (WordPieceTokenizer(["[UNK]", "a"], split=False), "split must be True; with split=False a"),
        (CLIPTokenizer(*pairs), "a CLIPTokenizer must read texts as a BytePairTokenizer does"),
        (BytePairTokenizer(small, ["a b"]), "a token for each of the 256 bytes; it lacks 254, who"),
        (
            BytePairTokenizer(*pairs, unsplittable_tokens=["x y"]),
            r"\['x y'\] are not, so that thei",
        ),
        (WordPieceTokenizer(), "must have a vocabulary; it has none"),
        (keras.layers.Dense(3), "one of KerasNLP's WordPieceTokenizer"),
    ):
        with pytest.raises(ValueError, match=f"^from_keras_nlp: .*{message}"):
            from_keras_nlp(tokenizer)


class Model:
    """As a task of KerasNLP, which holds its preprocessor."""

    def __init__(self, preprocessor):
        self.preprocessor = preprocessor


@pytest.mark.long
def test_texts_that_a_preprocessor_reads_otherwise_are_named():
    from keras_nlp.models import BertTextClassifierPreprocessor, BertTokenizer

    vocabulary = [*SPECIAL, "the", "cafe", "café", "s", "##e"]
    tokenizer = BertTokenizer(vocabulary, lowercase=True)
    model = Model(BertTextClassifierPreprocessor(tokenizer, sequence_length=7))
    texts = ["the the", "the Café", "the the the the the the the"]
    same = from_keras_nlp(model.preprocessor)
    assert [*unlike_preprocessor(model, same, texts[:2])] == []
    assert [*unlike_preprocessor(Model(None), word_piece(vocabulary), texts)] == []
    assert [*unlike_preprocessor(model, same, [("the", "Café"), ("Café", "the")])] == []
    [reason] = unlike_preprocessor(model, word_piece(vocabulary), texts[:2])
    assert reason.startswith(
        "the model's preprocessor reads 1 of 2 texts otherwise than the tokenizer: 'the Café' has "
        "'café' there and 'cafe' here as token 2: make the tokenizer by from_keras_nlp"
    )
    [reason] = unlike_preprocessor(model, same, texts)
    assert "'the the the the the the the' has 7 tokens there and 9 here" in reason
