"""Folders of Hugging Face's `transformers`: config.json and model.safetensors, to models and back.

A family is a small file with its config and its name map; `FAMILIES` lists them.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqkeras.pretrained.assignment import load_model, tensors_of
from seqkeras.pretrained.bert import BERT
from seqkeras.pretrained.config import Config
from seqkeras.pretrained.distilbert import DISTILBERT
from seqkeras.pretrained.folders import CONFIG, read_json, read_tensors, write_folder
from seqkeras.pretrained.gpt2 import GPT2
from seqkeras.pretrained.marian import MARIAN
from seqkeras.pretrained.roberta import ROBERTA
from seqkeras.pretrained.t5 import T5
from seqkeras.pretrained.tokenizer_files import tokenizer_files

if TYPE_CHECKING:
    import keras

    from seqkeras.models import GPT, Bert, Transformer, WithHeads
    from seqkeras.serving.text import Tokenizer

FAMILIES = {family.model_type: family for family in (BERT, ROBERTA, DISTILBERT, GPT2, MARIAN, T5)}
GENERATION = "generation_config.json"


def read_config(folder: Path | str) -> dict[str, Any]:
    """Return the fields of config.json, and of generation_config.json if there is one.

    Args:
        folder: a path.

    Returns:
        A dictionary: name -> value. A field of config.json goes before one of the other file.

    Raises:
        ValueError: if config.json is missing, or a file is no JSON object.

    Example:
        >>> import json, pathlib
        >>> from seqkeras.pretrained import read_config
        >>> fields = {"model_type": "bert", "id2label": {"0": "bad", "1": "good"}}
        >>> _ = pathlib.Path("config.json").write_text(json.dumps(fields))
        >>> read_config(".")["id2label"]
        {'0': 'bad', '1': 'good'}
    """
    folder = Path(folder)
    generation = read_json(folder / GENERATION) if (folder / GENERATION).exists() else {}
    return {**generation, **read_json(folder / CONFIG)}


def load_transformer(
    folder: Path | str, dtype: str | keras.DTypePolicy | None = None, heads: bool = True
) -> Bert | GPT | Transformer | WithHeads:
    """Return the model of a folder; see `seqkeras.pretrained.load_hugging_face`."""
    folder = Path(folder)
    config = Config(read_config(folder), folder / CONFIG)
    family = FAMILIES.get(config.choice("model_type", None, FAMILIES))
    config.check()
    architecture = _architecture(config, family)
    config.check()
    tensors = {family.common_name(name): tensor for name, tensor in read_tensors(folder).items()}
    config.num_tensors = len(tensors)
    plan = family.plan(config, architecture, tensors.keys(), heads)
    config.check()
    make = functools.partial(plan.make, dtype)
    return load_model(make, family.links, tensors, str(folder), plan.harmless)


def save_transformer(
    model: keras.Model,
    folder: Path | str,
    config: Mapping[str, Any] | None = None,
    tokenizers: Mapping[str, Tokenizer] | None = None,
    files: Mapping[str, Any] | None = None,
) -> None:
    """Save a model as a folder; see `seqkeras.pretrained.save_hugging_face`.

    Args:
        files: contents of more files, by path in the folder.
    """
    family, description = _describe(model)
    if not model.built:
        raise ValueError(
            f"save_hugging_face: the {type(model).__name__} must be built; received one that is "
            "not. Call it once, or its build(None)."
        )
    config = _with_both_labels(config or {})
    unknown = [name for name in description.required if config.get(name) is None]
    if unknown:
        raise ValueError(
            f"save_hugging_face: config must hold {unknown}, which the model does not know; "
            f"received {config or None}."
        )
    labels = len(description.defaults.get("id2label", ()))
    if labels and len(config.get("id2label", range(labels))) != labels:
        raise ValueError(
            f"save_hugging_face: id2label must name {labels} labels, as many as the head has; "
            f"received {config['id2label']}."
        )
    fields = {
        **description.defaults,
        **config,
        **description.fields,
        "model_type": family.model_type,
        "architectures": [description.architecture],
    }
    links = [link for link in family.links(model) if not link.name.startswith(description.left_out)]
    arrays = tensors_of(links)
    named = {
        family.full_name(name, description.architecture): array for name, array in arrays.items()
    }
    files = dict(files or {})
    if tokenizers:
        files |= tokenizer_files(tokenizers, family.model_type, _positions(model))
    if description.generation is not None:
        files[GENERATION] = description.generation(config)
        for name in files[GENERATION].keys() - set(description.required):
            fields.pop(name, None)  # each is in one of the files
    write_folder(folder, fields, named, files)


def _positions(model):
    """Return how many tokens a model has vectors of positions for, or None."""
    return getattr(getattr(model, "positions", None), "max_length", None)


def _with_both_labels(config):
    """Return fields with "id2label" and "label2id", of which the caller may give one."""
    names, numbers = config.get("id2label"), config.get("label2id")
    if names is not None and numbers is None:
        return {**config, "label2id": {label: int(number) for number, label in names.items()}}
    if numbers is not None and names is None:
        return {**config, "id2label": {number: label for label, number in numbers.items()}}
    return config


def _architecture(config, family):
    named = config.get("architectures") or family.architectures[:1]
    name = named[0] if isinstance(named, list | tuple) else named
    if name not in family.architectures:
        config.refuse(
            f"architectures must name one of {list(family.architectures)}; received {name!r}"
        )
    return name


def _describe(model):
    for family in FAMILIES.values():
        description = family.describe(model)
        if description is not None:
            return family, description
    raise ValueError(
        "save_hugging_face: the model must be a Bert, WithHeads on one, a SentenceEncoder, a GPT "
        f"or a Transformer; received {type(model).__name__}."
    )
