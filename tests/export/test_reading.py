"""Texts as a model reads them, in a graph: between special tokens, cut or refused if too long."""

import itertools

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from seqkeras.export.text_graphs.characters import checked
from seqkeras.export.text_graphs.reading import Reader
from tests.conftest import others_long
from tests.export.test_text_graphs import TOKENIZERS, pairs, wordpieces


def read_by(reader, *texts, names=("text", "pair"), truncate=False, **options):
    """What a graph reads of any texts."""
    texts = [
        checked(tf.constant(own), name, accepted="(?s).*")
        for own, name in zip(texts, names, strict=False)
    ]
    return reader(*texts, truncate=tf.constant(truncate), **options)


def errors_of(read):
    return [error.decode() for error in read.errors.numpy()]


def require_read(tokenizer, read, rows, **options):
    """Assert that each row was read, or cut, as `seqkeras.serving.text` does it."""
    assert set(errors_of(read)) == {""}
    for row, texts in enumerate(rows):
        encoding = tokenizer.analyze(*texts, **options)
        size = len(encoding)
        assert read.lengths[row] == size
        assert read.token_ids[row, :size].numpy().tolist() == encoding.token_ids
        assert read.segment_ids[row, :size].numpy().tolist() == encoding.segment_ids
        places = [(-1, -1) if place is None else place for place in encoding.offsets]
        starts, ends = (each[row].numpy().tolist() for each in (read.starts, read.ends))
        assert list(zip(starts, ends, strict=True))[:size] == places
        assert not read.token_ids[row, size:].numpy().any()
        assert set(starts[size:]) <= {-1}


@pytest.mark.parametrize("name", others_long(["WordPiece", "byte pairs", "unigrams"]))
def test_texts_over_the_limit_are_refused(name):
    reader = Reader(TOKENIZERS[name](), limit=7)
    read = read_by(reader, ["the", "the cat sat on the mat and the cat"])
    assert errors_of(read) == ["", "text: at most 7 tokens; nothing was truncated."]
    alone = read_by(reader, ["the"])
    assert 1 <= alone.lengths[0] == read.lengths[0] <= 7
    assert read.token_ids.shape[1] == read.lengths[0]  # the refused one makes no row longer
    assert (read.token_ids.numpy()[0] == alone.token_ids.numpy()[0]).all()


def test_a_hopeless_text_is_refused_before_it_takes_time():
    reader = Reader(TOKENIZERS["byte pairs"](), limit=7)
    read = read_by(reader, ["the", "a" * 1_000_000])
    assert errors_of(read) == ["", "text: at most 224 characters for 7 tokens."]


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("WordPiece", False),
        ("WordPiece", True),
        ("byte pairs", True),
        ("byte pairs, RoBERTa", False),
        ("byte pairs, RoBERTa", True),
        ("Marian", False),
    ],
)
def test_texts_stand_between_the_special_tokens_of_the_template(name, pair):
    tokenizer = TOKENIZERS[name]()
    texts = [["the cat", "sat on the mat"], ["hats", "!"]][: 1 + pair]
    read = read_by(Reader(tokenizer, limit=40), *texts)
    require_read(tokenizer, read, zip(*texts, strict=True))


def test_a_special_token_takes_the_spaces_before_it():
    tokenizer = pairs("roberta")
    texts = [
        "the <mask>",
        "<mask>",
        "the ",
        " <mask>",
        "the  \t<mask> sat",
        "the<mask><mask> \u3000<mask>the <mask> ",
        "  the </s> <mask>  a\n\n<mask>",
        "at  ",
    ]
    require_read(tokenizer, read_by(Reader(tokenizer, limit=40), texts), zip(texts))


def test_parts_of_a_pair_must_be_as_many():
    with pytest.raises(tf.errors.InvalidArgumentError, match="pair: must be as many as text"):
        read_by(Reader(wordpieces(), limit=7), ["a", "a"], ["a"])


@pytest.mark.parametrize("name", ["WordPiece", "byte pairs", "byte pairs, RoBERTa", "unigrams"])
def test_long_texts_are_cut_as_in_serving(name):
    tokenizer = TOKENIZERS[name]()
    texts = ["the", "the cat", "the cat sat", "the cat sat on the mat and the cat"]
    read = read_by(Reader(tokenizer, limit=8), texts, truncate=True)
    require_read(tokenizer, read, zip(texts), max_length=8, truncate=True)


@pytest.mark.parametrize("name", ["WordPiece", "byte pairs, RoBERTa"])
@pytest.mark.parametrize("limit", others_long([9, 10]))
def test_the_longer_text_of_a_pair_is_cut_as_in_serving(name, limit):
    tokenizer = TOKENIZERS[name]()
    both = [*itertools.product([" the" * size for size in range(1, 9)], repeat=2)]
    read = read_by(Reader(tokenizer, limit), *zip(*both, strict=True), truncate=True)
    require_read(tokenizer, read, both, max_length=limit, truncate=True)


def test_of_a_question_and_its_context_the_question_alone_is_cut():
    reader, names = Reader(wordpieces(), limit=9), ("question", "context")
    texts = ["the cat sat", "the cat sat", "the"], ["a mat", "a mat " * 9, "a cat"]
    for truncate, question in (
        (False, "question: at most 2 tokens; nothing was truncated."),
        (True, ""),
    ):
        read = read_by(reader, *texts, names=names, truncate=truncate, most_of_first=2)
        context = question or "question and context: at most 9 tokens; nothing was truncated."
        assert errors_of(read) == [question, context, ""]
    expected = wordpieces().analyze("the cat", "a mat").token_ids
    assert read.token_ids[0, : len(expected)].numpy().tolist() == expected


@pytest.mark.parametrize(
    "name", others_long(["WordPiece", "byte pairs", "unigrams", "merged pieces"])
)
def test_a_saved_model_holds_every_table_once(name, tmp_path):
    reader, text = Reader(TOKENIZERS[name](), limit=40), tf.TensorSpec([None], tf.string)

    def ids(*texts):
        own = [reader(checked(text), truncate=tf.constant(False)) for text in texts]
        return {"ids": own[-1].token_ids}

    functions = {
        str(size): tf.function(ids, input_signature=[text] * size, autograph=False)
        for size in (1, 2)
    }
    tf.saved_model.save(tf.Module(), str(tmp_path), functions)
    content = (tmp_path / "saved_model.pb").read_bytes()
    [graph] = saved_model_pb2.SavedModel.FromString(content).meta_graphs
    nodes = [node for each in graph.graph_def.library.function for node in each.node_def]
    held = [node.attr["value"].tensor.SerializeToString() for node in nodes if node.op == "Const"]
    held += [node.attr["model"].s for node in nodes if node.op == "SentencepieceOp"]
    tables = [each for each in held if len(each) > 1000]
    assert tables
    assert len(tables) == len(set(tables))
