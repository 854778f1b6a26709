"""Trainings on one device and by two replicas on logical CPUs: run as a module.

`python -m tests.training.replicas NAME ...` prints a line of JSON: for each case how far losses
and weights of the two trainings are apart, and how many gradients of graphs TensorFlow keeps at
the end, though their models have gone.
"""

import csv
import gc
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import keras
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.ops import gradient_registry

from seqkeras import optimizers
from seqkeras.data.batches import Batches, Sequences
from seqkeras.data.batching import BucketedBatches
from seqkeras.models import RNNLanguageModel
from seqkeras.training import strategies
from seqkeras.training.run import HISTORY
from seqkeras.training.tasks.bert_pretraining import BertPretrainingOptions
from seqkeras.training.tasks.classification import ClassificationOptions
from seqkeras.training.tasks.forecasting import ForecastingOptions
from seqkeras.training.tasks.language_model import LanguageModelOptions
from seqkeras.training.tasks.several import SeveralOptions
from seqkeras.training.train import train
from tests.training.pretrained_folders import hugging_face_folder

VOCAB, ROWS, EPOCHS, STEPS = 11, 8, 4, 5
RANDOM = np.random.default_rng(0)
# Short and long rows share a batch, so the replicas hold different numbers of tokens.
TEXTS = [RANDOM.integers(3, VOCAB, length).tolist() for length in RANDOM.integers(2, 14, 64)]
WORDS = "good fine great dull poor sad the a film story plot one is was very".split()
REVIEWS = [
    " ".join(np.roll(WORDS, row)[: 1 + length])
    for row, length in enumerate(RANDOM.permutation(np.arange(48) % 12))
]
CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(
    from_logits=True, ignore_class=0, reduction="mean_with_sample_weight"
)


def adam():
    # Adam magnifies the gradients of key biases, which are rounding alone: hence the epsilon.
    return optimizers.Adam(0.01, global_clipnorm=0.03, epsilon=1e-4)


def fitted(devices):
    """Losses and weights of a recurrent model after `fit` on ragged batches of next tokens."""
    keras.utils.set_random_seed(1)
    with devices.scope():
        model = RNNLanguageModel(VOCAB, 5, 7)
        model.compile(adam(), CROSS_ENTROPY, jit_compile=False)
    inputs = {"token_ids": Sequences([row[:-1] for row in TEXTS])}
    targets = Sequences([row[1:] for row in TEXTS])
    order = BucketedBatches(np.ones(len(TEXTS)), ROWS, 0)
    batches = Batches(inputs, targets, order).dataset(0)
    batches = devices.prepare(model, batches)
    size = {"epochs": EPOCHS, "steps_per_epoch": STEPS}
    history = model.fit(batches, **size, shuffle=False, verbose=0).history
    return history["loss"], model.get_weights()


def losses_and_weights(run):
    """Those of a finished run."""
    model = keras.models.load_model(run / "model.keras")
    with (run / HISTORY).open() as history:
        # A look before the first epoch has no loss.
        losses = [float(row["loss"]) for row in csv.DictReader(history) if row["loss"]]
    return losses, model.get_weights()


def task_trained(options, devices, folder, **given):
    """Losses and weights of ten steps of a task, which ends with the last model."""
    few = {"batch_size": ROWS, "max_steps": 10, "steps_per_save": 5, "keep": "last"}
    few["strategy"] = "one" if devices.num_replicas == 1 else "mirrored"
    train(options(**few | given).make(), folder)
    return losses_and_weights(folder)


# Adam magnifies the gradients of key biases, which are rounding alone.
BY_SGD = {"optimizer": "sgd", "learning_rate": 0.5}
FILMS = [f"a {word} film,{word}" for word in ("good", "bad", "fine")] * 30


def classified(devices, folder):
    """The task `classification`, from its file to its run."""
    lines = [f"{text},{'odd' if row % 2 else 'even'}" for row, text in enumerate(REVIEWS)]
    file = folder / "reviews.csv"
    file.write_text("\n".join(["text,label", *lines]))
    sizes = {"units": 7, "embedding_dim": 5, "vocab_size": 40, "dropout": 0.0}
    return task_trained(ClassificationOptions, devices, folder / "run", file=str(file), **sizes)


