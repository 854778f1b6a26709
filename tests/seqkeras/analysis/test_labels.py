import bidi
import numpy as np

from seqkeras.analysis.labels import bidi_levels, reads_right_to_left, source_labels, visual_order


def hebrew(text):
    """Capitals stand for right-to-left letters, as in the examples of UAX #9."""
    return "".join(chr(ord(each) - 65 + 0x5D0) if each.isupper() else each for each in text)


def test_the_visual_order_is_that_of_unicode_bidi():  # python-bidi's other half, in Rust
    alphabet = "ab12 ,.-%$/+:\u05d0\u05d1\u0628\u062a\u0663\u064e\u200f\u060c"
    random = np.random.default_rng(5)
    for length in (1, 2, 3, 5, 7, 11, 13) * 31:
        text = "".join(random.choice(list(alphabet), length))
        expected = bidi.get_display(text, base_dir="R" if reads_right_to_left(text) else "L")
        assert "".join(text[index] for index in visual_order(text)) == expected


def test_the_order_is_a_permutation_whatever_the_text():
    alphabet = "ab12 ,.-%$\u05d0\u05d1\u0628\u062a\u0663\u064e\u200f()\t\n"
    alphabet += "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # embeddings, isolates
    alphabet += "\u200d\u0378\ud800"  # a joiner, an unassigned character, half a pair
    random = np.random.default_rng(11)
    for length in (1, 2, 3, 5, 7, 11, 13) * 17:
        text = "".join(random.choice(list(alphabet), length))
        assert sorted(visual_order(text)) == list(range(length))
        assert len(bidi_levels(text)) == length


def test_a_locale_in_front_does_not_turn_the_line():
    assert reads_right_to_left("he|" + hebrew("MAI"))
    assert reads_right_to_left("ar|\u0663\u200f/\u0665\u200f/\u0662")  # digits and marks alone
    assert not reads_right_to_left("de|3. Mai")
    assert not reads_right_to_left("a long line with one " + hebrew("WORD"))


def test_arabic_letters_keep_the_form_they_have_in_the_word():
    # seen, lam, alef, meem: initial, medial, final (no lam-alef ligature), isolated
    assert source_labels("\u0633\u0644\u0627\u0645") == ["\ufeb3", "\ufee0", "\ufe8e", "\ufee1"]
    fatha, joiner = "\u064e", "\u200d"  # a mark and a joiner keep a cell of their own
    assert source_labels("\u0633" + fatha + "\u0644") == ["\ufeb3", "\u25cc" + fatha, "\ufede"]
    assert source_labels("\u0633" + joiner) == ["\ufeb3", joiner]


def test_brackets_and_signs_are_turned_in_text_from_right_to_left():
    for text, drawn in ((hebrew("(AB) CD"), ")("), ("(ab) cd", "()"), (hebrew("A ≤ B"), "≥")):
        assert [each for each in source_labels(text) if each in "()≤≥"] == list(drawn)
