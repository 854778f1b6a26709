"""The Open Inference Protocol, version 2, with tensors in JSON or in binary.

    GET  /v2, /v2/health/live, /v2/health/ready
    GET  /v2/models/NAME[/versions/N], .../ready
    POST /v2/models/NAME[/versions/N]/infer

The parameters of a request are options of the pipeline, and `timeout`, in microseconds (504); those
of priorities and sequences say nothing here. Leaves out compression, shared memory, and
the extensions of Triton other than binary tensors.

Reference: https://github.com/kserve/open-inference-protocol (inference_rest.md);
https://github.com/triton-inference-server/server (extension_binary_data.md,
extension_schedule_policy.md, extension_sequence.md)
"""

import asyncio
from typing import Any

import numpy as np
from starlette.responses import Response

from .. import __version__
from ..checks import require_flag, shown
from ..parsing import as_json
from .binary_tensors import DATA_TYPES, as_binary, from_binary, from_json
from .body import object_of
from .endpoint import Call, reply
from .http_refusal import HttpRefusal
from .served_bundle import VERSION, ServedBundle, ServedBundles
from .signature import (
    DEFAULT,
    STRING,
    Column,
    Signature,
    floats,
    require_signature,
)

HEADER = "inference-header-content-length"
ALL_BINARY, BINARY, SIZE, SIGNATURE = (
    "binary_data_output",
    "binary_data",
    "binary_data_size",
    "signature_name",
)
TIMEOUT, MOST_TIMEOUT = "timeout", 10**12  # microseconds; the server's own is shorter
SCHEDULING = ("priority", "sequence_id", "sequence_start", "sequence_end")
OF_THE_PROTOCOL = {ALL_BINARY, SIGNATURE, TIMEOUT, *SCHEDULING}  # no options of a pipeline


class OpenInferenceApi:
    """The handlers of the Open Inference Protocol.

    Args:
        bundles: the `ServedBundles`.
    """

    def __init__(self, bundles: ServedBundles):
        self._bundles = bundles

    async def server(self, call: Call) -> Response:
        """Tell what the server is."""
        extensions = ["binary_tensor_data"]
        return reply({"name": "seqkeras-serving", "version": __version__, "extensions": extensions})

    async def live(self, call: Call) -> Response:
        """Tell that the server runs."""
        return reply({"live": True})

    async def all_ready(self, call: Call) -> Response:
        """Tell that all bundles are open: before, the server takes no connection."""
        return reply({"ready": True})

    async def ready(self, call: Call) -> Response:
        """Tell whether a bundle is open."""
        return reply({"name": self._bundle(call).name, "ready": True})

    async def metadata(self, call: Call) -> Response:
        """Tell what a bundle takes and gives."""
        bundle = self._bundle(call)
        signature = require_signature(bundle.signatures, DEFAULT, bundle.name)
        return reply(
            {
                "name": bundle.name,
                "versions": [VERSION],
                "platform": "onnxruntime_onnx",
                "inputs": list(map(_described, signature.inputs)),
                "outputs": list(map(_described, signature.outputs)),
            }
        )

    async def infer(self, call: Call) -> Response:
        """Answer a request."""
        bundle = self._bundle(call)
        content, binary = _parts(call)
        parameters = _object(content.get("parameters", {}), "parameters")
        inputs = content.get("inputs")
        if not isinstance(inputs, list) or not inputs:
            raise HttpRefusal(400, f"inputs must be a list of tensors; received {shown(inputs)}")
        names = [_object(tensor, "an input").get("name") for tensor in inputs]
        signature = _signature(bundle, names, parameters)
        requested = _requested(content, signature, _flag(parameters, ALL_BINARY, False))
        tensors = _tensors(inputs, binary, signature)
        options = {name: value for name, value in parameters.items() if name not in OF_THE_PROTOCOL}
        async with asyncio.timeout(_seconds(parameters)):
            answers = await bundle.answers_to_rows(signature, tensors, options)
        if answers and all(isinstance(answer, Exception) for answer in answers):
            raise answers[0]
        content = {"model_name": bundle.name, "model_version": VERSION} | {
            name: content[name] for name in ("id",) if name in content
        }
        return _response(content, signature.columns(answers), requested)

    def _bundle(self, call) -> ServedBundle:
        name, version = call.path["name"], call.path.get("version", VERSION)
        bundle = self._bundles.find(name)
        if bundle is None or version != VERSION:
            suffix = "" if version == VERSION else f" version {version}"
            raise HttpRefusal(404, f"Request for unknown model: {shown(name)}{suffix} is not found")
        return bundle


def _seconds(parameters):
    """Return the time that a request has, or None."""
    timeout = parameters.get(TIMEOUT, 0)
    if type(timeout) is not int or timeout < 0:
        raise HttpRefusal(
            400, f"timeout must be a whole number of microseconds from 0; received {shown(timeout)}"
        )
    return min(timeout, MOST_TIMEOUT) / 1e6 or None


