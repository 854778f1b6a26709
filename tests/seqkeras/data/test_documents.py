"""Documents of plain text: sentences, their ends, what is held out, and shards of them."""

import gzip

import pytest

from seqkeras.data.documents import Corpus, read_documents
from seqkeras.data.texts import DataError


def documents_of(corpus):
    return [document for shard in corpus.shards for document in corpus.read(shard)]


def many(count):
    """Documents that all differ, of one to three lines, with letters of several bytes."""
    return [
        [f"Größe {number} {line} ‘é’" for line in range(1 + number % 3)] for number in range(count)
    ]


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_an_empty_line_ends_a_document_and_lines_are_sentences(write, name):
    path = write(name, "\ufeffa b.\r\n c \r\n\r\n\n \nd e\n")
    assert read_documents(path, "lines") == [["a b.", "c"], ["d e"]]


def test_prose_joins_lines_and_cuts_sentences(write):
    path = write(
        "book.txt",
        "CHAPTER I\n\n\nMr. Fox came to\nthe old house. “Who is there?” asked J. Owl. No one!\n\n"
        "It was 3.5 miles . . . far.\n\n\n\n\nCHAPTER II\n\n他来了。他走了！\n",
    )
    assert read_documents(path, "prose") == [
        [
            "CHAPTER I",
            "Mr. Fox came to the old house.",
            "“Who is there?” asked J. Owl.",
            "No one!",
            "It was 3.5 miles . . . far.",
        ],
        ["CHAPTER II", "他来了。", "他走了！"],
    ]


def test_a_title_of_wikitext_begins_a_document_and_its_marks_are_undone(write):
    text = " = A = \n \n He had 1 @,@ 000 <unk> . It @-@ s . \n \n = = Part = = \n \n b \n \n"
    text += " = B c = \n \n d \n"
    assert read_documents(write("wiki.tokens", text), "prose") == [
        ["= A =", "He had 1,000 [UNK] .", "It-s .", "= = Part = =", "b"],
        ["= B c =", "d"],
    ]


@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize("shard_bytes", [1, 40, 173, 10**6])
def test_shards_hold_every_document_once_and_in_order(write, suffix, shard_bytes):
    documents = many(23)
    paths = [
        write(f"{number}.txt{suffix}", "\n\n".join(map("\n".join, part)) + "\n")
        for number, part in enumerate((documents[:9], documents[9:]))
    ]
    corpus = Corpus.of_files(paths, "lines", shard_bytes=shard_bytes)
    assert documents_of(corpus) == documents
    assert corpus.documents == 23 and corpus.validation == []
    assert len(corpus.shards) == {1: 23, 10**6: 2}.get(shard_bytes, len(corpus.shards))


def test_what_is_held_out_is_not_trained_on(write):
    documents = many(43)
    path = write("text.txt", "\n\n".join(map("\n".join, documents)))
    corpus = Corpus.of_files([path], "lines", held_out=0.1, shard_bytes=100)
    assert corpus.validation == documents[9::10]
    left = [document for place, document in enumerate(documents) if place % 10 != 9]
    assert documents_of(corpus) == left


@pytest.mark.parametrize("share, count", [(0.4, 24), (0.7, 42), (0.99, 59), (1 / 3, 20)])
def test_as_many_documents_are_held_out_as_the_share_says(write, share, count):
    path = write("text.txt", "\n\n".join(map("\n".join, many(60))))
    corpus = Corpus.of_files([path], "lines", held_out=share)
    assert len(corpus.validation) == count and len(documents_of(corpus)) == 60 - count


def test_of_few_documents_two_are_held_out(write):
    path = write("text.txt", "a\n\nb\n\nc\n\nd\n\ne")
    assert Corpus.of_files([path], "lines", held_out=0.05).validation == [["c"], ["e"]]
    assert Corpus.of_files([path], "lines").validation == []


def test_no_more_than_a_thousand_documents_are_held_out(write, monkeypatch):
    monkeypatch.setattr("seqkeras.data.documents.MOST_HELD_OUT", 5)
    documents = many(61)
    path = write("text.txt", "\n\n".join(map("\n".join, documents)))
    corpus = Corpus.of_files([path], "lines", held_out=0.5)
    assert corpus.validation == documents[15::16]
    assert len(documents_of(corpus)) == 61 - len(corpus.validation)


@pytest.mark.parametrize(
    "contents, message",
    [
        ({"a.txt": b" \n\n"}, "the file is empty"),
        ({"a.txt": b"a\nb \xff\n"}, "line 2: the byte 0xff is not UTF-8"),
        ({"a.gz": gzip.compress(b"a line\n" * 9999)[:60]}, "not a whole gzip file"),
        ({"a.txt": None}, "no such file"),
        ({}, "there is no file of text"),
    ],
)
def test_a_file_without_documents_is_refused(tmp_path, contents, message):
    paths = [tmp_path / name for name in contents]
    for path, content in zip(paths, contents.values()):
        if content is not None:
            path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        Corpus.of_files(paths, "lines")
