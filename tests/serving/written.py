"""Bundles and ONNX graphs written by hand."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from seqkeras.serving.manifest import (
    SCHEMA_VERSION,
    DecodingDefaults,
    GraphFile,
    Limits,
    Manifest,
    TensorSpec,
    describe_files,
    write_manifest,
)

DTYPES = {TensorProto.INT64: "int64", TensorProto.FLOAT: "float32"}


def model_of(text, **constants):
    """The ONNX model of a graph's text and its constants."""
    graph = onnx.parser.parse_graph(text)
    graph.initializer.extend(
        numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    return model


def specs(values):
    """The `TensorSpec`s of ONNX graph inputs or outputs."""
    return tuple(
        TensorSpec(
            value.name,
            DTYPES[value.type.tensor_type.elem_type],
            tuple(axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim),
        )
        for value in values
    )


def save_graphs(folder, models):
    """Save ONNX models, role -> model, in a bundle's folder; the manifest's `GraphFile` of each."""
    (folder / "onnx").mkdir(parents=True)
    described = {}
    for role, model in models.items():
        file = f"onnx/{role}.onnx"
        onnx.save(model, folder / file)
        described[role] = GraphFile(file, specs(model.graph.input), specs(model.graph.output))
    return described


def write(folder, pipeline, graphs, tokenizers, **changes):
    """Write the tokenizers and the manifest of a bundle, whose graphs lie there; its folder.

    Args:
        folder: where.
        pipeline: the name of the pipeline.
        graphs: role -> `GraphFile`.
        tokenizers: role -> tokenizer.
        changes: fields of the manifest.
    """
    (folder / "tokenizer").mkdir(exist_ok=True)
    for role, tokenizer in tokenizers.items():
        tokenizer.to_file(folder / f"tokenizer/{role}.json")
    fields = {
        "schema_version": SCHEMA_VERSION,
        "name": "toy",
        "task": "toys",
        "pipeline": pipeline,
        "created": "2026-01-02T03:04:05+00:00",
        "versions": {"onnx": onnx.__version__},
        "tokenizers": {role: f"tokenizer/{role}.json" for role in tokenizers},
        "text_prefix": None,
        "limits": Limits(16, 16),
        "decoding": DecodingDefaults(),
        "graphs": graphs,
        "state": (),
        "saved_models": {},
        "examples": (),
        "scores": {},
        "parity": {},
        "files": describe_files(folder),
    }
    write_manifest(folder, Manifest(**(fields | changes)))
    return folder
