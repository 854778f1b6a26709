"""README.md of a bundle: what it is, how good, how to run it."""

import json
import shlex

import serving
from seqkeras.tokenizers import CharacterTable, WordTable, read_tokenizer
from serving.printing import as_line

TEMPLATE = """# {name}

{task}: {pipeline}, exported {created} by seqkeras {version}.

## Run it

```
{command}
```

With NumPy and onnxruntime only{libraries}. In Python: `serving.load("{bundle}")({example!r})`.
{saved_models}
| input | answer |
|---|---|
{answers}

## Input

{input}

## Measured
{scores}
| Keras against what was exported, on {examples} real inputs | largest difference |
|---|---|
{parity}
{precisions}
## Files

| file | bytes |
|---|---|
{files}
"""
SCORES = """
| on test data | |
|---|---|
{rows}
"""
WIDEST = 120  # characters of an input or an answer
PRECISIONS = """
| beside float32 | bytes | speed, batch 1 | speed, batch 16 | same answers, or mean cosine |
|---|---|---|---|---|
{rows}
"""


def write(folder, manifest, bundle):
    """Write the model card of the bundle in `folder`, which will lie at `bundle`."""
    examples = list(manifest.examples[:4])
    answers = serving.load(folder)(examples)
    first = examples[0] if isinstance(examples[0], str) else json.dumps(examples[0])
    command = ["python", "-m", "serving", "predict", str(bundle)]
    text = TEMPLATE.format(
        name=manifest.name,
        task=manifest.task,
        pipeline=manifest.pipeline,
        created=manifest.created,
        version=manifest.versions["seqkeras"],
        bundle=bundle,
        command=shlex.join(command + ([first] if isinstance(examples[0], str) else [])),
        libraries=_libraries(folder, manifest),
        example=examples[0],
        saved_models=_saved_models(manifest),
        answers=_rows((_cell(e), _cell(as_line(a, 1))) for e, a in zip(examples, answers)),
        input=_about_input(folder, manifest),
        scores=_scores(manifest),
        examples=manifest.parity["examples"],
        parity=_rows(
            (name.removesuffix("_difference").replace("_", " "), f"{value:.1e}")
            for name, value in manifest.parity.items()
            if name.endswith("_difference")
        ),
        precisions=_precisions(manifest),
        files=_rows((path, f"{entry.bytes:,}") for path, entry in manifest.files.items()),
    )
    (folder / "README.md").write_text(text, encoding="utf-8")


def _about_input(folder, manifest):
    tokenizers = {role: read_tokenizer(folder / path) for role, path in manifest.tokenizers.items()}
    if not tokenizers:
        return f"At most {manifest.limits.source_length} steps."
    role, tokenizer = next(iter(tokenizers.items()))
    unit = tokenizer.kind if isinstance(tokenizer, CharacterTable | WordTable) else "tokens"
    if manifest.pipeline == "Classify" and unit == WordTable.kind:
        about = [f"A tree in brackets, of at most {manifest.limits.source_length} nodes."]
    else:
        about = [f"Text of at most {manifest.limits.source_length} {unit}."]
    if unit != "tokens":
        file = manifest.tokenizers[role]
        about.append(f"{unit.capitalize()} that are not in `{file}` count as unknown.")
    if prefix := manifest.text_prefix:
        values = ", ".join(prefix.values)
        about.append(f"It begins with a {prefix.name} and `{prefix.separator}`: {values}.")
    return " ".join(about)


def _libraries(folder, manifest):
    kinds = {type(read_tokenizer(folder / path)) for path in manifest.tokenizers.values()}
    if kinds <= {CharacterTable, WordTable}:
        return ""
    return ", and the tokenizer libraries of `serving/requirements-tokenizers.txt`"


def _saved_models(manifest):
    takes = {"saved_model/1": "token ids", "saved_model_text/1": "strings"}
    parts = [
        f"`{path.partition('/')[0]}` ({takes[path]})"
        for path in manifest.saved_models
        if path in takes
    ]
    return f"TensorFlow Serving takes {' and '.join(parts)}.\n" if parts else ""


def _scores(manifest):
    rows = _rows(
        (name, f"{value:,}" if isinstance(value, int) else f"{value:.2%}")
        for name, value in manifest.scores.items()
        if isinstance(value, int | float)
    )
    return SCORES.format(rows=rows) if rows else ""


def _precisions(manifest):
    if not manifest.precisions:
        return ""
    rows = []
    for name, precision in manifest.precisions.items():
        figures = precision.figures
        speeds = (f"{figures[f'speed_batch_{size}']:.2f}" for size in (1, 16))
        same = figures.get("agreement", figures.get("mean_cosine"))
        same = "" if same is None else f"{same:.2%}"
        rows.append((name, f"{figures['bytes']:,}", *speeds, same))
    return PRECISIONS.format(rows=_rows(rows))


def _cell(value):
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = " ".join(text.split())
    text = text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"
    return f"`{text}`".replace("|", "\\|")


def _rows(cells):
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)
