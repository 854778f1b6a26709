"""The attention of each head of each layer: the graph that serving runs, beside Keras."""

import numpy as np

from export.verifying.searches import in_keras
from serving.opening import Runtime
from serving.pipelines import PIPELINES
from serving.pipelines.attention import HEADS, ROLE

EXAMPLES = 8  # a text of 512 tokens has 38 million weights in BERT-base


def compare_attention(comparison, plan, folder, manifest, inputs, **options):
    """Hold the attention that serving shows against Keras's.

    Args:
        comparison: the `Comparison`.
        plan: the model's `ExportPlan`.
        folder, manifest: of the bundle.
        inputs: as its pipeline takes them.
        options: of the pipeline.
    """
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
