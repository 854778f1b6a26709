import re

import numpy as np
import pytest
import tokenizers

from seqkeras.serving.text import WordTable, whole_characters, word_places
from seqkeras.serving.text.trees import Nodes, Tree, node_arrays, parse_tree


def words(text):
    return [text[start:end] for start, end in word_places(text)]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", []),
        (" \n\x1c\0\u00a0", []),
        ("The cat's old-fashioned  mat.", "The cat ' s old - fashioned mat .".split()),
        ("3.5% of snake_case", "3 . 5 % of snake_case".split()),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),  # marks go with their letters
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("شكرا، مرحبا", ["شكرا", "،", "مرحبا"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("\u202eabc\u202c \u200b\u200d", ["abc\u202c"]),  # nothing to be seen is no word
        ("so 😀😀", ["so", "😀", "😀"]),
        ("👩🏽\u200d🚀 café", ["👩🏽\u200d🚀", "café"]),
        ("I ❤\ufe0f👍🏿a\u200d😀", ["I", "❤\ufe0f", "👍🏿", "a\u200d😀"]),
        ("🇨🇭🇩🇪🇫 🇨a🇭", ["🇨🇭", "🇩🇪", "🇫", "🇨", "a", "🇭"]),
        (
            "🏴\U000e0067\U000e007f! 😀\u200c น้ำ ｶﾞ",
            ["🏴\U000e0067\U000e007f", "!", "😀\u200c", "น้ำ", "ｶﾞ"],
        ),
        ("我爱Python3北京。𠀀", ["我", "爱", "Python3", "北", "京", "。", "𠀀"]),
        ("東京タワーへ", ["東", "京", "タワーへ"]),  # kana is no Chinese
        ("葛\U000e0100飾", ["葛\U000e0100", "飾"]),  # a variation stays with its character
        ("\ue000\U0001fae8", ["\ue000", "\U0001fae8"]),  # of private use, and newer than some
    ],
)
def test_words_are_runs_of_letters_and_single_signs(text, expected):
    assert words(text) == expected


def test_english_is_split_as_by_the_library_of_tokenizers():
    text = '"Who\'s there?" -- asked 2 (or 3) people; nobody, at 10:30 p.m., answered [#5] $4.20!'
    found = tokenizers.pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text)
    assert word_places(text) == [place for _, place in found]
    assert words(text) == re.findall(r"\w+|[^\w\s]", text)


def test_chinese_is_split_as_by_the_library_of_tokenizers():
    text = "北京大学的学生（2019年）喜欢BERT模型，它有12层。"
    spaced = tokenizers.normalizers.BertNormalizer(lowercase=False).normalize_str(text)
    found = tokenizers.pre_tokenizers.BertPreTokenizer().pre_tokenize_str(spaced)
    assert words(text) == [word for word, _ in found]


@pytest.mark.parametrize(
    "text, start, end, expected",
    [
        ("Zoe\u0308 is", 0, 3, "Zoe\u0308"),
        ("नमस्ते दुनिया", 0, 5, "नमस्ते"),
        ("a \u0301b", 0, 1, "a"),
        ("ｶﾞﾊﾟ", 2, 4, "ﾊﾟ"),
        ("🇨🇭🇩🇪", 1, 3, "🇨🇭🇩🇪"),
        ("\u1112\u1161\u11ab\u1100\uac00\u11a8", 5, 6, "\u1100\uac00\u11a8"),
        ("", 0, 0, ""),
        ("e\u0301", 0, 0, ""),
    ],
)
def test_a_part_of_a_text_holds_whole_characters(text, start, end, expected):
    start, end = whole_characters(text, start, end)
    assert text[start:end] == expected


CHARACTERS = [*"ae!\u0301\u093f\u200c\ufe0f", "न", "ｶ", "\uff9e", "น", "\u0e33", *"🇨🇭🇩🏽👩"]
CHARACTERS += [
    "👩\u200d🚀",
    "❤\ufe0f\u200d🔥",
    "\u200d🇨",
    "\u200da",
    "🏴",
    "\U000e0067",
    "\U000e007f",
]
CHARACTERS += ["\u1112", "\u1161", "\u11ab", "\uac00", "\uac01", "\ud7b0", "\ud7cb", "\ua960"]


