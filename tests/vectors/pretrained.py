"""Folders that Hugging Face's libraries write, and what their models say of some inputs.

A case holds the bytes of its files, then inputs and outputs by our names. Outputs are zero at
padded positions, where they have no meaning.
"""

import tempfile
from pathlib import Path

import numpy as np

from tests.vectors.transformer import _normal, _randomize

SIZES = {"batch": 2, "length": 5, "vocab": 17, "dim": 6}
SIZES |= {"layers": 2, "heads": 3, "inner": 11, "places": 13}
# What the config of a family calls vocab, dim, layers, heads, inner and places.
SIZES_OF = {
    "bert": "vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size "
    "max_position_embeddings",
    "distilbert": "vocab_size dim n_layers n_heads hidden_dim max_position_embeddings",
    "gpt2": "vocab_size n_embd n_layer n_head n_inner n_positions",
    "marian": "vocab_size d_model encoder_layers encoder_attention_heads encoder_ffn_dim "
    "max_position_embeddings",
    "t5": "vocab_size d_model num_layers num_heads d_ff max_length",
}
LABELS, CHOICES = 5, 3
PADDING = 1


def make():
    """Arrays by `case/name`; files by `case/file/path`."""
    arrays = {}
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            for name, array in save(case, folder).items():
                arrays[f"{case}/{name}"] = array
            for path in sorted(Path(folder).rglob("*.*")):
                name = path.relative_to(folder).as_posix()
                arrays[f"{case}/file/{name}"] = np.frombuffer(path.read_bytes(), "uint8")
    return arrays


def save(case, folder, **sizes):
    """Write the folder of a case; returns inputs, and outputs as `output/name`."""
    sizes = SIZES | sizes
    model = torch_model(case, **sizes)
    model.save_pretrained(folder)
    given = inputs(case, **sizes)
    outputs = run(case, model, given)
    if case.startswith("sentence"):
        outputs = _sentences(case, folder, outputs["hidden"], given, sizes["dim"])
    found = {name: each.detach().numpy() for name, each in outputs.items()}
    return {**given, **{f"output/{name}": each for name, each in found.items()}}


