"""Training on JAX where TensorFlow is not installed, of three tasks: run as a module.

`python -m tests.training.on_jax FILE FOLDER` trains on one device, on two, and once more in two
sittings; it prints a line of JSON with how far the weights are from those of one device. `FILE.txt`
beside the file is the text of pre-training.
"""

import json
import os
import sys
from pathlib import Path

os.environ["KERAS_BACKEND"] = "jax"
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
MISSING = ("tensorflow", "tensorflow_text", "keras_nlp", "tensorboard")


class Absent:
    """A finder that finds none of the packages that are missing."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def main(file, folder):
    import keras
    import numpy as np

    from seqkeras.training.tasks.bert_pretraining import BertPretrainingOptions
    from seqkeras.training.tasks.classification import ClassificationOptions
    from seqkeras.training.tasks.tagging import TaggingOptions
    from seqkeras.training.train import train
    from tests.training.stops import stopped_behind_a_checkpoint

    def weights(options, name, **given):
        few = {"batch_size": 8, "steps_per_save": 5, "looks": 1, "tensorboard": False}
        train(options(**few, **given).make(), Path(folder, name))
        return keras.models.load_model(Path(folder, name, "model.keras")).get_weights()

    def trained(name, strategy):
        given = {"file": file, "encoder": "gru", "strategy": strategy, "passes": 2}
        given |= {"units": 3, "embedding_dim": 5, "vocab_size": 40}
        given["dropout"] = 0.0 if strategy != "one" or name == "one" else 0.2
        return weights(ClassificationOptions, name, **given)

    def pretrained(name, strategy):
        given = {"files": (f"{file}.txt",), "strategy": strategy, "max_steps": 10}
        given |= {"vocab_size": 60, "num_layers": 1, "hidden_dim": 6, "num_heads": 2}
        given |= {"positions": 19, "max_length": 19}
        return weights(BertPretrainingOptions, name, **given)

    def carried(name, strategy):
        generator = np.random.default_rng(0)
        frames = generator.normal(size=(9, 23, 2)).astype("float32")
        np.savez(f"{folder}/frames.npz", frames=frames, labels=frames[..., 0] > 0)
        given = {"file": f"{folder}/frames.npz", "causal": True, "carry_every": 5, "passes": 3}
        given |= {"units": 3, "embedding_dim": 5, "strategy": strategy}
        return weights(TaggingOptions, name, **given)

    def stopped(name, trained=trained):
        with stopped_behind_a_checkpoint():
            trained(name, "one")
        return trained(name, "one")

    def apart(weights, others):
        return max(float(np.abs(a - b).max()) for a, b in zip(weights, others, strict=True))

    found = {
        "two devices": apart(trained("one", "one"), trained("two", "auto")),
        "two sittings": apart(trained("whole", "one"), stopped("sittings")),
        "two sittings of pre-training": apart(
            pretrained("bert", "one"), stopped("bert-sittings", pretrained)
        ),
        "two sittings of rows that go on": apart(
            carried("windows", "one"), stopped("windows-sittings", carried)
        ),
        "imported": sorted(set(MISSING) & set(sys.modules)),
    }
    print(json.dumps(found))


if __name__ == "__main__":
    sys.meta_path.insert(0, Absent())
    main(*sys.argv[1:])
