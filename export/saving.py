"""`save_run` writes a run of any model, however it was trained."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras

from seqkeras.export.checks.given import own_problems, run_problems
from seqkeras.folders import written_aside
from seqkeras.runs.record import RECORD, RunError
from seqkeras.runs.reference import Reference
from seqkeras.runs.run_files import RunFiles, plain
from seqkeras.serving.manifest import PIPELINE_TEXTS

if TYPE_CHECKING:
    from seqkeras.serving.text import Tokenizer

DICTIONARIES = {
    "tokenizers": "{'text': tokenizer}",
    "settings": "{'labels': ['no', 'yes']}",
    "binding": "{'window': 'past'}",
}


def save_run(
    folder: Path | str,
    model: keras.Model,
    pipeline: str,
    validation: list[dict[str, Any]],
    limits: Mapping[str, int],
    tokenizers: Mapping[str, Tokenizer] | None = None,
    task: str = "own",
    decoding: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    scores: Any = None,
    text_prefix: Mapping[str, Any] | None = None,
    inputs: Mapping[str, Any] | None = None,
    binding: Mapping[str, Any] | None = None,
    call: Any = None,
    check_export: bool = True,
    overwrite: bool = False,
) -> None:
    """Write a run folder, from which `seqkeras export` makes a bundle.

    What the model answers to your own call is stored, and compared with what export makes of it.
    With TensorFlow as the backend, the model is loaded once more and passes all checks of export
    before the folder appears: this takes seconds, and memory for a second model. On other backends
    only weights, vocabularies and texts are checked here, the rest by export.

    Args:
        folder: the folder to create; it must not exist, or be empty, without `overwrite`.
        model: a Keras model that is built.
        pipeline: the class of `seqkeras.serving.pipelines` that will serve it, such as "Classify".
        validation: list of real inputs, on which export proves itself: dictionaries of "input", in
            the form that the pipeline takes, and "target", if there is one; for a translation of
            texts "text" and "target". By targets precisions have a score (docs/export.md).
        limits: dictionary of "source_length" and, where texts are generated, "target_length".
        tokenizers: role -> tokenizer of `seqkeras.tokenizers`: "source" and "target"; "text";
            "words" for trees; "words" and "characters" for `BiDAF`. Frames have none, except the
            "target" of a translation.
        task: what the model was trained for, in a word.
        decoding: where texts are generated, dictionary of the manifest's `DecodingDefaults`. The
            tokenizer gives `start_id` and `end_id` that are left out
            (`seqkeras.tokenizers.special_ids`).
        settings: dictionary, see `seqkeras.serving.pipelines`.
        scores: scores of the model: name -> number.
        text_prefix: dictionary of the manifest's `TextPrefix`.
        inputs: the model's inputs, if export can not infer them: name -> (dtype, shape), such as
            {"token_ids": ("int64", ("batch", "length"))}.
        binding: name of an input, as `inputs` or the pipeline has it -> what your own call of the
            model has in its place, if that has another name or none: a key of its dictionary, the
            name of a `keras.Input`, an argument of `call`, an index, or a list of keys and indices,
            such as {"window": "past", "known": ["days", 0]}.
        call: what you pass to `model(...)` for the validation examples, in their order: an array,
            or a list or dictionary of arrays, whose first axis is the batch; or a function of the
            model that calls it, such as `lambda model: model(ids, lengths=lengths)`. It may be a
            batch of the first examples only. The outputs of that call are stored, and what export
            makes of the model must give the same numbers. It is required where no name decides
            which input of the model is which; elsewhere the model is called by its own names.
        check_export: False leaves the checks of the loaded model to export, if memory does not
            suffice for a second model.
        overwrite: replaces the run in the folder, at the end and in a single step.

    Raises:
        InUseError: if another process writes the folder.
        RunError: with every reason, if there is something else in the folder, the model is not
            built, or export would refuse the run. Then nothing is written.

    Example:
        >>> import keras, numpy as np, pathlib
        >>> from seqkeras.export import save_run
        >>> frames = keras.Input((None, 3), name="frames")
        >>> pooled = keras.layers.GlobalAveragePooling1D()(frames)
        >>> model = keras.Model({"frames": frames}, keras.layers.Dense(2)(pooled))
        >>> examples, limits = [{"input": np.ones((5, 3)), "target": "wave"}], {"source_length": 64}
        >>> settings = {"labels": ["wave", "still"]}
        >>> save_run("runs/gestures", model, "Classify", examples, limits, settings=settings)
        >>> sorted(path.name for path in pathlib.Path("runs/gestures").glob("[mr]*"))
        ['model.keras', 'reference.npz', 'run.json']
    """
    _require_kinds(model, pipeline, tokenizers=tokenizers, settings=settings, binding=binding)
    folder = Path(folder)
    _require_free(folder, overwrite)
    if not model.built:
        raise RunError(
            f"{folder}: the model must be built, or it would be saved without its weights; call it "
            "once, or load them first."
        )
    reference = None
    if call is not None:
        count = len(validation) if isinstance(validation, list) else 0
        reference = Reference.of_call(folder, model, call, count)
    run = RunFiles.of(
        folder,
        validation,
        tokenizers,
        reference,
        task=task,
        pipeline=pipeline,
        limits=limits,
        decoding=decoding,
        settings=settings,
        text_prefix=text_prefix,
        inputs=inputs,
        binding=binding,
    )
    run_inputs = run.inputs
    problems = [*own_problems(pipeline, model, run.tokenizers, run.record.decoding, run_inputs)]
    loads = check_export and not problems and keras.backend.backend() == "tensorflow"
    if not loads:
        parsed = run.record.parse(folder)
        parts = parsed.limits, parsed.decoding, run.record.settings
        problems += run_problems(pipeline, model, run.tokenizers, *parts, run_inputs)
    _require_none(folder, problems)
    scores = plain(folder, "scores", scores or {})
    with written_aside(folder.absolute(), lambda: _require_free(folder, overwrite)) as aside:
        run.write(aside, model, scores)
        if loads:
            from seqkeras.export.checks.loaded import refusals_of  # TensorFlow traces the model

            problems, reference = refusals_of(aside, model)
            _require_none(folder, problems)
            if run.reference is None and reference is not None:
                reference.write(aside)


def _require_kinds(model, pipeline, **dictionaries):
    if not isinstance(model, keras.Model):
        raise RunError(f"save_run: model must be a Keras model; received a {type(model).__name__}.")
    if not isinstance(pipeline, str):
        raise RunError(
            f"save_run: pipeline must be {', '.join(PIPELINE_TEXTS)}; received a "
            f"{type(pipeline).__name__}."
        )
    for name, value in dictionaries.items():
        if not isinstance(value, dict | None):
            raise RunError(
                f"save_run: {name} must be a dictionary, as {DICTIONARIES[name]}; received a "
                f"{type(value).__name__}."
            )


def _require_free(folder, overwrite):
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not (folder / RECORD).is_file():
        raise RunError(f"{folder}: must not exist, or be empty; choose another folder.")
    if not overwrite:
        raise RunError(f"{folder}: holds a run; replace it by overwrite=True.")


def _require_none(folder, problems):
    if problems:
        raise RunError(*problems, where=folder)
