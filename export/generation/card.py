"""What a host must know of the graph that generates, for the model card."""

ROLE = "generate"
CARD = """## `{file}`

From {source} to token ids, {how}, for hosts that are not Python.{beside}

| | name | type | shape |
|---|---|---|---|
{rows}

{padded}; `lengths` says how many of a row are
real. {given}
{found} Behind its end `generated_ids` are 0; `generated_lengths` counts what stands before, and
`scores` are log-probabilities{penalty}. What can not be meant, as an id that there is not, a length
of 0 or a batch without a row, is an error of onnxruntime, which tells in the name of a node what
must hold. Start a host that runs it by onnxruntime alone with `ORT_DISABLE_TELEMETRY=1` in its
environment: onnxruntime from 1.29 on otherwise reports processes and graphs to Microsoft.

"""


def about_generation(manifest):
    """The section of the model card, "" for a bundle without such a graph."""
    if ROLE not in manifest.graphs:
        return ""
    graph, decoding = manifest.graphs[ROLE], manifest.decoding
    of_frames = graph.inputs[0].name == "frames"
    beams, alpha = decoding.num_beams, decoding.length_penalty
    names = " and ".join(f"`{file}`" for file in graph.weights)
    rows = [("takes", each) for each in graph.inputs] + [("gives", each) for each in graph.outputs]
    return CARD.format(
        file=graph.file,
        how=_how(decoding),
        beside=f" It reads {names}, which must lie beside it." if names else "",
        rows="\n".join(
            f"| {way} | `{spec.name}` | {spec.dtype} | ({', '.join(map(str, spec.shape))}) |"
            for way, spec in rows
        ),
        source="frames" if of_frames else "token ids",
        padded=(
            "`frames` are padded at the right, by any numbers"
            if of_frames
            else "`token_ids` are padded at the right, by any id that there is"
        ),
        given=_given(manifest),
        found=_found(manifest),
        penalty=f" over the length penalty, of {alpha:g}" if beams > 1 and alpha else "",
    )


def _how(decoding):
    """How the graph searches."""
    how = "greedily" if decoding.num_beams == 1 else f"by {decoding.num_beams} beams"
    if decoding.regex is None:
        return how
    return f"{how}, among texts that match the manifest's `decoding.regex`"


def _given(manifest):
    """What stands in a row."""
    limits, start_id = manifest.limits, manifest.decoding.start_id
    if manifest.pipeline == "Translate":
        if "source" not in manifest.tokenizers:
            return f"A row has at most {limits.source_length} frames for this model."
        file = manifest.tokenizers["source"]
        return f"They are those of `{file}`, at most {limits.source_length} for this model."
    [file] = manifest.tokenizers.values()
    first = f"begins with {start_id}" if manifest.settings.get("start") else "has a token at least"
    most = min(limits.source_length, limits.target_length - 1)
    return (
        f"They are a prompt by `{file}`, which {first}, has at most {most} tokens, and not the "
        f"{manifest.decoding.end_id} of a text's end; where there is no prompt, {start_id} alone."
    )


def _found(manifest):
    """What stands in a result."""
    end_id, most = manifest.decoding.end_id, manifest.limits.target_length
    if manifest.pipeline == "Translate":
        begin = f"A result is by `{manifest.tokenizers['target']}`, and"
    else:
        begin = "A result begins with its prompt, and"
    return f"{begin} ends with {end_id} or after {most} tokens, both counted."