def test_whole_characters_are_those_of_the_library_regex():
    regex = pytest.importorskip("regex")
    random = np.random.default_rng(0)
    for _ in range(3000):
        text = "".join(random.choice(CHARACTERS, random.integers(1, 9)))
        for found in regex.finditer(r"\X", text):
            for place in range(*found.span()):
                assert whole_characters(text, place, place + 1) == found.span()


@pytest.mark.parametrize("text", [3, None, "a\ud800"])
def test_what_is_no_text_has_no_words(text):
    with pytest.raises(ValueError, match="^words: text must "):
        word_places(text)


def test_a_table_counts_words_and_looks_them_up():
    texts = ["the Cat sat", "a cat, the dog", "dog"]
    split = [word for text in texts for word in words(text)]
    table = WordTable.learn(split, lowercase=True)
    assert table.words == ("<pad>", "<unk>", "cat", "dog", "the", ",", "a", "sat")
    assert WordTable.learn(split, min_count=2).words[2:] == ("dog", "the")
    assert table.encode("THE dogs, a caT") == [4, 1, 5, 6, 2]
    assert table.lookup("Cat") == 2
    assert WordTable(table.words).lookup("Cat") == 1
    assert WordTable.learn(["\u00e9"]).encode("e\u0301") == [2]  # composed
    assert table.decode([4, 3, 1, 0]) == "the dog <unk>"
    assert table.decode([table.id_of("sat")]) == "sat"


@pytest.mark.parametrize(
    "words, message",
    [
        (["a"], r"the first words must be <pad>, <unk>; received \('a',\)"),
        (["<pad>", "<unk>", ""], "a word must be a string that UTF-8 can hold, .*; received ''"),
        (["<pad>", "<unk>", "\udfff"], "a word must be .*; received '.udfff'"),
        (["<pad>", "<unk>", 3], "a word must be .*; received 3"),
        (["<pad>", "<unk>", "a", "b", "a"], "'a' comes twice"),
    ],
)
def test_a_wrong_table_is_refused(words, message):
    with pytest.raises(ValueError, match=f"^WordTable: {message}.$"):
        WordTable(words)


def test_labels_of_trees_may_be_missing_or_names():
    cat = Tree(None, word="cat")
    assert parse_tree("(cat)") == cat
    assert parse_tree(" ( (the)\t(cat))\n") == Tree(None, (Tree(None, word="the"), cat))
    assert parse_tree("(NP (DT the) (2 cat))") == Tree(
        "NP", (Tree("DT", word="the"), Tree(2, word="cat"))
    )


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "expected a tree in brackets; received none"),
        ("(a (b)", "expected 1 more closing brackets"),
        ("(" * 10**5, "expected 100000 more closing brackets"),
        ("((a) b)", "expected one word, or trees, under a node; received 1 words and 1 trees"),
        ("(a)" + "b" * 99, "expected one tree; received more after it: 'b{40}'"),
    ],
)
def test_what_is_no_tree_is_refused_in_one_line(text, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        parse_tree(text)


def test_nodes_are_written_as_their_brackets_and_read_with_higher_ones_first():
    nodes = Nodes(parse_tree("((a) ((b) (c)))"))
    assert [nodes.trees[place].word for place in nodes.written] == [None, "a", None, "b", "c"]
    [second] = nodes.levels[0]
    assert [nodes.trees[place].word for place in nodes.under(second)] == [None, "b", "c"]
    arrays = node_arrays([nodes], {"a": 3, "b": 5, "c": 7}.get)
    assert arrays["token_ids"].tolist() == [[0, 0, 3, 5, 7]]
    assert {array.dtype.name for array in arrays.values()} == {"int64"}


def test_a_tree_may_have_as_many_levels_as_nodes():
    count = 10**5  # looking at all nodes for each level would take minutes
    deep = Nodes(parse_tree("(" * count + "a" + ")" * count))
    assert len(deep.under(0)) == count
    assert deep.levels == [[count - 1 - height] for height in range(1, count)]
