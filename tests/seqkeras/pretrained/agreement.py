"""Folders of `tests.vectors.pretrained`, and what our models say of their inputs."""

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from seqkeras.models import SentenceEncoder, WithHeads
from seqkeras.pretrained import load_hugging_face, read_config
from tests import vectors
from tests.arrays import numbers, right_padded

STORED = vectors.load("pretrained")
INPUTS = ("token_ids", "lengths", "segment_ids", "target_ids")
HIDDEN = ("hidden", "masked", "tags", "start_logits", "end_logits")  # have positions


def outputs_of(model, given):
    """Outputs by name, zero at padded positions."""
    inputs = {name: given[name] for name in INPUTS if name in given}
    found = numbers(model(inputs))
    if isinstance(model, SentenceEncoder):
        return {"embeddings": found}
    if isinstance(model, WithHeads) and "span" in found:
        found = found["span"]
    if not isinstance(found, dict):
        return {"logits": found}
    if "lengths" not in given or given["token_ids"].ndim == 3:
        return found
    mask = right_padded(given["lengths"], given["token_ids"].shape[1])
    return {
        name: np.where(mask[..., None] if each.ndim == 3 else mask, each, 0)
        if name in HIDDEN
        else each
        for name, each in found.items()
    }


def stored(case, folder):
    """Write the files of a case; returns inputs and outputs by name."""
    start = f"{case}/"
    found = {
        name.removeprefix(start): each for name, each in STORED.items() if name.startswith(start)
    }
    for name, each in found.items():
        if name.startswith("file/"):
            path = folder / name.removeprefix("file/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(each.tobytes())
    return found


def folder_with(case, folder, change=None, **fields):
    """A case's folder, with other fields of its config and its tensors changed."""
    stored(case, folder)
    config = read_config(folder)
    (folder / "config.json").write_text(json.dumps(config | fields))
    if change is not None:
        tensors = load_file(folder / "model.safetensors")
        save_file(change(tensors), folder / "model.safetensors")
    return folder


def refusal(folder, **options):
    """The text of the error, in which the folder is FOLDER."""
    with pytest.raises(ValueError) as caught:
        load_hugging_face(folder, **options)
    return str(caught.value).replace(str(folder), "FOLDER")
