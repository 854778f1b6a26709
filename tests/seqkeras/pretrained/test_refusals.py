import json
import shutil

import pytest

from seqkeras.models import Bert
from seqkeras.pretrained import load_hugging_face
from tests.seqkeras.pretrained.agreement import folder_with, refusal, stored


def test_a_config_that_no_model_of_ours_fits_is_refused_with_every_reason(tmp_path):
    fields = {
        "num_attention_heads": 4,
        "hidden_act": "mish",
        "position_embedding_type": "relative_key",
        "intermediate_size": 0,
        "hidden_dropout_prob": 1,
    }
    folder_with("bert", tmp_path, **fields)
    assert refusal(tmp_path).splitlines() == [
        "FOLDER/config.json: 5 fields do not make a model of ours:",
        "  intermediate_size must be a whole number from 1; received 0",
        f"  hidden_act must be one of {ACTIVATIONS}; received 'mish'",
        "  hidden_dropout_prob must be a number from 0 to under 1; received 1",
        "  num_attention_heads must divide hidden_size; received 4 and 6",
        "  position_embedding_type must be 'absolute'; received 'relative_key'",
    ]


FEED_FORWARDS = ["relu", "gated-gelu", "gated-silu", "gelu", "silu"]
KINDS = ["bert", "roberta", "distilbert", "gpt2", "marian", "t5"]
ACTIVATIONS = (
    "['gelu', 'gelu_fast', 'gelu_new', 'gelu_python', 'gelu_pytorch_tanh', 'relu', 'silu', 'swish']"
)


@pytest.mark.parametrize(
    "case, field, value, must",
    [
        ("bert", "model_type", "llama", f"be one of {KINDS}"),
        ("bert", "model_type", ["bert"], f"be one of {KINDS}"),
        ("gpt2", "architectures", ["GPT2For"], "name one of ['GPT2Model', 'GPT2LMHeadModel']"),
        ("gpt2", "architectures", {"name": 3}, "name one of ['GPT2Model', 'GPT2LMHeadModel']"),
        ("bert", "is_decoder", True, "be False"),
        ("bert_masked", "tie_word_embeddings", False, "be True"),
        ("gpt2", "scale_attn_by_inverse_layer_idx", True, "be False"),
        ("gpt2", "embd_pdrop", 0.3, "be 0.1, as resid_pdrop is"),
        ("bert", "hidden_act", ["gelu"], f"be one of {ACTIVATIONS}"),
        ("bert", "id2label", 3, "be an object, a name for each number"),
        ("t5", "feed_forward_proj", "gated-tanh", f"be one of {FEED_FORWARDS}"),
        ("t5", "num_decoder_layers", 3, "be 2, as num_layers is"),
        ("t5", "relative_attention_num_buckets", 64, "be 32"),
        ("marian", "bad_words_ids", [3], "be a list of lists"),
        ("marian", "scale_embedding", "no", "be true or false"),
        ("marian", "decoder_layers", 3, "be 2, as encoder_layers is"),
        ("marian", "decoder_vocab_size", 19, "be 17, as vocab_size is"),
    ],
)
def test_a_config_of_another_form_is_refused(case, field, value, must, tmp_path):
    folder_with(case, tmp_path, **{field: value})
    received = value[0] if must.startswith("name") and isinstance(value, list) else value
    assert refusal(tmp_path).splitlines() == [
        "FOLDER/config.json: 1 field does not make a model of ours:",
        f"  {field} must {must}; received {received!r}",
    ]


def test_positions_of_roberta_begin_behind_its_padding(tmp_path):
    folder_with("roberta", tmp_path, pad_token_id=14)
    message = "max_position_embeddings must be over 15, as positions begin after pad_token_id; rec"
    assert message in refusal(tmp_path)


@pytest.mark.parametrize("modules", [("Transformer", "Dense"), ("Transformer",)])
def test_other_modules_of_a_sentence_encoder_are_refused(modules, tmp_path):
    stored("sentence", tmp_path)
    listed = [{"type": f"sentence_transformers.models.{name}", "path": ""} for name in modules]
    (tmp_path / "modules.json").write_text(json.dumps(listed))
    known = "('Transformer', 'Pooling') or ('Transformer', 'Pooling', 'Normalize')"
    reason = f"the modules must be {known}; received {modules}."
    assert refusal(tmp_path) == f"FOLDER/modules.json: {reason}"


