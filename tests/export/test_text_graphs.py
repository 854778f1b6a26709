"""Tokenizers in a graph give what `seqkeras.serving.text` gives: ids, places, and texts again."""

import functools
import gzip
import io
import itertools
import json
import os
import random
import re
import string
import unicodedata
from pathlib import Path

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
import tokenizers
from keras_nlp.tokenizers import WordPieceTokenizer

from seqkeras.export.text_graphs.byte_pairs import byte_characters
from seqkeras.export.text_graphs.characters import checked
from seqkeras.export.text_graphs.reading import in_graph
from seqkeras.export.text_graphs.row_errors import NOT_FINITE, first_of, with_errors
from seqkeras.export.verifying.strings import split_otherwise
from seqkeras.serving.text import (
    CharacterTable,
    SentencePieces,
    Subwords,
    VectorizedWords,
    byte_pairs,
    read_byte_pairs,
    read_vocabulary,
    word_piece,
)
from seqkeras.tokenizers import (
    from_keras_nlp,
    learn_byte_pairs,
    learn_tokenizer,
    learn_word_piece,
)
from seqkeras.tokenizers.of_stream import learn_words_of_lines
from tests.conftest import others_long
from tests.seqkeras.tokenizers.texts import special_texts

DATA = Path(os.environ.get("SEQKERAS_DATA", ""))
needs_data = pytest.mark.skipif(
    "SEQKERAS_DATA" not in os.environ or not (DATA / "reference-tokenization").is_dir(),
    reason="needs the folders reference-tokenization, vocab-bert, vocab-gpt2 and tatoeba in the "
    "one that SEQKERAS_DATA names",
)
TEXTS = [
    "the cat sat on the mat",
    "The theatre's cats' hats aren't thin; they'll cheat!",
    "  two  spaces\n\n a line\t\tand tabs \u3000wide\u3000 ",
    "e\u0301te\u0301 \u00e9t\u00e9 \u00c5ngstr\u00f6m \u0130stanbul \u1e9e \ufb01ne \u2460 \uff21",
    "\u65e5\u672c\u8a9e and \ud55c\uad6d\uc5b4, \u0627\u0644\u0639 \u0939\u093f",
    "nul\0 bell\a zero\u200bwidth \ufffd bom\ufeff \ud7a3 \U0001f600\U0001f468\u200d\U0001f469",
    "'s 't'll !'s 1's x's's ''re \u00a0'm'd'D'S",
    "a" * 130 + " " + 99 * "b" + " " + "ab" * 40,
    "12,345.67 3rd x2 \u0661\u0662 \u00bd",
    "the [MASK] sat [SEP]on[CLS] <|endoftext|>the<|endoftext|>  end",
    "\u2581bar\u2581 \u2581 x\u2581",
    ".",
    "\u00a0",
]


def wordpieces(**options):
    words = "the cat sat on mat ##s ##ing ' s t ! . , ; a line and tabs ete ##e ab ##ab".split()
    letters = [chr(each) for each in range(ord("a"), ord("w"))]
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = dict.fromkeys([*special, *words, *letters, *(f"##{each}" for each in letters)])
    return word_piece([*vocabulary, "\u65e5", "1", "##2", "\u00e9", "T"], **options)


def keras_nlp_wordpieces():
    ours = json.loads(wordpieces().to_json())["model"]["vocab"]
    theirs = WordPieceTokenizer(
        sorted(ours, key=ours.get), strip_accents=True, special_tokens_in_strings=True
    )
    return from_keras_nlp(theirs)


def pairs(form="gpt2"):
    merges = [("t", "h"), ("th", "e"), ("\u0120", "the"), ("a", "t"), ("a", "a"), ("aa", "aa")]
    merges += [("l", "l"), ("'", "ll"), ("a", "b"), ("ab", "ab"), ("\u0120", "\u0120")]
    special = ["<|endoftext|>"] if form == "gpt2" else ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokens = [*special, *byte_characters(), *map("".join, merges)]
    return byte_pairs({token: place for place, token in enumerate(tokens)}, merges, form)


@functools.cache
def pieces(kind, vocabulary=False, texts=None, size=90, **options):
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts or [text for text in TEXTS if len(text) > 4] * 3),
        model_writer=written,
        model_type=kind,
        vocab_size=size,
        hard_vocab_limit=False,
        minloglevel=2,
        **options,
    )
    if not vocabulary:
        return SentencePieces(written.getvalue())
    own = sentencepiece.SentencePieceProcessor(model_proto=written.getvalue())
    known = [own.id_to_piece(place) for place in range(own.get_piece_size()) if place % 5]
    tokens = ["</s>", "<unk>", ">>fra<<", *(each for each in known if each[0] != "<"), "<pad>"]
    ids = {token: place for place, token in enumerate(tokens)}
    return SentencePieces(written.getvalue(), ids, suffix=["</s>"])


