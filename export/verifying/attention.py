"""Compare the attention of each head of each layer in serving with Keras's."""

import numpy as np

from seqkeras.export.verifying.searches import in_keras
from seqkeras.serving.opening import Runtime
from seqkeras.serving.pipelines import PIPELINES
from seqkeras.serving.pipelines.attention import HEADS, ROLE

EXAMPLES = 8  # a text of 512 tokens has 38 million weights in BERT-base


def compare_attention(comparison, plan, folder, manifest, inputs, **options):
    """Compare the attention that serving returns with Keras's."""
    if ROLE not in plan.graphs:
        return
    runs = []
    runtime = Runtime(observe=lambda *run: runs.append(run))
    PIPELINES[manifest.pipeline](folder, manifest, runtime)(
        inputs[:EXAMPLES], attention=HEADS, **options
    )
    function = in_keras(plan.graphs[ROLE])
    for feed, outputs in (run for role, *run in runs if role == ROLE):
        expected = function(**feed)
        for name, weights in outputs.items():
            comparison.compare_numbers("onnx_attention", weights, np.asarray(expected[name]))