def distilled(devices, folder):
    """A small BERT that learns a teacher's answers and layers."""
    file, teacher = folder / "reviews.csv", folder / "teacher"
    file.write_text("\n".join(["text,label", *FILMS]))
    common = {"file": str(file), "dropout": 0.0}
    tiny = hugging_face_folder(folder / "tiny", dropout=0.0)
    options = ClassificationOptions(**common, pretrained=tiny, batch_size=ROWS, max_steps=5)
    train(options.make(), teacher)
    student = {"encoder": "bert", "num_layers": 1, "num_heads": 3, "embedding_dim": 12}
    compared = {"teacher": str(teacher), "distil_hidden": 1.0, "distil_attention": 1.0}
    common |= student | compared | {"augment": 1} | BY_SGD  # labels are of some rows alone
    return task_trained(ClassificationOptions, devices, folder / "run", **common)


def several(devices, folder):
    """Classes, tags and numbers, whose rows share batches."""
    (folder / "reviews.csv").write_text("\n".join(["text,label", *FILMS]))
    words = [f"a O\n{word} B-X\n{'film O' * (place % 2)}\n" for place, word in enumerate(WORDS)]
    (folder / "names.conll").write_text("\n".join(words * 3))
    rated = [f"a {word} film,{place % 5}" for place, word in enumerate(WORDS * 5)]
    (folder / "rated.csv").write_text("\n".join(["text,number", *rated]))
    files = {"classification": "reviews.csv", "tagging": "names.conll", "regression": "rated.csv"}
    tables = [
        f'[{task}]\ntask = "{task}"\nfile = "{folder}/{file}"\ndropout = 0.0\n'
        for task, file in files.items()
    ]
    (folder / "tasks.toml").write_text("".join(tables))
    given = {"file": str(folder / "tasks.toml"), "batches": "mixed", **BY_SGD}
    given["pretrained"] = hugging_face_folder(folder / "tiny", dropout=0.0)
    return task_trained(SeveralOptions, devices, folder / "run", **given)


def forecast(devices, folder):
    """The task `forecasting`, whose replicas miss different targets."""
    draw = np.random.default_rng(1)
    load = [f"{value:.3f}" if draw.random() < 0.7 else "" for value in draw.normal(size=160)]
    file = folder / "load.csv"
    file.write_text("\n".join(["load,day", *(f"{v},{row % 7}" for row, v in enumerate(load))]))
    columns = {"file": str(file), "targets": ("load",), "numbers": ("day",)}
    sizes = {"context": 10, "horizon": 3, "units": 5, "dropout": 0.0}
    return task_trained(ForecastingOptions, devices, folder / "run", **columns, **sizes)


def started(devices, folder):
    """A GPT that begins with another one."""
    file, first = folder / "text.txt", folder / "first"
    file.write_text("\n".join(REVIEWS))
    given = {"files": (str(file),), "context": 8, **BY_SGD}
    sizes = {"hidden_dim": 6, "num_layers": 1, "num_heads": 2}
    task_trained(LanguageModelOptions, devices, first, **given, **sizes)
    given["start_from"] = str(first)
    return task_trained(LanguageModelOptions, devices, folder / "run", **given)


def pretrained(devices, folder):
    """The task `bert-pretraining`, whose rows have few and many masks."""
    file = folder / "text.txt"
    file.write_text("\n\n".join("\n".join(REVIEWS[row : row + 3]) for row in range(40)))
    sizes = {"vocab_size": 80, "num_layers": 1, "hidden_dim": 6, "num_heads": 2, "max_length": 23}
    plain = {"dropout": 0.0, "attention_dropout": 0.0, "weight_decay": None, **BY_SGD}
    given = {"files": (str(file),), **sizes, **plain}
    return task_trained(BertPretrainingOptions, devices, folder / "run", **given)


def in_a_folder(case):
    """A case that takes the devices alone."""

    def run(devices):
        with TemporaryDirectory() as folder:
            return case(devices, Path(folder))

    return run


CASES = {
    "RNN": fitted,
    "bert-pretraining": in_a_folder(pretrained),
    "classification": in_a_folder(classified),
    "distillation": in_a_folder(distilled),
    "forecasting": in_a_folder(forecast),
    "going on from a GPT": in_a_folder(started),
    "several": in_a_folder(several),
}


def main():
    [cpu] = tf.config.list_physical_devices("CPU")
    logical = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, logical)
    devices = [strategies.OneDevice(), strategies.strategy("mirrored")]
    differences = {}
    for name in sys.argv[1:]:
        (losses, weights), (others, other_weights) = (CASES[name](where) for where in devices)
        pairs = [(losses, others), *zip(weights, other_weights, strict=True)]
        differences[name] = max(float(np.abs(np.subtract(*pair)).max(initial=0)) for pair in pairs)
    gc.collect()
    kept = sum(name.startswith("CustomGradient-") for name in gradient_registry.list())
    print(json.dumps(differences | {"gradients of graphs that are kept": kept}))


if __name__ == "__main__":
    main()
