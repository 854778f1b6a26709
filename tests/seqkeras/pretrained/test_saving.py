import os

import keras
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from seqkeras.locking import InUseError
from seqkeras.models import (
    GPT,
    ClassificationHead,
    MaskedLMHead,
    NextSentenceHead,
    RegressionHead,
    SpanHead,
    TaggingHead,
    Transformer,
    WithHeads,
)
from seqkeras.pretrained import load_hugging_face, read_config, save_hugging_face
from tests.arrays import randomize
from tests.seqkeras.models.support import SIZES, bert
from tests.seqkeras.pretrained.agreement import outputs_of


def gpt(**options):
    return lambda: GPT(17, **SIZES, max_length=13, **options)


def made(model):
    model.build(None)
    return randomize(model)


@pytest.mark.parametrize(
    "make, architecture",
    [
        (lambda: WithHeads(bert(), {"grade": RegressionHead(1)}), "BertForSequenceClassification"),
        (lambda: WithHeads(bert(), {"t": TaggingHead(7, 0.3)}), "BertForTokenClassification"),
        (lambda: bert(num_segments=0, pooler=None), "DistilBertModel"),
        (
            lambda: WithHeads(bert(num_segments=0, pooler="relu"), {"c": ClassificationHead(7)}),
            "DistilBertForSequenceClassification",
        ),
        (lambda: bert(first_position=3, epsilon=1e-5), "RobertaModel"),
        (gpt(activation="silu"), "GPT2LMHeadModel"),
    ],
)
def test_a_model_that_was_trained_here_is_saved_and_loaded_again(make, architecture, tmp_path):
    model = made(make())
    save_hugging_face(model, tmp_path / "model", {"note": "mine"})
    config = read_config(tmp_path / "model")
    assert config["architectures"] == [architecture] and config["note"] == "mine"
    names = load_file(tmp_path / "model" / "model.safetensors").keys()
    pooled = architecture in ("RobertaModel", "BertForSequenceClassification")
    assert any("pooler" in name for name in names) == pooled  # where transformers has one
    given = {"token_ids": np.array([[3, 8, 16, 2, 5], [7, 11, 4, 0, 0]])}
    again = load_hugging_face(tmp_path / "model")
    actual, expected = outputs_of(again, given), outputs_of(model, given)
    for one, other in zip(actual.values(), expected.values(), strict=True):
        np.testing.assert_array_equal(one, other)


WINDOW = "attention_window must be None; received 3"


def translator(**options):
    return Transformer(17, 17, **SIZES | {"shared_embeddings": "all"} | options)


@pytest.mark.parametrize(
    "make, reasons",
    [
        (
            lambda: WithHeads(bert(), {"tags": TaggingHead(3), "span": SpanHead()}),
            ["no architecture has the heads ['span', 'tags']"],
        ),
        (
            lambda: WithHeads(bert(pooler="relu"), {"next": NextSentenceHead()}),
            ["pooler must be one of ('tanh', None); received 'relu'"],
        ),
        (
            lambda: WithHeads(bert(), {"a": ClassificationHead(3)}, pooling="mean"),
            ["pooling must be 'pooler'; received 'mean'"],
        ),
        (
            lambda: bert(num_segments=0, epsilon=1e-5),
            [
                "epsilon must be 1e-12; received 1e-05",
                "pooler must be one of (None,); received 'tanh'",
            ],
        ),
        (
            lambda: WithHeads(bert(), {"masked": MaskedLMHead(17, tied=False)}),
            [
                "the MaskedLMHead must have tied, epsilon and activation (True, 1e-12, 'gelu'); "
                "received (False, 1e-12, 'gelu')"
            ],
        ),
        (lambda: bert(attention_window=3), [WINDOW]),
        (lambda: bert(positions="bias"), ["positions must be 'learned'; received 'bias'"]),
        (lambda: translator(positions="marian", attention_window=3), [WINDOW]),
        (
            lambda: translator(shared_embeddings="none"),
            [
                "positions must be 'marian'; received 'paper'",
                "shared_embeddings must be 'all' or 'target'; received 'none'",
            ],
        ),
    ],
)
def test_a_model_that_they_do_not_have_is_not_saved(make, reasons, tmp_path):
    with pytest.raises(ValueError, match=r"^save_hugging_face: ") as caught:
        save_hugging_face(made(make()), tmp_path / "model")
    assert str(caught.value).splitlines()[1:] == [f"  {reason}" for reason in reasons]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "make, config, message",
    [
        (gpt(pre_norm=False), {}, "a GPT must have pre_norm, a"),
        (gpt(attention_window=3), {}, "a GPT must have no attention_window, as .*none; received 3"),
        (gpt(positions="relative"), {}, "a GPT must have learned positions, as .* 'relative'."),
        (
            keras.Sequential,
            {},
            "the model must be a Bert, .* or a Transformer; received Sequential.",
        ),
        (bert, {}, "the Bert must be built; received one that is not. Call it once, or its build"),
        (
            lambda: made(translator(positions="marian")),
            {"eos_token_id": 0},
            r"config must hold \['pad_token_id', 'decoder_start_token_id'\], .*{'eos_token_id': 0}",
        ),
        (
            lambda: made(WithHeads(bert(), {"classes": ClassificationHead(3)})),
            {"id2label": {"0": "no", "1": "yes"}},
            "id2label must name 3 labels, as many as the head has; received {'0': 'no', '1'",
        ),
    ],
)
def test_what_can_not_be_saved_is_refused_before_anything_is_written(
    make, config, message, tmp_path
):
    with pytest.raises(ValueError, match=f"^save_hugging_face: {message}"):
        save_hugging_face(make(), tmp_path / "model", config)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_is_left_as_it_is(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="must be a new folder, or an empty one; received one tha"):
        save_hugging_face(made(bert()), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_of_two_models_saved_at_once_the_first_one_stays(tmp_path, monkeypatch):
    def save_while_another_saves(arrays, path, **options):
        monkeypatch.undo()
        with pytest.raises(InUseError, match=f"model: process {os.getpid()} writes it"):
            save_hugging_face(made(bert(pooler=None)), tmp_path / "model", {"note": "second"})
        save_file(arrays, path, **options)

    monkeypatch.setattr("seqkeras.pretrained.folders.save_file", save_while_another_saves)
    save_hugging_face(made(bert()), tmp_path / "model", {"note": "first"})
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
    assert read_config(tmp_path / "model")["note"] == "first"
    assert load_hugging_face(tmp_path / "model").pooler is not None


@pytest.mark.parametrize(
    "config", [{"id2label": {"0": "no", "1": "yes"}}, {"label2id": {"no": 0, "yes": 1}}]
)
def test_labels_are_said_both_ways(config, tmp_path):
    model = made(WithHeads(bert(), {"classes": ClassificationHead(2)}))
    save_hugging_face(model, tmp_path / "model", config)
    written = read_config(tmp_path / "model")
    assert written["id2label"] == {"0": "no", "1": "yes"}
    assert written["label2id"] == {"no": 0, "yes": 1}
