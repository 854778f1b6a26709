"""Files for TensorFlow Serving next to the SavedModels: warm-up requests, settings and notes.

The server joins several clients' requests to a model in one batch, if padding changes no answer.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from seqkeras.export.exported import Exported
from seqkeras.export.tensorflow_serving import batching
from seqkeras.export.tensorflow_serving.inputs import Inputs
from seqkeras.export.tensorflow_serving.notes import notes
from seqkeras.export.tensorflow_serving.warm_up import WARM_UP as WARM_UP
from seqkeras.export.tensorflow_serving.warm_up import prediction_log as prediction_log
from seqkeras.export.tensorflow_serving.warm_up import write_requests

FOLDER = "tensorflow_serving"
IMAGE = "tensorflow/serving:2.21.0"

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
      - --enable_per_model_batching_parameters=true
      - --batching_parameters_file=/config/batching.config
"""


def write_serving_files(
    exported: Exported, examples: Sequence[Mapping[str, np.ndarray]] = ()
) -> dict[str, int]:
    """Write warm-up requests, `models.config`, `batching.config`, `compose.yaml` and notes.

    Examples are real inputs, {name: array} without the batch's axis. Returned is how many requests
    were written, by folder.
    """
    folder, manifest = exported.folder, exported.manifest
    names, counts, batched = {}, {}, set()
    inputs = Inputs(manifest, examples)
    for path, signatures in manifest.saved_models.items():
        names[path] = manifest.plain_name + Path(path).parent.name.removeprefix("saved_model")
        functions = exported.signatures(path).items()
        loaded = {key: function.unless_proved for key, function in functions}
        rows = {key: inputs.common(signature) for key, signature in signatures.items()}
        counts[path] = write_requests(folder / path, loaded, names[path], rows)
        if batching.have_lengths(signatures.values()) and batching.may_be_batched(loaded, rows):
            batched.add(path)
            (folder / path / batching.OF_ONE_MODEL).write_text(batching.BATCHING, encoding="utf-8")
    if names:
        (folder / FOLDER).mkdir()
        files = _settings(names) | notes(folder, manifest, names, inputs, batched)
        for file, content in files.items():
            (folder / FOLDER / file).write_text(content, encoding="utf-8")
    return counts


def _settings(names):
    """Return a dictionary: file -> its text."""
    models = "".join(MODEL.format(name=name) for name in names.values())
    volumes = "\n".join(
        f"      - ../{Path(path).parent}:/models/{name}:ro" for path, name in names.items()
    )
    first = next(iter(names.values()))
    return {
        "models.config": f"model_config_list {{\n{models}}}\n",
        "batching.config": batching.BATCHING,
        "compose.yaml": COMPOSE.format(name=first, image=IMAGE, volumes=volumes),
    }
