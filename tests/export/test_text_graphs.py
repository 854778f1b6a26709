"""Tokenizers in a graph give what `serving.text` gives: ids, places, and texts again."""

import functools
import gzip
import io
import json
import os
import random
from pathlib import Path

import pytest
import sentencepiece
import tensorflow as tf

from export.text_graphs.byte_pairs import byte_characters
from export.text_graphs.characters import checked
from export.text_graphs.reading import Reader, in_graph
from serving.text import (
    SentencePieces,
    Subwords,
    byte_pairs,
    read_byte_pairs,
    read_vocabulary,
    word_piece,
)

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
    "byte pairs": pairs,
    "byte pairs, RoBERTa": lambda: pairs("roberta"),
    "unigrams": lambda: pieces("unigram"),
    "unigrams, as they are": lambda: pieces(
        "unigram", normalization_rule_name="identity", add_dummy_prefix=False
    ),
    "merged pieces": lambda: pieces("bpe", remove_extra_whitespaces=False),
    "Marian": lambda: pieces("unigram", vocabulary=True),
}


def compiled(tokenizer):
    """The tokenizer in a graph: texts to ids, starts and ends, and what decoding gives."""
    tokenize = in_graph(tokenizer)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)], autograph=False)
    def function(texts):
        tokens = tokenize(checked(texts, accepted="(?s).*"))
        kept = tf.sequence_mask(tokens.token_ids.row_lengths())
        decoded = tokenize.decode(tokens.token_ids.to_tensor(), kept)
        return tokens.token_ids, tokens.starts, tokens.ends, decoded

    return function


def special_ids_of(tokenizer):
    """The ids that a written special token has."""
    if not isinstance(tokenizer, Subwords):
        return set()
    return {each["id"] for each in json.loads(tokenizer.to_json())["added_tokens"]}


def require_the_same(tokenizer, function, texts, decode=True):
    """Assert that a graph gives for every text what the tokenizer gives."""
    ids, starts, ends, decoded = function(tf.constant(texts))
    ids, starts, ends = (each.to_list() for each in (ids, starts, ends))
    special_ids = special_ids_of(tokenizer)
    for row, text in enumerate(texts):
        encoding = tokenizer.analyze(text)
        own = [place for place, each in enumerate(encoding.offsets) if each is not None]
        token_ids = [encoding.token_ids[place] for place in own]
        if special_ids & set(ids[row]):  # in the text: the template's look the same to `analyze`
            token_ids, own = tokenizer.encode(text), None
        assert ids[row] == token_ids, text
        if own is not None:
            places = list(zip(starts[row], ends[row], strict=True))
            assert places == [encoding.offsets[place] for place in own], text
        if decode:
            assert decoded[row].numpy().decode() == tokenizer.decode(token_ids), text


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_graph_splits_and_joins_texts_as_serving_does(name):
    tokenizer = TOKENIZERS[name]()
    function = compiled(tokenizer)
    texts = [*TEXTS, "", ">>fra<< the cat", ">>deu<<the cat", "the >>fra<<"]
    require_the_same(tokenizer, function, texts)
    require_the_same(tokenizer, function, [""])


@pytest.mark.parametrize("name", ["WordPiece", "byte pairs"])
def test_a_long_word_is_split(name):
    tokenizer, text = TOKENIZERS[name](), "ab " * 5 + "a" * 20_000
    ids, *_ = compiled(tokenizer)(tf.constant([text]))
    assert ids[0].numpy().tolist() == tokenizer.encode(text)


@pytest.mark.parametrize("name", ["WordPiece", "byte pairs", "unigrams"])
def test_texts_over_the_limit_are_refused(name):
    reader = Reader(TOKENIZERS[name](), limit=7)
    assert reader(tf.constant(["the"])).lengths[0] <= 7
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 7 tokens; nothing was trunc"):
        reader(tf.constant(["the", "the cat sat on the mat and the cat"]))
    with pytest.raises(tf.errors.InvalidArgumentError, match="text: at most 896 characters for 7 "):
        reader(tf.constant(["the", "a" * 1_000_000]))


