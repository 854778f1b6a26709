"""Write a model repository for NVIDIA's Triton Inference Server, from a bundle.

    python -m serving.triton BUNDLE REPOSITORY        REPOSITORY/NAME/config.pbtxt, and its graph

Triton runs the graph by its onnxruntime backend: arrays in, arrays out. The graph is the one that
answers in a single call, `model`, or, of a bundle that generates, `generate` (exported with
--generate-in-graph). Texts become token ids in the client, or are sent to the HTTP server of
`python -m serving serve`, which speaks the same protocol. Leaves out ensembles.

Requests of equal shape share a batch. With batches every input has a first axis for them: an input
of one number for each row, such as `lengths`, is sent as (rows, 1).

Reference: https://github.com/triton-inference-server/server (docs/user_guide: Model Configuration)
"""

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

from .manifest import BundleError, GraphFile, Manifest, TensorSpec, read_bundle, verify_files
from .option_types import count
from .printing import in_line, printable

__all__ = ["write_repository"]

ROLES = ("model", "generate")
TYPES = {
    "bool": "TYPE_BOOL",
    "float16": "TYPE_FP16",
    "float32": "TYPE_FP32",
    "int32": "TYPE_INT32",
    "int64": "TYPE_INT64",
}
MAX_BATCH = 64
BATCH = "batch"  # the name of an axis


def write_repository(
    bundle: str | os.PathLike[str],
    repository: str | os.PathLike[str],
    max_batch: int = MAX_BATCH,
    threads: int = 1,
) -> Path:
    """Write a bundle's graph into a model repository of NVIDIA's Triton Inference Server.

    Args:
        bundle: folder of the bundle.
        repository: a folder; it is made where there is none.
        max_batch: the most rows that may share a batch.
        threads: number of threads of an operation.

    Returns:
        The folder of the model in the repository, with `config.pbtxt` and `1/model.onnx`.

    Raises:
        BundleError: if the bundle can not be read, or has no graph that answers in one call.
        ValueError: if the repository has a model of that name.

    Example:
        >>> from seqkeras.serving.triton import write_repository
        >>> folder = write_repository("bundles/reviews", "repository")
        >>> (folder / "config.pbtxt").read_text().splitlines()[1]
        'backend: "onnxruntime"'
    """

    def write(manifest: Manifest) -> Path:
        graph = _graph(manifest, bundle)
        verify_files(bundle, manifest, graph.files)
        name = manifest.plain_name
        folder, aside = Path(repository) / name, Path(repository) / f".{name}.partial"
        if folder.exists():
            raise ValueError(f"{folder}: is there already; remove it, or name another repository.")
        shutil.rmtree(aside, ignore_errors=True)
        (aside / "1").mkdir(parents=True)
        shutil.copyfile(Path(bundle) / graph.file, aside / "1" / "model.onnx")
        for file in graph.weights:
            shutil.copyfile(Path(bundle) / file, aside / "1" / Path(file).name)
        text = configuration(name, graph, max_batch, threads)
        (aside / "config.pbtxt").write_text(text, encoding="utf-8")
        return aside.rename(folder)

    return read_bundle(bundle, write)


def configuration(name: str, graph: GraphFile, max_batch: int, threads: int) -> str:
    """Return the text of `config.pbtxt`."""
    batches = all(spec.shape[:1] == (BATCH,) for spec in (*graph.inputs, *graph.outputs))
    lines = [
        f"name: {json.dumps(name)}",
        'backend: "onnxruntime"',
        f"max_batch_size: {max_batch if batches else 0}",
        *(["dynamic_batching { }"] if batches else []),
        *(_tensor("input", spec, batches) for spec in graph.inputs),
        *(_tensor("output", spec, batches) for spec in graph.outputs),
        f'parameters {{ key: "intra_op_thread_count" value {{ string_value: "{threads}" }} }}',
    ]
    return "\n".join(lines) + "\n"


def _graph(manifest, bundle):
    for role in ROLES:
        if role in manifest.graphs:
            return manifest.graphs[role]
    raise BundleError(
        "there is no graph that answers in one call",
        where=bundle,
        advice="Export the run again with --generate-in-graph.",
    )


def _tensor(kind: str, spec: TensorSpec, batches: bool) -> str:
    shape = spec.shape[1:] if batches else spec.shape
    sizes = [size if isinstance(size, int) else -1 for size in shape]
    dims = f"dims: {sizes}" if sizes else "dims: [1] reshape { shape: [] }"
    return f"{kind} {{ name: {json.dumps(spec.name)} data_type: {TYPES[spec.dtype]} {dims} }}"


def main(arguments: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(
        f"python -m {__package__}.triton", description=__doc__.split("\n")[0]
    )
    parser.add_argument("bundle", metavar="BUNDLE", help="Folder of the bundle.")
    parser.add_argument("repository", metavar="REPOSITORY", help="Folder of all models.")
    parser.add_argument(
        "--max-batch",
        type=count,
        default=MAX_BATCH,
        metavar="N",
        help="Rows of a batch. Default: 64.",
    )
    parser.add_argument(
        "--threads", type=count, default=1, metavar="N", help="Threads of an operation. Default: 1."
    )
    options = parser.parse_args(arguments)
    try:
        print(
            write_repository(options.bundle, options.repository, options.max_batch, options.threads)
        )
    except (OSError, ValueError) as error:
        print(f"{parser.prog}: {in_line(printable(str(error)))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
