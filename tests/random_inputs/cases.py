"""Bundles of every pipeline, with what draws their inputs and what Keras answers to these."""

import contextlib
import dataclasses
import functools
import tempfile
from collections.abc import Callable
from pathlib import Path

import keras
import tensorflow as tf
from starlette.testclient import TestClient

from seqkeras import serving
from seqkeras.export.bundle import export
from seqkeras.models import SpanHead, WithHeads
from seqkeras.recurrent import GRU, LSTM, Bidirectional
from seqkeras.runs import RunRecord
from seqkeras.serving.http.application import Application, Service
from seqkeras.serving.http.served_bundle import Opening
from seqkeras.serving.manifest import read_manifest
from seqkeras.tokenizers import WordTable
from seqkeras.tokenizers.learn import learn_word_piece
from tests import zoo
from tests.random_inputs import by_keras, inputs, tables

FEATURES = 3
TEMPORARY = tempfile.TemporaryDirectory(prefix="random-inputs-")


@dataclasses.dataclass(frozen=True)
class Case:
    """A bundle, and what is asked of it.

    Attributes:
        make: writes the run, as a maker of `tests.zoo`.
        inputs: the strategy of one input.
        keras: (opened, input, answer) -> None; raises where Keras answers otherwise. None where
            the outputs of the graph alone are compared.
        options: of the pipeline, for the answer that Keras is compared with.
    """

    make: Callable
    inputs: object
    keras: Callable | None = None
    options: dict = dataclasses.field(default_factory=dict)

    @property
    def name(self):
        return self.make.__name__


@dataclasses.dataclass(frozen=True)
class Opened:
    """A case's run and bundle, opened by every host."""

    record: RunRecord
    model: keras.Model
    tokenizers: dict
    manifest: object
    pipeline: object
    client: TestClient
    signatures: dict
    folder: Path

    @property
    def settings(self):
        return self.record.settings

    @property
    def takes(self):
        [graph] = self.manifest.graphs.values()
        return {spec.name for spec in graph.inputs}


def masked_words(folder):
    """Keras's embedding with a mask before our recurrent layers."""
    table = WordTable.learn(" ".join(zoo.TEXTS).split())
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int64", name="token_ids"),
            keras.layers.Embedding(len(table), 5, mask_zero=True),
            Bidirectional(LSTM(7, return_sequences=True)),
            GRU(5),
            keras.layers.Dense(3),
        ]
    )
    settings = {"labels": ["low", "middle", "high"]}
    return zoo.saved(folder, model, "Classify", table, zoo.TEXTS, settings=settings)


def of_frames(folder, pipeline, labels, *layers):
    """Layers behind a mask of the frames of zeros, wherever they stand."""
    model = keras.Sequential(
        [
            keras.Input((None, FEATURES), name="frames"),
            keras.layers.Masking(),
            *layers,
            keras.layers.Dense(3),
        ]
    )
    frames = [zoo.floats(length, FEATURES, seed=length) for length in (5, 7, 11)]
    frames[1][2] = 0
    return zoo.saved(folder, model, pipeline, None, frames, settings={"labels": labels})


def masked_frames(folder):
    both = Bidirectional(LSTM(7, return_sequences=True))
    return of_frames(folder, "Classify", ["x", "y", "z"], both, GRU(5))


def pooled_frames(folder):
    """The mean over frames that are all masked is 0 / 0."""
    pooling = keras.layers.GlobalAveragePooling1D()
    return of_frames(folder, "Classify", ["x", "y", "z"], keras.layers.Dense(5), pooling)


def tagged_frames(folder):
    both = Bidirectional(LSTM(7, return_sequences=True))
    return of_frames(folder, "Tag", ["O", "B-X", "I-X"], both)


def answer(folder):
    tokenizer = learn_word_piece(zoo.TEXTS, 80)
    model = WithHeads(zoo.encoder(len(tokenizer)), {"span": SpanHead()})
    pairs = [("What is small?", text) for text in zoo.TEXTS]
    settings = {
        "start": "span_start_logits",
        "end": "span_end_logits",
        "answer_length": 5,
        "question_length": 9,
        "window": zoo.LIMIT,
        "stride": 5,
    }
    return zoo.saved(folder, model, "Answer", tokenizer, pairs, settings=settings)


FIRST = 3  # cases, of texts, rows and frames, that `make test` draws inputs of
CASES = [
    Case(zoo.classify, inputs.pair, by_keras.classes),
    Case(tables.forecast_rows, tables.tables(), tables.forecast),
    Case(masked_frames, inputs.frames(FEATURES), by_keras.frame_classes),
    Case(zoo.tag, inputs.text, by_keras.tags),
    Case(zoo.generate_by_characters, inputs.text, by_keras.generation),
    Case(zoo.fill_mask, inputs.masked("[MASK]"), by_keras.fillings),
    Case(zoo.choose, inputs.choices, by_keras.choice),
    Case(answer, inputs.questions, by_keras.span),
    Case(zoo.embed, inputs.text, by_keras.vector),
    Case(zoo.translate, inputs.text, by_keras.translation, {"num_beams": 1}),
    Case(masked_words, inputs.text, by_keras.classes),
    Case(pooled_frames, inputs.frames(FEATURES, inputs.LARGE), by_keras.frame_classes),
    Case(zoo.forecast, inputs.frames(3), by_keras.series),
    Case(tagged_frames, inputs.frames(FEATURES), by_keras.frame_tags),
    Case(zoo.regress, inputs.pair, by_keras.number),
    Case(zoo.fill_mask_of_byte_pairs, inputs.masked("<mask>"), by_keras.fillings),
    Case(zoo.answer_of_words, inputs.questions),
    Case(zoo.embed_words, inputs.text),
    Case(zoo.classify_trees, inputs.trees()),
    Case(zoo.generate, inputs.text, by_keras.generation),
]


@functools.cache
def opened(name, folder=TEMPORARY.name):
    """The bundle of a case, made once in a folder, and opened by every host."""
    [case] = [case for case in CASES if case.name == name]
    run, bundle = Path(folder, name, "run"), Path(folder, name, "bundle")
    run.parent.mkdir(exist_ok=True, parents=True)
    if not run.exists():
        case.make(run)
    if not bundle.exists():
        export(run, bundle)
    record, manifest = RunRecord.read(run), read_manifest(bundle)
    service = Service([(name, bundle)], Opening(threads=1), log=False)
    client = contextlib.ExitStack().enter_context(TestClient(Application(service)))
    return Opened(
        record,
        keras.models.load_model(run / "model.keras", compile=False),
        record.read_tokenizers(run),
        manifest,
        serving.load(bundle, threads=1),
        client,
        {
            path.partition("/")[0]: tf.saved_model.load(str(bundle / path)).signatures
            for path in manifest.saved_models
        },
        run.parent,
    )
