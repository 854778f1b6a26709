import json

import pytest

from seqkeras.serving.text import BOS, EOS, PAD, SPECIAL_TOKENS, UNK, CharacterTable


def test_characters_are_learned_in_the_order_of_unicode():
    table = CharacterTable.learn(["béa", "日a\ud800", "😀"])  # no surrogate is learned
    assert table.characters[4:] == ("a", "b", "é", "日", "😀")


def test_text_is_composed_before_each_code_point_is_looked_up():
    table = CharacterTable.learn(["e\u00e9\u0301"])
    assert table.encode("\u00e9") == [5]
    assert table.encode("e\u0301") == [5]
    assert table.encode("x\u0301") == [1, 6]
    assert table.encode("E") == [UNK]


@pytest.mark.parametrize("text", ["z", "\0", "\ud800", "\U0010ffff"])
def test_an_unknown_character_is_unk(text):
    assert CharacterTable.learn(["a"]).encode_long(f"a{text}a").tolist() == [4, UNK, 4]
    assert CharacterTable.learn(["a"]).encode(f"a{text}a") == [4, UNK, 4]


def test_decoding_stops_at_eos_and_skips_special_tokens():
    assert CharacterTable.learn(["ab"]).decode([BOS, 4, UNK, 5, PAD, EOS, 4]) == "ab"


def test_the_file_of_a_table_is_its_type_and_its_characters(tmp_path):
    table = CharacterTable.learn(['aé日😀\u2028\\"'])
    table.to_file(tmp_path / "table.json")
    content = json.loads((tmp_path / "table.json").read_bytes())
    assert content == {"type": "characters", "characters": list(table.characters)}


@pytest.mark.parametrize(
    "characters, message",
    [
        ([], r"first characters must be <pad>, <unk>, <bos>, <eos>; received \(\)"),
        ([*"abcd"], r"first characters must be .* received \('a', 'b', 'c', 'd'\)"),
        ([*SPECIAL_TOKENS, "ab"], "must be one code point; received 'ab'"),
        ([*SPECIAL_TOKENS, ""], "must be one code point; received ''"),
        ([*SPECIAL_TOKENS, 7], "must be one code point; received 7"),
        ([*SPECIAL_TOKENS, "\ud800"], r"must be one code point; received '\\ud800'"),
        ([*SPECIAL_TOKENS, *"aba"], "'a' comes twice"),
    ],
)
def test_a_wrong_table_is_refused(characters, message):
    with pytest.raises(ValueError, match=f"^CharacterTable: .*{message}"):
        CharacterTable(characters)
