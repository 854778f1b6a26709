"""What answers a bundle's texts: a function each, of the bundle's folder and the texts.

Each returns, for each text, its answer as `Short`, or what it is refused for as a string.
"""

import contextlib
import json
from typing import NamedTuple

import numpy as np
import pytest

from tests.conftest import run_python
from tests.serving.cpp.built import answer
from tests.serving.hosts.chromium import answers_of_chromium
from tests.serving.http.served import as_process, ask
from tests.serving.javascript.package import require_node, run

NODE = """
import * as ort from "onnxruntime-node";
import { text as read } from "node:stream/consumers";
import { folder } from "./src/folder.js";
import { load } from "./src/index.js";

const asList = (_, value) => (ArrayBuffer.isView(value) ? [...value] : value);
const { bundle, texts } = JSON.parse(await read(process.stdin));
const pipeline = await load(folder(bundle), ort);
const answers = [];
for (const text of texts) {
  answers.push(await pipeline(text).catch(({ message }) => ({ error: message })));
}
console.log(JSON.stringify(answers, asList));
"""


class Short(NamedTuple):
    """An answer in what every host gives of it.

    Attributes:
        text: the answer, or the best label; None of a vector.
        numbers: the score, the scores of all labels in alphabetical order, or the vector.
    """

    text: str | None
    numbers: list[float]


def short(content):
    """What a pipeline answers, as JSON has it."""
    if "error" in content:
        return content["error"]
    if "vector" in content:
        return Short(None, content["vector"])
    if "labels" in content:
        scores = content["scores"]
        return Short(content["labels"][0], [scores[label] for label in sorted(scores)])
    return Short(content["text"], [content["score"]])


def _rows(columns):
    """What columns say of each row: a signature's outputs, as lists."""
    texts = columns.get("text") or columns.get("label")
    numbers = columns.get("embedding") or columns.get("scores") or columns["score"]
    return [
        error or Short(texts and texts[row], np.atleast_1d(numbers[row]).tolist())
        for row, error in enumerate(columns["error"])
    ]


def _each_alone(host, bundle, texts, error):
    """What a command answers that ends at the first text that it refuses, with this error."""
    return [error] if len(texts) == 1 else [host(bundle, [text])[0] for text in texts]


def command(bundle, texts):
    """`seqkeras predict`."""
    finished = run_python(
        *("-m", "serving", "predict", bundle, "--json", "--threads", "1", "--", *texts)
    )
    if finished.returncode:
        return _each_alone(command, bundle, texts, finished.stderr)
    return [short(json.loads(line)) for line in finished.stdout.splitlines()]


@contextlib.contextmanager
def _served(bundle):
    pytest.importorskip("starlette", reason="needs serving/requirements-http.txt")
    with as_process(bundle, "--threads", "1", "--no-log") as (_, _, port):
        yield port


def server(bundle, texts):
    """`seqkeras serve`, by its own API."""
    with _served(bundle) as port:
        status, content = ask(port, f"/v1/bundles/{bundle.name}", {"inputs": texts})
    assert status == 200, content
    return [short(found) for found in content["answers"]]


def tensorflow_serving_api(bundle, texts):
    """`seqkeras serve`, by TensorFlow Serving's REST API."""
    with _served(bundle) as port:
        status, content = ask(port, f"/v1/models/{bundle.name}:predict", {"inputs": texts})
    assert status == 200, content
    return _rows(content["outputs"])


def open_inference(bundle, texts):
    """`seqkeras serve`, by the Open Inference Protocol and Triton's client."""
    reason = "needs requirements-test.txt"
    triton = pytest.importorskip("tritonclient.http", reason=reason)
    utils = pytest.importorskip("tritonclient.utils", reason=reason)
    given = triton.InferInput("text", [len(texts)], "BYTES")
    given.set_data_from_numpy(np.array([text.encode() for text in texts], object))
    with _served(bundle) as port, triton.InferenceServerClient(f"127.0.0.1:{port}") as client:
        try:
            result = client.infer(bundle.name, [given])
        except utils.InferenceServerException as error:  # no row has an answer
            return _each_alone(open_inference, bundle, texts, error.message())
    names = [output["name"] for output in result.get_response()["outputs"]]
    return _rows({name: _as_lists(result.as_numpy(name)) for name in names})


def saved_model(bundle, texts):
    """The SavedModel on strings, as TensorFlow Serving loads it."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401 (the operators of saved_model_text)

    loaded = tf.saved_model.load(str(bundle / "saved_model_text/1"))
    outputs = loaded.signatures["serving_default"](text=tf.constant(texts))
    return _rows({name: _as_lists(output.numpy()) for name, output in outputs.items()})


def _as_lists(array):
    if array.dtype != object:
        return array.tolist()
    return [row.decode() for row in array]


def node(bundle, texts):
    require_node()
    given = json.dumps({"bundle": str(bundle), "texts": texts})
    answers = run("node", "--input-type=module", "--eval", NODE, given=given)
    return [short(content) for content in json.loads(answers)]


def chromium(bundle, texts):
    """onnxruntime-web in a worker of Chromium."""
    return [short(content) for content in answers_of_chromium(bundle, texts)]


def cpp(bundle, texts):
    finished = answer(bundle, "".join(f"{text}\n" for text in texts).encode(), "--scores")
    if finished.returncode:
        return _each_alone(cpp, bundle, texts, finished.stderr.decode())
    rows = [line.split("\t") for line in finished.stdout.decode().splitlines()]
    return [Short(text.replace("\\n", "\n"), [float(score)]) for text, score in rows]
