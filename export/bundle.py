"""A run becomes a bundle: written aside, verified, then renamed into place."""

import dataclasses
import datetime
import importlib.metadata
import json
import zipfile
from pathlib import Path

import keras

import seqkeras
from export import model_card, onnx_files, onnx_graphs, saved_model, verify
from export.families import parts_of
from export.replacing import written_aside
from seqkeras.models import RNNSeq2Seq
from seqkeras.runs import MODEL, RECORD, SCORES, TOKENIZERS, VALIDATION, RunError, RunRecord
from seqkeras.tokenizers import CharacterTable
from serving.manifest import (
    MANIFEST,
    SCHEMA_VERSION,
    DecodingDefaults,
    Graph,
    Limits,
    Manifest,
    Signature,
    TextPrefix,
    describe_files,
    write_manifest,
)

LIBRARIES = ("tensorflow", "keras", "tf2onnx", "onnx", "onnxruntime", "numpy")


class ExportError(ValueError):
    """The bundle can not be made; the message names a way out."""


def export(run, bundle, overwrite=False, say=lambda line: None):
    """Make a bundle from a finished run.

    Args:
        run: folder of the run.
        bundle: folder to make.
        overwrite: replace the bundle that is there.
        say: called with a line of text before each step.

    Returns:
        The bundle's `Manifest`.

    Raises:
        RunError: if the run can not be used.
        ExportError: if there is a bundle already, or a part of the model can not be exported.
        ParityError: if what was exported answers differently.
        OSError: if it can not be written. Whatever is raised, no file of `bundle` has changed.
    """
    run, bundle = Path(run), Path(bundle)
    place = bundle.resolve()  # a link to a bundle stays, what it points to is replaced
    with written_aside(place, lambda: _require_free(bundle, overwrite)) as folder:
        record = RunRecord.read(run)
        manifest = _write(run, record, place.name, folder, say)
        say("writing the model card and the manifest")
        model_card.write(folder, manifest, bundle)
        manifest = dataclasses.replace(manifest, files=describe_files(folder))
        write_manifest(folder, manifest)
    return manifest


def _write(run, record, name, folder, say):
    """Write and verify all that the bundle holds but the model card; its manifest so far."""
    limits, decoding, prefix = _parse(record, run)
    validation = _read_examples(run / VALIDATION)
    scores = _read_json(run / SCORES)
    source, target = _copy_tokenizers(run, folder)
    model = _load_model(run / MODEL)

    parts = parts_of(model, max_length=limits.target_length, decoding=decoding)
    (folder / "onnx").mkdir()
    converted = {}
    for role, each in parts.graphs.items():
        say(f"ONNX graph {role}: tracing, converting, checking")
        converted[role] = onnx_graphs.convert(each.function, each.inputs, each.outputs, role)
    weights = onnx_files.save(converted, folder / "onnx")

    say("SavedModel on token ids, SavedModel on strings")
    by_ids = parts.saved_model
    by_text = saved_model.text_signature(by_ids["generate"], source, target, limits, prefix)
    saved_models = {
        "saved_model/1": by_ids,
        "saved_model_text/1": {"serving_default": by_text},
    }
    for path, each in saved_models.items():
        saved_model.write(model, each, folder / path)

    manifest = Manifest(
        schema_version=SCHEMA_VERSION,
        name=name,
        task=record.task,
        pipeline=record.pipeline,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        versions={
            "seqkeras": seqkeras.__version__,
            **{library: importlib.metadata.version(library) for library in LIBRARIES},
        },
        tokenizers=TOKENIZERS,
        text_prefix=prefix,
        limits=limits,
        decoding=decoding,
        graphs={
            role: Graph(
                f"onnx/{role}.onnx",
                tuple(each.inputs),
                tuple(each.outputs),
                tuple(f"onnx/{file}" for file in weights[role]),
            )
            for role, each in parts.graphs.items()
        },
        state=parts.state,
        saved_models={
            path: {
                key: Signature(tuple(each.inputs), tuple(each.outputs))
                for key, each in named.items()
            }
            for path, named in saved_models.items()
        },
        examples=tuple(each["text"] for each in validation[:64]),
        scores=scores,
        parity={},
        files=describe_files(folder),
    )
    write_manifest(folder, manifest)
    say("Keras = SavedModel = ONNX, on real inputs")
    parity = verify.verify_seq2seq(
        model, by_ids["generate"].function, folder, source, target, validation
    )
    return dataclasses.replace(manifest, parity=parity)


def _parse(record, run):
    """The parts of a run record that the manifest has classes for."""
    try:
        prefix = record.text_prefix and TextPrefix(
            **{**record.text_prefix, "values": tuple(record.text_prefix["values"])}
        )
        return Limits(**record.limits), DecodingDefaults(**record.decoding), prefix
    except (KeyError, TypeError) as error:
        raise RunError(f"{run / RECORD}: not a run record: {error}; train again.") from None


def _require_free(bundle, overwrite):
    if not bundle.exists():
        return
    if (bundle / RECORD).is_file():
        raise ExportError(f"{bundle}: is a run; the order is: python -m export RUN BUNDLE.")
    if not (bundle / MANIFEST).is_file():
        raise ExportError(
            f"{bundle}: exists, and is no bundle ({MANIFEST} is missing), so it is never replaced; "
            "choose another folder."
        )
    if not overwrite:
        raise ExportError(f"{bundle}: exists already; replace it with --overwrite.")


def _load_model(path):
    try:
        model = keras.models.load_model(path)
    except (ValueError, TypeError, OSError, zipfile.BadZipFile) as error:
        reason = str(error).splitlines()[0]
        raise RunError(
            f"{path}: not a model that Keras can load: {reason}; train again."
        ) from error
    if not isinstance(model, RNNSeq2Seq):
        raise ExportError(
            f"{path}: a {type(model).__name__} has no export yet; there is one for RNNSeq2Seq."
        )
    return model


def _copy_tokenizers(run, folder):
    """The tables of source and target, which are written into the bundle too."""
    (folder / TOKENIZERS["source"]).parent.mkdir()
    tables = []
    for path in TOKENIZERS.values():
        try:
            table = CharacterTable.from_file(run / path)
        except (OSError, ValueError) as error:
            raise RunError(f"{run}: {path} can not be used: {error}; train again.") from error
        table.to_file(folder / path)
        tables.append(table)
    return tables


def _read_examples(path):
    """The run's real inputs with their targets."""
    examples = _read_json(path)
    if not isinstance(examples, list) or not examples or not all(map(_is_example, examples)):
        raise RunError(
            f'{path}: must be a list of {{"text": ..., "target": ...}}, one at least; train again.'
        )
    return examples


def _is_example(value):
    return isinstance(value, dict) and all(
        isinstance(value.get(key), str) and value[key] for key in ("text", "target")
    )


def _read_json(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: can not be read: {error}; train again.") from error
