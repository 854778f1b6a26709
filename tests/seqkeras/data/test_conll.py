"""Sentences of CoNLL's columns and of JSON lines, as public files have them, and what is wrong."""

import json

import pytest

from seqkeras.data.conll import intended_tag, read_sentences, scheme_of, to_iob2
from seqkeras.data.texts import DataError
from tests.conftest import public_data

CONLL_2003 = """-DOCSTART- -X- O O

EU NNP B-NP I-ORG
rejects VBZ B-VP O

Peter NNP B-NP I-PER
Blackburn NNP I-NP I-PER"""
CONLL_U = """# sent_id = 1
# text = vámonos #
1-2\tvámonos\t_\tX
1\tvamos\tir\tVERB
2\tnos\tnosotros\tPRON
2.1\tnada\tnada\tPRON
3\t#\t#\tSYM
"""


def test_columns_are_counted_from_both_ends(write):
    path = write("train.conll", CONLL_2003)
    first, second = read_sentences(path).sentences
    assert first == (3, ("EU", "rejects"), ("I-ORG", "O"), range(3, 5), 1)
    assert second == (6, ("Peter", "Blackburn"), ("I-PER", "I-PER"), range(6, 8), 1)
    assert read_sentences(path, "1", "2").sentences[0].tags == ("NNP", "VBZ")
    assert read_sentences(path, "-4", "-2").sentences[0][1:3] == (
        ("EU", "rejects"),
        ("B-NP", "B-VP"),
    )


def test_comments_ranges_and_empty_nodes_of_conll_u_are_passed_over(write):
    path = write("train.conllu.gz", CONLL_U)
    [sentence] = read_sentences(path, "2", "4").sentences
    assert sentence == (4, ("vamos", "nos", "#"), ("VERB", "PRON", "SYM"), (4, 5, 7), 0)


@pytest.mark.parametrize(
    "mark", ["-DOCSTART- O\n", "  -DOCSTART- -X- O\n", "#begin document (a)\n", "# newdoc id = 1\n"]
)
def test_a_mark_between_documents_begins_another_one(mark, write):
    path = write("train.conll", f"a O\n\nb O\n\n{mark}\nc O\n\nd O\n{mark}e O\n")
    sentences = read_sentences(path).sentences
    assert [sentence.words for sentence in sentences] == [("a",), ("b",), ("c",), ("d",), ("e",)]
    assert [sentence.document for sentence in sentences] == [0, 0, 1, 1, 2]


GERMEVAL = """#\thttp://de.wikipedia.org/wiki/A [2009-10-17]
1\tAnna\tB-PER\tO
2\t#\tO\tO

#\tn-tv.de vom 26.02.2005 [2005-02-26]
1\tOtto\tB-PER\tO
"""
MULTICONER = """# id 5239d808\tdomain=en
Anna _ _ B-PER
# _ _ O


# id 5239d809\tdomain=en
Bonn _ _ B-LOC
"""
ONTONOTES = """#begin document (bc/cctv/00/cctv_0001); part 000
cctv 0 0 Anna NNP (PER)
cctv 0 1 # NN *
#end document
#begin document (bc/cctv/00/cctv_0002); part 000
cctv 0 0 Bonn NNP (LOC)

#end document
"""
TWEETS = "#hi\tO\n#\tO\nAnna\tB-PER\n\n# id 7\tdomain=en\nBonn\tB-LOC\n"
SPACED = "# sent_id = 1\nAnna B-PER\n# O\n\n#tag O\nBonn B-LOC\n"


@pytest.mark.parametrize(
    "content, columns, expected",
    [
        (GERMEVAL, ("2", "3"), [("Anna", "#"), ("Otto",)]),
        (MULTICONER, ("1", "4"), [("Anna", "#"), ("Bonn",)]),
        (MULTICONER.replace(" ", "\t").replace("#\tid\t", "# id "), (), [("Anna", "#"), ("Bonn",)]),
        (ONTONOTES, ("4", "5"), [("Anna", "#"), ("Bonn",)]),
        (TWEETS, (), [("#hi", "#", "Anna"), ("Bonn",)]),
        (SPACED, (), [("Anna", "#"), ("#tag", "Bonn")]),
    ],
    ids=["GermEval", "MultiCoNER", "MultiCoNER with tabs", "OntoNotes", "tweets", "spaces"],
)
def test_comments_are_passed_over_and_a_sign_is_a_word(write, content, columns, expected):
    path = write("train.conll", content)
    assert [sentence.words for sentence in read_sentences(path, *columns).sentences] == expected


def test_json_lines_name_their_lists(tmp_path):
    path = tmp_path / "train.jsonl"
    rows = [{"w": ["She", "left"], "t": ["O", "O"]}, {"w": [], "t": []}, {"w": ["!"], "t": ["X"]}]
    path.write_text("\n\n".join(map(json.dumps, rows)), encoding="utf-8")
    found, _ = read_sentences(path, "w", "t")
    assert found == [(1, ("She", "left"), ("O", "O"), (1, 1), 0), (5, ("!",), ("X",), (5,), 0)]


def test_sentences_that_can_not_be_used_are_left_out_if_asked(write):
    path = write("train.conll", "a X O\nb O\n\nc O\nd\n\ne O\nf O\n")
    found, left_out = read_sentences(path, skip_bad=True)
    assert [sentence.words for sentence in found] == [("e", "f")]
    assert left_out == [
        f"{path}, line 1: expected 2 columns, as most lines have; found 3.",
        f"{path}, line 5: expected 2 columns, as most lines have; found 1.",
    ]


