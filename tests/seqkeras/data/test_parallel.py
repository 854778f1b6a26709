"""Pairs of texts: what is read of files in public forms, and what is said of others."""

import gzip

import pytest

from seqkeras.data.parallel import read_parallel, read_pronunciations, read_tab_separated
from seqkeras.data.texts import DataError, read_text
from tests.conftest import public_data

SENTENCES = "Ein Haus.\nZwei\u2028Häuser.\x85\n".encode()
PACKED = gzip.compress(SENTENCES, mtime=0)


def test_a_line_of_one_file_stands_beside_that_of_the_other(write):
    source = write("en", "\ufeffA house.\r\nTwo houses.")
    rows = [(1, ("A house.", "Ein Haus.")), (2, ("Two houses.", "Zwei\u2028Häuser.\x85"))]
    for name in ("de", "de.gz"):
        assert read_parallel(source, write(name, SENTENCES)) == rows


def test_the_first_two_fields_are_read(write):
    path = write("pairs", 'Go.\tVa !\tCC-BY 2.0\n\n"Go."\t« Va ! »\r\n')
    assert read_tab_separated(path) == [(1, ("Go.", "Va !")), (3, ('"Go."', "« Va ! »"))]


def test_variants_are_pairs_and_comments_are_none(write):
    content = ";;; of 1998\na AH0\na(2) EY1\na(3) EY2\nd'artagnan D AH0 # name, french\n"
    path = write("words", content)
    rows = [(2, ("a", "AH0")), (3, ("a", "EY1")), (4, ("a", "EY2")), (5, ("d'artagnan", "D AH0"))]
    assert read_pronunciations(path) == rows
    assert [row for _, row in read_pronunciations(path, stress=False)] == [
        ("a", "AH"), ("a", "EY"), ("d'artagnan", "D AH"),
    ]  # fmt: skip


def test_public_files_are_read_whole():
    french = read_tab_separated(public_data("tatoeba/eng-fra.txt"))
    assert len(french) == 16252 and french[0] == (1, ("Go.", "Va !"))
    pair = [public_data(f"multi30k/raw/val.{language}.gz") for language in ("en", "de")]
    assert len(read_parallel(*pair)) == 1014
    words = read_pronunciations(public_data("cmudict/cmudict.dict"))
    assert len(words) == 121448 - 2  # variants that are written twice
    symbols = set(read_text(public_data("cmudict/cmudict.symbols")).split())
    assert {phoneme for _, (_, target) in words for phoneme in target.split()} <= symbols
    assert not any("(" in word or "#" in word for _, (word, _) in words)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ({"en": "a\nb\n", "de": "a\n"}, "en and .*de: must have as many lines .* have 2 and 1."),
        ({"en": "a\n\n", "de": "a\nb\n"}, "en, line 2: expected a sentence; the line is empty"),
        ({"en": "a\nb\n", "de": "a\n \n"}, "de, line 2: expected a sentence; the line is empty"),
        ({"en": "a\n", "de": b"\xff\n"}, "de, line 1: the byte 0xff is not UTF-8"),
        ({"en": "a\n", "de": ""}, "de: the file is empty."),
        ({"pairs": "a b\n"}, "pairs, line 1: expected a source, a tab .*; found no tab"),
        ({"pairs": "a\tb\n\tc\n"}, "pairs, line 2: the source is empty; remove the line."),
        ({"pairs": "a\t \tc\n"}, "pairs, line 1: the target is empty; remove the line."),
        ({"words": "a AH0\nb\n"}, "line 2: expected phonemes after the word 'b'"),
        ({"words": ";;; a\n"}, "there is no word"),
    ],
)
def test_a_file_in_another_form_is_named_with_its_line(contents, message, write):
    [name, *_] = contents
    read = {"en": read_parallel, "pairs": read_tab_separated, "words": read_pronunciations}[name]
    with pytest.raises(DataError, match=message):
        read(*map(write, contents, contents.values()))


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        (PACKED[:-9], "gz: not a whole gzip file: Compressed file"),
        (b"a\n", "en.gz: not a whole gzip file: Not a gzipped file"),
        (PACKED[:20] + b"\xff\xff" + PACKED[22:], "not a whole gzip file: "),
    ],
)
def test_a_file_that_is_not_packed_whole_is_refused(packed, message, tmp_path):
    path = tmp_path / "en.gz"
    path.write_bytes(packed)
    with pytest.raises(DataError, match=message):
        read_text(path)
