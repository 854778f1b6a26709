"""Texts as a model reads them, in a graph: between special tokens, none of which is refused."""

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from export.text_graphs.reading import Reader
from tests.conftest import others_long
from tests.export.test_text_graphs import TOKENIZERS, pairs, wordpieces


@pytest.mark.parametrize("name", others_long(["WordPiece", "byte pairs", "unigrams"]))
def test_texts_over_the_limit_are_refused(name):
    reader = Reader(TOKENIZERS[name](), limit=7)
    assert reader(tf.constant(["the"])).lengths[0] <= 7
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most 7 tokens; nothing was trunc"):
        reader(tf.constant(["the", "the cat sat on the mat and the cat"]))


def test_a_hopeless_text_is_refused_before_it_takes_time():
    reader = Reader(TOKENIZERS["byte pairs"](), limit=7)
    message = "text: at most 224 characters for 7 tokens"
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        reader(tf.constant(["the", "a" * 1_000_000]))


@pytest.mark.parametrize("name", ["WordPiece", "byte pairs, RoBERTa", "Marian"])
@pytest.mark.parametrize("pair", [False, True])
def test_texts_stand_between_the_special_tokens_of_the_template(name, pair):
    tokenizer = TOKENIZERS[name]()
    if pair and name == "Marian":
        pytest.skip("has no pairs")
    texts = [["the cat", "sat on the mat"], ["hats", "!"]][: 1 + pair]
    read = Reader(tokenizer, limit=40)(*map(tf.constant, texts))
    for row, each in enumerate(zip(*texts, strict=True)):
        encoding = tokenizer.analyze(*each)
        size = len(encoding)
        assert read.lengths[row] == size
        assert read.token_ids[row, :size].numpy().tolist() == encoding.token_ids
        assert read.segment_ids[row, :size].numpy().tolist() == encoding.segment_ids
        places = [(-1, -1) if place is None else place for place in encoding.offsets]
        starts, ends = (each[row].numpy().tolist() for each in (read.starts, read.ends))
        assert list(zip(starts, ends, strict=True))[:size] == places
        assert not read.token_ids[row, size:].numpy().any()
        assert set(starts[size:]) <= {-1}


@pytest.mark.parametrize(
    "text",
    [
        "<mask>",
        " <mask>",
        "the  \t<mask> sat",
        "the<mask><mask> \u3000<mask>the <mask> ",
        "  the </s> <mask>  a\n\n<mask>",
    ],
)
def test_a_special_token_takes_the_spaces_before_it(text):
    tokenizer = pairs("roberta")
    read = Reader(tokenizer, limit=40)(tf.constant(["the <mask>", text, "at  "]))
    encoding = tokenizer.analyze(text)
    size = len(encoding)
    assert read.token_ids[1, :size].numpy().tolist() == encoding.token_ids
    places = zip(read.starts[1, :size].numpy(), read.ends[1, :size].numpy(), strict=True)
    assert list(places) == [(-1, -1) if place is None else place for place in encoding.offsets]
    assert read.lengths.numpy().tolist() == [4, size, len(tokenizer.analyze("at  "))]


@pytest.mark.parametrize("name", ["WordPiece", "byte pairs", "byte pairs, RoBERTa"])
def test_a_pair_is_read_as_in_serving(name):
    tokenizer = TOKENIZERS[name]()
    texts = ["the cat", "hats"], ["sat on", "!"]
    read = Reader(tokenizer, limit=40)(*map(tf.constant, texts))
    for row, pair in enumerate(zip(*texts)):
        size = read.lengths[row]
        assert read.token_ids[row, :size].numpy().tolist() == tokenizer.analyze(*pair).token_ids


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ((["a", "\u200b"],), "question: has no token"),
        ((["a"], ["\0"]), "context: has no token"),
        ((["a", "a"], ["a"]), "context: must be as many as question"),
        ((["a"], ["the " * 9]), "question and context: at most 7 tokens; nothing was truncated"),
    ],
)
def test_a_refusal_names_the_input(texts, message):
    reader = Reader(wordpieces(), limit=7)
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        reader(*map(tf.constant, texts), names=("question", "context"))


def test_a_text_without_a_token_may_be_let_through():
    read = Reader(wordpieces(), limit=7, empty=True)(tf.constant(["\u200b", ""]))
    assert read.lengths.numpy().tolist() == [2, 2]  # the template's


@pytest.mark.parametrize(
    "name", others_long(["WordPiece", "byte pairs", "unigrams", "merged pieces"])
)
def test_a_saved_model_holds_every_table_once(name, tmp_path):
    reader, text = Reader(TOKENIZERS[name](), limit=40), tf.TensorSpec([None], tf.string)

    def ids(*texts):
        return {"ids": [reader(each).token_ids for each in texts][-1]}

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
