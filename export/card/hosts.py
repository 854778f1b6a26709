"""Sections of the model card for hosts of the graphs that generate and that stream."""

import math

import numpy as np

from seqkeras.export.feeds import LANGUAGE_MODEL
from seqkeras.export.pipelines import record_of
from seqkeras.serving.manifest import Manifest
from seqkeras.serving.streams import NEXT
from seqkeras.serving.streams import ROLE as STREAM

ROLE = "generate"
GENERATION = """## `{file}`

From {source} to token ids, {how}, for hosts that are not Python.{weights_note}

| | name | type | shape |
|---|---|---|---|
{tensors}

| | |
|---|---|
{facts}

"""
STREAMING = """## Stream

`serving.load("{name}").open()` answers each frame as it comes, {late}: `push(frames)`. The
state of a stream has {size} bytes. Another host gives `{file}` frames and the state, first zeros,
and takes the next state from the outputs `{next}…`.

| takes | type | shape |
|---|---|---|
{tensors}

"""


def about_generation(manifest: Manifest) -> str:
    """Return the section of the model card, "" for a bundle without a graph that generates."""
    if ROLE not in manifest.graphs:
        return ""
    graph = manifest.graphs[ROLE]
    names = " and ".join(f"`{file}`" for file in graph.weights)
    tensors = [("takes", spec) for spec in graph.inputs]
    tensors += [("gives", spec) for spec in graph.outputs]
    return GENERATION.format(
        file=graph.file,
        source="frames" if _of_frames(graph) else "token ids",
        how=_how(manifest.decoding),
        weights_note=f" It reads {names}, which must lie beside it." if names else "",
        tensors="\n".join(
            f"| {way} | `{spec.name}` | {spec.dtype} | ({', '.join(map(str, spec.shape))}) |"
            for way, spec in tensors
        ),
        facts="\n".join(f"| {name} | {value} |" for name, value in _facts(manifest, graph)),
    )


def _of_frames(graph):
    return graph.inputs[0].name == "frames"


def _how(decoding):
    """Return how the graph searches."""
    how = "greedily" if decoding.num_beams == 1 else f"by {decoding.num_beams} beams"
    if decoding.regex is None:
        return how
    return f"{how}, among texts that match the manifest's `decoding.regex`"


def _facts(manifest, graph):
    """Yield what a host must know of the inputs and the results."""
    limits, decoding = manifest.limits, manifest.decoding
    if record_of(manifest.pipeline).model_kind == LANGUAGE_MODEL:
        [file] = manifest.tokenizers.values()
        begins = f"begins with {decoding.start_id}, " if manifest.settings.get("start") else ""
        most = min(limits.source_length, limits.target_length - 1)
        yield (
            "a row",
            f"a prompt by `{file}`, {begins}without the {decoding.end_id} of a text's end",
        )
        yield "where there is no prompt", f"{decoding.start_id} alone"
        yield "tokens of a row", f"1 to {most}"
        yield "a result", "begins with its prompt"
    else:
        source, target = manifest.tokenizers.get("source"), manifest.tokenizers["target"]
        yield "a row", f"ids by `{source}`" if source else "frames"
        yield (
            f"{'frames' if _of_frames(graph) else 'tokens'} of a row",
            (f"1 to {limits.source_length}"),
        )
        yield "a result", f"ids by `{target}`"
    yield "the end of a result", f"{decoding.end_id}, or {limits.target_length} tokens"
    if decoding.num_beams > 1 and decoding.length_penalty:
        yield "length penalty of the scores", f"{decoding.length_penalty:g}"
    yield (
        "a host",
        "runs onnxruntime alone with `ORT_DISABLE_TELEMETRY=1` in its environment: from 1.29 on "
        "onnxruntime otherwise reports processes and graphs to Microsoft",
    )


def about_streams(manifest: Manifest) -> str:
    """Return the section of the model card, "" for a bundle without a stream."""
    if STREAM not in manifest.graphs:
        return ""
    graph, names = manifest.graphs[STREAM], {*manifest.stream_state}
    state = [spec for spec in graph.inputs if spec.name in names]
    size = sum(np.dtype(spec.dtype).itemsize * math.prod(spec.shape[1:]) for spec in state)
    return STREAMING.format(
        name=manifest.name,
        file=graph.file,
        size=f"{size:,}",
        late=_late(graph),
        next=NEXT,
        tensors="\n".join(
            f"| `{spec.name}` | {spec.dtype} | ({', '.join(map(str, spec.shape))}) |"
            for spec in graph.inputs
        ),
    )


def _late(graph):
    if graph.delay:
        return f"{graph.delay} frames late"
    return f"from frame {graph.warm_up + 1} on" if graph.warm_up else "at once"
