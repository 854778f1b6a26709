import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from seqkeras.models import Bert, ClassificationHead, WithHeads
from seqkeras.pretrained import load_hugging_face, read_config, save_hugging_face
from seqkeras.values import BANNED_LOGIT
from tests.agreement import difference
from tests.conftest import others_long
from tests.seqkeras.pretrained.agreement import folder_with, outputs_of, refusal, stored
from tests.vectors.pretrained import CASES

BARE = {"gpt2_bare": "transformer", "marian_bare": "model"}
FAMILIES = {family: case for case, (family, *_) in reversed(CASES.items())}
every_case = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=() if case in FAMILIES.values() else pytest.mark.long)
        for case in CASES
    ],
)


def expected_outputs(given):
    return {
        name.removeprefix("output/"): each
        for name, each in given.items()
        if name.startswith("output/")
    }


@every_case
def test_a_folder_of_theirs_gives_their_outputs(case, tmp_path):
    given = stored(case, tmp_path)
    expected = expected_outputs(given)
    actual = outputs_of(load_hugging_face(tmp_path), given)
    assert actual.keys() >= expected.keys()
    for name, each in expected.items():
        assert difference(actual[name], each) < 1e-5, name


@every_case
def test_what_was_loaded_is_saved_bit_for_bit(case, tmp_path):
    stored(case, tmp_path / "theirs")
    config = read_config(tmp_path / "theirs")
    model = load_hugging_face(tmp_path / "theirs")
    save_hugging_face(model, tmp_path / "ours", config)
    theirs = load_file(tmp_path / "theirs" / "model.safetensors")
    ours = load_file(tmp_path / "ours" / "model.safetensors")
    if case in BARE:  # ours is the language model, and makes sinusoids from their formula
        theirs = {
            f"{BARE[case]}.{name}": each
            for name, each in theirs.items()
            if "embed_positions" not in name
        }
    if case == "t5_gated":  # their newer files hold it once, if it is the embeddings
        np.testing.assert_array_equal(ours.pop("lm_head.weight"), theirs["shared.weight"])
    assert ours.keys() == theirs.keys()
    for name, each in theirs.items():
        if case.startswith("t5"):  # factors of scores and logits are within the weights here
            np.testing.assert_allclose(ours[name], each, rtol=2e-7, err_msg=name)
        else:
            np.testing.assert_array_equal(ours[name], each, err_msg=name)
    again = load_hugging_face(tmp_path / "ours")
    assert again.count_params() == model.count_params()
    written = read_config(tmp_path / "ours")
    # A default may be said by its number, "swish" is "silu" too, and a bare model (BARE) is saved
    # as the language model that it is here.
    renamed = (None, "swish", ["GPT2Model"], ["MarianModel"])
    kept = [name for name, value in config.items() if value not in renamed]
    if case == "t5_gated":  # newer files of T5 say by another field that the output has weights
        kept.remove("tie_word_embeddings")
    assert {name: written[name] for name in kept} == {name: config[name] for name in kept}


WITHOUT_POOLER = ["distilbert_classes", "roberta_classes", "bert_span", "distilbert_masked"]


@pytest.mark.parametrize("case", others_long(["bert_pretraining", *WITHOUT_POOLER], 2))
def test_an_encoder_is_loaded_without_its_heads_and_with_a_pooler_of_its_own(case, tmp_path):
    given = stored(case, tmp_path)
    bare, whole = load_hugging_face(tmp_path, heads=False), load_hugging_face(tmp_path)
    assert isinstance(bare, Bert) and (bare.pooler is None) == (case in WITHOUT_POOLER)
    expected = outputs_of(whole.encoder, given)
    for name, each in outputs_of(bare, given).items():
        np.testing.assert_array_equal(each, expected[name])


def test_the_heads_are_those_that_the_tensors_hold(tmp_path):
    """As in the files of BERT itself, whose config names the masked-LM head alone."""
    given = stored("bert_pretraining", tmp_path)
    folder_with("bert_pretraining", tmp_path, architectures=["BertForMaskedLM"])
    model = load_hugging_face(tmp_path)
    assert difference(outputs_of(model, given)["next"], given["output/next"]) < 1e-5


def test_names_of_older_files_are_known(tmp_path):
    def older(tensors):
        renamed = {
            name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
                "LayerNorm.bias", "LayerNorm.beta"
            ): each
            for name, each in tensors.items()
        }
        tied = tensors["bert.embeddings.word_embeddings.weight"]
        return {
            **renamed,
            "bert.embeddings.position_ids": np.arange(13)[None],
            "cls.predictions.decoder.weight": tied.copy(),
            "cls.predictions.decoder.bias": tensors["cls.predictions.bias"].copy(),
        }

    given = stored("bert_pretraining", tmp_path)
    folder_with("bert_pretraining", tmp_path, older, architectures=None)
    actual = outputs_of(load_hugging_face(tmp_path), given)
    assert difference(actual["masked"], given["output/masked"]) < 1e-5