@pytest.mark.parametrize(
    "name, sentences, scheme, first",
    [
        ("wnut17/wnut17train.conll", 3394, "IOB2", "@paulwalk"),
        ("wnut17/emerging.dev.conll", 1009, "IOB2", "Stabilized"),
        ("wikigold/wikigold.conll.txt", None, "IOB2", "010"),
        ("sec-filings-ner/FIN5.txt", None, "IOB2", "This"),
    ],
)
def test_public_files_are_read_whole(name, sentences, scheme, first):
    path = public_data(name)
    found = read_sentences(path).sentences
    assert sentences is None or len(found) == sentences
    assert found[0].words[0] == first
    assert scheme_of(tag for sentence in found for tag in sentence.tags) == scheme
    lines = path.read_text(encoding="utf-8").split("\n")
    words = [line for line in lines if line.strip() and not line.startswith("-DOCSTART-")]
    assert sum(len(sentence.words) for sentence in found) == len(words)


@pytest.mark.parametrize(
    "content, message",
    [
        ("a O\nb\n", r"x\.conll, line 2: expected 2 columns, as most lines have; found 1\. With -"),
        ("a O\n#tag\nb O\n", "line 2: expected 2 columns, as most lines have; found 1"),
        ("a\tO\n\t\tO\n", r"line 2: expected 2 columns, as most lines have; found 3\. With --skip"),
        ("a\tO\n \tO\n", r"line 2: a word must be there, and hold no space; found ''\. With "),
        ("a b\tO\n", r"line 1: a word must be there, and hold no space; found 'a b'\. With "),
        ("a\tO\nb\t\n", r"line 2: the word 'b' has no tag\. With "),
        ("-DOCSTART- O\n\n", r"x\.conll: there is no sentence in it\.$"),
        (" \n", r"x\.conll: the file is empty\.$"),
        ("word,tag\na,O\n", "line 1: expected a word and its tag, with spaces or tabs"),
        ("a film,tag\nOslo is far,O\n", "found 3; expected spaces or tabs between columns, or a"),
        ("{", "line 1: not JSON"),
        ("[]", "line 1: expected a JSON object, one a line"),
        ('{"tokens": ["a"]}', "line 1: there is no 'tags'; there are 'tokens'; --tag-column"),
        ('{"tokens": ["a"], "tags": [3]}', r"'tags' must be a list of strings; found \[3\]\."),
        ('{"tokens": ["a"], "tags": []}', "needs one tag for each word; found 1 words and 0 tags"),
        ('{"tokens": ["a b"], "tags": ["O"]}', "a word must be there, and hold no space"),
        ('{"tokens": ["\\ud800"], "tags": ["O"]}', "holds half of a character"),
    ],
)
def test_a_line_that_is_no_word_with_its_tag_is_named(write, content, message):
    suffix = "jsonl" if content[0] in "{[" else "csv" if "," in content else "conll"
    with pytest.raises(DataError, match=message):
        read_sentences(write(f"x.{suffix}", content))


def test_tags_of_iob1_become_those_of_iob2_and_these_stay():
    iob1 = ["I-PER", "I-PER", "B-PER", "O", "I-LOC", "I-PER"]
    iob2 = ("B-PER", "I-PER", "B-PER", "O", "B-LOC", "B-PER")
    assert to_iob2(iob1) == to_iob2(iob2) == iob2


@pytest.mark.parametrize(
    "tags, scheme",
    [
        (["O", "B-X", "I-X"], "IOB2"),
        (["O", "I-X"], "IOB2"),
        (["O", "B-X", "E-X", "S-Y"], "IOBES"),
        (["O", "B-X", "L-X", "U-Y"], "BILOU"),
        (["O", "B-X", "M-X", "E-X"], "BMES"),
        (["O", "B_X", "I_X"], None),
        (["NN", "VB"], None),
        (["O"], None),
        (["O", "B-"], None),
    ],
)
def test_a_scheme_is_told_by_the_letters_of_its_tags(tags, scheme):
    assert scheme_of(tags) == scheme


@pytest.mark.parametrize(
    "tag, intended",
    [
        ("0", "O"),
        ("o", "O"),
        ("B_PER", "B-PER"),
        ("I.PER", "I-PER"),
        ("B\u2013PER", "B-PER"),
        ("i-PER", "I-PER"),
        ("B:PER", "B-PER"),
        ("PER-B", "B-PER"),
        ("B-PER_X", "B-PER_X"),
        ("M-A-B", "M-A-B"),
        ("NN", "NN"),
        ("-LRB-", "-LRB-"),
        ("X", "X"),
    ],
)
def test_another_spelling_of_an_entitys_tag_is_recognised(tag, intended):
    assert intended_tag(tag) == intended


@pytest.mark.parametrize(
    "tags, scheme",
    [
        (["O"] * 80 + ["B-X"] * 15 + ["o", "-", "B-", "-X-", ""], "IOB2"),
        (["O"] * 80 + ["S-X"] * 14 + ["o"] * 6, None),
        (["O"] * 80 + ["U-X"] * 15 + ["I-X"] * 4 + ["S-X"], "BILOU"),
        (["O", "B-X", "o"], "IOB2"),
        (["O", "o"], None),
        (["NN", "-LRB-", "B-", "O"] * 30, None),
    ],
)
def test_few_odd_tags_leave_the_scheme_of_the_others(tags, scheme):
    assert scheme_of(tags, odd=0.05) == scheme
    assert scheme_of(tags) is None
