"""What a host must know of a stream, for the model card."""

import math

import numpy as np

from seqkeras.export.card.template import STREAM
from seqkeras.serving.streams import NEXT, ROLE


def about_streams(manifest):
    """Return the section of the model card, "" for a bundle without a stream."""
    if ROLE not in manifest.graphs:
        return ""
    graph, names = manifest.graphs[ROLE], {*manifest.stream_state}
    state = [spec for spec in graph.inputs if spec.name in names]
    size = sum(np.dtype(spec.dtype).itemsize * math.prod(spec.shape[1:]) for spec in state)
    return STREAM.format(
        name=manifest.name,
        file=graph.file,
        size=f"{size:,}",
        late=f"{graph.delay} frames late" if graph.delay else "at once",
        next=NEXT,
        tensors="\n".join(
            f"| `{spec.name}` | {spec.dtype} | ({', '.join(map(str, spec.shape))}) |"
            for spec in graph.inputs
        ),
    )