def test_gpt2_is_loaded_from_openais_file_too(tmp_path):
    def older(tensors):
        bare = {name.removeprefix("transformer."): each for name, each in tensors.items()}
        masks = {"h.0.attn.bias": np.tri(13)[None, None], "h.1.attn.masked_bias": np.zeros(())}
        return bare | masks | {"lm_head.weight": bare["wte.weight"].copy()}

    given = stored("gpt2", tmp_path)
    folder_with("gpt2", tmp_path, older)
    actual = outputs_of(load_hugging_face(tmp_path), given)
    assert difference(actual["logits"], given["output/logits"]) < 1e-5


RATES = {"hidden_dropout_prob": 0.1, "classifier_dropout": 0.2}
DISTILBERT_RATES = {"dropout": 0.1, "seq_classif_dropout": 0.2, "qa_dropout": 0.4}


@pytest.mark.parametrize(
    "case, rates, expected",
    [
        ("bert_tags", RATES, 0.2),
        ("bert_choice", RATES, 0.2),
        ("roberta_tags", RATES, 0.2),
        ("roberta_choice", RATES, 0.1),  # transformers reads no other field there
        ("distilbert_classes", DISTILBERT_RATES, 0.2),
        ("distilbert_choice", DISTILBERT_RATES, 0.2),
        ("distilbert_tags", DISTILBERT_RATES, 0.1),
        ("distilbert_span", {"dropout": 0.3, "qa_dropout": 0.4}, 0.4),
    ],
)
def test_the_dropout_of_a_head_is_of_the_field_that_transformers_reads(
    case, rates, expected, tmp_path
):
    folder_with(case, tmp_path / "theirs", **rates)
    model = load_hugging_face(tmp_path / "theirs")
    (head,) = model.heads.values()
    assert head.dropout == expected
    save_hugging_face(model, tmp_path / "ours")
    written = read_config(tmp_path / "ours")
    first, field = list(rates)[:2]
    assert written[first] == rates[first]
    assert written.get(field) == (rates[field] if expected == rates[field] else None)


@pytest.mark.parametrize("dtype", others_long(["bfloat16", "float16", "float64"]))
def test_files_of_other_dtypes_become_the_models(dtype, tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    numpy_dtype = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    given = stored("bert", tmp_path)
    folder_with(
        "bert",
        tmp_path,
        lambda tensors: {name: each.astype(numpy_dtype) for name, each in tensors.items()},
    )
    model = load_hugging_face(tmp_path)
    assert {each.dtype for each in model.weights} == {"float32"}
    assert difference(outputs_of(model, given)["hidden"], given["output/hidden"]) < 1e-5
    mixed = load_hugging_face(tmp_path, dtype="mixed_bfloat16")
    assert mixed.compute_dtype == "bfloat16"
    assert {each.dtype for each in mixed.weights} == {"float32"}


def test_a_model_may_lie_in_several_files(tmp_path):
    given = stored("marian", tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    (tmp_path / "model.safetensors").unlink()
    names, places = list(tensors), {}
    for number, part in enumerate((names[::2], names[1::2])):
        file = f"model-0000{number + 1}-of-00002.safetensors"
        save_file({name: tensors[name] for name in part}, tmp_path / file)
        places |= dict.fromkeys(part, file)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": places}))
    actual = outputs_of(load_hugging_face(tmp_path), given)
    assert difference(actual["logits"], given["output/logits"]) < 1e-5
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    assert refusal(tmp_path) == (
        "FOLDER/model-00002-of-00002.safetensors: must be there, as model.safetensors.index.json "
        "names it; found none."
    )


def test_tokens_that_a_translation_may_not_hold_are_never_generated(tmp_path):
    given = stored("marian", tmp_path)
    folder_with("marian", tmp_path, bad_words_ids=[[1], [3, 4]])
    model = load_hugging_face(tmp_path)
    assert model.never_generated == [1]
    logits = outputs_of(model, given)["logits"]
    assert np.all(logits > BANNED_LOGIT / 2)  # `transformers` bans them in `generate` too
    save_hugging_face(model, tmp_path / "ours", read_config(tmp_path))
    assert read_config(tmp_path / "ours")["bad_words_ids"] == [[1], [3, 4]]


def test_new_heads_stand_on_the_encoder_of_a_folder_of_sentences(tmp_path):
    given = stored("sentence", tmp_path)
    encoder = load_hugging_face(tmp_path, heads=False)
    assert isinstance(encoder, Bert)
    whole = load_hugging_face(tmp_path)
    inputs = {name: given[name] for name in ("token_ids", "lengths")}
    actual, expected = (outputs_of(each, given)["hidden"] for each in (encoder, whole.encoder))
    np.testing.assert_array_equal(actual, expected)
    model = WithHeads(encoder, {"classes": ClassificationHead(3)})
    assert model(inputs)["classes"].shape == (len(inputs["lengths"]), 3)
    with pytest.raises(ValueError, match="Its own encoder is one, a Bert: give that"):
        WithHeads(whole, {"classes": ClassificationHead(3)})
