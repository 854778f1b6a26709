import json

import pytest
import sentencepiece

from seqkeras.serving.text import SentencePieces
from tests.serving.pipelines import toys

TEXTS = ["the cat sat on the mat", "a dog and a cat", "the mat and the log", "f\u00fchrer d\u00eda"]
MARIAN = {"</s>": 0, "<unk>": 1, "\u2581the": 2, "\u2581cat": 3, ">>fra<<": 4, "<pad>": 5}


@pytest.fixture(scope="module")
def model():
    return toys.sentence_pieces(TEXTS).model


def test_ids_are_the_models_own(model):
    theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
    ours = SentencePieces(model)
    assert len(ours) == theirs.get_piece_size()
    for text in [*TEXTS[:4], "the  cat\0 \u65e5\u672c", ""]:
        assert ours.encode(text) == theirs.encode(text)
        assert ours.decode(ours.encode(text)) == theirs.decode(theirs.encode(text))
    assert ours.decode(ours.encode("the cat")) == "the cat"
    assert ours.id_of("</s>") == theirs.eos_id()


def test_a_text_stands_between_what_is_asked_for(model):
    encoding = SentencePieces(model, prefix=["<s>"], suffix=["</s>"]).analyze("the cat")
    assert encoding.tokens == ["<s>", "\u2581the", "\u2581cat", "</s>"]
    assert encoding.token_ids[0] == 1 and encoding.token_ids[-1] == 2
    assert encoding.token_ids[1:-1] == SentencePieces(model).encode("the cat")
    assert encoding.segment_ids == [0] * 4


def test_offsets_are_places_in_the_text_that_was_given(model):
    text = "the \ufb01\u65e5 \U0001f600  d\u00eda"
    encoding = SentencePieces(model).analyze(text)
    assert "".join(text[start:end] for start, end in encoding.offsets) == text
    assert encoding.offsets[0] == (0, 3) and text[slice(*encoding.offsets[-1])][-1] == "a"


def test_tokens_know_their_word(model):
    tokenizer = SentencePieces(model, prefix=["<s>"], suffix=["</s>"])
    text = "the dogs, a cat"
    encoding = tokenizer.analyze(text)
    assert encoding.word_ids[0] is encoding.word_ids[-1] is None
    words = ["", "", "", ""]
    for (start, end), word in zip(encoding.offsets[1:-1], encoding.word_ids[1:-1]):
        words[word] += text[start:end]
    assert [word.strip() for word in words] == text.split()


def test_marian_has_one_vocabulary_for_two_languages(model, tmp_path):
    for side in ("source", "target"):
        (tmp_path / f"{side}.spm").write_bytes(model)
    (tmp_path / "vocab.json").write_text(json.dumps(MARIAN), encoding="utf-8")
    source = SentencePieces.from_marian(tmp_path)
    assert source.encode("the cat") == [2, 3]
    assert source.analyze("the cat").token_ids == [2, 3, 0]
    assert source.encode("the log")[0] == 2 and set(source.encode("the log")[1:]) == {1}
    assert len(source) == 6
    assert SentencePieces.from_marian(tmp_path, "target").decode([5, 2, 3, 1, 0, 5]) == "the cat"
    with pytest.raises(ValueError, match="side must be source or target; received 'left'"):
        SentencePieces.from_marian(tmp_path, "left")
    with pytest.raises(ValueError, match="^SentencePieces: ids must be under 6; received 6"):
        source.decode([6])
    (tmp_path / "vocab.json").write_text("{")
    with pytest.raises(ValueError, match="vocab.json: must be JSON: "):
        SentencePieces.from_marian(tmp_path)


def test_a_language_code_that_begins_a_text_is_one_token(model):
    tokenizer = SentencePieces(model, MARIAN)
    encoding = tokenizer.analyze(">>fra<< the cat")
    assert encoding.tokens == [">>fra<<", "\u2581the", "\u2581cat"]
    assert encoding.offsets == [(0, 7), (8, 11), (11, 15)]
    assert tokenizer.encode(">>deu<< the") == [1, 2]  # a language that the model does not know
    assert 4 not in tokenizer.encode("the >>fra<<")
    assert tokenizer.encode(">>fra<<") == [4]
    assert len(SentencePieces(model).encode(">>fra<<")) > 1


def test_texts_are_cut_only_when_asked(model):
    tokenizer = SentencePieces(model, suffix=["</s>"])
    message = "^SentencePieces: there must be at most max_length, 2, tokens; received 3, 1 of them "
    with pytest.raises(ValueError, match=message):
        tokenizer.analyze("the cat", max_length=2)
    cut = tokenizer.analyze("the cat", max_length=2, truncate=True)
    assert cut.tokens == ["\u2581the", "</s>"]


def test_the_file_of_a_model_is_read(model, tmp_path):
    (tmp_path / "spiece.model").write_bytes(model)
    assert SentencePieces.from_file(tmp_path / "spiece.model") == SentencePieces(model)


def test_tokens_that_are_not_there_are_refused(model):
    with pytest.raises(ValueError, match="the vocabulary must hold '<unk>'; it does not"):
        SentencePieces(model, {"a": 0})
    with pytest.raises(ValueError, match=r"the vocabulary must hold '\[SEP\]'; it does not"):
        SentencePieces(model, suffix=["[SEP]"])


def test_a_library_that_is_too_old_is_named_with_the_version_needed(model, monkeypatch):
    class Old:
        def encode(self, input, out_type=None):
            raise AssertionError("it is asked for nothing")

    monkeypatch.setattr(sentencepiece, "SentencePieceProcessor", Old)
    monkeypatch.setattr(sentencepiece, "__version__", "0.2.1")
    message = (
        r"sentencepiece from 0\.2\.2 on; this is 0\.2\.1: pip install --upgrade sentencepiece\.$"
    )
    with pytest.raises(ImportError, match=message):
        SentencePieces(model)
