"""Columns of CSV, TSV and JSON lines files, and what is said of files that do not hold them."""

import csv
import re

import pytest

from seqkeras.data.columns import WaysOut, column_names, read_columns, require_columns
from seqkeras.data.texts import DataError

ROWS = [("a, b", "x"), ('say "so"', "y")]
LONG = "x" * 200_000
FILES = {
    "rows.csv": 'id,text,label\n1,"a, b",x\n\n2,"say ""so""",y\n',
    "rows.tsv": 'text\tid\tlabel\na, b\t1\tx\nsay "so"\t2\ty\n',
    "rows.jsonl": '{"text": "a, b", "label": "x"}\n\n{"label": "y", "text": "say \\"so\\""}\n',
}


def test_a_field_may_be_long_and_the_limit_of_the_csv_module_stays(write):
    limit = csv.field_size_limit()
    path = write("rows.csv", f'text,label\n{LONG},a\n"{LONG}\n{LONG}",b\n')
    found = [values for _, values in read_columns(path, ["text", "label"])]
    assert found == [(LONG, "a"), (f"{LONG}\n{LONG}", "b")]
    assert csv.field_size_limit() == limit


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_every_format_holds_the_same_rows(name, ends, mark, write):
    path = write(name, mark + FILES[name].replace("\n", ends))
    assert [row for _, row in read_columns(path, ("text", "label"))] == ROWS
    assert [row for _, row in read_columns(path, ("label",))] == [("x",), ("y",)]


def test_a_field_in_quotes_may_hold_line_ends(write):
    path = write("rows.csv", 'text,label\n"a\nb",x\nc,y\n')
    assert read_columns(path, ("text", "label")) == [(3, ("a\nb", "x")), (4, ("c", "y"))]


def test_characters_that_end_lines_elsewhere_stay_in_a_text(write):
    path = write("rows.tsv", "text\tlabel\na\u2028b\x85c\tx\n")
    assert read_columns(path, ("text",)) == [(2, ("a\u2028b\x85c",))]


def test_numbers_in_json_are_read_as_they_are_written(write):
    lines = '{"t": "a", "l": 1}\n{"t": "b", "l": true}\n{"t": 2.5, "l": "1"}\n'
    path = write("rows.jsonl", lines)
    found = [row for _, row in read_columns(path, ("t", "l"))]
    assert found == [("a", "1"), ("b", "true"), ("2.5", "1")]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("rows.txt", "text,label\n", "rows.txt: the name must end in .csv, .tsv, .jsonl."),
        ("rows.csv", "", "rows.csv: the file is empty."),
        ("rows.csv", "text,label\n", "rows.csv: there is no example in it."),
        ("rows.csv", "text,l\na,b\n", "there is no column 'label'; there are 'text', 'l'."),
        ("rows.csv", "text,label,text\n", "rows.csv: the header names 'text' twice."),
        ("rows.csv", b"text,label\n\xe9,b\n", "line 2: the byte 0xe9 is not UTF-8; save the file"),
        ("rows.csv", "text,label\na,b\nc\n", "line 3: expected 2 fields, as in the header; found"),
        ("rows.csv", 'text,label\n"a"b,c\n', "line 2: not CSV ("),
        ("rows.csv", 'text,label\na,b\n"a,c\nd,e\nf,g\n', "line 3: a quote of the row that begins"),
        ("rows.csv", 'text,label\n"a,b\nc,d\n"e",f\n', "line 4: not CSV (',' expected after '\""),
        (
            "rows.csv",
            f'text,label\na,b\n"{60 * (LONG + chr(10))}",c\n',
            "line 52: a field in the row that begins in line 3 has more than 10,000,000 charact",
        ),
        ("rows.csv", "text,label\n ,b\n", "line 2: 'text' is empty; remove the line."),
        ("rows.tsv", "text\tlabel\na\n", "line 2: expected 2 fields, as in the header; found 1."),
        ("rows.tsv", "text\tlabel\n\na\tb\tc\n", "line 3: expected 2 fields, as in the header;"),
        ("rows.tsv", "text\tlabel\na\t\n", "line 2: 'label' is empty; remove the line."),
        ("rows.jsonl", "[1]\n", "line 1: expected a JSON object, one a line."),
        ("rows.jsonl", '{"text": "a"}\n', "line 1: there is no column 'label'; there are 'text'."),
        ("rows.jsonl", '\n{"text": "a" "b"}\n', "line 2: not JSON: Expecting ',' delimiter: col"),
        ("rows.jsonl", "[" * 200 + "]" * 200, "line 1: not JSON: it is nested over 100 levels dee"),
        ("rows.jsonl", '{"text": "a", "label": null}\n', "'label' must be a text or a number; fou"),
        ("rows.jsonl", '{"text": "a\\ud83d", "label": 1}\n', "'text' holds half of a character."),
        ("rows.jsonl", '{"text": "a", "label": NaN}\n', "must be a text or a number; found NaN."),
        ("rows.csv", "text,label\ra,b\r", "its lines end in CR alone; save it with line ends of U"),
    ],
)
def test_what_holds_no_columns_is_refused_by_its_line(name, content, message, write):
    path = write(name, content)
    with pytest.raises(DataError, match=f"^{re.escape(str(path))}.*") as caught:
        read_columns(path, ("text", "label"))
    assert message in str(caught.value) and "\n" not in str(caught.value)
    try:
        require_columns(path, ("text", "label"))
    except DataError as told:
        assert str(told) == str(caught.value)


