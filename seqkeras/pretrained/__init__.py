"""Pretrained weights of other libraries as models of seqkeras, and back.

One error lists all missing, extra and misshapen tensors, another one all unsupported fields of a
config, before anything is read. docs/pretrained.md shows each import.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqkeras.models import SentenceEncoder
from seqkeras.pretrained.google_bert import load_google_bert
from seqkeras.pretrained.hugging_face import load_transformer, read_config, save_transformer
from seqkeras.pretrained.keras_nlp_backbones import load_keras_nlp
from seqkeras.pretrained.sentence_transformers import (
    MODULES,
    load_sentence_encoder,
    save_sentence_encoder,
)

if TYPE_CHECKING:
    import keras

    from seqkeras.models import GPT, Bert, Transformer, WithHeads
    from seqkeras.serving.text import Tokenizer

__all__ = [
    "load_google_bert",
    "load_hugging_face",
    "load_keras_nlp",
    "read_config",
    "save_hugging_face",
]


def load_hugging_face(
    folder: Path | str, dtype: str | keras.DTypePolicy | None = None, heads: bool = True
) -> Bert | GPT | SentenceEncoder | Transformer | WithHeads:
    """Return the model of a folder in Hugging Face's format: config.json and model.safetensors.

    | model_type | model |
    |---|---|
    | bert, roberta, distilbert | `WithHeads` on a `Bert`; the `Bert` |
    | the same, and modules.json of sentence-transformers | `SentenceEncoder`; its `Bert` |
    | gpt2 | `GPT` |
    | marian, t5 | `Transformer` |

    Where the table has two models, the second is the model without heads. Half-precision weights
    are converted to `dtype`.

    Args:
        folder: a path, not a name on the hub; the weights may be in several files that an index
            names.
        dtype: dtype of the model, a name or a policy; None for Keras's own.
        heads: False leaves out the heads, or the pooling of sentences; `WithHeads` can take that
            encoder.

    Returns:
        The model, built.

    Raises:
        ValueError: if the config names no model of ours or contradicts the tensors, or a file is
            missing or damaged.

    Reference: https://github.com/huggingface/transformers (the models of the table)

    Example:
        >>> import numpy as np
        >>> from seqkeras.models import Bert
        >>> from seqkeras.pretrained import load_hugging_face, save_hugging_face
        >>> model = Bert(11, hidden_dim=8, num_layers=1, num_heads=2, feed_forward_dim=12)
        >>> model.build(None)
        >>> save_hugging_face(model, "tiny-bert")
        >>> same, ids = load_hugging_face("tiny-bert"), {"token_ids": np.array([[2, 5, 3]])}
        >>> bool(np.allclose(same(ids)["hidden"], model(ids)["hidden"], atol=1e-6))
        True
    """
    if (Path(folder) / MODULES).exists():
        return load_sentence_encoder(folder, dtype, heads)
    return load_transformer(folder, dtype, heads)


def save_hugging_face(
    model: keras.Model,
    folder: Path | str,
    config: Mapping[str, Any] | None = None,
    tokenizers: Mapping[str, Tokenizer] | None = None,
) -> None:
    """Save a model as a folder that `transformers` reads: config.json, model.safetensors,
    tokenizers.

    The folder appears only when it is complete. A pooler that no head reads is left out, as in
    `transformers`, as is the dropout of a head without a field for it (DistilBERT's tags,
    RoBERTa's choice, all spans except DistilBERT's); a `ClassificationHead(1)` is read back as a
    `RegressionHead(1)`.

    Args:
        model: `Bert`, `WithHeads` on one, `SentenceEncoder`, `GPT` or `Transformer`, built.
        folder: a path to a new or an empty folder.
        config: more fields of config.json, such as labels ("id2label" or "label2id": one follows
            from the other) and ids of tokens; a Marian or a T5 needs its "pad_token_id",
            "eos_token_id" and "decoder_start_token_id". The fields that describe the model come
            from the model. `read_config(folder)` returns a folder's fields.
        tokenizers: role -> tokenizer, in the form that `save_run` takes: {"text": `Subwords`}; for
            Marian {"source": `SentencePieces`, "target": `SentencePieces`}. `AutoTokenizer` reads
            the files. None for no such files.

    Raises:
        ValueError: if `transformers` has no such model, or no such tokenizer for it, a field is
            missing, or the folder holds something.

    Example:
        >>> import pathlib
        >>> from seqkeras.models import Bert
        >>> from seqkeras.pretrained import save_hugging_face
        >>> model = Bert(11, hidden_dim=8, num_layers=1, num_heads=2, feed_forward_dim=12)
        >>> model.build(None)
        >>> save_hugging_face(model, "small-bert")
        >>> sorted(path.name for path in pathlib.Path("small-bert").iterdir())
        ['config.json', 'model.safetensors']
    """
    save = save_sentence_encoder if isinstance(model, SentenceEncoder) else save_transformer
    save(model, folder, config, tokenizers)