TOKENIZERS = {
    "WordPiece": wordpieces,
    "WordPiece, cased": lambda: wordpieces(lowercase=False),
    "WordPiece, accents": lambda: wordpieces(strip_accents=False, max_word_length=40),
    "WordPiece, KerasNLP": keras_nlp_wordpieces,
    "byte pairs": pairs,
    "byte pairs, RoBERTa": lambda: pairs("roberta"),
    "WordPiece, learned": lambda: learn_word_piece(learned_texts(), 300),
    "byte pairs, learned": lambda: learn_byte_pairs(learned_texts(), 400),
    "unigrams, learned": lambda: learn_tokenizer("unigram", learned_texts(), 120),
    "merged pieces, learned": lambda: learn_tokenizer("bpe", learned_texts(), 300),
    "words, learned": lambda: learn_words_of_lines(learned_texts(), 60),
    "unigrams": lambda: pieces("unigram"),
    "unigrams, as they are": lambda: pieces(
        "unigram", normalization_rule_name="identity", add_dummy_prefix=False
    ),
    "merged pieces": lambda: pieces("bpe", remove_extra_whitespaces=False),
    "Marian": lambda: pieces("unigram", vocabulary=True),
}


def learned_texts():
    return [*TEXTS, *special_texts()]


def compiled(tokenizer):
    """The tokenizer in a graph: texts to ids, starts and ends, what decoding gives, and errors."""
    tokenize = in_graph(tokenizer)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def function(texts):
        texts = checked(texts, accepted="(?s).*")
        tokens = tokenize(texts.values)
        kept = tf.sequence_mask(tokens.token_ids.row_lengths())
        decoded = tokenize.decode(tokens.token_ids.to_tensor(), kept)
        errors = first_of(texts.errors, tokens.errors)
        return tokens.token_ids, tokens.starts, tokens.ends, decoded, errors

    return function


@functools.cache
def tokenizer_and_graph(name):
    tokenizer = TOKENIZERS[name]()
    return tokenizer, compiled(tokenizer)


def special_ids_of(tokenizer):
    """The ids that a written special token has."""
    if not isinstance(tokenizer, Subwords):
        return set()
    return {each["id"] for each in json.loads(tokenizer.to_json())["added_tokens"]}


def require_the_same(tokenizer, function, texts, special_ids=(), decode=True):
    """Assert that a graph gives for every text what the tokenizer gives."""
    ids, starts, ends, decoded, errors = function(tf.constant(texts))
    assert set(errors.numpy()) == {b""}
    ids, starts, ends = (each.to_list() for each in (ids, starts, ends))
    for row, text in enumerate(texts):
        encoding = tokenizer.analyze(text)
        own = [place for place, each in enumerate(encoding.offsets) if each is not None]
        token_ids = [encoding.token_ids[place] for place in own]
        if {*special_ids} & {*ids[row]}:  # in the text: the template's look the same to `analyze`
            token_ids, own = tokenizer.encode(text), None
        assert ids[row] == token_ids, ascii(text)
        if own is not None:
            places = list(zip(starts[row], ends[row], strict=True))
            assert places == [encoding.offsets[place] for place in own], ascii(text)
        if decode:
            assert decoded[row].numpy().decode() == tokenizer.decode(token_ids), ascii(text)


VARIANTS = ("WordPiece, ", "byte pairs, RoBERTa")  # are long


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name.startswith(VARIANTS) else ())
        for name in TOKENIZERS
    ],
)
def test_a_graph_splits_and_joins_texts_as_serving_does(name):
    tokenizer, function = tokenizer_and_graph(name)
    texts = [*learned_texts(), "", ">>fra<< the cat", ">>deu<<the cat", "the >>fra<<"]
    require_the_same(tokenizer, function, texts, special_ids_of(tokenizer))
    require_the_same(tokenizer, function, [""])


