"""A tokenizer that no graph can be is refused, with every reason."""

import json

import pytest

from seqkeras.export.text_graphs.reading import in_graph, writer
from seqkeras.serving.text import WordTable, word_piece
from tests.export.test_text_graphs import added, changed, pairs, pieces, wordpieces

TWO_PROCESSORS = {
    "type": "Sequence",
    "processors": [
        json.loads(pairs(form).to_json())["post_processor"] for form in ("gpt2", "roberta")
    ],
}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: changed(wordpieces(), normalizer={"type": "NFC"}), "normalizer must be BERT's"),
        (
            lambda: changed(wordpieces(), pre_tokenizer={"type": "Whitespace"}),
            "its pre_tokenizer must be BERT's",
        ),
        (
            lambda: added(wordpieces(), {"content": "COVID", "normalized": True}),
            r"WordPiece in a graph: no added token may be normalized\.",
        ),
        (lambda: added(wordpieces(), {"content": "x", "single_word": True}), "be a single_word"),
        (lambda: added(wordpieces(), *map(str, range(27))), "31 added tokens at most"),
        (
            lambda: word_piece(["[UNK]", "[CLS]", "[SEP]", "\u00e9" * 129]),
            "a token must have at most 256 bytes; received '\u00e9\u00e9",
        ),
        (lambda: added(pairs("roberta"), " x"), "or another one hold some, but not both"),
        (lambda: changed(pairs(), normalizer={"type": "NFC"}), "nothing may be normalized"),
        (
            lambda: changed(
                pairs(),
                model={"ignore_merges": True, "dropout": 0.1},
                pre_tokenizer={"type": "Whitespace"},
            ),
            "as GPT-2's are; dropout must not be set; ignore_merges must not be set",
        ),
        (
            lambda: changed(pairs(), model={"merges": [["th", "e"], ["t", "h"]]}),
            "a pair must stand after those that make its parts",
        ),
        (
            lambda: changed(pairs(), post_processor=TWO_PROCESSORS),
            "its post_processor must trim places once",
        ),
        (lambda: WordTable.learn(["the"]), "a WordTable splits words by rules that no graph here"),
    ],
)
def test_a_tokenizer_that_no_graph_can_be_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        in_graph(make())


def test_tokens_are_joined_by_a_decoder_that_is_known():
    assert writer(pairs()) and writer(wordpieces()) and writer(pieces("unigram"))
    for tokenizer in (pairs(), wordpieces()):
        with pytest.raises(ValueError, match="in a graph: its decoder must be {'type': '"):
            writer(changed(tokenizer, decoder={"type": "Fuse"}))
    with pytest.raises(ValueError, match="that writes texts must have no pieces for bytes"):
        writer(pieces("unigram", byte_fallback=True, size=400))
