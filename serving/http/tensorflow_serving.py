"""TensorFlow Serving's REST API, errors in its words.

    POST /v1/models/NAME[/versions/N]:predict            instances, or inputs
    GET  /v1/models/NAME[/versions/N]                    status
    GET  /v1/models/NAME[/versions/N]/metadata           signatures

A bundle has the names NAME and NAME_text, as the files that export writes for TensorFlow Serving
name its SavedModel on strings. Leaves out signatures on token ids, and the verbs classify and
regress, for which no exported SavedModel has a signature.

Reference: https://www.tensorflow.org/tfx/serving/api_rest; https://github.com/tensorflow/serving
(model_servers/http_rest_api_util.cc, http_rest_api_handler.cc)
"""

import re
from typing import Any

from starlette.responses import Response

from .endpoint import Call, reply
from .http_refusal import HttpRefusal
from .json_tensors import content_of, tensors_of
from .open_ai import open_ai_model
from .served_bundle import VERSION, ServedBundles
from .signature import STRING, Column, require_signature

ON_STRINGS = "_text"
DTYPES = {STRING: "DT_STRING", "float32": "DT_FLOAT", "int32": "DT_INT32", "int64": "DT_INT64"}
NAME = r"/v1/models/([^/:]+)(?:(?:/versions/(\d+))|(?:/labels/([^/:]+)))?"
PREDICT = re.compile(rf"(?i){NAME}:(classify|regress|predict)")
STATUS = re.compile(rf"(?i){NAME}(?:/(metadata))?")
AVAILABLE = {
    "version": VERSION,
    "state": "AVAILABLE",
    "status": {"error_code": "OK", "error_message": ""},
}


class TensorFlowServingApi:
    """The handlers of TensorFlow Serving's REST API.

    Args:
        bundles: the `ServedBundles`.
    """

    def __init__(self, bundles: ServedBundles):
        self._bundles = bundles

    async def answer(self, call: Call) -> Response:
        """Answer a request for a model."""
        method, path = call.scope["method"], call.scope["path"]
        match = (PREDICT if method == "POST" else STATUS).fullmatch(path)
        if match is None:
            raise HttpRefusal(400, f"Malformed request: {method} {path}")
        name, version, label, what = match.groups()
        if label is not None:
            raise HttpRefusal(400, f"Unrecognized servable version label: {label}")
        if method == "POST":
            return await self._predict(self._bundle(name, version), what, call.body)
        if what == "metadata":
            return reply(_metadata(name, self._bundle(name, version)))
        return reply(self._status(name, version))

    def _find(self, name):
        return self._bundles.find(name) or self._bundles.find(name.removesuffix(ON_STRINGS))

    def _bundle(self, name, version):
        bundle = self._find(name)
        if bundle is None or version not in (None, VERSION):
            wanted = f"Latest({name})" if version is None else f"Specific({name}, {version})"
            raise HttpRefusal(404, f"Servable not found for request: {wanted}")
        return bundle

    def _status(self, name, version):
        bundle = self._find(name)
        if bundle is None:
            raise HttpRefusal(404, f"Could not find any versions of model {name}")
        if version not in (None, VERSION):
            raise HttpRefusal(404, f"Could not find version {version} of model {name}")
        return {"model_version_status": [AVAILABLE], **open_ai_model(name, bundle)}

    async def _predict(self, bundle, what, body):
        if what != "predict":
            raise HttpRefusal(
                400,
                f"Expected {what} signature method_name to be tensorflow/serving/{what}. "
                "Was: tensorflow/serving/predict",
            )
        signatures = bundle.signatures
        signature, tensors, in_rows = tensors_of(body, signatures, bundle.name)
        answers = await bundle.answers_to_rows(signature, tensors, {})
        return reply(content_of(signature.columns(answers), in_rows))


def _metadata(name, bundle):
    signatures = bundle.signatures
    require_signature(signatures, next(iter(signatures), ""), bundle.name)
    described = {
        key: {
            "inputs": {
                column.name: _info(column, f"{key}_{column.name}") for column in signature.inputs
            },
            "outputs": {column.name: _info(column, column.name) for column in signature.outputs},
            "method_name": "tensorflow/serving/predict",
        }
        for key, signature in signatures.items()
    }
    return {
        "model_spec": {"name": name, "signature_name": "", "version": VERSION},
        "metadata": {"signature_def": {"signature_def": described}},
    }


def _info(column: Column, name: str) -> dict[str, Any]:
    axes = [{"size": str(size), "name": ""} for size in (-1, *column.shape)]
    return {
        "dtype": DTYPES[column.dtype],
        "tensor_shape": {"dim": axes, "unknown_rank": False},
        "name": f"{name}:0",
    }
