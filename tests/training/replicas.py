"""Trainings on one device and by two replicas on logical CPUs: run as a module.

`python -m tests.training.replicas NAME ...` prints a line of JSON: for each case how far losses
and weights of the two trainings are apart.
"""

import csv
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import keras
import numpy as np
import tensorflow as tf

from seqkeras import optimizers
from seqkeras.data.batches import Batches, Sequences
from seqkeras.data.batching import BucketedBatches
from seqkeras.losses import SmoothedCrossEntropy
from seqkeras.models import GPT, RNNLanguageModel, Transformer
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
SIZES = {"hidden_dim": 6, "num_layers": 1, "num_heads": 2, "feed_forward_dim": 7, "dropout": 0.0}
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


class Recorder(keras.Model):
    """A model that notes the types of what it is called with."""

    seen = set()

    def __init__(self):
        super().__init__()
        self.embedding = keras.layers.Embedding(VOCAB, VOCAB)

    def call(self, inputs):
        self.seen.add(keras.backend.standardize_dtype(inputs["token_ids"].dtype))
        return self.embedding(inputs["token_ids"])


def gpt():
    return GPT(VOCAB, **SIZES, max_length=13)


def rnn():
    return RNNLanguageModel(VOCAB, 5, 7)


def transformer():
    return Transformer(VOCAB, VOCAB, **SIZES)


def adam():
    # Adam magnifies the gradients of key biases, which are rounding alone: hence the epsilon.
    return optimizers.Adam(0.01, global_clipnorm=0.03, epsilon=1e-4)


def fitted(make, optimizer, loss, devices, prepare=True):
    """Losses and weights after `fit` on ragged batches of next tokens."""
    keras.utils.set_random_seed(1)
    with devices.scope():
        model = make()
        model.compile(optimizer(), loss, jit_compile=False)
    read = Sequences([row[:-1] for row in TEXTS])
    inputs = {"token_ids": read}
    if isinstance(model, Transformer):
        inputs |= {"lengths": read.lengths, "target_ids": read}
    targets = Sequences([row[1:] for row in TEXTS])
    order = BucketedBatches(np.ones(len(TEXTS)), ROWS, 0)
    batches = Batches(inputs, targets, order).dataset(0)
    if prepare:
        batches = devices.prepare(model, batches)
    history = model.fit(
        batches, epochs=EPOCHS, steps_per_epoch=STEPS, shuffle=False, verbose=0
    ).history
    return history["loss"], model.get_weights()


def losses_and_weights(run):
    """Those of a finished run."""
    model = keras.models.load_model(run / "model.keras")
    with (run / HISTORY).open() as history:
        return [float(row["loss"]) for row in csv.DictReader(history)], model.get_weights()


def few_steps(devices):
    """Options of a training of ten steps, which ends with the last model."""
    return {
        "batch_size": ROWS,
        "max_steps": 10,
        "steps_per_save": 5,
        "keep": "last",
        "strategy": "one" if devices.num_replicas == 1 else "mirrored",
    }


def classified(devices):
    """Losses and weights of the task `classification`, from its file to its run."""
    with TemporaryDirectory() as folder:
        lines = [f"{text},{'odd' if row % 2 else 'even'}" for row, text in enumerate(REVIEWS)]
        file = Path(folder, "reviews.csv")
        file.write_text("\n".join(["text,label", *lines]))
        options = ClassificationOptions(
            file=str(file),
            batch_size=ROWS,
            units=7,
            embedding_dim=5,
            vocab_size=40,
            dropout=0.0,
            steps_per_save=5,
            strategy="one" if devices.num_replicas == 1 else "mirrored",
        )
        train(options.make(), Path(folder, "run"))
        return losses_and_weights(Path(folder, "run"))


def distilled(devices):
    """Losses and weights of a small BERT that learns a teacher's answers and layers."""
    with TemporaryDirectory() as folder:
        lines = [f"a {word} film,{word}" for word in ("good", "bad", "fine")] * 30
        file = Path(folder, "reviews.csv")
        file.write_text("\n".join(["text,label", *lines]))
        common = {"file": str(file), "dropout": 0.0}
        tiny = hugging_face_folder(Path(folder, "tiny"), dropout=0.0)
        options = ClassificationOptions(**common, pretrained=tiny, batch_size=ROWS, max_steps=5)
        teacher = Path(folder, "teacher")
        train(options.make(), teacher)
        options = ClassificationOptions(
            **common,
            teacher=str(teacher),
            distil_hidden=1.0,
            distil_attention=1.0,
            encoder="bert",
            layers=1,
            heads=3,
            embedding_dim=12,
            augment=1,  # labels are of some rows alone
            optimizer="sgd",  # Adam magnifies the gradients of key biases, which are rounding alone
            learning_rate=0.5,
            **few_steps(devices),
        )
        train(options.make(), Path(folder, "run"))
        return losses_and_weights(Path(folder, "run"))