def test_a_first_line_that_lacks_a_column_is_refused_and_other_lines_are_not_read(write):
    for name, content in (
        ("rows.csv", "text,l\na\n"),
        ("rows.tsv", "text\tl\na\n"),
        ("rows.jsonl", '{"text": "a", "l": 1}\n7\n'),
    ):
        with pytest.raises(DataError, match="there is no column 'label'; there are 'text', 'l'"):
            require_columns(write(name, content), ("text", "label"))
        require_columns(write(name, content), ("text", "l"))
    require_columns(write("rows.csv", '"text\nbody",label\na,b\n'), ("text\nbody", "label"))
    with pytest.raises(DataError, match="a number from 1 to 2, or from -1 to -2 from the last; re"):
        require_columns(write("rows.csv", "a,b\n"), ("3",), header=False)
    for name in ("rows.csv", "rows.csv.gz"):  # which are no UTF-8 and no gzip file
        path = write(name, "text\n")
        path.write_bytes(b"\xff\n")
        require_columns(path, ("text",))


def test_files_that_are_not_there_and_columns_that_are_wanted_twice_are_refused(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for name in ("rows.csv", "folder.csv"):
        with pytest.raises(DataError, match=f"{name}: no such file."):
            read_columns(tmp_path / name, ("text",))
    with pytest.raises(DataError, match="columns must be distinct; received text, text."):
        read_columns(tmp_path / "rows.csv", ("text", "text"))


@pytest.mark.parametrize("name", FILES)
def test_a_file_says_which_columns_it_has(name, write):
    path = write(name, f"\ufeff{FILES[name]}")
    assert {*column_names(path)} - {"id"} == {"text", "label"}


@pytest.mark.parametrize("name", FILES)
def test_a_file_may_be_packed(name, write):
    packed, plain = write(f"{name}.gz", FILES[name]), write(name, FILES[name])
    assert read_columns(packed, ("text", "label")) == read_columns(plain, ("text", "label"))


def test_a_file_without_a_header_has_columns_by_number(write):
    path = write("cola.tsv", 'gj04\t1\t\tOur friends.\ngj04\t0\t*\tOne "more.\n')
    expected = [(1, ("Our friends.", "1")), (2, ('One "more.', "0"))]
    assert read_columns(path, ("4", "2"), header=False) == expected
    assert read_columns(path, ("-1", "-3"), header=False) == expected
    message = "a column is a number from 1 to 4, or from -1 to -4 from the last; received "
    for wrong in ("5", "0", "-5", "sentence"):
        with pytest.raises(DataError, match=f"{message}'{wrong}'; --text-column chooses it."):
            read_columns(path, (wrong,), header=False, options=("--text-column",))
    with pytest.raises(DataError, match="line 2: expected 2 fields, as in the first row; found 1."):
        read_columns(write("short.tsv", "a\tb\nc\n"), ("1",), header=False)


def test_the_form_may_be_told_where_the_name_does_not(write):
    path = write("msr.txt", '\ufeffQuality\t#1 String\t#2 String\n1\ta "b\tc\n')
    columns = ("Quality", "#1 String", "#2 String")
    assert read_columns(path, columns, form="tsv") == [(2, ("1", 'a "b', "c"))]
    with pytest.raises(DataError, match="the name must end in .csv, .tsv, .jsonl.$"):
        read_columns(path, columns)


def test_an_error_names_the_option_that_helps_where_there_is_one(write):
    ways_out = WaysOut("--skip-empty true", "--format")
    path = write("rows.csv", "text,label\n ,b\n")
    message = "line 2: 'text' is empty; remove the line, or leave it out by --skip-empty true.$"
    with pytest.raises(DataError, match=message):
        read_columns(path, ("text",), ways_out=ways_out)
    message = "must end in .csv, .tsv, .jsonl; --format tells the form of another name.$"
    with pytest.raises(DataError, match=message):
        read_columns(write("rows.txt", "text\n"), ("text",), ways_out=ways_out)


def test_a_missing_column_names_the_option_that_chooses_it(write):
    path = write("rows.csv", "text,label\na,b\n")
    given = {"options": ("--text-column", "--pair-column")}
    with pytest.raises(DataError, match="'text', 'label'; --pair-column chooses it.$"):
        read_columns(path, ("text", "pair"), **given)
    message = "; --pair-column chooses it; --header false reads a file whose first line is a row.$"
    with pytest.raises(DataError, match=message):
        read_columns(path, ("text", "pair"), **given, ways_out=WaysOut(header="--header false"))


@pytest.mark.parametrize(("name", "separator"), [("a.csv", ";"), ("a.csv", "\t"), ("a.tsv", ",")])
def test_a_file_divided_by_another_character_is_told_the_one_of_its_form(name, separator, write):
    path = write(name, f"text{separator}label\na{separator}b\n")
    with pytest.raises(DataError, match="; columns must be divided by commas, in .tsv by tabs.$"):
        read_columns(path, ("text", "label"))
