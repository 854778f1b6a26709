"""The tokenizer's files beside a model, read by the library that `transformers` reads them with.

tests/parity/test_tokenizers.py reads them by `AutoTokenizer`.
"""

import json

import pytest
import tokenizers

from seqkeras.models import GPT, SentenceEncoder, Transformer
from seqkeras.pretrained import save_hugging_face
from seqkeras.pretrained.tokenizer_files import tokenizer_files
from seqkeras.tokenizers import (
    SentencePieces,
    Subwords,
    learn_byte_pairs,
    learn_sentence_pieces,
    learn_word_piece,
)
from tests.refusals import refusals
from tests.seqkeras.models.support import SIZES, bert

TEXTS = ["Whether we'd 12 cats' día... don't!", "日本語 and more?! naïve ÉTÉ"]
IDS = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}


def built(model):
    model.build(None)
    return model


@pytest.mark.parametrize(
    "learn, make",
    [
        (lambda: learn_word_piece(TEXTS, 150, min_count=1), bert),
        (lambda: learn_word_piece(TEXTS, 150), lambda size: SentenceEncoder(bert(size))),
        (lambda: learn_byte_pairs(TEXTS, 300), lambda size: GPT(size, **SIZES, max_length=13)),
    ],
    ids=["Bert", "SentenceEncoder", "GPT"],
)
def test_the_tokenizer_lies_beside_the_model_and_is_read_again(learn, make, tmp_path):
    tokenizer = learn()
    model = built(make(len(tokenizer)))
    save_hugging_face(model, tmp_path / "model", tokenizers={"text": tokenizer})
    path = tmp_path / "model" / "tokenizer.json"
    assert Subwords.from_file(path) == tokenizer
    library = tokenizers.Tokenizer.from_file(str(path))
    for text in TEXTS:
        assert library.encode(text).ids == tokenizer.analyze(text).token_ids
    told = json.loads((tmp_path / "model" / "tokenizer_config.json").read_text())
    assert told["model_max_length"] == 13
    unknown = "<|endoftext|>" if isinstance(model, GPT) else "[UNK]"
    assert told["unk_token"] == unknown
    assert ("token_type_ids" in told["model_input_names"]) != isinstance(model, GPT)


def marian():
    learned = learn_sentence_pieces(TEXTS * 9, 35)
    tokens = ["<pad>", "<unk>", "</s>"]
    pieces = [learned.token_of(place) for place in range(len(learned))]
    pieces = [piece for piece in pieces if piece not in (*tokens, "<s>")]

    def side(pieces):
        vocabulary = {token: place for place, token in enumerate([*tokens, *pieces])}
        return SentencePieces(learned.model, vocabulary, suffix=["</s>"])

    return side(pieces), side(pieces[::-1])


@pytest.mark.parametrize("own", [False, True])
def test_both_sides_of_a_translator_are_read_again(own, tmp_path):
    source, target = marian()
    target = target if own else source
    size = len(source)
    model = Transformer(
        size, size, **SIZES, max_length=13, positions="marian", shared_embeddings="all"
    )
    folder = tmp_path / "model"
    save_hugging_face(built(model), folder, IDS, {"source": source, "target": target})
    assert SentencePieces.from_marian(folder) == source
    assert SentencePieces.from_marian(folder, "target") == target
    assert (folder / "target_vocab.json").exists() == own


def other_ids():
    pieces = {"</s>": 0, "<unk>": 1, "<pad>": 2}
    return SentencePieces(marian()[0].model, pieces, suffix=["</s>"])


def both(source, target):
    return {"source": source, "target": target}


SAVE = "save_hugging_face:"
TEXT = f"{SAVE} tokenizers must be {{'text': Subwords}} for t"
test_tokenizers_that_transformers_does_not_have_are_refused = refusals(
    (lambda: tokenizer_files({"source": marian()[0]}, "bert"), TEXT),
    (lambda: tokenizer_files(learn_word_piece(TEXTS, 150), "bert"), TEXT),
    (
        lambda: tokenizer_files({"text": learn_word_piece(TEXTS, 150)}, "marian"),
        f"{SAVE} tokenizers must be {{'source': SentencePieces, 'target': SentencePieces}} for",
    ),
    (
        lambda: tokenizer_files(both(*[learn_sentence_pieces(TEXTS * 9, 35)] * 2), "marian"),
        f"{SAVE} the source tokenizer must have a vocabulary, and </s> after a text",
    ),
    (
        lambda: tokenizer_files(both(marian()[0], other_ids()), "marian"),
        f"{SAVE} </s>, <pad> must have one id in both languages",
    ),
)
