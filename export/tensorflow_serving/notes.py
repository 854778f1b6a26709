"""README.md next to the settings: facts about this bundle, and requests to paste."""

from __future__ import annotations

import importlib.metadata
import json
import shlex
import textwrap
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.export.pipelines import record_of
from seqkeras.export.saved_model import foreign_operators
from seqkeras.export.tensorflow_serving.batching import BATCH_SIZES, OF_ONE_MODEL
from seqkeras.export.tensorflow_serving.inputs import WORD_LENGTH
from seqkeras.export.text_graphs.merging import MOST_STEPS
from seqkeras.export.text_graphs.reading import in_graph
from seqkeras.export.text_graphs.signatures import TRUNCATE
from seqkeras.serving.printing import as_content
from seqkeras.tokenizers import SentencePieces, Subwords, read_tokenizer

if TYPE_CHECKING:
    from seqkeras.export.tensorflow_serving.inputs import Inputs
    from seqkeras.serving.manifest import Manifest

ON_STRINGS = "saved_model_text"
MOST_SHOWN = 2000  # characters of a request

NOTES = """# TensorFlow Serving

`docker compose up` in this folder serves {names}: REST at port 8501, gRPC at 8500. What batches,
padding and refused requests mean: `docs/tensorflow-serving.md` of seqkeras.
"""
MODEL = """
## `{name}` takes {takes}

```
curl -d {body} http://localhost:8501/v1/models/{name}:predict
```

| signature | takes | gives |
|---|---|---|
{signatures}

{about}
"""
BATCHED = """\
Requests of several clients are answered in one batch, by `{file}`; a request holds at most {most}
rows. {reader}"""
ALONE = "Every request is answered alone: padding changes what this model answers."
OF_CLIENTS = "Requests of several clients are answered in one batch."
LENGTHS = "What lies after `lengths` is not read. "
CHARACTERS = """\
{names} must always be {width} wide (`word_length`), with zeros after a word's characters."""
STRINGS = """\
A row that is refused has the reason in `error`, which is empty for the others; {truncate} cuts
texts that are too long. {batches}

{operators}

Answers are those of `serving`, as it gives them without options{exceptions}"""
CORE = "It holds core operators of TensorFlow only."
OF_TEXT = """\
It holds operators of tensorflow-text, which the image links, of its own version: {names}. A program
that loads the model by TensorFlow imports `tensorflow_text` before: {version} here."""


def notes(
    folder: Path,
    manifest: Manifest,
    names: Mapping[str, str],
    inputs: Inputs,
    batched: Collection[str],
) -> dict[str, str]:
    """Return the files: name -> text.

    Args:
        names: folder of a SavedModel -> name of the model.
        batched: the folders of those whose requests the server batches.
    """
    listed = " and ".join(f"`{name}`" for name in names.values())
    parts, files = [NOTES.format(names=listed)], {}
    for path, name in names.items():
        signatures = manifest.saved_models[path]
        key = "generate" if "generate" in signatures else "serving_default"
        specs = signatures[key].inputs
        strings = any(spec.dtype == "string" for spec in specs)
        if strings:
            exceptions = "\n".join(_exceptions(folder, manifest))
            about = STRINGS.format(
                truncate=" and ".join(f"`{role}`" for role in signatures if TRUNCATE in role),
                batches=OF_CLIENTS if path in batched else ALONE,
                operators=_operators(folder / path),
                exceptions=f", but for these:\n\n{exceptions}" if exceptions else ".",
            )
        else:
            about = _about_ids(path, specs, path in batched, inputs.word_length)
        request = json.dumps(body(key, inputs.shortest(signatures[key])), ensure_ascii=False)
        if len(request) > MOST_SHOWN:
            files[f"{name}.json"] = request
            request = f"@{name}.json"
        parts.append(
            MODEL.format(
                name=name,
                takes="strings" if strings else "arrays",
                body=shlex.quote(request),
                signatures="\n".join(_row(role, signatures[role]) for role in signatures),
                about=about,
            )
        )
    if not any(path.startswith(ON_STRINGS) for path in names):
        parts.append(f"\n{_filled(_without_strings(manifest))}\n")
    return {"README.md": "".join(parts), **files}


