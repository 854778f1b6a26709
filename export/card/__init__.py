"""README.md of a bundle: what it is, how good it is, how to run it."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx

from seqkeras import serving
from seqkeras.export.card.hosts import about_generation, about_streams
from seqkeras.export.card.precisions import about_precisions
from seqkeras.export.pipelines import record_of
from seqkeras.serving.manifest import Manifest
from seqkeras.serving.pipelines.arrays import FRAMES
from seqkeras.serving.pipelines.forecast import WINDOW
from seqkeras.serving.printing import as_line
from seqkeras.tokenizers import CharacterTable, WordTable, read_tokenizer

CARD = """# {name}

{task}: {pipeline}, exported {created} by seqkeras {version}.

## Run it

From the folder that holds this one:

```
{command}
```

With NumPy and onnxruntime only{libraries}. In Python: `serving.load("{name}")({example})`.
What each part of this folder is, and how to replace it while it is served: `docs/bundles.md` of
seqkeras.
{saved_models}{operators}
| input | answer |
|---|---|
{answers}

## Input

{input}

{generation}{stream}## Measured
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
BASELINES = """
| beside plain methods | {names} |
{rule}|
{rows}

{summary}.
"""
CALIBRATION = """
| {subject}, cross-fitted | before | {by} |
|---|---|---|
{rows}
"""
CERTAINTY = """
| score, as exported | answers | mean score | right |
|---|---|---|---|
{reliability}

| answered, the surest first | wrong |
|---|---|
{risk}
"""
NONE = """
Null is the answer to {false_alarms:.1%} of {examples:,} held-out examples with a label, where
{asked:.1%} are asked for{strangers}; {accuracy:.2%} of those with a label are right. Cross-fitted.
"""
IDS = "SavedModel on arrays"
COMPARED = {  # a figure of the manifest's `parity` -> in words
    "onnx": "ONNX",
    "onnx_log_prob": "ONNX, log-probabilities along texts",
    "onnx_attention": "ONNX, attention of each head of each layer",
    "onnx_beam": "ONNX, scores by beams",
    "onnx_generate": "`onnx/generate.onnx`, scores",
    "saved_model": IDS,
    "saved_model_log_prob": f"{IDS}, log-probabilities along texts",
    "saved_model_beam": f"{IDS}, scores of `generate_beam`",
    "saved_model_text": "SavedModel on strings",
    "stream": "ONNX, stream",
    "stream_chunks": "ONNX, stream in chunks against a stream in one piece, of the largest number",
    "saved_model_stream": f"{IDS}, stream against ONNX",
}
CALLED = "{what}, from the model as its user calls it, on {examples} inputs, of the largest number"
WIDEST = 120  # characters of an input or an answer
EXAMPLES = "--examples"  # the option of predict
MOST_PASTED = 1000  # of an input in a command


def command(bundle: Path | str, examples: Sequence[Any]) -> str:
    """Return a command line, to be pasted in a shell, that answers an input of the bundle.

    Where the manifest has no examples, as arrays are too large, the command names a file. Where an
    example is too long to be pasted, the command answers all examples.
    """
    predict = f"seqkeras predict {shlex.quote(str(bundle))}"
    if not examples:
        return f"{predict} array.npy"
    if (argument := pasted(examples[0])) is not None:
        return f"{predict} {argument}"
    return f"{predict} {EXAMPLES}"


def pasted(example: Any) -> str | None:
    """Return an input as the words of a command line; None if it is too long."""
    if isinstance(example, str) and not example.startswith("-") and example.isprintable():
        return shlex.quote(example)
    text = json.dumps(_short(example), ensure_ascii=False)
    return f"--json-input {shlex.quote(text)}" if len(text) <= MOST_PASTED else None


def write(folder: Path, manifest: Manifest) -> None:
    """Write the model card of the bundle in `folder`."""
    examples = list(manifest.examples[:4])
    answers = serving.load(folder)(examples)
    text = CARD.format(
        name=manifest.name,
        task=manifest.task,
        pipeline=manifest.pipeline,
        created=manifest.created,
        version=manifest.versions["seqkeras"],
        command=command(manifest.name, examples),
        libraries=_libraries(folder, manifest),
        example=_in_python(examples[0]) if examples else "array",
        saved_models=_saved_models(manifest),
        operators=about_operators(folder, manifest),
        answers=_rows((_cell(e), _cell(as_line(a, 1))) for e, a in zip(examples, answers)),
        input=_about_input(folder, manifest),
        generation=about_generation(manifest),
        stream=about_streams(manifest),
        scores=_scores(manifest),
        examples=manifest.parity["examples"],
        parity=_rows(_parity(manifest.parity)),
        precisions=about_precisions(manifest),
        files=_rows((path, f"{entry.bytes:,}") for path, entry in manifest.files.items()),
    )
    (folder / "README.md").write_text(text, encoding="utf-8")


