"""Translation that begins with a Marian or a T5 of Hugging Face, and its way back."""

import json

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.models import Transformer
from seqkeras.pretrained import load_hugging_face, read_config, save_hugging_face
from seqkeras.serving.text import SentencePieces
from seqkeras.tokenizers import learn_sentence_pieces, read_tokenizer, word_piece
from tests.arrays import numbers
from tests.training.commands import (
    answers_of_run,
    exported,
    printed,
    refusal,
    scores_of_both,
)
from tests.training.pretrained_folders import VOCABULARY
from tests.training.test_translation_pretrained import greedy, pairs

SIZES = {"hidden_dim": 12, "num_layers": 2, "num_heads": 3, "feed_forward_dim": 23}
T5 = {"positions": "bias", "pre_norm": True, "norm": "rms", "use_bias": False, "epsilon": 1e-6}
T5 |= {"gated": True, "activation": "gelu_tanh"}
OPTIONS = "--num-beams 1 --batch-size 11 --learning-rate 0.005 --looks 1".split()
OPTIONS += "--warmup-steps 7 --label-smoothing 0 --passes 40".split()


def t5(folder, lines):
    """A folder with a T5 of random weights, and with WordPieces."""
    size = len(VOCABULARY) + 3  # T5's table has rows without a token
    model = Transformer(
        size,
        size,
        **SIZES,
        **T5,
        shared_embeddings="all",
        scale_embeddings=False,
        never_generated=[0],
    )
    return model, {"text": word_piece(VOCABULARY)}, (0, 3, 0)


def marian(folder, lines):
    """A Marian, whose </s> has the id 0."""
    learned = learn_sentence_pieces([*lines], 70, "bpe", character_coverage=1.0)
    pieces = [learned.token_of(place) for place in range(4, len(learned))]
    tokens = ["</s>", "<unk>", *pieces, "<pad>"]
    vocabulary = {token: place for place, token in enumerate(tokens)}
    sides = {
        side: SentencePieces(learned.model, vocabulary, suffix=["</s>"])
        for side in ("source", "target")
    }
    size, last = len(tokens), len(tokens) - 1
    model = Transformer(
        size, size, **SIZES, positions="marian", shared_embeddings="all", never_generated=[last]
    )
    return model, sides, (last, 0, last)


FOLDERS = {"t5": t5, "marian": marian}


def made(kind, folder, file=None):
    """A folder, the file of pairs whose tokens it knows, and ids of tokens."""
    file = file or pairs(folder)
    lines = [side for line in file.read_text().splitlines() for side in line.split("\t")]
    model, tokenizers, ids = FOLDERS[kind](folder, lines)
    keras.utils.set_random_seed(1)
    model.build(None)
    names = ("decoder_start_token_id", "eos_token_id", "pad_token_id")
    fields = dict(zip(names, ids, strict=True))
    fields |= {"bad_words_ids": [[ids[2]]]} if kind == "marian" else {}
    save_hugging_face(model, folder / kind, fields, tokenizers)
    return folder / kind, file, ids


@pytest.mark.long
@pytest.mark.parametrize("kind", FOLDERS)
def test_it_is_tuned_served_and_saved_for_transformers(kind, tmp_path):
    folder, file, (start, end, padding) = made(kind, tmp_path)
    run, most = tmp_path / "run", 40
    given = [*OPTIONS, "--max-length", most]
    printed("translation", file, "--start-from", folder, *given, "--out", run)
    decoding = json.loads((run / "run.json").read_text())["decoding"]
    assert (decoding["start_id"], decoding["end_id"]) == (start, end)
    model = keras.models.load_model(run / "model.keras", compile=False)
    before = load_hugging_face(folder)
    assert not np.allclose(*(numbers(each.encoder.weights[0]) for each in (model, before)))
    source, target = (
        read_tokenizer(run / f"tokenizer/{side}.json") for side in ("source", "target")
    )
    text = "the good film in oslo lives two."
    ids = greedy(model, source.analyze(text).token_ids, start, end, most)
    [answer] = answers_of_run(run, [text])
    assert answer.text == target.decode(ids)
    assert len(ids) < most  # it has learned to end
    assert serving.load(exported(tmp_path), threads=1)(text).text == answer.text
    scores_of_both(tmp_path, file)
    tokenizers = {"text": source} if kind == "t5" else {"source": source, "target": target}
    save_hugging_face(model, tmp_path / "tuned", read_config(folder), tokenizers)
    again = load_hugging_face(tmp_path / "tuned")
    inputs = {"token_ids": [[5, 6, 7]], "lengths": [3], "target_ids": [[start, 8]]}
    inputs = {name: np.array(value) for name, value in inputs.items()}
    np.testing.assert_allclose(numbers(again(inputs)), numbers(model(inputs)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "options", "message", "status"),
    [
        ({}, "--tokens words", "--tokens: the folder of --start-from brings its own", 2),
        ({}, "--numbers x", "--numbers: the model of --start-from reads texts", 2),
        ({}, "--model luong", "--model: the folder of --start-from brings its own", 2),
        ({"model_type": "gpt2"}, "", "t5: ", 1),
        ({"d_ff": 24}, "", "has shape", 1),
        ({"pad_token_id": None}, "", "pad_token_id is missing", 1),
    ],
)
def test_a_folder_that_is_no_translator_gets_one_line(change, options, message, status, tmp_path):
    folder, file, _ = made("t5", tmp_path)
    config = json.loads((folder / "config.json").read_text()) | change
    config = {name: value for name, value in config.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config))
    if change:
        (folder / "generation_config.json").unlink()
    given = ["--start-from", folder, *options.split()]
    assert message in refusal("translation", file, *given, out=tmp_path / "run", status=status)
