"""Our tokenizers against the outputs of others, on real vocabularies and real sentences."""

import gzip
import json
import os
from pathlib import Path

import pytest

from seqkeras.serving.text import byte_pairs, read_byte_pairs, read_vocabulary, tidy, word_piece
from tests.conftest import others_long

DATA = Path(os.environ.get("SEQKERAS_DATA", ""))
REFERENCES = DATA / "reference-tokenization"
pytestmark = pytest.mark.skipif(
    "SEQKERAS_DATA" not in os.environ or not REFERENCES.is_dir(),
    reason="needs the folder reference-tokenization in the one that SEQKERAS_DATA names",
)


def read(name):
    return json.loads((REFERENCES / name).read_bytes())


@pytest.fixture(scope="module")
def bert():
    return word_piece(read_vocabulary(DATA / "vocab-bert" / "bert-base-uncased-vocab.txt"))


@pytest.fixture(scope="module")
def gpt2():
    folder = DATA / "vocab-gpt2"
    return byte_pairs(*read_byte_pairs(folder / "encoder.json", folder / "vocab.bpe"))


@pytest.mark.parametrize("step", others_long([11, 1]))
def test_every_question_is_split_into_the_same_words_pieces_and_ids(bert, step):
    with gzip.open(REFERENCES / "bert_uncased_questions.jsonl.gz") as lines:
        questions = [json.loads(line) for line in lines]
    assert len(questions) == 9513
    for question in questions[::step]:
        text, encoding = question["text"], bert.analyze(question["text"])
        assert bert.words(text) == question["basic"], text
        assert encoding.tokens[1:-1] == question["wordpiece"], text
        assert encoding.token_ids[1:-1] == question["ids"], text
        ends = [place for start, end in encoding.offsets[1:-1] for place in (start, end)]
        assert ends == sorted(ends) and ends[-1] <= len(text), text


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_edge_cases_have_the_same_ids(family, request):
    tokenizer = request.getfixturevalue(family)
    cases = read(f"{'bert_uncased' if family == 'bert' else family}_edge_cases.json")
    assert len(cases) == 46
    for case in cases:
        assert tokenizer.encode(case["text"]) == case["ids"], case["text"]


def test_bert_encodes_and_decodes_as_the_reference(bert):
    for case in read("bert_uncased_encode_decode.json"):
        encoding, expected = bert.analyze(case["input"]), case["encoded"]
        assert encoding.token_ids == expected["input_ids"]
        assert encoding.segment_ids == expected["token_type_ids"]
        assert bert.decode(encoding.token_ids) == case["decoded_without_special"]
        whole = bert.decode(encoding.token_ids, special_tokens=True)
        assert whole == case["decoded_with_special"]


def test_gpt2_encodes_as_the_reference_and_gives_back_the_text(gpt2):
    for case in read("gpt2_encode_decode.json"):
        token_ids = gpt2.encode(case["input"])
        assert token_ids == case["encoded"]["input_ids"]
        assert gpt2.decode(token_ids) == case["input"]
        assert tidy(gpt2.decode(token_ids)) == case["decoded_without_special"]


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_a_paragraph_is_split_and_joined_as_in_the_reference(family, request):
    tokenizer = request.getfixturevalue(family)
    case = read(f"{'bert_uncased' if family == 'bert' else family}_paragraph.json")
    encoding = tokenizer.analyze(case["text"])
    assert encoding.token_ids == case["token_ids"]
    own = [place is not None for place in encoding.offsets]
    assert [each for each, real in zip(encoding.tokens, own) if real] == case["bpe_tokens"]
    assert tokenizer.decode(encoding.token_ids, special_tokens=True) == case["decoded_text"]


def test_small_cases_of_the_papers_code():
    cases = read("small_cases.json")
    full = cases["wordpiece_full_tokenizer"]
    tokenizer = word_piece(full["vocab"], full["lowercase"])
    assert tokenizer.analyze(full["text"]).tokens[1:-1] == full["tokens"]
    assert tokenizer.encode(full["text"]) == full["ids"]
    for name in ("lower", "no_lower", "chinese"):
        case = cases[f"basic_tokenizer_{name}"]
        made = word_piece(full["vocab"], lowercase=name != "no_lower")
        assert made.words(case["text"]) == case["tokens"]
    for text, tokens in cases["wordpiece_only"]["cases"]:
        made = word_piece(cases["wordpiece_only"]["vocab"], lowercase=False)
        assert made.analyze(text).tokens[1:-1] == tokens
