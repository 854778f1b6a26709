"""Our tokenizers beside those of Hugging Face, live, made of the same files."""

import json

import pytest

from seqkeras.pretrained.tokenizer_files import tokenizer_files
from seqkeras.serving.text.byte_pairs import SPECIAL_TOKENS
from seqkeras.tokenizers import (
    SentencePieces,
    byte_pairs,
    learn_byte_pairs,
    learn_sentence_pieces,
    learn_word_piece,
    word_piece,
)

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
    pieces = [learned.token_of(place) for place in range(4, len(learned))]
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


def read_by_transformers(folder, tokenizers, model_type):
    """What `AutoTokenizer` makes of the files that are saved beside a model."""
    for name, content in tokenizer_files(tokenizers, model_type, 61).items():
        if not isinstance(content, bytes):
            content = json.dumps(content).encode()
        (folder / name).write_bytes(content)
    (folder / "config.json").write_text(json.dumps({"model_type": model_type}))
    return transformers.AutoTokenizer.from_pretrained(folder)


@pytest.mark.parametrize("model_type", ["bert", "distilbert", "roberta", "gpt2"])
def test_a_tokenizer_that_is_saved_beside_a_model_is_read_by_transformers(model_type, tmp_path):
    if model_type in ("bert", "distilbert"):
        ours = learn_word_piece(TEXTS, 250, min_count=1)
    else:
        learned = json.loads(learn_byte_pairs(TEXTS, 300, min_count=1).to_json())["model"]
        tokens = [*SPECIAL_TOKENS["roberta"], *learned["vocab"]]
        vocabulary = {token: place for place, token in enumerate(tokens)}
        ours = byte_pairs(vocabulary, learned["merges"], model_type)
    theirs = read_by_transformers(tmp_path, {"text": ours}, model_type)
    assert_same(ours, theirs, with_pairs=model_type != "gpt2")
    assert theirs.model_max_length == 61
    assert ("token_type_ids" in theirs(TEXTS[0])) == (model_type == "bert")


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
def test_both_sides_of_a_translator_are_read_by_transformers(tmp_path):
    learned = learn_sentence_pieces(TEXTS, 110, "bpe", character_coverage=0.98)
    pieces = [learned.token_of(place) for place in range(4, len(learned))]

    def side(pieces):
        tokens = ["</s>", "<unk>", *pieces, "<pad>"]
        vocabulary = {token: place for place, token in enumerate(tokens)}
        return SentencePieces(learned.model, vocabulary, suffix=["</s>"])

    source, target = side(pieces), side(pieces[::-1])
    theirs = read_by_transformers(tmp_path, {"source": source, "target": target}, "marian")
    assert_same(source, theirs, with_pairs=False)
    for text in TEXTS:
        assert target.analyze(text).token_ids == theirs(text_target=text)["input_ids"]
