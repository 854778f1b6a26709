"""The operators of a SavedModel."""

import json

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tests.arrays import close, numbers
from tests.conftest import run_python

# Of cuDNN, of XLA, of oneDNN, of graph rewriters, and of the Python that traced.
FOREIGN = ("Cudnn", "Xla", "Mkl", "_", "PyFunc", "EagerPyFunc")
CALLS = {"StatefulPartitionedCall", "PartitionedCall"}


def graph_of(folder):
    """The GraphDef of a SavedModel."""
    saved_model = saved_model_pb2.SavedModel()
    saved_model.ParseFromString((folder / "saved_model.pb").read_bytes())
    return saved_model.meta_graphs[0].graph_def


def operators(folder):
    """The names of all operators of a SavedModel, its functions included."""
    graph = graph_of(folder)
    nodes = [*graph.node, *(node for each in graph.library.function for node in each.node_def)]
    return {node.op for node in nodes}


def require_core(folder):
    """Assert that a SavedModel holds operators of TensorFlow's core only."""
    found = operators(folder)
    assert found
    registered = {*tf.raw_ops.__dict__, *CALLS}
    foreign = {name for name in found if name not in registered or name.startswith(FOREIGN)}
    assert not foreign


# Runs where neither seqkeras nor Keras can be imported; tensorflow_text imports Keras.
LOAD_AND_ANSWER = """
import json, sys
import tensorflow as tf
import tensorflow_text
sys.modules["keras"] = sys.modules["seqkeras"] = None
answers = {}
for folder, key, inputs in json.loads(sys.argv[1]):
    loaded = tf.saved_model.load(folder).signatures[key]
    specs = loaded.structured_input_signature[1]
    tensors = {name: tf.constant(value, specs[name].dtype) for name, value in inputs.items()}
    answers[folder] = {
        name: value.numpy().tolist()
        for name, value in loaded(**tensors).items()
        if value.dtype != tf.string
    }
print(json.dumps(answers))
"""


def require_answers_without_us(wanted, expected):
    """Assert that SavedModels answer in a process that has only TensorFlow and its texts.

    Args:
        wanted: (folder, signature, lists by name) each.
        expected: tensors by folder and name.
    """
    finished = run_python("-I", "-c", LOAD_AND_ANSWER, json.dumps(wanted))
    assert finished.returncode == 0, finished.stderr
    answers = json.loads(finished.stdout)
    for folder, outputs in expected.items():
        outputs = {n: each for n, each in numbers(outputs).items() if each.dtype.kind in "if"}
        assert {*answers[folder]} == {*outputs}
        for name, each in outputs.items():
            close(np.array(answers[folder][name]), each, rtol=1e-4, atol=1e-5)
