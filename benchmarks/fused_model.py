"""An encoder's graph as `optimum` exports it and `onnxruntime.transformers` fuses it.

    python -m benchmarks.fused_model FOLDER FILE

FOLDER is a BERT in the format of `transformers`, FILE the graph to write. It is a process of its
own: the `transformers` that `optimum-onnx` needs is older than the one beside it in
benchmarks/requirements.txt, and TensorFlow need not be where it is.
"""

import sys
import tempfile
from pathlib import Path

from benchmarks import harness


def write(folder, file):
    """Write the fused graph: input_ids, attention_mask, token_type_ids -> last_hidden_state.

    Attention, Gelu, embeddings and skip connections with their normalisation become a node each;
    onnxruntime's own optimizer goes first, at the level that is the default for BERT.
    """
    exporters = harness.import_rival("optimum.exporters.onnx", harness.OPTIMUM)
    optimizer = harness.import_rival("onnxruntime.transformers.optimizer", harness.OPTIMUM)
    with tempfile.TemporaryDirectory() as made:
        exporters.main_export(
            str(folder),
            made,
            task="feature-extraction",
            library_name="transformers",
            do_validation=False,
        )
        fused = optimizer.optimize_model(str(Path(made, "model.onnx")), model_type="bert")
        fused.save_model_to_file(str(file))


if __name__ == "__main__":
    write(*sys.argv[1:])
