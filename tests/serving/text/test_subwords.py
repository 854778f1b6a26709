import json
import pickle

import pytest

from seqkeras.serving.text import Encoding, Subwords, word_piece
from seqkeras.tokenizers.learn import learn_byte_pairs

TOKENS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat ##s do ##g . h ##e".split()


def made():
    return word_piece(TOKENS)


TOO_LITTLE = {"type": "WordPiece", "unk_token": "[X]", "continuing_subword_prefix": "##"}
DAMAGED = {
    "a template's token": {
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}],
            "pair": [],
            "special_tokens": {},
        }
    },
    "a table that is none": {
        "normalizer": {"type": "Precompiled", "precompiled_charsmap": "BAAAAP////8="}
    },
    "words of no length": {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
    "no unknown token": {
        "model": {**TOO_LITTLE, "max_input_chars_per_word": 100, "vocab": {"a": 0}}
    },
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_what_the_library_raises_is_a_value_error(damage):
    """It raises bare exceptions, and a BaseException where it panics; some only as it reads."""
    content = json.loads(made().to_json()) | DAMAGED[damage]
    message = "^Subwords: (content must be the text of|the tokenizer can not read this text)"
    with pytest.raises(ValueError, match=message) as caught:
        Subwords(json.dumps(content)).analyze("hello cat")
    assert "\n" not in str(caught.value)
    assert type(caught.value.__cause__).__name__ in ("Exception", "PanicException")


def test_a_text_stands_between_special_tokens():
    encoding = made().analyze("The cats: sat.")
    assert encoding.tokens == ["[CLS]", "the", "cat", "##s", "[UNK]", "sat", ".", "[SEP]"]
    assert encoding.token_ids == [2, 5, 6, 10, 1, 7, 13, 3]
    assert encoding.segment_ids == [0] * 8
    assert len(encoding) == 8
    assert made().encode("The cats: sat.") == encoding.token_ids[1:-1]


def test_a_pair_is_two_segments():
    encoding = made().analyze("the dog", "sat on")
    assert encoding.tokens == "[CLS] the do ##g [SEP] sat on [SEP]".split()
    assert encoding.segment_ids == [0, 0, 0, 0, 0, 1, 1, 1]
    assert made().analyze("the", "").tokens == ["[CLS]", "the", "[SEP]", "[SEP]"]


def test_offsets_are_places_in_the_text_that_was_given():
    text, pair = "  H\u00c9  the\0\u200b CATS\u535a", "Th\u0301e dogs"
    first, second = made().analyze(text), made().analyze(text, pair)
    assert first.offsets[0] is first.offsets[-1] is None
    cut = [text[start:end] for start, end in first.offsets[1:-1]]
    assert cut == ["H", "\u00c9", "the", "CAT", "S", "\u535a"]
    own = [pair[start:end] for start, end in second.offsets[len(first) : -1]]
    assert own == ["Th\u0301e", "do", "g", "s"]


def test_tokens_know_their_word():
    encoding = made().analyze("cats, dogs", "the mats")
    assert encoding.tokens == "[CLS] cat ##s [UNK] do ##g ##s [SEP] the mat ##s [SEP]".split()
    assert encoding.word_ids == [None, 0, 0, 1, 2, 2, 2, None, 0, 1, 1, None]


def test_windows_are_parts_of_a_context_behind_the_whole_text():
    text, context = "the cat", "dogs sat on the mats. the"  # 2 and 10 tokens
    tokens = "do ##g ##s sat on the mat ##s . the".split()
    whole = made().analyze(text, context)
    for step, starts in ((1, range(7)), (3, (0, 3, 6)), (4, (0, 4, 8)), (9, (0, 4, 8))):
        windows = made().windows(text, context, max_length=9, step=step)
        assert [window.tokens for window in windows] == [
            ["[CLS]", "the", "cat", "[SEP]", *tokens[start : start + 4], "[SEP]"]
            for start in starts
        ]
        for window, start in zip(windows, starts):
            assert window.offsets[4:-1] == whole.offsets[4 + start : 8 + start][: len(window) - 5]
            assert window.segment_ids == [0] * 4 + [1] * (len(window) - 4)
    [window] = made().windows(text, context, max_length=15, step=1)
    assert window == whole
    cut = made().windows(text, context, max_length=9, step=5, text_length=1)
    assert [each.tokens[1:3] for each in cut] == [["the", "[SEP]"]] * 2


def test_windows_without_room_for_the_context_are_refused():
    message = "^Subwords: max_length must leave room for the context beside 2 tokens; received 5.$"
    with pytest.raises(ValueError, match=message):
        made().windows("the cat", "sat", max_length=5, step=1)


def test_texts_are_cut_only_when_asked():
    tokenizer, long, short = made(), "the cat sat on the mat", "the dogs"  # 6 and 4 tokens
    assert len(tokenizer.analyze(long, short, max_length=13)) == 13
    message = r"^Subwords: there must be at most max_length, 12, tokens; received 13, 3 of them sp"
    with pytest.raises(ValueError, match=message):
        tokenizer.analyze(long, short, max_length=12)
    cut = tokenizer.analyze(long, short, max_length=11, truncate=True)
    assert cut.tokens == "[CLS] the cat sat on [SEP] the do ##g ##s [SEP]".split()
    assert cut.segment_ids == [0] * 6 + [1] * 5
    cut = tokenizer.analyze(long, short, max_length=10, truncate=True)  # of equals the second
    assert cut.tokens == "[CLS] the cat sat on [SEP] the do ##g [SEP]".split()
    assert tokenizer.analyze(long, max_length=3, truncate=True).tokens == ["[CLS]", "the", "[SEP]"]
    assert tokenizer.analyze(long, max_length=2, truncate=True).tokens == ["[CLS]", "[SEP]"]
    message = "^Subwords: max_length must leave room for 3 special tokens; received 2"
    with pytest.raises(ValueError, match=message):
        tokenizer.analyze(long, short, max_length=2, truncate=True)


def test_a_file_of_another_tool_neither_cuts_nor_pads(tmp_path):
    import tokenizers

    made().to_file(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    theirs.enable_truncation(3)
    theirs.enable_padding(length=11)
    theirs.save(str(tmp_path / "tokenizer.json"))
    text = "the cat sat on the mat"
    assert Subwords.from_file(tmp_path / "tokenizer.json").analyze(text) == made().analyze(text)


PLACES = [
    "",
    " ",
    "the cat",
    "  The  cats: sat. ",
    "[MASK] dog [SEP] the",
    "H\u00c9 the\0\u200b CATS\u535a",
    "\U0001f468\u200d\U0001f469 e\u0301",
    "the cat " * 40,
]


def tokenizers():
    learned = learn_byte_pairs(["the cat sat on the mats", "dogs hate h\u00e9"], 300)
    content = json.loads(learned.to_json())
    content["post_processor"] = {
        "type": "RobertaProcessing",
        "sep": ["</s>", 1],
        "cls": ["<s>", 0],
        "trim_offsets": True,
        "add_prefix_space": False,
    }
    return {
        "WordPiece": made(),
        "byte-level": learned,
        "RoBERTa": Subwords(json.dumps(content)),
    }


@pytest.mark.parametrize("name", ["WordPiece", "byte-level", "RoBERTa"])
def test_a_text_alone_and_among_others_is_read_as_one_that_is_put_together(name):
    """With `max_length`, `analyze` splits a text first and adds special tokens then."""
    tokenizer = tokenizers()[name]
    for text, among in zip(PLACES, tokenizer.analyze_all(PLACES), strict=True):
        expected = tokenizer.analyze(text, max_length=10_000)
        alone = tokenizer.analyze(text)
        assert type(expected) is Encoding and type(alone) is not Encoding
        assert alone == expected == among and expected == alone
        assert repr(pickle.loads(pickle.dumps(among))).endswith(repr(expected)[8:])
        assert len(among) >= tokenizer.num_special and not hasattr(among, "other")
    assert tokenizer.analyze("the cat") != tokenizer.analyze("the mat")
    assert tokenizer.analyze("the cat") != "the cat"


def test_a_text_that_is_none_among_others_is_refused():
    with pytest.raises(ValueError, match="^Subwords: text must be a string; received None.$"):
        made().analyze_all(["the cat", None])