@pytest.mark.parametrize("name", ["WordPiece", "byte pairs"])
def test_a_long_word_is_split(name):
    (tokenizer, function), text = tokenizer_and_graph(name), "ab " * 5 + "a" * 20_000
    ids, *_ = function(tf.constant([text]))
    assert ids[0].numpy().tolist() == tokenizer.encode(text)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("WordPiece", "a\ufdd0b", r"text: must hold no noncharacter, U\+FDD0 to U\+FDEF\."),
        ("byte pairs", "a\ufdefb", r"text: must hold no noncharacter"),
        ("unigrams", b"a\xffb", r"text: must be UTF-8\."),
        ("unigrams", b"a\xed\xa0\x80b", r"text: must be UTF-8\."),  # a lone surrogate
    ],
)
def test_what_a_graph_can_not_split_is_refused(name, text, message):
    tokenizer, function = tokenizer_and_graph(name)
    ids, *_, errors = function(tf.constant(["the", text]))
    well, refused = errors.numpy()
    assert well == b"" and re.match(message, refused.decode())
    assert ids[0].numpy().tolist() == tokenizer.encode("the") and not len(ids[1])


def changed(tokenizer, model=None, **fields):
    content = json.loads(tokenizer.to_json())
    return Subwords(json.dumps(content | fields | {"model": content["model"] | (model or {})}))


ADDED = {"single_word": False, "lstrip": False, "rstrip": False}
ADDED |= {"normalized": False, "special": False}


def added(tokenizer, *tokens):
    """The tokenizer with more added tokens, by their contents or by fields."""
    tokens = [each if isinstance(each, dict) else {"content": each} for each in tokens]
    listed = json.loads(tokenizer.to_json())["added_tokens"]
    listed += [ADDED | {"id": len(tokenizer) + place} | each for place, each in enumerate(tokens)]
    return changed(tokenizer, added_tokens=listed)


def trimming(form, add_prefix_space):
    """Byte-level pairs that trim the places of tokens, with added tokens of all kinds."""
    tokenizer = added(
        pairs(form),
        "<a>",
        "<a><b>",
        {"content": "b>the", "normalized": True},
        {"content": "ab", "lstrip": True, "special": True},
    )
    processor = json.loads(tokenizer.to_json())["post_processor"]
    processor |= {"trim_offsets": True, "add_prefix_space": add_prefix_space}
    return changed(tokenizer, post_processor=processor)


NASTY = {
    "WordPiece": lambda: added(
        wordpieces(),
        "<a>",
        {"content": "<a><b>", "special": True},
        {"content": "ab", "lstrip": True},
    ),
    "byte pairs, spaces": lambda: added(pairs(), "<a>", " ", "  the", "the\n"),
    "byte pairs, trimmed": lambda: trimming("gpt2", add_prefix_space=False),
    "byte pairs, RoBERTa trimmed": lambda: trimming("roberta", add_prefix_space=False),
    "byte pairs, RoBERTa prefix": lambda: trimming("roberta", add_prefix_space=True),
    "pieces of the user's own": lambda: pieces("unigram", user_defined_symbols="cat,sat on"),
    "pieces, space behind": lambda: pieces("unigram", treat_whitespace_as_suffix=True),
    "pieces of characters": lambda: pieces("char"),
    "pieces, no space before": lambda: pieces(
        "bpe", remove_extra_whitespaces=False, add_dummy_prefix=False
    ),
}
WORDS = "the cat ab aa <a> <b> <a><b> <mask> [MASK] <|endoftext|> 's x \u00e9 \u2581".split()
SPACES = [" ", " ", "  ", "\t", "\n", "\u3000", "\x85", "\x1c", "\u2028"]
MARKS = [*map(chr, (0x301, 0x308, 0x323, 0x345, 0x200D, 0x200B, 0xFEFF, 0xFE0F, 0x1F3FD, 0xE33))]
BLOCKS = [(1, 0x2FF), (0x300, 0x2FFF), (0x3000, 0xD7FF), (0xE000, 0xFDCF), (0x10000, 0x1FFFF)]


def nasty_texts(number, seed=0):
    """Texts of added tokens, spaces, marks and characters of all blocks."""
    generator = random.Random(seed)

    def part():
        some = generator.choice([WORDS, SPACES, MARKS, None])
        return generator.choice(some) if some else chr(generator.randint(*generator.choice(BLOCKS)))

    return ["".join(part() for _ in range(generator.randint(0, 12))) for _ in range(number)]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name.endswith(("trimmed", "prefix")) else ())
        for name in (*NASTY, "unigrams", "merged pieces", "Marian")
    ],
)
def test_nasty_texts_are_split_and_joined_as_serving_does(name):
    if name in NASTY:
        tokenizer = NASTY[name]()
        function = compiled(tokenizer)
    else:
        tokenizer, function = tokenizer_and_graph(name)
    texts = [*nasty_texts(500), "", "\x01", "\x01 a", " ab", "  <mask>", "<a><b>the"]
    require_the_same(tokenizer, function, texts)


