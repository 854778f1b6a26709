import functools
import hashlib
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import sentencepiece
import tokenizers

from seqkeras.tokenizers import learn_byte_pairs, learn_sentence_pieces, learn_word_piece
from tests.conftest import CHECKOUT
from tests.references.tokenizers import byte_pairs, bytes_to_characters
from tests.refusals import refusals
from tests.seqkeras.tokenizers.texts import SPECIAL_TOKENS, special_texts

TEXTS = """The cat sat on the mat. The cats sat; the mats were sat on!
A dog and another dog ran to the log, and over the logs.
Über den Wolken: die Katze saß, die Katzen saßen, die Hunde rannten.
日本語の文 and 12 345 numbers, unwanted and unwanting.""".split("\n")


def test_byte_pairs_are_learned_as_the_paper_says():
    """Algorithm 1 of Sennrich et al.: again and again a most frequent pair becomes one symbol."""
    texts = [word for text in TEXTS for word in re.findall(r"[^\W\d_]+", text)]
    tokenizer, alphabet = learn_byte_pairs(texts, 300), bytes_to_characters()
    merges = [tuple(pair) for pair in json.loads(tokenizer.to_json())["model"]["merges"]]
    words = [[alphabet[each] for each in text.encode()] for text in texts]
    for done, pair in enumerate(merges):
        counts = Counter(each for word in words for each in zip(word, word[1:]))
        assert counts[pair] == max(counts.values()) >= 2
        words = [byte_pairs(word, merges[: done + 1]) for word in words]
    assert len(merges) > 20


def test_every_character_within_a_word_gets_a_token_whatever_stands_beside_it():
    texts = ["a\x1cb ç\u0301d  e-f", "日本語 ΣΑΣ", "x\u00a0y\u2003zw", "\u0301q r\ts\nt"]
    learned = learn_word_piece(texts, 100, min_count=100)
    for text in texts:
        for word in learned.words(text):
            assert "[UNK]" not in [learned.token_of(i) for i in learned.encode(word)]
            assert all(learned.id_of(f"##{character}") for character in word[1:])


def test_the_example_of_minbpe_is_learned_as_it_says():
    tokenizer = learn_byte_pairs(["aaabdaaabac"], 257 + 3)
    assert tokenizer.analyze("aaabdaaabac").tokens == ["aaab", "d", "aaab", "a", "c"]
    assert tokenizer.id_of("<|endoftext|>") == len(tokenizer) - 1 == 259


def test_a_learned_word_piece_knows_every_character_of_its_texts():
    tokenizer = learn_word_piece(TEXTS, 150)
    for text in TEXTS:
        encoding = tokenizer.analyze(text)
        assert "[UNK]" not in encoding.tokens
        assert tokenizer.decode(encoding.token_ids).count("##") == 0
    assert tokenizer.id_of("[PAD]") == 0 and len(tokenizer) <= 150
    assert "the" in tokenizer.analyze("The").tokens
    cased = learn_word_piece(TEXTS, 150, lowercase=False)
    assert cased.decode(cased.encode("The cats")) == "The cats"
    assert len(tokenizer.encode("unwanted")) < len("unwanted")


@pytest.mark.parametrize(
    "learn, mask, others",
    [
        (learn_word_piece, "[MASK]", ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]),
        (functools.partial(learn_byte_pairs, form="roberta"), "<mask>", ["<s>", "</s>", "<pad>"]),
    ],
)
def test_the_mask_alone_is_read_in_a_text_where_it_is_asked_for(learn, mask, others):
    known = [*TEXTS, *special_texts()]
    tokenizer, without = learn(known, 400, masks=True), learn(known, 400)
    for text in [f"the {mask} sat", f"the{mask}sat", mask]:
        assert tokenizer.encode(text).count(tokenizer.id_of(mask)) == 1
        assert tokenizer.id_of(mask) not in without.encode(text)
    for token in others:
        assert tokenizer.id_of(token) not in tokenizer.encode(f"the {token} sat{token}")
    if tokenizer.is_word_piece:  # no part of a special token but its word is learned
        pieces = {tokenizer.token_of(index) for index in range(len(tokenizer))} - {*SPECIAL_TOKENS}
        assert not any({*"[]"} & {*piece.removeprefix("##")} for piece in pieces if len(piece) > 3)
    library = tokenizers.Tokenizer.from_str(tokenizer.to_json())  # another reader of the file
    texts = [f"a{token} b {token}" for token in [mask, *others]]
    assert [library.encode(text).ids for text in texts] == [
        tokenizer.analyze(text).token_ids for text in texts
    ]
    assert tokenizer.decode(tokenizer.analyze(f"the {mask}", " on").token_ids) == "the on"


