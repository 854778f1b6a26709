"""README.md of a bundle: what it is, how good, how to run it."""

import serving

TEMPLATE = """# {name}

{task}: {pipeline}, exported {created} by seqkeras {version}.

## Run it

```
python -m serving predict {bundle} "{example}"
```

With NumPy and onnxruntime only. In Python: `serving.load("{bundle}")("{example}").text`.
TensorFlow Serving takes `saved_model` (token ids) and `saved_model_text` (strings).

| input | answer |
|---|---|
{answers}

## Input

{input}

## Measured

| on test data | |
|---|---|
{scores}

| Keras against what was exported, on {examples} real inputs | largest log-probability difference |
|---|---|
{parity}

## Files

| file | bytes |
|---|---|
{files}
"""


def write(folder, manifest, bundle):
    """Write the model card of the bundle in `folder`, which will lie at `bundle`."""
    examples = list(manifest.examples[:4])
    answers = serving.load(folder)(examples)
    limits, prefix = manifest.limits, manifest.text_prefix
    about = [f"Text of at most {limits.source_length} characters."]
    about.append("Characters that are not in `tokenizer/source.json` count as unknown.")
    if prefix:
        values = ", ".join(prefix.values)
        about.append(f"It begins with a {prefix.name} and `{prefix.separator}`: {values}.")
    text = TEMPLATE.format(
        name=manifest.name,
        task=manifest.task,
        pipeline=manifest.pipeline,
        created=manifest.created,
        version=manifest.versions["seqkeras"],
        bundle=bundle,
        example=examples[0],
        answers=_rows((f"`{e}`".replace("|", "\\|"), a.text) for e, a in zip(examples, answers)),
        input=" ".join(about),
        scores=_rows(
            (name, f"{value:,}" if isinstance(value, int) else f"{value:.2%}")
            for name, value in manifest.scores.items()
            if isinstance(value, int | float)
        ),
        examples=manifest.parity["examples"],
        parity=_rows(
            (name, f"{manifest.parity[f'{name}_log_prob_difference']:.1e}")
            for name in ("saved_model", "onnx")
        ),
        files=_rows((path, f"{entry.bytes:,}") for path, entry in manifest.files.items()),
    )
    (folder / "README.md").write_text(text, encoding="utf-8")


def _rows(cells):
    return "\n".join(f"| {name} | {value} |" for name, value in cells)
