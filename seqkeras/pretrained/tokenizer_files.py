"""A tokenizer as the files beside a model from which `transformers` makes its own.

`AutoTokenizer.from_pretrained(folder)` reads them, and so do `Subwords.from_file` and
`SentencePieces.from_marian`. With `split_special_tokens` theirs reads none in a text: it
has no other choice, so that a tokenizer that reads the mask alone reads all of them there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from seqkeras.serving.text import SentencePieces, Subwords

if TYPE_CHECKING:
    from seqkeras.serving.text import Tokenizer

SUBWORDS = "tokenizer.json"  # as `tokenizers` writes it
CONFIG = "tokenizer_config.json"
VOCABULARY, OF_TARGETS = "vocab.json", "target_vocab.json"  # of Marian
# Their names of special tokens, and what stands for each in BERT's, RoBERTa's and GPT-2's form.
SPECIAL_TOKENS = {
    "unk_token": ("[UNK]", "<unk>", "<|endoftext|>"),
    "pad_token": ("[PAD]", "<pad>"),
    "cls_token": ("[CLS]", "<s>"),
    "sep_token": ("[SEP]", "</s>"),
    "mask_token": ("[MASK]", "<mask>"),
    "bos_token": ("<s>", "<|endoftext|>"),
    "eos_token": ("</s>", "<|endoftext|>"),
}
INPUTS = ("input_ids", "attention_mask")
SEGMENTS = {"bert": ("token_type_ids",)}  # other models refuse them
MARIAN = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>"}


def tokenizer_files(
    tokenizers: Mapping[str, Tokenizer], model_type: str, max_length: int | None = None
) -> dict[str, Any]:
    """Return the files of a model's tokenizers.

    Args:
        tokenizers: role -> tokenizer: {"text": `Subwords`}; of Marian {"source": `SentencePieces`,
            "target": `SentencePieces`}, with the model's vocabulary.
        model_type: type of config.json.
        max_length: the most tokens that the model reads.

    Returns:
        path in the folder -> what JSON holds, or bytes.

    Raises:
        ValueError: if `transformers` has no such tokenizer of such a model.
    """
    if model_type == "marian":
        return _marian(_required(tokenizers, SentencePieces, "source", "target"), max_length)
    [tokenizer] = _required(tokenizers, Subwords, "text")
    content = json.loads(tokenizer.to_json())
    vocabulary = dict(content["model"]["vocab"])  # token -> id; of unigram pieces -> score
    held = {*vocabulary, *(token["content"] for token in content["added_tokens"])}
    files = {
        name: next((token for token in tokens if token in held), None)
        for name, tokens in SPECIAL_TOKENS.items()
    }
    return {
        SUBWORDS: content,
        CONFIG: {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "clean_up_tokenization_spaces": tokenizer.is_word_piece,
            "split_special_tokens": not tokenizer.special_tokens & tokenizer.added_tokens,
            **{name: token for name, token in files.items() if token is not None},
            "model_input_names": [*INPUTS, *SEGMENTS.get(model_type, ())],
            **_most(max_length),
        },
    }


def _marian(tokenizers, max_length):
    source, target = tokenizers
    for role, tokenizer in (("source", source), ("target", target)):
        if tokenizer.vocabulary is None or (tokenizer.prefix, tokenizer.suffix) != ((), ("</s>",)):
            raise ValueError(
                f"save_hugging_face: the {role} tokenizer must have a vocabulary, and </s> after "
                "a text and nothing before it, as Marian's have; received another."
            )
    separate = source.vocabulary != target.vocabulary
    apart = [token for token in MARIAN.values() if _id_of(source, token) != _id_of(target, token)]
    if apart:
        raise ValueError(
            f"save_hugging_face: {', '.join(apart)} must have one id in both languages, as in "
            "Marian's vocabularies; received two."
        )
    return {
        "source.spm": source.model,
        "target.spm": target.model,
        VOCABULARY: source.vocabulary,
        **({OF_TARGETS: target.vocabulary} if separate else {}),
        CONFIG: {
            "tokenizer_class": "MarianTokenizer",
            **MARIAN,
            "separate_vocabs": separate,
            **_most(max_length),
        },
    }


def _id_of(tokenizer, token):
    return tokenizer.vocabulary.get(token)


def _most(max_length):
    return {} if max_length is None else {"model_max_length": max_length}


def _required(tokenizers, kind, *roles):
    """Return the tokenizers of the roles, which are of a kind."""
    received = type(tokenizers).__name__
    if isinstance(tokenizers, dict):
        received = {role: type(tokenizer).__name__ for role, tokenizer in tokenizers.items()}
    if received != dict.fromkeys(roles, kind.__name__):
        expected = ", ".join(f"{role!r}: {kind.__name__}" for role in roles)
        raise ValueError(
            f"save_hugging_face: tokenizers must be {{{expected}}} for this model; "
            f"received {received}."
        )
    return [tokenizers[role] for role in roles]