@pytest.mark.parametrize("model", ["unigram", "bpe"])
@pytest.mark.parametrize("options", [{}, {"split_by_unicode_script": False}])
def test_every_character_has_a_piece_wherever_it_stands(model, options):
    texts = [
        "the <unk> of the house </s> <s> <pad>",  # names of special pieces
        "an old house \u2585\u2587\u2585",  # the first is reserved by the library
        "\ue000 \ue001",  # for private use
        "house " * 1000 + "\u1e9e",  # more than 4,192 bytes
        "\u6f22" * 4192 + "\u5b57",  # with no space to cut at
        "a\u0301" * 4192,
    ]
    tokenizer = learn_sentence_pieces(
        5 * texts,
        90,
        model,
        character_coverage=1.0,
        hard_vocab_limit=False,
        rules={"Q": "q"},
        **options,
    )
    special = {*range(4)}
    for text in texts:
        assert not special & {*tokenizer.encode(text)}
        assert tokenizer.decode(tokenizer.encode(text)) == text.strip()
    assert [tokenizer.token_of(index) for index in range(4)] == ["<pad>", "<unk>", "<s>", "</s>"]
    reread = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    assert (reread.pad_id(), reread.unk_id(), reread.bos_id(), reread.eos_id()) == (0, 1, 2, 3)


def test_a_long_line_is_learned_from_as_its_parts_are():
    lines = ["the cat sat on the mat and the dog ran over the log"] * 400
    cut = learn_sentence_pieces(lines, 40, "bpe", hard_vocab_limit=False)
    assert learn_sentence_pieces([" ".join(lines)], 40, "bpe", hard_vocab_limit=False) == cut


def test_a_warning_of_sentencepiece_is_a_warning_of_ours(monkeypatch):
    def train(logstream, model_writer, **_):
        logstream.write("I0 00:00 1 a.cc:1] said\nW0000 00:00:1.5 20743 b.cc:40] Few\n" * 2)
        model_writer.write(made.model)

    made = learn_sentence_pieces(TEXTS, 60)
    monkeypatch.setattr(sentencepiece.SentencePieceTrainer, "train", train)
    with pytest.warns(
        UserWarning, match="^learn_sentence_pieces: sentencepiece warns: Few$"
    ) as said:
        learn_sentence_pieces(TEXTS, 60)
    assert len(said) == 1


LEARN = """
import sys
from pathlib import Path
from seqkeras.tokenizers import learn_byte_pairs, learn_sentence_pieces, learn_word_piece
from tests.seqkeras.tokenizers.test_learn import TEXTS
folder = Path(sys.argv[1])
learn_word_piece(TEXTS, 150).to_file(folder / "word_piece")
learn_byte_pairs(TEXTS, 300).to_file(folder / "byte_pairs")
learn_sentence_pieces(TEXTS, 50).to_file(folder / "sentence_pieces")
"""


def test_the_same_texts_make_the_same_vocabulary_in_every_process(tmp_path):
    found = set()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        command = [sys.executable, "-c", LEARN, str(tmp_path / name)]
        subprocess.run(command, cwd=CHECKOUT, check=True, env={**os.environ, "PYTHONHASHSEED": "0"})
        files = sorted(Path(tmp_path / name).iterdir())
        found.add(tuple(hashlib.sha256(file.read_bytes()).hexdigest() for file in files))
    assert len(found) == 1 and len(*found) == 3


def pieces_of(texts=("the cat sat on the mat and the dog ran over the log",), **options):
    return lambda: learn_sentence_pieces(texts, **{"vocab_size": 20, **options})


BLANK = "learn_sentence_pieces: texts must hold one that is not blank."
test_vocabularies_that_can_not_be_learned_are_refused = refusals(
    (lambda: learn_word_piece(TEXTS, 20), "learn_word_piece: vocab_size must be at least ... alon"),
    (lambda: learn_byte_pairs(TEXTS, 256), "vocab_size must be at least 257, ..."),
    (
        pieces_of(model="word"),
        "learn_sentence_pieces: model must be one of unigram, bpe; received ",
    ),
    (pieces_of(vocab_size=4000), "vocab_size must be at most 22, ... fewer; received 4000."),
    (pieces_of(vocab_size=5), "vocab_size must be at least 19, ... have none; received 5."),
    (pieces_of(vocab_size=0), "learn_sentence_pieces: vocab_size must be at least 1; received 0."),
    (pieces_of([]), BLANK),
    (pieces_of(["", " "]), BLANK),
    (pieces_of(pad_id=3, unk_id=3), "pad_id must be another id than those before."),
    (pieces_of(character_coverage=7.0), "the options must satisfy ...character_coverage() <= 1.0."),
    (pieces_of(nonsense=3), 'unknown field name "nonsense" in TrainerSpec.'),
    (pieces_of(user_defined_symbols=["a", "a"]), "a is already defined. ... are not allowed."),
)
