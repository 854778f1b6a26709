"""Translation whose encoder, or decoder too, begins as a BERT."""

import itertools
import json

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.models import Transformer
from seqkeras.pretrained.warm_start import decoder_options, start_decoder
from seqkeras.tokenizers import read_tokenizer
from tests.arrays import numbers
from tests.conftest import others_long
from tests.training.commands import (
    answers_of_run,
    exported,
    printed,
    refusal,
    scores_of_both,
)
from tests.training.pretrained_folders import VOCABULARY, hugging_face_folder, tiny_bert

OPTIONS = "--passes 12 --num-beams 1 --batch-size 11 --learning-rate 0.01"
OPTIONS += " --warmup-steps 7 --dropout 0 --looks 1"
ROLES = ("source", "target")
SMALL = "--hidden-dim 8 --num-layers 1 --num-heads 2"
KINDS = {
    "encoder": SMALL,
    "decoder": "--pretrained-decoder true",
    "frozen": f"{SMALL} --frozen true",
    "unfrozen": f"{SMALL} --unfreeze-every 6 --layer-decay 0.9",
}


def pairs(folder):
    """A file of 48 sentences, and their words in another order."""
    words = (
        ["film", "book", "story", "child"],
        ["good", "bad", "fine", "dull"],
        ["one", "two", "a"],
    )
    lines = [
        f"the {second} {first} in oslo lives {third}.\t{first} {third} the {second}.\n"
        for first, second, third in itertools.product(*words)
    ]
    (folder / "pairs.tsv").write_text("".join(lines))
    return folder / "pairs.tsv"


def greedy(model, source, start, end, most):
    """The ids that Keras's own calls choose, one call a token."""
    target = [start]
    while target[-1] != end and len(target) <= most:
        inputs = {"token_ids": [source], "lengths": [len(source)], "target_ids": [target]}
        logits = numbers(model({name: np.array(value) for name, value in inputs.items()}))[0, -1]
        logits[list(model.never_generated)] = -np.inf
        target.append(int(logits.argmax()))
    return target[1:-1] if target[-1] == end else target[1:]


@pytest.mark.parametrize(
    ("kind", "is_served"), others_long([("encoder", False), *((kind, True) for kind in KINDS)])
)
def test_it_is_tuned_by_the_command_and_served(kind, is_served, tmp_path):
    folder, run = hugging_face_folder(tmp_path / "bert"), tmp_path / "run"
    given = [*OPTIONS.split(), *KINDS[kind].split(), "--pretrained", folder, "--out", run]
    file, most = pairs(tmp_path), 30 if is_served else 20
    given += ["--max-length", most, *([] if is_served else ["--max-steps", 6])]
    printed("translation", file, *given)
    model = keras.models.load_model(run / "model.keras", compile=False)
    is_same = [
        np.array_equal(one, other)
        for one, other in zip(model.encoder.get_weights(), tiny_bert().get_weights(), strict=False)
    ]
    assert all(is_same) if kind == "frozen" else not any(is_same)
    text = "the good film in oslo lives two."
    source, target = (read_tokenizer(run / "tokenizer" / f"{role}.json") for role in ROLES)
    read = source.analyze(text).token_ids
    words = "[CLS] the good film in oslo lives two . [SEP]".split()
    assert read == [*map(VOCABULARY.index, words)]
    decoding = json.loads((run / "run.json").read_text())["decoding"]
    ids = greedy(model, read, decoding["start_id"], decoding["end_id"], most)
    [answer] = answers_of_run(run, [text])
    assert answer.text == target.decode(ids)
    assert (target == source) == (kind == "decoder")
    if kind == "decoder":
        assert (decoding["start_id"], decoding["end_id"]) == (2, 3)  # [CLS], [SEP]
    if is_served:
        assert serving.load(exported(tmp_path), threads=1)(text).text == answer.text
        scores_of_both(tmp_path, file)


def test_a_decoder_begins_with_the_weights_of_an_encoder():
    bert = tiny_bert(pooler=None)
    options = decoder_options(bert) | {"max_length": 20}
    model = Transformer(bert.config["vocab_size"], **options, encoder=bert)
    model.build(None)
    start_decoder(model, bert)
    token_ids = np.array([[2, 7, 9, 11]])
    embedded = model._with_positions(model.target_embedding(token_ids))
    np.testing.assert_allclose(
        numbers(embedded), numbers(bert.hidden_states({"token_ids": token_ids})[0]), atol=1e-6
    )
    # The last position sees all others: its self-attention is the encoder's.
    ours, theirs = model.decoder.blocks[0], bert.encoder.blocks[0]
    attended = numbers(ours._attend_to_itself(embedded, None, False))[:, -1]
    np.testing.assert_allclose(
        attended, numbers(theirs._attend_to_itself(embedded, None, False))[:, -1], atol=1e-6
    )
    for name, value in (("hidden_dim", 24), ("pre_norm", True), ("max_length", 38)):
        other = Transformer(bert.config["vocab_size"], **options | {name: value}, encoder=bert)
        other.build(None)
        with pytest.raises(ValueError, match=f"start_decoder: {name} must be"):
            start_decoder(other, bert)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--model luong", "--pretrained is for --model transformer, whose decoder attends to a"),
        ("--tokens words", "--tokens: --pretrained brings its own; leave it out."),
        ("--numbers x", "--numbers: the model of --pretrained reads texts"),
        ("--attention-window 3", "--attention-window: --pretrained brings its own"),
        ("--pretrained-decoder true --vocab-size 99", "--vocab-size: --pretrained-decoder brings"),
        ("--max-length 99", "--max-length 99: {folder} has 37 positions; choose at most as many."),
    ],
)
def test_options_that_do_not_go_together_get_one_line(options, message, tmp_path):
    folder = hugging_face_folder(tmp_path / "bert")
    given = options.format(folder=folder).split()
    given += ["--pretrained", folder]
    status = 1 if "positions" in message else 2  # 2: nothing is read yet
    error = refusal("translation", pairs(tmp_path), *given, out=tmp_path / "run", status=status)
    assert message.format(folder=folder) in error


def test_the_decoder_s_options_need_a_folder(tmp_path):
    given = ["--pretrained-decoder", "true"]
    error = refusal("translation", pairs(tmp_path), *given, out=tmp_path / "run", status=2)
    assert "--pretrained-decoder needs --pretrained, the folder of an encoder." in error