def test_poolings_are_read_as_older_files_say_them(tmp_path):
    stored("sentence", tmp_path)
    config = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    path = tmp_path / "1_Pooling" / "config.json"
    path.write_text(json.dumps(config))
    assert load_hugging_face(tmp_path).pooling == "cls"
    path.write_text(json.dumps(config | {"pooling_mode_max_tokens": True}))
    assert refusal(tmp_path) == (
        "FOLDER/1_Pooling/config.json: the pooling must be one of ['mean', 'cls']; "
        "received ['pooling_mode_cls_token', 'pooling_mode_max_tokens']."
    )


def test_without_heads_the_modules_behind_the_encoder_are_not_read(tmp_path):
    stored("sentence", tmp_path)
    shutil.rmtree(tmp_path / "1_Pooling")
    assert refusal(tmp_path) == "FOLDER/1_Pooling/config.json: must be there; found no such file."
    assert isinstance(load_hugging_face(tmp_path, heads=False), Bert)
    (tmp_path / "modules.json").write_text("[]")
    with pytest.raises(ValueError, match=r"the modules must be .*; received \(\).$"):
        load_hugging_face(tmp_path, heads=False)


def test_pickled_missing_and_damaged_files_are_refused(tmp_path):
    stored("bert", tmp_path)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4])
    assert refusal(tmp_path).startswith(
        "FOLDER/model.safetensors: must be whole safetensors; received "
    )
    weights.rename(tmp_path / "pytorch_model.bin")
    assert refusal(tmp_path) == (
        "FOLDER: must hold model.safetensors or model.safetensors.index.json; found "
        "['pytorch_model.bin']. Pickled weights are not read, as they may run any code; "
        "transformers turns them into safetensors: "
        "AutoModel.from_pretrained(folder).save_pretrained(other_folder)."
    )
    (tmp_path / "config.json").write_text("{")
    assert refusal(tmp_path).startswith("FOLDER/config.json: must be JSON; received Expecting")
    (tmp_path / "config.json").unlink()
    assert refusal(tmp_path) == "FOLDER/config.json: must be there; found no such file."


def test_files_of_another_kind_are_refused(tmp_path):
    stored("sentence", tmp_path)
    modules, config = tmp_path / "modules.json", tmp_path / "config.json"
    modules.write_text("{}")
    assert refusal(tmp_path) == "FOLDER/modules.json: must hold a list of JSON; received {}."
    modules.write_text('[{"path": ""}]')
    assert refusal(tmp_path).startswith(
        'FOLDER/modules.json: each module must have a "type" and a "path"; received {'
    )
    modules.unlink()
    for text, received in (("[1]", "[1]"), ("null", "None")):
        config.write_text(text)
        assert refusal(tmp_path) == (
            f"FOLDER/config.json: must hold an object of JSON; received {received}."
        )
    assert refusal(config) == "FOLDER/config.json: must be there; found no such file."


@pytest.mark.parametrize("index", [{}, {"weight_map": {}}, {"weight_map": {"a": 1}}])
def test_an_index_that_names_no_files_is_refused(index, tmp_path):
    stored("bert", tmp_path)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert refusal(tmp_path) == (
        "FOLDER/model.safetensors.index.json: weight_map must be an object, the name of a file for "
        f"each tensor; received {index.get('weight_map')}."
    )


@pytest.mark.parametrize(
    "fields, line",
    [
        # 240 TB, if a table were made of it.
        ({"vocab_size": 10**13}, "word_embeddings.weight: has shape (17, 6), must have (1000000"),
        ({"intermediate_size": 10**13}, "intermediate.dense.bias: has shape (11,), must have (10"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers must be at most the number of tensors,"),
    ],
)
def test_sizes_are_held_against_the_tensors_before_memory_is_taken(fields, line, tmp_path):
    folder_with("bert_classes", tmp_path, **fields)
    assert line in refusal(tmp_path)
    stored("bert_classes", tmp_path)
    assert load_hugging_face(tmp_path).built


@pytest.mark.parametrize(
    "name", ["../model.safetensors", "/model.safetensors", "a/../../b", "C:model", "..\\b", "a\0"]
)
def test_a_file_outside_the_folder_is_not_read(name, tmp_path):
    stored("bert", tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path.parent / "model.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": name}}))
    assert refusal(tmp_path) == f"FOLDER: must name files of its own; received {name!r}."
