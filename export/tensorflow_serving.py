"""What TensorFlow Serving wants beside SavedModels: requests to warm up with, and its settings.

The requests are `PredictionLog`s in a TFRecord file. Their few fields are written here by number,
as the package tensorflow-serving-api, which has classes for them, is needed for nothing else.

Reference: https://www.tensorflow.org/tfx/serving/saved_model_warmup;
https://github.com/tensorflow/serving (apis/prediction_log.proto, predict.proto, model.proto)
"""

from pathlib import Path

import numpy as np
import tensorflow as tf

FOLDER = "tensorflow_serving"
WARM_UP = "assets.extra/tf_serving_warmup_requests"
IMAGE = "tensorflow/serving:2.21.0"
LENGTH = 2  # of a symbolic axis in a request made up

BATCHING = """max_batch_size { value: 64 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 1024 }
num_batch_threads { value: 4 }
pad_variable_length_inputs: true
"""
MODEL = """  config {{
    name: "{name}"
    base_path: "/models/{name}"
    model_platform: "tensorflow"
  }}
"""
COMPOSE = """# docker compose up; then POST to http://localhost:8501/v1/models/{name}:predict
services:
  tensorflow-serving:
    image: {image}
    ports:
      - "8500:8500"  # gRPC
      - "8501:8501"  # REST
    volumes:
{volumes}
      - ./models.config:/config/models.config:ro
      - ./batching.config:/config/batching.config:ro
    command:
      - --model_config_file=/config/models.config
      - --enable_batching=true
      - --batching_parameters_file=/config/batching.config
"""
NOTES = """# TensorFlow Serving

`docker compose up` in this folder serves {names}, by REST at port 8501 and gRPC at 8500. Requests
of {{"signature_name": ..., "instances": [...]}} name the signatures of `manifest.json`. Rows of a
batch are padded by the server with whatever stands first, so signatures take lengths, not masks.

Strings become the tokens of `serving.text`, but for these texts:

- one that holds a code point from U+FDD0 to U+FDEF is refused;
- one that holds a special token which takes the space before it (RoBERTa's <mask>) is refused;
- beside a vocabulary of two languages (Marian), characters that the source's pieces lack are
  <unk>, also where the vocabulary has them from the other language.

A text over the limit is refused, and so is its whole batch.
"""


def write_serving_files(folder, manifest):
    """Write the requests to warm up with, `models.config`, `batching.config` and `compose.yaml`.

    The server refuses a model whose requests fail: each is tried, and left out if it fails.

    Args:
        folder: the bundle, with its SavedModels.
        manifest: its `Manifest`.

    Returns:
        How many requests were written, by folder.
    """
    folder, names, counts = Path(folder), {}, {}
    for path in manifest.saved_models:
        base = Path(path).parent.as_posix()
        names[base] = manifest.name + base.removeprefix("saved_model")
        counts[path] = _write_requests(folder, manifest, path, names[base])
    if names:
        _write_settings(folder / FOLDER, names)
    return counts


def _write_settings(place, names):
    place.mkdir()
    models = "".join(MODEL.format(name=name) for name in names.values())
    volumes = "\n".join(f"      - ../{base}:/models/{name}:ro" for base, name in names.items())
    first = next(iter(names.values()))
    for file, text in {
        "models.config": f"model_config_list {{\n{models}}}\n",
        "batching.config": BATCHING,
        "compose.yaml": COMPOSE.format(name=first, image=IMAGE, volumes=volumes),
        "README.md": NOTES.format(names=" and ".join(f"`{name}`" for name in names.values())),
    }.items():
        (place / file).write_text(text, encoding="utf-8")


def _write_requests(folder, manifest, path, name):
    loaded = tf.saved_model.load(str(folder / path)).signatures
    file = folder / path / WARM_UP
    file.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with tf.io.TFRecordWriter(str(file)) as writer:
        for key, signature in manifest.saved_models[path].items():
            for inputs in _requests(signature, manifest.examples):
                try:
                    loaded[key](**{name: tf.constant(each) for name, each in inputs.items()})
                except (tf.errors.InvalidArgumentError, ValueError):
                    continue
                writer.write(prediction_log(name, key, inputs))
                count += 1
    return count


def _requests(signature, examples):
    """Inputs of a signature: the manifest's examples if it takes strings, else made up."""
    names = [spec.name for spec in signature.inputs]
    if any(spec.dtype == "string" for spec in signature.inputs):
        for example in examples[:4]:
            values = [example] if isinstance(example, str) else example
            if isinstance(values, dict):
                values = [values.get(name) for name in names]
            if len(values) == len(names) and all(isinstance(each, str) for each in values):
                yield {name: np.array([each]) for name, each in zip(names, values)}
        return
    yield {spec.name: _made_up(spec) for spec in signature.inputs}


def _made_up(spec):
    axes = [size if isinstance(size, int) else LENGTH for size in spec.shape]
    axes[:1] = [1] if spec.shape[:1] == ("batch",) else axes[:1]
    value = LENGTH if spec.name.endswith("lengths") else 1
    return np.full(axes, value, spec.dtype)


def prediction_log(model, signature, inputs):
    """The bytes of a `PredictionLog` of one request.

    Args:
        model, signature: their names.
        inputs: name -> array.
    """
    request = _field(1, _field(1, model.encode()) + _field(3, signature.encode()))
    for name, value in inputs.items():
        tensor = tf.make_tensor_proto(value).SerializeToString()
        request += _field(2, _field(1, name.encode()) + _field(2, tensor))
    return _field(6, _field(1, request))


def _field(number, content):
    """A field of bytes, as Protocol Buffers write it."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(value):
    digits = []
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])
