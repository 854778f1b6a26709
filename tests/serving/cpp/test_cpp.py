"""`serving/cpp` gives Python's answers, and refuses what it must in one line."""

import functools
import hashlib
import re
import shutil

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.export.__main__ import main as export
from seqkeras.serving.manifest import DecodingDefaults
from seqkeras.serving.text import CharacterTable
from tests.serving.cpp.built import answer
from tests.serving.javascript.bundles import gpt, transformer

pytestmark = pytest.mark.long

TABLE = CharacterTable.learn(["abcdefghijklm \u00e9\uac01"])
# In NFC and not, of several bytes, not in the table, blank before and behind.
TEXTS = [
    "hijkl",
    "e\u0301\u00e9 b\u0323\u0307",
    "\u1100\u1161\u11a8a",
    " a\t",
    "\U0001f600\0b",
    "m" * 31,
]
BUNDLES = {
    "translate": transformer(TABLE),
    "translate by beams": transformer(
        TABLE, decoding=DecodingDefaults(3, 0.6, start_id=5, end_id=7)
    ),
    "generate": gpt(TABLE),
}


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Writes a bundle, by its name, once; its folder."""

    @functools.cache
    def write(name):
        folder = tmp_path_factory.mktemp("written") / "bundle"
        BUNDLES[name](folder)
        return folder

    return write


def lines(texts):
    return "".join(f"{text}\n" for text in texts).encode()


def as_line(text):
    return re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\x{ord(found[0]):02x}", text)


@pytest.mark.parametrize("name", BUNDLES)
def test_answers_are_those_of_python(name, written):
    bundle = written(name)
    texts = TEXTS if name.startswith("translate") else ["", *TEXTS[:-1], "m" * 30]
    expected = serving.load(bundle, threads=1)(texts)
    found = answer(bundle, lines(texts), "--scores")
    assert (found.stderr, found.returncode) == (b"", 0)
    answers, scores = zip(*(line.split("\t") for line in found.stdout.decode().splitlines()))
    assert [*answers] == [as_line(one.text) for one in expected]
    scores = [*map(float, scores)]
    np.testing.assert_allclose(scores, [one.score for one in expected], atol=1e-4)
    assert len({*scores}) == len(texts)


def test_a_wrong_line_is_refused_and_the_others_are_answered(dates_run, tmp_path):
    bundle = tmp_path / "bundle"
    assert export([str(dates_run), str(bundle), "--generate-in-graph", "--no-saved-models"]) == 0
    good = [b"de|%d. Mai 2014" % (1 + place % 28) for place in range(150)]
    expected = answer(bundle, b"\n".join(good)).stdout.splitlines()
    places = (0, 3, 4, 63, 64, 149)
    for place in places:
        good[place], expected[place] = b"", b""
    found = answer(bundle, b"\n".join(good) + b"\n")
    assert found.returncode == 1 and found.stdout.splitlines() == expected
    told = [line.partition("line ")[2] for line in found.stderr.decode().splitlines()]
    reason = "the text is empty or blank; write something to answer"
    assert told == [f"{place + 1}: {reason}" for place in places]
    for wrong, message in (
        (
            b"de|3. Mai 2014\nxx|3.5.2014\n",
            "line 2: the text must begin with a known locale and '|'",
        ),
        (b"3. Mai 2014\n", "line 1: the text must begin with a known locale and '|'"),
        (b"de| \t\n", "line 1: the text has nothing after its locale"),
        (b"\n", "line 1: the text is empty or blank; write something to answer"),
        (b"de|\xff\n", "line 1: the text must be UTF-8"),
        (b"de|" + 300 * b"a", "line 1: the text has 303 characters; the limit is 128"),
    ):
        found = answer(bundle, wrong)
        assert found.returncode == 1
        assert found.stdout.count(b"\n") == 1 + wrong.startswith(b"de|3")
        assert found.stderr.decode() == f"answer: standard input, {message}\n"


def changed(name, change):
    return lambda bundle: (bundle / name).write_bytes(change((bundle / name).read_bytes()))


def other(old, new):
    return changed("manifest.json", lambda content: content.replace(old, new, 1))


def other_table(old, new):
    def change(bundle):
        table, manifest = bundle / "tokenizer/source.json", bundle / "manifest.json"
        before = table.read_bytes()
        after = before.replace(old, new, 1)
        table.write_bytes(after)
        sums = [hashlib.sha256(content).hexdigest() for content in (before, after)]
        manifest.write_text(manifest.read_text().replace(*sums))

    return change


@pytest.mark.parametrize(
    "damage, message",
    [
        (shutil.rmtree, "manifest.json is missing; expected a bundle"),
        (changed("manifest.json", lambda content: content[:-9]), "manifest.json is truncated or a"),
        (other(b'"decoding"', b'"encoding"'), "manifest.json is truncated or altered: key 'decodi"),
        (other(b'"schema_version": 3', b'"schema_version": "3"'), "manifest.json is truncated or"),
        (other_table(b'"characters": ', b'"others": '), "source.json is truncated or altered: key"),
        (changed("onnx/generate.onnx", lambda content: content[:-1] + b"\0"), "generate.onnx does"),
        (changed("tokenizer/source.json", lambda content: content + b" "), "source.json does not"),
        (lambda bundle: (bundle / "onnx/generate.onnx").unlink(), "generate.onnx is missing, or c"),
        (other(b'"Translate"', b'"Classify"'), "Classify is not read in C++"),
        (other(b'"generate"', b'"others"'), "there is no graph that generates: export with --gen"),
        (other(b'"schema_version": 3', b'"schema_version": 4'), "the manifest has schema 4"),
        (other(b'"onnx/generate.onnx"', b'"../generate.onnx"'), "names a file outside of it"),
        (other(b'"source": "tok', b'"others": "tok'), "frames are not read in C++"),
    ],
)
def test_a_wrong_bundle_is_one_line(damage, message, written, tmp_path):
    bundle = shutil.copytree(written("translate"), tmp_path / "bundle")
    damage(bundle)
    found = answer(bundle, b"hijkl\n")
    assert found.returncode == 1 and found.stdout == b""
    error = found.stderr.decode()
    assert error.startswith(f"answer: {bundle}: ") and message in error
    assert error.count("\n") == 1 and "json.exception" not in error


@pytest.mark.parametrize("threads", ["abc", "", "2x", "-1", "1.5", "1025", "99999999999", " 2"])
def test_a_number_of_threads_that_is_none_is_refused(threads, tmp_path):
    found = answer(tmp_path, b"", "--threads", threads)
    assert found.returncode == 2 and found.stdout == b""
    expected = f"answer: --threads must be a whole number from 0 to 1024; received {threads}\n"
    assert found.stderr.decode() == expected


def test_wrong_arguments_are_one_line(tmp_path):
    found = answer(tmp_path, b"", library="no_such_library.so")
    assert found.returncode == 1 and b"no_such_library.so: cannot open shared" in found.stderr
    found = answer(tmp_path, b"", "--beams")
    assert found.returncode == 2 and b"unknown: --beams; usage: answer BUNDLE" in found.stderr
