"""What a host must know of a stream, for the model card."""

import math

from seqkeras.export.card.template import STREAM
from seqkeras.serving.streams import NEXT, ROLE

BYTES = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bool": 1}


def about_streams(manifest):
    """Return the section of the model card, "" for a bundle without a stream."""
    if ROLE not in manifest.graphs:
        return ""
    graph, names = manifest.graphs[ROLE], {*manifest.stream_state}
    state = [spec for spec in graph.inputs if spec.name in names]
    size = sum(BYTES[spec.dtype] * math.prod(spec.shape[1:]) for spec in state)
    frames = f"{graph.delay} frames late" if graph.delay else "at once"
    return STREAM.format(
        name=manifest.name,
        file=graph.file,
        size=f"{size:,}",
        late=frames,
        next=NEXT,
        tensors="\n".join(
            f"| `{spec.name}` | {spec.dtype} | ({', '.join(map(str, spec.shape))}) |"
            for spec in graph.inputs
        ),
    )