@pytest.mark.parametrize("add_prefix_space", [False, True])
def test_trimmed_places_are_those_of_the_library(add_prefix_space):
    tokenizer = trimming("roberta", add_prefix_space)
    library = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    texts = ["the the  the", " the", "  the ", " ", "  ", "a\n the <mask>  ab"]
    for text in [*texts, *nasty_texts(99)]:
        expected = library.encode(text)
        places = zip(expected.offsets, expected.special_tokens_mask, strict=True)
        assert tokenizer.analyze(text).offsets == [None if s else place for place, s in places]


@pytest.mark.parametrize("name", others_long(["WordPiece", "WordPiece, accents"]))
def test_any_ids_are_joined_as_serving_does(name):
    tokenizer = TOKENIZERS[name]()
    generator = np.random.default_rng(0)
    ids = generator.integers(len(tokenizer), size=(300, 5))
    found = in_graph(tokenizer).decode(tf.constant(ids), tf.ones_like(ids, tf.bool))
    assert [each.decode() for each in found.numpy()] == [tokenizer.decode(each) for each in ids]


def test_words_are_joined_by_spaces_and_padding_is_no_word():
    table = VectorizedWords(["<pad>", "<unk>", "<bos>", "<eos>", "a", "ü"], standardize=None)
    ids = np.array([[4, 5, 0, 4], [3, 1, 0, 0], [0, 0, 0, 0]])
    found = in_graph(table).decode(tf.constant(ids), tf.constant(ids != 3))
    assert [text.decode() for text in found.numpy()] == ["a ü a", "<unk>", ""]
    assert [table.decode(row[row != 3]) for row in ids] == ["a ü a", "<unk>", ""]


def test_pieces_for_bytes_are_read_as_in_serving():
    tokenizer = pieces("bpe", byte_fallback=True, size=400)
    tokens = in_graph(tokenizer)(tf.constant(nasty_texts(300)))
    expected = [tokenizer.analyze(text) for text in nasty_texts(300)]
    assert tokens.token_ids.to_list() == [each.token_ids for each in expected]
    places = zip(tokens.starts.to_list(), tokens.ends.to_list(), strict=True)
    assert [[*zip(*each)] for each in places] == [each.offsets for each in expected]


def test_texts_are_composed_as_unicodedata_composes_them():
    """All sorts of characters that compose, or that are not in order, of any text."""
    characters = [chr(each) for each in range(0xD800) if unicodedata.category(chr(each)) != "Cn"]
    decomposed = [unicodedata.normalize("NFD", each) for each in characters]
    composed = [each for each, apart in zip(characters, decomposed) if apart != each]
    pools = [
        [each for each in characters if unicodedata.combining(each)],
        sorted({apart[-1] for apart in decomposed if len(apart) > 1}),
        sorted({apart[0] for apart in decomposed if len(apart) > 1}),
        [each for each in composed if each < "\uac00"],
        ["\uac00", "\uac01", "\u1100", "\u1161", "\u11a8", "a", "e", " "],
    ]
    generator = random.Random(0)
    texts = ["a\u0327\u0301", "a\u0334\u0300", "\u1ea1\u0328", "\u1ecd\u0301", "q\u0307\u0323"]
    for _ in range(20_000):
        size = generator.randint(1, 4)
        texts.append("".join(generator.choice(generator.choice(pools)) for _ in range(size)))
    table = CharacterTable.learn([unicodedata.normalize("NFC", text) for text in texts])
    tokens = in_graph(table)(tf.constant(texts))
    assert tokens.token_ids.to_list() == [table.encode(text) for text in texts]


def test_a_word_of_too_many_merges_is_refused():
    generator = random.Random(0)
    letters = [chr(each) for each in range(0x21, 0x7F)]
    merges = [(a, b) for a in letters for b in letters]
    tokens = ["<|endoftext|>", *byte_characters(), *map("".join, merges)]
    tokenizer = byte_pairs({token: place for place, token in enumerate(tokens)}, merges)
    function = compiled(tokenizer)
    words = ["".join(generator.sample(string.ascii_letters, 40)) for _ in range(200)]
    require_the_same(tokenizer, function, [" ".join(words)])
    long = [*map("".join, itertools.product(string.ascii_letters, repeat=2))]
    *_, errors = function(tf.constant(["".join(long), "a b"]))
    refused, well = errors.numpy()
    assert b"a word takes more than 1000 merges" in refused and well == b""


