"""Bundles and ONNX graphs written by hand."""

import binascii

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

# What a graph's text may name without saying what it is.
CONSTANTS = {
    **{f"int_{number}": np.int64(number) for number in range(3)},
    **{f"axis_{number}": np.int64([number]) for number in range(3)},
    "axes_1_2": np.int64([1, 2]),
    "last": np.int64([-1]),
    "but_last": np.int64([-2]),
    "one": np.float32(1),
}
DTYPES = {
    TensorProto.INT64: "int64",
    TensorProto.FLOAT: "float32",
    TensorProto.DOUBLE: "float64",
    TensorProto.FLOAT16: "float16",
    TensorProto.INT32: "int32",
    TensorProto.BOOL: "bool",
}


def with_its_checksum(state):
    """The bytes of a stream's state whose text was changed, with the checksum of this text."""
    magic, _, content = state.split(b"\n", 2)
    return b"\n".join([magic, b"%08x" % binascii.crc32(content), content])


def model_of(text, **constants):
    """The ONNX model of a graph's text and its constants."""
    graph = onnx.parser.parse_graph(text)
    named = {name for node in graph.node for name in node.input} - constants.keys()
    constants |= {name: CONSTANTS[name] for name in named & CONSTANTS.keys()}
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