def torch_model(case, *, vocab, dim, layers, heads, inner, places, **sizes):
    """Random weights, in the architecture of a case."""
    import transformers

    family, architecture, options = CASES[case]
    sizes = (vocab, dim, layers, heads, inner, places)
    config = dict(zip(SIZES_OF["bert" if family == "roberta" else family].split(), sizes))
    if family == "roberta":
        config["max_position_embeddings"] = places + PADDING + 1
    if family == "gpt2":
        config |= {"bos_token_id": 0, "eos_token_id": 0}
    if family == "marian":
        config |= {"decoder_layers": layers, "decoder_attention_heads": heads}
        config |= {"decoder_ffn_dim": inner, "decoder_start_token_id": PADDING}
    if family == "t5":
        config |= {"decoder_start_token_id": PADDING, "d_kv": dim // heads}
    names = {"bert": "Bert", "roberta": "Roberta", "distilbert": "DistilBert", "gpt2": "GPT2"}
    names["t5"] = "T5"
    make_config = getattr(transformers, f"{names.get(family, 'Marian')}Config")
    if architecture.endswith(("SequenceClassification", "TokenClassification")):
        options = {"num_labels": LABELS, **options}
    if not options.get("share_encoder_decoder_embeddings", True):
        options = {"decoder_vocab_size": vocab + 2, **options}
    model = getattr(transformers, architecture)(
        make_config(**{**config, "pad_token_id": PADDING, **options})
    )
    tables = [each for each in model.parameters() if not each.requires_grad]  # of sinusoids
    kept = [each.clone() for each in tables]
    _randomize(model, "float32", dim)
    for table, values in zip(tables, kept, strict=True):
        table.data.copy_(values)
    if architecture == "MarianMTModel":
        bias = _normal(np.random.default_rng(6), model.final_logits_bias.shape)
        model.final_logits_bias.data.copy_(_tensor(bias))
    return model.eval()


def inputs(case, *, batch, length, vocab, **sizes):
    """Inputs of our model, right-padded."""
    family, architecture, _ = CASES[case]
    random = np.random.default_rng(3)
    leading = (batch, CHOICES) if architecture.endswith("MultipleChoice") else (batch,)
    lengths = random.integers(2, length + 1, leading)
    token_ids = random.integers(PADDING + 1, vocab, (*leading, length))
    given = {"token_ids": np.where(_mask(lengths, length), token_ids, PADDING)}
    if family != "gpt2":
        given["lengths"] = lengths
    if family == "bert":
        given["segment_ids"] = random.integers(0, 2, token_ids.shape)
    if family in ("marian", "t5"):
        given["target_ids"] = random.integers(PADDING + 1, vocab, (batch, length + 2))
    return given


def run(case, model, given):
    """Outputs of their model, by our names."""
    theirs = {"input_ids": "token_ids", "token_type_ids": "segment_ids"}
    theirs["decoder_input_ids"] = "target_ids"
    arguments = {name: _tensor(given[ours]) for name, ours in theirs.items() if ours in given}
    real = np.ones_like(given["token_ids"])
    if "lengths" in given:
        real = _mask(given["lengths"], given["token_ids"].shape[-1]).astype("int64")
        arguments["attention_mask"] = _tensor(real)
    found, real = model(**arguments), _tensor(real)
    kind = KINDS.get(CASES[case][1].partition("For")[2])
    if kind == "masked, next":
        return {
            "masked": found.prediction_logits * real[..., None],
            "next": found.seq_relationship_logits,
        }
    if kind == "span":
        return {"start_logits": found.start_logits * real, "end_logits": found.end_logits * real}
    if kind in ("masked", "tags"):
        return {kind: found.logits * real[..., None]}
    if kind is not None or "logits" in found:
        return {kind or "logits": found.logits}
    tied = {"gpt2": "wte", "marian": "shared"}.get(CASES[case][0])
    if tied is not None:  # ours is the language model
        return {"logits": found.last_hidden_state @ getattr(model, tied).weight.T}
    pooled = {"pooled": found.pooler_output} if "pooler_output" in found else {}
    return {"hidden": found.last_hidden_state * real[..., None], **pooled}


def _sentences(case, folder, hidden, given, dim):
    """What sentence-transformers' modules make of the hidden states; writes them too."""
    import json

    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

    mean = case == "sentence"
    modules = [Pooling(dim, "mean" if mean else "cls"), *([Normalize()] if mean else [])]
    kinds = ["Transformer", *(type(each).__name__ for each in modules)]
    listed = [
        {"idx": number, "name": str(number), "path": f"{number}_{kind}" if number else ""}
        | {"type": f"sentence_transformers.models.{kind}"}
        for number, kind in enumerate(kinds)
    ]
    (Path(folder) / "modules.json").write_text(json.dumps(listed))
    mask = _tensor(_mask(given["lengths"], hidden.shape[1]).astype("int64"))
    features = {"token_embeddings": hidden, "attention_mask": mask}
    for each, module in zip(listed[1:], modules, strict=True):
        (Path(folder) / each["path"]).mkdir()
        module.save(str(Path(folder) / each["path"]))
        features = module(features)
    return {"embeddings": features["sentence_embedding"]}


def _mask(lengths, length):
    return np.arange(length) < lengths[..., None]


def _tensor(array):
    import torch

    return torch.tensor(array)


KINDS = {  # of heads, by the end of an architecture's name
    "PreTraining": "masked, next",
    "MaskedLM": "masked",
    "NextSentencePrediction": "next",
    "SequenceClassification": "classes",
    "TokenClassification": "tags",
    "QuestionAnswering": "span",
    "MultipleChoice": "choice",
}
NORM = {"layer_norm_eps": 0.03}
ONE_SEGMENT = {"type_vocab_size": 1}
CLASSES = {"hidden_dropout_prob": 0.3, "attention_probs_dropout_prob": 0.2}
CLASSES |= {"classifier_dropout": 0.4}
GPT2 = {"activation_function": "gelu", "layer_norm_epsilon": 0.03}
GPT2 |= {"resid_pdrop": 0.3, "embd_pdrop": 0.3, "attn_pdrop": 0.2}
TWO_VOCABULARIES = {"share_encoder_decoder_embeddings": False, "scale_embedding": True}
TWO_VOCABULARIES |= {"activation_function": "relu", "dropout": 0.3}
TWO_VOCABULARIES |= {"attention_dropout": 0.2, "activation_dropout": 0.4}
T5_GATED = {"feed_forward_proj": "gated-gelu", "d_kv": 5, "tie_word_embeddings": False}
T5_GATED |= {"dropout_rate": 0.3, "layer_norm_epsilon": 0.03}
DISTILBERT = {"activation": "relu", "dropout": 0.3, "attention_dropout": 0.2}
CASES = {  # family, architecture, options of its config
    "bert": ("bert", "BertModel", {}),
    "bert_pretraining": ("bert", "BertForPreTraining", {}),
    "bert_masked": ("bert", "BertForMaskedLM", {"hidden_act": "relu"} | NORM),
    "bert_next": ("bert", "BertForNextSentencePrediction", {}),
    "bert_classes": ("bert", "BertForSequenceClassification", CLASSES),
    "bert_tags": ("bert", "BertForTokenClassification", {}),
    "bert_span": ("bert", "BertForQuestionAnswering", {}),
    "bert_choice": ("bert", "BertForMultipleChoice", {}),
    "sentence": ("bert", "BertModel", {}),
    "sentence_cls": ("distilbert", "DistilBertModel", {}),
    "roberta": ("roberta", "RobertaModel", ONE_SEGMENT),
    "roberta_masked": (
        "roberta",
        "RobertaForMaskedLM",
        ONE_SEGMENT | {"hidden_act": "gelu_new"} | NORM,
    ),
    "roberta_classes": ("roberta", "RobertaForSequenceClassification", ONE_SEGMENT),
    "roberta_tags": ("roberta", "RobertaForTokenClassification", ONE_SEGMENT),
    "roberta_span": ("roberta", "RobertaForQuestionAnswering", ONE_SEGMENT),
    "roberta_choice": ("roberta", "RobertaForMultipleChoice", ONE_SEGMENT),
    "distilbert": ("distilbert", "DistilBertModel", DISTILBERT),
    "distilbert_masked": ("distilbert", "DistilBertForMaskedLM", {}),
    "distilbert_classes": (
        "distilbert",
        "DistilBertForSequenceClassification",
        {"seq_classif_dropout": 0.4},
    ),
    "distilbert_tags": ("distilbert", "DistilBertForTokenClassification", {"dropout": 0.3}),
    "distilbert_choice": ("distilbert", "DistilBertForMultipleChoice", {}),
    "distilbert_span": ("distilbert", "DistilBertForQuestionAnswering", {}),
    "gpt2": ("gpt2", "GPT2LMHeadModel", {}),
    "gpt2_bare": ("gpt2", "GPT2Model", GPT2),
    "marian": ("marian", "MarianMTModel", {"activation_function": "swish"}),
    "marian_bare": ("marian", "MarianModel", {}),
    "t5": ("t5", "T5ForConditionalGeneration", {}),
    "t5_gated": ("t5", "T5ForConditionalGeneration", T5_GATED),
    "marian_two_vocabularies": ("marian", "MarianMTModel", TWO_VOCABULARIES),
}
