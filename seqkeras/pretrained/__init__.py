"""Weights that others trained, as models of ours, and back.

Missing, extra and misshapen tensors are refused in one error that lists them all, and configs that
no model of ours fits in another, before anything is read. docs/pretrained.md shows each import.
"""

from pathlib import Path

from seqkeras.models import SentenceEncoder
from seqkeras.pretrained.google_bert import load_google_bert
from seqkeras.pretrained.hugging_face import load_transformer, read_config, save_transformer
from seqkeras.pretrained.keras_nlp_backbones import load_keras_nlp
from seqkeras.pretrained.sentence_transformers import (
    MODULES,
    load_sentence_encoder,
    save_sentence_encoder,
)

__all__ = [
    "load_google_bert",
    "load_hugging_face",
    "load_keras_nlp",
    "read_config",
    "save_hugging_face",
]


def load_hugging_face(folder, dtype=None, heads=True):
    """The model of a folder in Hugging Face's format: config.json and model.safetensors.

    | model_type | model |
    |---|---|
    | bert, roberta, distilbert | `WithHeads` on a `Bert`; the `Bert` |
    | the same, and modules.json of sentence-transformers | `SentenceEncoder`; its `Bert` |
    | gpt2 | `GPT` |
    | marian | `Transformer` |

    Of two, the second is without heads. Weights of half precision become those of `dtype`.

    Args:
        folder: a path, no name on the hub; large models may lie in several files, which an index
            names.
        dtype: of the model, a name or a policy; None for Keras's own.
        heads: False leaves out what stands on an encoder, its heads or the pooling of sentences, so
            that `WithHeads` takes it.

    Returns:
        The model, built.

    Raises:
        ValueError: if the config names no model of ours, it contradicts the tensors, or a file is
            missing or damaged.
    """
    if (Path(folder) / MODULES).exists():
        return load_sentence_encoder(folder, dtype, heads)
    return load_transformer(folder, dtype, heads)


def save_hugging_face(model, folder, config=None, tokenizers=None):
    """A model as a folder that `transformers` reads: config.json, model.safetensors, tokenizers.

    The folder is written aside, and takes its name when it is whole. A pooler that no head reads is
    left out, as `transformers` has none there, and so is the dropout of a head that it has no field
    for (DistilBERT's tags, RoBERTa's choice, spans but for DistilBERT's); a `ClassificationHead(1)`
    is read as a `RegressionHead(1)`.

    Args:
        model: `Bert`, `WithHeads` on one, `SentenceEncoder`, `GPT` or `Transformer`, built.
        folder: a path; nothing is there, or an empty folder.
        config: more fields of config.json, as labels ("id2label", or "label2id": one follows from
            the other) and ids of tokens; a Marian model needs its "pad_token_id", "eos_token_id"
            and "decoder_start_token_id". Those that describe the model are its own.
            `read_config(folder)` returns those of a folder.
        tokenizers: role -> tokenizer, as `save_run` takes them: {"text": `Subwords`}, and of Marian
            "source" and "target", `SentencePieces`; `AutoTokenizer` reads what is written. None
            for no such files.

    Raises:
        ValueError: if `transformers` has no such model or no such tokenizer of it, a field is
            needed, or the folder holds something.
    """
    save = save_sentence_encoder if isinstance(model, SentenceEncoder) else save_transformer
    save(model, folder, config, tokenizers)