def _in_python(example):
    """Return an input as Python source; a list would be read as several inputs."""
    short = _short(example)
    text = repr(tuple(short) if isinstance(short, list) else short)
    return text if len(text) <= WIDEST else "…"


def _short(value):
    """Return numbers in lists, rounded to the digits of float32."""
    if isinstance(value, float):
        return float(f"{value:.7g}")
    if isinstance(value, list | tuple):
        return type(value)(map(_short, value))
    if isinstance(value, dict):
        return {name: _short(part) for name, part in value.items()}
    return value


def _about_input(folder, manifest):
    tokenizers = {role: read_tokenizer(folder / path) for role, path in manifest.tokenizers.items()}
    if set(tokenizers) <= {"target"}:
        return _about_numbers(manifest)
    role, tokenizer = next(iter(tokenizers.items()))
    kinds = [kind for kind in (CharacterTable, WordTable) if isinstance(tokenizer, kind)]
    unit = kinds[0].kind if kinds else "tokens"
    about = [record_of(manifest.pipeline).input_limits(manifest, unit)]
    if unit != "tokens":
        file = manifest.tokenizers[role]
        about.append(f"{unit.capitalize()} that are not in `{file}` count as unknown.")
    if prefix := manifest.text_prefix:
        values = ", ".join(prefix.values)
        about.append(f"It begins with a {prefix.name} and `{prefix.separator}`: {values}.")
    return " ".join(about)


def _about_numbers(manifest):
    """Return the shape of an input that is an array."""
    spec, *_ = [
        tensor
        for graph in manifest.graphs.values()
        for tensor in graph.inputs
        if tensor.name in (WINDOW, FRAMES)
    ]
    length, *sizes = spec.shape[1:]
    what = "A series" if spec.name == WINDOW else "An array"
    step_size = f", each of {' × '.join(map(str, sizes))} numbers" if sizes else ""
    rows = _about_rows(manifest)
    if isinstance(length, int):
        return f"{what} of {length} {'steps' if sizes else 'numbers'}{step_size}.{rows}"
    return f"{what} of at most {manifest.limits.source_length} steps{step_size}.{rows}"


def _about_rows(manifest):
    """Return what the graph reads of rows of a table, for hosts that run it by themselves."""
    if not manifest.settings.get("rows"):
        return ""
    answers = ", and answers z of its targets" if manifest.pipeline == "Forecast" else ""
    return (
        " `serving` makes it of rows, by `settings.rows` of the manifest: the graph itself reads "
        "z = (g(x) - mean) / deviation of each column of numbers in float32, with g(x) = "
        f"log(1 + x) where `log` is true, else x{answers}; compute z and x in float64."
    )


def _libraries(folder, manifest):
    kinds = {type(read_tokenizer(folder / path)) for path in manifest.tokenizers.values()}
    if kinds <= {CharacterTable, WordTable}:
        return ""
    return ", and the tokenizer libraries of `serving/requirements-tokenizers.txt`"


def _saved_models(manifest):
    inputs = [spec.name for graph in manifest.graphs.values() for spec in graph.inputs]
    ids = any(name.endswith("_ids") for name in inputs)
    takes = {"saved_model/1": "token ids" if ids else "arrays", "saved_model_text/1": "strings"}
    parts = [
        f"`{path.partition('/')[0]}` ({takes[path]})"
        for path in manifest.saved_models
        if path in takes
    ]
    return f"TensorFlow Serving takes {' and '.join(parts)}.\n" if parts else ""


def about_operators(folder: Path, manifest: Manifest) -> str:
    """Return which operator sets the graphs of each precision use."""
    graphs = {"float32": manifest.graphs}
    graphs |= {name: precision.graphs for name, precision in manifest.precisions.items()}
    standard = [name for name, roles in graphs.items() if _domains(folder, roles) == {""}]
    others = [name for name in graphs if name not in standard]
    kinds = {
        "standard ONNX operators only": standard,
        "operators of onnxruntime's own, which other runtimes lack": others,
    }
    return "".join(
        f"\nThe graphs in {', '.join(names)} have {kind}.\n"
        for kind, names in kinds.items()
        if names
    )


