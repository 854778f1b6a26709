"""Folders of `sentence-transformers`: an encoder, its pooling, and normalisation or not.

Dense layers after the pooling, and poolings other than the mean and the first token, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqkeras.models import SentenceEncoder
from seqkeras.pretrained.folders import inside, read_json
from seqkeras.pretrained.hugging_face import load_transformer, save_transformer

if TYPE_CHECKING:
    import keras

    from seqkeras.models import Bert
    from seqkeras.serving.text import Tokenizer

MODULES = "modules.json"
KINDS = ("Transformer", "Pooling", "Normalize")
POOLINGS = {"mean": "pooling_mode_mean_tokens", "cls": "pooling_mode_cls_token"}


def load_sentence_encoder(
    folder: Path | str, dtype: str | keras.DTypePolicy | None = None, heads: bool = True
) -> SentenceEncoder | Bert:
    """Return a `SentenceEncoder`, or its `Bert`; see `seqkeras.pretrained.load_hugging_face`."""
    folder = Path(folder)
    modules = read_json(folder / MODULES, list)
    for module in modules:
        if not isinstance(module, dict) or not all(
            isinstance(module.get(name), str) for name in ("type", "path")
        ):
            raise ValueError(
                f'{folder / MODULES}: each module must have a "type" and a "path"; '
                f"received {module!r}."
            )
    kinds = tuple(module["type"].rpartition(".")[2] for module in modules)
    if not heads and kinds[:1] == KINDS[:1]:  # what stands after the encoder is a head
        return load_transformer(inside(folder, modules[0]["path"]), dtype, heads=False)
    if kinds not in (KINDS[:2], KINDS):
        raise ValueError(
            f"{folder / MODULES}: the modules must be {KINDS[:2]} or {KINDS}; received {kinds}."
        )
    pooling = _pooling(inside(folder, modules[1]["path"]) / "config.json")
    encoder = load_transformer(inside(folder, modules[0]["path"]), dtype, heads=False)
    model = SentenceEncoder(encoder, pooling, normalize=kinds == KINDS, dtype=dtype)
    model.build(None)
    return model


def save_sentence_encoder(
    model: keras.Model,
    folder: Path | str,
    config: Mapping[str, Any] | None = None,
    tokenizers: Mapping[str, Tokenizer] | None = None,
) -> None:
    """Save a `SentenceEncoder` as a folder; see `seqkeras.pretrained.save_hugging_face`."""
    kinds = KINDS if model.normalize else KINDS[:2]
    paths = ["" if number == 0 else f"{number}_{kind}" for number, kind in enumerate(kinds)]
    modules = [
        {
            "idx": number,
            "name": str(number),
            "path": path,
            "type": f"sentence_transformers.models.{kind}",
        }
        for number, (path, kind) in enumerate(zip(paths, kinds, strict=True))
    ]
    pooling = {
        "word_embedding_dimension": model.encoder.hidden_dim,
        **{field: pooling == model.pooling for pooling, field in POOLINGS.items()},
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    files = {MODULES: modules, f"{paths[1]}/config.json": pooling}
    save_transformer(model.encoder, folder, config, tokenizers, files)


def _pooling(path):
    """Return "mean" or "cls", which newer files name and older ones have a flag for."""
    config = read_json(path)
    flags = [name for name, value in config.items() if name.startswith("pooling_mode_") and value]
    named = [name for name, flag in POOLINGS.items() if flags == [flag]]
    mode = config.get("pooling_mode", named[0] if named else flags)
    if mode not in list(POOLINGS):  # it may be a list itself
        raise ValueError(f"{path}: the pooling must be one of {list(POOLINGS)}; received {mode}.")
    return mode