@pytest.mark.parametrize("name", ["WordPiece", "byte pairs, RoBERTa", "Marian"])
@pytest.mark.parametrize("pair", [False, True])
def test_texts_stand_between_the_special_tokens_of_the_template(name, pair):
    tokenizer = TOKENIZERS[name]()
    if pair and name == "Marian":
        pytest.skip("has no pairs")
    texts = [["the cat", "sat on the mat"], ["hats", "!"]][: 1 + pair]
    read = Reader(tokenizer, limit=40)(*map(tf.constant, texts))
    for row, each in enumerate(zip(*texts, strict=True)):
        encoding = tokenizer.analyze(*each)
        size = len(encoding)
        assert read.lengths[row] == size
        assert read.token_ids[row, :size].numpy().tolist() == encoding.token_ids
        assert read.segment_ids[row, :size].numpy().tolist() == encoding.segment_ids
        places = [(-1, -1) if place is None else place for place in encoding.offsets]
        starts, ends = (each[row].numpy().tolist() for each in (read.starts, read.ends))
        assert list(zip(starts, ends, strict=True))[:size] == places
        assert not read.token_ids[row, size:].numpy().any()
        assert set(starts[size:]) <= {-1}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("WordPiece", "a\ufdd0b", r"text: must hold no noncharacter, U\+FDD0 to U\+FDEF\."),
        ("unigrams", b"a\xffb", r"text: must be UTF-8\."),
        ("unigrams", b"a\xed\xa0\x80b", r"text: must be UTF-8\."),  # a lone surrogate
    ],
)
def test_what_a_graph_can_not_split_is_refused(name, text, message):
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        compiled(TOKENIZERS[name]())(tf.constant(["the", text]))


def changed(tokenizer, **fields):
    return Subwords(json.dumps(json.loads(tokenizer.to_json()) | fields))


@pytest.mark.parametrize(
    "text",
    [
        "<mask>",
        " <mask>",
        "the  \t<mask> sat",
        "the<mask><mask> \u3000<mask>the <mask> ",
        "  the </s> <mask>  a\n\n<mask>",
    ],
)
def test_a_special_token_takes_the_spaces_before_it(text):
    tokenizer = pairs("roberta")
    read = Reader(tokenizer, limit=40)(tf.constant(["the <mask>", text, "at  "]))
    encoding = tokenizer.analyze(text)
    size = len(encoding)
    assert read.token_ids[1, :size].numpy().tolist() == encoding.token_ids
    places = zip(read.starts[1, :size].numpy(), read.ends[1, :size].numpy(), strict=True)
    assert list(places) == [(-1, -1) if place is None else place for place in encoding.offsets]
    assert read.lengths.numpy().tolist() == [4, size, len(tokenizer.analyze("at  "))]


def test_a_special_token_that_takes_the_spaces_behind_it_is_refused():
    tokens = json.loads(pairs("roberta").to_json())["added_tokens"]
    tokens = [each | {"rstrip": each["content"] == "<mask>"} for each in tokens]
    function = compiled(changed(pairs("roberta"), added_tokens=tokens))
    with pytest.raises(tf.errors.InvalidArgumentError, match="text: must not hold <mask>, which i"):
        function(tf.constant(["the", "the <mask>"]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: changed(wordpieces(), normalizer={"type": "NFC"}), "normalizer must be BERT's"),
        (lambda: changed(pairs(), normalizer={"type": "NFC"}), "split as GPT-2's are, and nothing"),
        (lambda: pieces("unigram", byte_fallback=True, size=400), "no pieces for bytes"),
        (lambda: pieces("char"), "must be one of unigrams or byte pairs"),
        (lambda: pieces("bpe", user_defined_symbols="cat"), "no pieces of the user's own"),
    ],
)
def test_a_tokenizer_that_no_graph_can_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        in_graph(make())


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
@pytest.mark.parametrize("name", REAL)
def test_all_reference_questions_and_5000_real_sentences_are_split_as_in_serving(name):
    tokenizer = REAL[name]()
    function = compiled(tokenizer)
    questions, sentences = real_texts()
    texts = [each["text"] for each in questions]
    if name == "WordPiece":
        for begin in range(0, len(texts), 1000):
            ids, *_ = function(tf.constant(texts[begin : begin + 1000]))
            assert ids.to_list() == [each["ids"] for each in questions[begin : begin + 1000]]
    for begin in range(0, len(texts), 1000):
        require_the_same(tokenizer, function, texts[begin : begin + 1000], decode=False)
    for begin in range(0, len(sentences), 1000):
        require_the_same(tokenizer, function, sentences[begin : begin + 1000], decode=False)
    require_the_same(tokenizer, function, [*texts[:300], *sentences[:300]])


@needs_data
@pytest.mark.parametrize("name", ["WordPiece", "byte pairs"])
def test_the_edge_cases_of_the_references_are_split_as_there(name):
    family = {"WordPiece": "bert_uncased", "byte pairs": "gpt2"}[name]
    cases = json.loads((DATA / f"reference-tokenization/{family}_edge_cases.json").read_bytes())
    ids, *_ = compiled(REAL[name]())(tf.constant([each["text"] for each in cases]))
    assert ids.to_list() == [each["ids"] for each in cases]
