"""Our tokenizers beside those of Hugging Face, live, made of the same files."""

import json

import pytest

from seqkeras.tokenizers import (
    SentencePieces,
    byte_pairs,
    learn_byte_pairs,
    learn_sentence_pieces,
    learn_word_piece,
    word_piece,
)
from serving.text.byte_pairs import SPECIAL_TOKENS

transformers = pytest.importorskip(
    "transformers", reason="transformers is in requirements-parity.txt"
)
TEXTS = """Whether we'd 12,345 cats' Führer-día... don't!  two  spaces
日本語の文, then \t tabs\tand 😶‍🌫️ and ½ ﬁn; (ok)
  it's [brackets] <and> more?! naïve ÉTÉ x²""".split("\n")


def assert_same(ours, theirs, with_pairs=True):
    for text in [*TEXTS, ""]:
        assert ours.analyze(text).token_ids == theirs(text)["input_ids"], text
    if with_pairs:
        pair = theirs(TEXTS[0], TEXTS[1], return_token_type_ids=True)
        assert ours.analyze(TEXTS[0], TEXTS[1]).token_ids == pair["input_ids"]
        assert ours.analyze(TEXTS[0], TEXTS[1]).segment_ids == pair["token_type_ids"]
        # As many of each: of an odd number theirs gives one more to the second, Google's BERT and
        # ours to the first.
        length = 18 + len(ours.analyze("", "").token_ids)
        cut = theirs(*TEXTS[:2], truncation="longest_first", max_length=length)["input_ids"]
        assert ours.analyze(*TEXTS[:2], max_length=length, truncate=True).token_ids == cut


@pytest.mark.parametrize("lowercase", [True, False])
def test_word_piece_is_that_of_hugging_face(lowercase, tmp_path):
    learned = learn_word_piece(TEXTS, 250, lowercase, min_count=1)
    vocabulary = json.loads(learned.to_json())["model"]["vocab"]
    tokens = sorted(vocabulary, key=vocabulary.get)
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n", encoding="utf-8")
    theirs = transformers.BertTokenizer(vocabulary, do_lower_case=lowercase)
    ours = word_piece(tokens, lowercase)
    assert_same(ours, theirs)
    for text in TEXTS:
        places = theirs(text, return_offsets_mapping=True)["offset_mapping"]
        assert ours.analyze(text).offsets[1:-1] == places[1:-1]


@pytest.mark.parametrize("form", ["gpt2", "roberta"])
def test_byte_pairs_are_those_of_hugging_face(form):
    learned = json.loads(learn_byte_pairs(TEXTS, 300, min_count=1).to_json())["model"]
    tokens = [*SPECIAL_TOKENS["roberta"], *learned["vocab"]]
    vocabulary = {token: place for place, token in enumerate(tokens)}
    merges = [tuple(pair) for pair in learned["merges"]]
    make = transformers.GPT2Tokenizer if form == "gpt2" else transformers.RobertaTokenizer
    theirs = make(vocab=vocabulary, merges=merges)
    ours = byte_pairs(vocabulary, merges, form)
    assert_same(ours, theirs, with_pairs=form == "roberta")
    for text in TEXTS:
        assert ours.decode(ours.encode(text)) == text


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_sentence_pieces_are_those_of_marian(tmp_path):
    learned = learn_sentence_pieces(TEXTS, 110, "bpe", character_coverage=0.98)
    for side in ("source", "target"):
        (tmp_path / f"{side}.spm").write_bytes(learned.model)
    pieces = [learned.token_of(place) for place in range(3, len(learned))]
    tokens = ["</s>", "<unk>", *pieces[::-1], ">>fra<<", "<pad>"]
    vocabulary = {token: place for place, token in enumerate(tokens)}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    theirs = transformers.MarianTokenizer(
        *(str(tmp_path / name) for name in ("source.spm", "target.spm", "vocab.json"))
    )
    ours = SentencePieces.from_marian(tmp_path)
    assert_same(ours, theirs, with_pairs=False)
    for text in [*TEXTS, ">>fra<< " + TEXTS[0], ">>deu<<" + TEXTS[0]]:
        token_ids = theirs(text)["input_ids"]
        assert ours.analyze(text).token_ids == token_ids
        target = SentencePieces.from_marian(tmp_path, "target")
        assert target.decode(token_ids).strip() == theirs.decode(
            token_ids, skip_special_tokens=True
        )