def _without_strings(manifest):
    """Return why there is no SavedModel on strings, in words."""
    if {"words", "characters"} & set(manifest.tokenizers):
        return (
            "No model here takes strings: `serving` splits words by rules of Unicode, and trees at "
            "brackets, for which TensorFlow has no operator. Its `encode` makes the arrays."
        )
    if not manifest.tokenizers:
        return (
            "No model here takes strings: this one reads numbers. Rows of a table are scaled and "
            "encoded by `serving`, whose `encode` makes the arrays."
        )
    return (
        "No model here takes strings: the export left it out, its tokenizer is in no graph, or its "
        "tags come from a chain."
    )


def _filled(text):
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def body(key: str, row: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return a REST request of one row."""
    columns = {name: _json(value[np.newaxis]) for name, value in row.items()}
    return {"signature_name": key, "inputs": columns}


def _json(value):
    """Return an array as lists, with numbers rounded to the digits of float32."""
    return as_content(value) if value.dtype.kind == "f" else value.tolist()


def _row(key, signature):
    takes, gives = (
        ", ".join(f"{spec.name} ({', '.join(map(str, spec.shape))})" for spec in specs)
        for specs in (signature.inputs, signature.outputs)
    )
    return f"| `{key}` | {takes} | {gives} |"


def _about_ids(path, specs, batched, word_length):
    if not batched:
        return ALONE
    reader = LENGTHS if any(spec.name.endswith("lengths") for spec in specs) else ""
    wide = [f"`{spec.name}`" for spec in specs if str(spec.shape[-1]).endswith(WORD_LENGTH)]
    if wide:
        reader += CHARACTERS.format(names=" and ".join(wide), width=word_length)
    text = BATCHED.format(reader=reader, file=f"{path}/{OF_ONE_MODEL}", most=BATCH_SIZES[-1])
    return _filled(text)


def _operators(folder):
    """Return which operators a SavedModel on strings needs, in words."""
    names = [f"`{name}`" for name in sorted(foreign_operators(folder))]
    version = importlib.metadata.version("tensorflow-text")
    return OF_TEXT.format(names=", ".join(names), version=version) if names else CORE


def _exceptions(folder, manifest):
    """Yield how the SavedModel on strings differs from `serving` in what it reads and answers."""
    read = [manifest.tokenizers[role] for role in ("source", "text") if role in manifest.tokenizers]
    for tokenizer in (read_tokenizer(folder / path) for path in read):
        if isinstance(tokenizer, Subwords):
            yield from _of_subwords(tokenizer)
        elif isinstance(tokenizer, SentencePieces) and in_graph(tokenizer).has_ties:
            yield (
                "- Where two ways to split a text have one score, as `E`, `EE` and `EE`, `E`, it "
                "may take the other one."
            )
    for difference in record_of(manifest.pipeline).differences(manifest):
        yield textwrap.fill(f"- {difference}", 100, subsequent_indent="  ", break_on_hyphens=False)


def _of_subwords(tokenizer):
    graph = in_graph(tokenizer)
    yield "- A text that holds a code point from U+FDD0 to U+FDEF is refused."
    if graph.most_characters is not None:
        yield (
            f"- A text of more than {graph.most_characters} characters for every token that there "
            "may be is refused, even if it has fewer tokens."
        )
        yield (
            f"- A word that takes more than {MOST_STEPS} different merges, as thousands of random "
            "letters do, is refused."
        )
    added = json.loads(tokenizer.to_json())["added_tokens"]
    if refused := [token["content"] for token in added if token["rstrip"]]:
        yield f"- A text that holds {', '.join(refused)} is refused: spaces belong to it."