def test_a_special_token_that_takes_the_spaces_behind_it_is_refused():
    tokens = json.loads(pairs("roberta").to_json())["added_tokens"]
    tokens = [each | {"rstrip": each["content"] == "<mask>"} for each in tokens]
    function = compiled(changed(pairs("roberta"), added_tokens=tokens))
    *_, errors = function(tf.constant(["the", "the <mask>"]))
    well, refused = errors.numpy()
    assert well == b"" and refused.startswith(b"text: must not hold <mask>, which is taken by")


@functools.cache
def real_texts():
    """The 9,513 reference questions, and 5,000 sentences of four languages."""
    with gzip.open(DATA / "reference-tokenization/bert_uncased_questions.jsonl.gz") as lines:
        questions = [json.loads(line) for line in lines]
    sentences = []
    for file in ("eng-cmn", "eng-deu", "eng-fra"):
        lines = (DATA / f"tatoeba/{file}.txt").read_text(encoding="utf-8").splitlines()
        sentences += [line.split("\t")[1] for line in lines[:4000]]
    assert len(questions) == 9513
    return questions, random.Random(0).sample(sentences, 5000)


def real_pieces(kind):
    questions, sentences = real_texts()
    texts = tuple([each["text"] for each in questions[:3000]] + sentences[:3000])
    return pieces(kind, texts=texts, size=4000, character_coverage=0.999)


REAL = {
    "WordPiece": lambda: word_piece(
        read_vocabulary(DATA / "vocab-bert" / "bert-base-uncased-vocab.txt")
    ),
    "byte pairs": lambda: byte_pairs(
        *read_byte_pairs(DATA / "vocab-gpt2/encoder.json", DATA / "vocab-gpt2/vocab.bpe")
    ),
    "unigrams": lambda: real_pieces("unigram"),
    "merged pieces": lambda: real_pieces("bpe"),
}


@needs_data
@pytest.mark.parametrize("name", others_long(REAL))
def test_all_reference_questions_and_5000_real_sentences_are_split_as_in_serving(name):
    tokenizer = REAL[name]()
    function = compiled(tokenizer)
    questions, sentences = real_texts()
    if name == "WordPiece":
        ids, *_ = function(tf.constant([each["text"] for each in questions]))
        assert ids.to_list() == [each["ids"] for each in questions]
    texts = [*(each["text"] for each in questions), *sentences]
    tied = split_otherwise(tokenizer, dict(enumerate(texts)))
    assert len(tied) <= (2 if name == "unigrams" else 0)  # which way of one score, sums say
    texts = [text for row, text in enumerate(texts) if row not in tied]
    given = tokenizer, function
    for begin in range(0, len(texts), 1000):
        some = texts[begin : begin + 1000]
        require_the_same(*given, some, special_ids_of(tokenizer), decode=False)
    require_the_same(*given, [*texts[:300], *texts[-300:]], special_ids_of(tokenizer))


@needs_data
@pytest.mark.parametrize("name", others_long(["byte pairs", "WordPiece"]))
def test_the_edge_cases_of_the_references_are_split_as_there(name):
    family = {"WordPiece": "bert_uncased", "byte pairs": "gpt2"}[name]
    cases = json.loads((DATA / f"reference-tokenization/{family}_edge_cases.json").read_bytes())
    ids, *_ = compiled(REAL[name]())(tf.constant([each["text"] for each in cases]))
    assert ids.to_list() == [each["ids"] for each in cases]


def test_a_row_whose_numbers_are_not_finite_is_refused():
    scores = tf.constant([[0.5, 0.5], [np.nan, 1.0], [-np.inf, 0.0]])
    labels, errors = tf.constant(["x", "y", "z"]), tf.constant(["", "", "text: is blank."])
    told = with_errors({"scores": scores, "label": labels}, errors)
    assert [*told["error"].numpy()] == [b"", NOT_FINITE.encode(), b"text: is blank."]
    assert [*told["label"].numpy()] == [b"x", b"", b""]
    assert told["scores"].numpy().tolist() == [[0.5, 0.5], [0.0, 0.0], [0.0, 0.0]]
    alone = with_errors({"score": scores[:, 0]}, tf.constant(["", "", ""]))
    assert [error == b"" for error in alone["error"].numpy()] == [True, False, False]
    of_two = with_errors({"texts": tf.fill([3, 2], "a"), "scores": scores}, tf.fill([3], ""))
    assert [error == b"" for error in of_two["error"].numpy()] == [True, False, True]
