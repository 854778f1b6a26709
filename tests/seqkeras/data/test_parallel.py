"""Pairs of texts: what is read of files in public forms, and what is said of others."""

import gzip

import pytest

from seqkeras.data.parallel import read_parallel, read_pronunciations, read_tab_separated
from seqkeras.data.texts import DataError, read_text
from tests.conftest import public_data

SENTENCES = "Ein Haus.\nZwei\u2028Häuser.\x85\n".encode()
PACKED = gzip.compress(SENTENCES)


def written(folder, **contents):
    """The paths of new files, name -> content."""
    for name, content in contents.items():
        content = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]


def test_a_line_of_one_file_stands_beside_that_of_the_other(tmp_path):
    source, target = written(tmp_path, en=b"\xef\xbb\xbfA house.\r\nTwo houses.", de=SENTENCES)
    rows = [(1, ("A house.", "Ein Haus.")), (2, ("Two houses.", "Zwei\u2028Häuser.\x85"))]
    assert read_parallel(source, target) == rows
    packed = tmp_path / "de.gz"
    packed.write_bytes(PACKED)
    assert read_parallel(source, packed) == rows


def test_the_first_two_fields_are_read(tmp_path):
    content = 'Go.\tVa !\tCC-BY 2.0\n\n"Go."\t« Va ! »\r\n'
    [path] = written(tmp_path, pairs=content)
    assert read_tab_separated(path) == [(1, ("Go.", "Va !")), (3, ('"Go."', "« Va ! »"))]


def test_variants_are_pairs_and_comments_are_none(tmp_path):
    content = ";;; of 1998\na AH0\na(2) EY1\na(3) EY2\nd'artagnan D AH0 # name, french\n"
    [path] = written(tmp_path, words=content)
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
        ({"en.gz": PACKED[:-9], "de": "a\n"}, "gz: not a whole gzip file: Compressed file"),
        ({"en.gz": "a\n", "de": "a\n"}, "en.gz: not a whole gzip file: Not a gzipped file"),
        (
            {"en.gz": PACKED[:20] + b"\xff\xff" + PACKED[22:], "de": "a\n"},
            "not a whole gzip file: ",
        ),
        ({"pairs": "a b\n"}, "pairs, line 1: expected a source, a tab .*; found no tab"),
        ({"pairs": "a\tb\n\tc\n"}, "pairs, line 2: the source is empty; remove the line."),
        ({"pairs": "a\t \tc\n"}, "pairs, line 1: the target is empty; remove the line."),
    ],
)
def test_a_file_in_another_form_is_named_with_its_line(contents, message, tmp_path):
    read = read_parallel if len(contents) == 2 else read_tab_separated
    with pytest.raises(DataError, match=message):
        read(*written(tmp_path, **contents))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a AH0\nb\n", "line 2: expected phonemes behind the word 'b'"),
        (";;; a\n", "there is no word"),
    ],
)
def test_a_word_without_phonemes_is_refused(content, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read_pronunciations(*written(tmp_path, words=content))