def _domains(folder, graphs):
    """Return the operator sets of graphs by role."""
    return {
        opset.domain
        for graph in graphs.values()
        for opset in onnx.load(folder / graph.file, load_external_data=False).opset_import
    }


def _parity(figures):
    """Yield what was compared, and the largest difference."""
    generates = "onnx_log_prob_difference" in figures
    for name, value in figures.items():
        if name.endswith("_difference"):
            what = COMPARED[name.removesuffix("_difference")]
            yield (
                what + (", scores of `generate`" if generates and what == IDS else ""),
                f"{value:.1e}",
            )
    for name, what in (("keras", "Keras"), ("onnx", "ONNX"), ("saved_model", IDS)):
        if f"call_{name}" in figures:
            examples = figures["call_examples"]
            yield CALLED.format(what=what, examples=examples), f"{figures[f'call_{name}']:.1e}"


def _scores(manifest):
    rows = _rows(
        (name, _score(name, value))
        for name, value in manifest.scores.items()
        if isinstance(value, int | float)
    )
    names = "baselines", "calibration", "none_of_these"
    comparison, calibration, none = map(manifest.scores.get, names)
    return (
        (SCORES.format(rows=rows) if rows else "")
        + (_baselines(comparison) if comparison else "")
        + (_calibration(calibration) if calibration and "after" in calibration else "")
        + (_none(none) if none else "")
    )


def _none(none):
    """Return what is told of the answer null."""
    strangers = ""
    if none["told"] is not None:
        strangers = f", and to {none['told']:.1%} of {none['out_of_scope']:,} without one"
    return NONE.format(**none, strangers=strangers)


def _calibration(calibration):
    """Return the table of what the temperature of the scores brings, or the widths of bands."""
    before, after = calibration["before"], calibration["after"]
    if "temperature" in calibration:
        subject = f"scores of {calibration['answers']:,} answers"
        by = f"temperature of {calibration['temperature']:.3f}"
    else:
        subject = f"bands of {calibration['expected']:.0%}, {calibration['windows']:,} windows"
        by = "calibrated"
    rows = _rows(
        (name.replace("_", " "), f"{before[name]:.4f}", f"{after[name]:.4f}") for name in before
    )
    table = CALIBRATION.format(subject=subject, by=by, rows=rows)
    return table + (_certainty(calibration) if "risk" in calibration else "")


def _certainty(calibration):
    """Return the rows of the reliability diagram and of the curve of risk and coverage."""
    bins, risks = calibration["reliability"]["after"], calibration["risk"]
    reliability = _rows(
        (
            f"{index / len(bins):.2f} to {(index + 1) / len(bins):.2f}",
            f"{count:,.0f}",
            f"{score:.1%}",
            f"{right:.1%}",
        )
        for index, (count, score, right) in enumerate(bins)
        if count
    )
    risk = _rows(
        (f"{number / len(risks):.0%}", f"{share:.1%}")
        for number, share in enumerate(risks, start=1)
        if number % 2 == 0  # of twentieths, the tenths
    )
    return CERTAINTY.format(reliability=reliability, risk=risk)


def _baselines(comparison):
    """Return the table of the model and of plain methods, and the line that compares them."""
    formats, learned_on = comparison["formats"], comparison["learned_on"]
    rows = (
        (
            method + (f", on {learned_on[method]}" if method in learned_on else ""),
            *(f"{scores[name]:{form}}" for name, form in formats.items()),
        )
        for method, scores in comparison["methods"].items()
    )
    return BASELINES.format(
        names=" | ".join(formats),
        rule="|---" * (len(formats) + 1),
        rows=_rows(rows),
        summary=comparison["summary"],
    )


def _score(name, value):
    if isinstance(value, int):
        return f"{value:,}"
    is_share = abs(value) <= 1 and not any(word in name for word in ("loss", "correlation"))
    return f"{value:.2%}" if is_share else f"{value:,.4f}"


def _cell(value):
    text = value if isinstance(value, str) else json.dumps(_short(value), ensure_ascii=False)
    text = " ".join(text.split())
    text = text if len(text) <= WIDEST else f"{text[: WIDEST - 1]}…"
    return f"`{text}`".replace("|", "\\|")


def _rows(cells):
    return "\n".join(f"| {' | '.join(row)} |" for row in cells)