def several(devices):
    """Losses and weights of classes, tags and numbers, whose rows share batches."""
    with TemporaryDirectory() as folder:
        rows = [f"a {word} film,{word}" for word in ("good", "bad", "fine")] * 30
        Path(folder, "reviews.csv").write_text("\n".join(["text,label", *rows]))
        words = [f"a O\n{word} B-X\n{'film O' * (place % 2)}\n" for place, word in enumerate(WORDS)]
        Path(folder, "names.conll").write_text("\n".join(words * 3))
        rated = [f"a {word} film,{place % 5}" for place, word in enumerate(WORDS * 5)]
        Path(folder, "rated.csv").write_text("\n".join(["text,number", *rated]))
        files = {
            "classification": "reviews.csv",
            "tagging": "names.conll",
            "regression": "rated.csv",
        }
        tables = [
            f'[{task}]\ntask = "{task}"\nfile = "{folder}/{file}"\ndropout = 0.0\n'
            for task, file in files.items()
        ]
        Path(folder, "tasks.toml").write_text("".join(tables))
        options = SeveralOptions(
            file=str(Path(folder, "tasks.toml")),
            pretrained=hugging_face_folder(Path(folder, "tiny"), dropout=0.0),
            batches="mixed",
            optimizer="sgd",  # Adam magnifies the gradients of key biases, which are rounding alone
            learning_rate=0.5,
            **few_steps(devices),
        )
        train(options.make(), Path(folder, "run"))
        return losses_and_weights(Path(folder, "run"))


def forecast(devices):
    """Losses and weights of the task `forecasting`, whose replicas miss different targets."""
    with TemporaryDirectory() as folder:
        draw = np.random.default_rng(1)
        load = [f"{value:.3f}" if draw.random() < 0.7 else "" for value in draw.normal(size=160)]
        file = Path(folder, "load.csv")
        file.write_text("\n".join(["load,day", *(f"{v},{row % 7}" for row, v in enumerate(load))]))
        options = ForecastingOptions(
            file=str(file),
            targets=("load",),
            numbers=("day",),
            context=10,
            horizon=3,
            units=5,
            dropout=0.0,
            **few_steps(devices),
        )
        train(options.make(), Path(folder, "run"))
        return losses_and_weights(Path(folder, "run"))


def started(devices):
    """Losses and weights of a GPT that begins with another one."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "text.txt")
        file.write_text("\n".join(REVIEWS))
        common = {
            "files": (str(file),),
            "context": 8,
            "optimizer": "sgd",  # Adam magnifies the gradients of key biases, which are rounding
            **few_steps(devices),
        }
        sizes = {"hidden_dim": 6, "num_layers": 1, "num_heads": 2}
        first = Path(folder, "first")
        train(LanguageModelOptions(**common, **sizes).make(), first)
        options = LanguageModelOptions(**common, start_from=str(first), learning_rate=0.5)
        train(options.make(), Path(folder, "run"))
        return losses_and_weights(Path(folder, "run"))


def pretrained(devices):
    """Losses and weights of the task `bert-pretraining`, whose rows have few and many masks."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "text.txt")
        file.write_text("\n\n".join("\n".join(REVIEWS[row : row + 3]) for row in range(40)))
        options = BertPretrainingOptions(
            files=(str(file),),
            vocab_size=80,
            num_layers=1,
            hidden_dim=6,
            num_heads=2,
            max_length=23,
            dropout=0.0,
            attention_dropout=0.0,
            optimizer="sgd",  # Adam magnifies the gradients of key biases, which are rounding alone
            weight_decay=None,
            learning_rate=0.5,
            **few_steps(devices),
        )
        train(options.make(), Path(folder, "run"))
        return losses_and_weights(Path(folder, "run"))


def without_the_mean_over_tokens(devices):
    """What Keras's mean of the replicas' means comes to."""
    ours, strategies._summed = strategies._summed, lambda loss: loss
    try:
        return fitted(rnn, adam, CROSS_ENTROPY, devices)
    finally:
        strategies._summed = ours


def clipped_by_keras(devices):
    """What clipping before the sum comes to."""
    return fitted(
        rnn, lambda: keras.optimizers.SGD(0.5, global_clipnorm=0.03), CROSS_ENTROPY, devices
    )


def built_by_keras(devices):
    """Losses and weights of `fit` without `prepare`, as far as there are any."""
    return fitted(Recorder, adam, CROSS_ENTROPY, devices, prepare=False)


CASES = {
    "GPT": lambda devices: fitted(gpt, adam, SmoothedCrossEntropy(ignore_class=0), devices),
    "RNN": lambda devices: fitted(rnn, adam, CROSS_ENTROPY, devices),
    "Transformer": lambda devices: fitted(transformer, adam, CROSS_ENTROPY, devices),
    "bert-pretraining": pretrained,
    "classification": classified,
    "distillation": distilled,
    "forecasting": forecast,
    "going on from a GPT": started,
    "several": several,
    "without the mean over tokens": without_the_mean_over_tokens,
    "clipped by Keras": clipped_by_keras,
    "built by Keras": built_by_keras,
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
        differences[name] = max(float(np.abs(np.subtract(*pair)).max()) for pair in pairs)
    print(json.dumps({"differences": differences, "seen": sorted(Recorder.seen)}))


if __name__ == "__main__":
    main()