def _parts(call):
    """Return the JSON of a request, and the bytes behind it."""
    length = call.header(HEADER)
    if length is None:
        return object_of(call.body), b""
    if not (length.isdecimal() and len(length) < 20 and int(length) <= len(call.body)):
        raise HttpRefusal(
            400,
            f"Inference-Header-Content-Length must be from 0 to {len(call.body)}; received "
            f"{shown(length)}",
        )
    size = int(length)
    return object_of(call.body[:size]), call.body[size:]


def _signature(bundle, names, parameters) -> Signature:
    signatures = bundle.signatures
    name = parameters.get(SIGNATURE)
    if name is None:  # the one of these inputs
        fits = (
            key
            for key, signature in signatures.items()
            if {column.name for column in signature.inputs} == set(map(str, names))
        )
        name = next(fits, DEFAULT)
    signature = require_signature(signatures, name, bundle.name)
    expected = [column.name for column in signature.inputs]
    if sorted(map(str, names)) != sorted(expected):
        raise HttpRefusal(
            400, f"inputs must be {', '.join(expected)}; received {', '.join(map(str, names))}"
        )
    return signature


def _tensors(inputs, binary, signature) -> dict[str, np.ndarray]:
    """Return name -> array of the inputs."""
    declared = {column.name: column for column in signature.inputs}
    tensors, offset = {}, 0
    for tensor in inputs:
        column = declared[tensor["name"]]
        shape = _shape(tensor)
        size = _object(tensor.get("parameters", {}), "parameters").get(SIZE)
        if size is None:
            tensors[column.name] = from_json(
                tensor.get("data"), tensor.get("datatype"), shape, column
            )
            continue
        if (
            isinstance(size, bool)
            or not isinstance(size, int)
            or not 0 <= size <= len(binary) - offset
        ):
            raise HttpRefusal(
                400,
                f"{column.name}: {SIZE} must be from 0 to {len(binary) - offset}, the bytes "
                f"that are left; received {shown(size)}",
            )
        part, offset = binary[offset : offset + size], offset + size
        tensors[column.name] = from_binary(part, tensor.get("datatype"), shape, column)
    if offset < len(binary):
        raise HttpRefusal(400, f"{len(binary) - offset} bytes behind the JSON belong to no input")
    return tensors


def _shape(tensor):
    shape = tensor.get("shape")
    good = isinstance(shape, list) and all(
        type(size) is int and 0 <= size < 2**31 for size in shape
    )
    if not good:
        raise HttpRefusal(
            400, f"{tensor['name']}: shape must be a list of sizes; received {shown(shape)}"
        )
    return tuple(shape)


def _requested(content, signature, all_binary):
    """Return (output, whether in binary) of each requested output; of all by default."""
    names = [column.name for column in signature.outputs]
    outputs = content.get("outputs")
    if outputs is None:
        return [(name, all_binary) for name in names]
    if not isinstance(outputs, list):
        raise HttpRefusal(400, f"outputs must be a list; received {shown(outputs)}")
    requested = []
    for output in outputs:
        name = _object(output, "an output").get("name")
        if name not in names:
            raise HttpRefusal(400, f"outputs must be of {', '.join(names)}; received {shown(name)}")
        parameters = _object(output.get("parameters", {}), "parameters")
        if "classification" in parameters:
            raise HttpRefusal(400, f"{name}: the extension of classification is not served")
        requested.append((name, _flag(parameters, BINARY, all_binary)))
    return requested


def _response(content: dict[str, Any], columns, requested) -> Response:
    outputs, parts = [], []
    for name, in_binary in requested:
        array = columns[name]
        datatype = DATA_TYPES[array.dtype.name]
        output = {"name": name, "datatype": datatype, "shape": list(array.shape)}
        if in_binary:
            parts.append(as_binary(array))
            output["parameters"] = {SIZE: len(parts[-1])}
        else:
            flat = array.reshape(-1)
            output["data"] = floats(flat) if array.dtype.kind == "f" else flat.tolist()
        outputs.append(output)
    content["outputs"] = outputs
    if not parts:
        return reply(content)
    text = as_json(content, allow_nan=False).encode()
    headers = {HEADER: str(len(text))}
    return Response(b"".join([text, *parts]), 200, headers, "application/octet-stream")


def _described(column: Column) -> dict[str, Any]:
    datatype = DATA_TYPES["object" if column.dtype == STRING else column.dtype]
    return {"name": column.name, "datatype": datatype, "shape": [-1, *column.shape]}


def _flag(parameters, name, default):
    try:
        return require_flag(name, parameters.get(name, default))
    except ValueError as error:
        raise HttpRefusal(400, str(error)) from error


def _object(value, name):
    if not isinstance(value, dict):
        raise HttpRefusal(400, f"{name} must be an object; received {shown(value)}")
    return value
