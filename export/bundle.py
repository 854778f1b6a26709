"""A run becomes a bundle by a list of stages, `STAGES`, over one plan.

The bundle is written to a temporary folder, verified, then renamed into place.
"""

import contextlib
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from seqkeras import files
from seqkeras.export import card, measuring, onnx_files, onnx_graphs, saved_model, slots
from seqkeras.export.checks import ExportError
from seqkeras.export.checks.fit import require_fit
from seqkeras.export.exported import ON_ARRAYS, ON_STRINGS, Exported
from seqkeras.export.families import ExportPlan
from seqkeras.export.families.calling import reason_of
from seqkeras.export.families.decoders import reads_prefix
from seqkeras.export.families.saved_models import source_limits
from seqkeras.export.feeds import ENCODER_DECODER, SINGLE_PASS
from seqkeras.export.generation import one_graph
from seqkeras.export.keras_layers import steps_as_rows
from seqkeras.export.pipelines.record import TextModel
from seqkeras.export.pipelines.strings import text_signatures
from seqkeras.export.place import require_free
from seqkeras.export.quantize import quantize, require_precision
from seqkeras.export.run import Run, read_run
from seqkeras.export.scores import scores_of
from seqkeras.export.tensorflow_serving import write_serving_files
from seqkeras.export.tolerances import Tolerances
from seqkeras.export.verifying import verify
from seqkeras.export.verifying.parity import EXAMPLES
from seqkeras.folders import written_aside
from seqkeras.runs import EVALUATION
from seqkeras.serving.manifest import (
    GraphFile,
    Manifest,
    Precision,
    SignatureSpec,
    describe_files,
    write_manifest,
)
from seqkeras.serving.pipelines.attention import ROLE as ATTENTION
from seqkeras.serving.streams import ROLE as STREAM

__all__ = ["ExportOptions", "export"]

GENERATE = "generate"  # graphs of this role and of ATTENTION exist in float32 only


@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """Options of a bundle.

    Args:
        precisions: precisions beside float32, see `seqkeras.export.quantize`.
        tolerances: `Tolerances`: how much worse other precisions may answer.
        portable: whether graphs have standard ONNX operators only, for runtimes other than
            onnxruntime.
        generate_in_graph: whether there is also one graph from token ids to token ids.
        saved_models: whether there are SavedModels beside the graphs.
        strings: whether one of the SavedModels takes strings.
        attention_heads: whether graphs give the attention of each head of each layer.
        n_best: number of results of the SavedModels' signatures `n_best`; 0 for no such signature.
        sampling: whether SavedModels have signatures `sample`.
        stream: whether there is a graph that answers frames as they come.

    Raises:
        ExportError: a ValueError, if no model can be exported with these options together.

    Example:
        >>> from seqkeras.export.bundle import ExportOptions
        >>> ExportOptions(precisions=("int8",), saved_models=False).precisions
        ('int8',)
        >>> ExportOptions(precisions=("int8",), portable=True)
        Traceback (most recent call last):
            ...
        seqkeras.export.checks.ExportError: int8: other precisions need onnxruntime's own...
    """

    precisions: tuple[str, ...] = ()
    tolerances: Tolerances = Tolerances()
    portable: bool = False
    generate_in_graph: bool = False
    saved_models: bool = True
    strings: bool = True
    attention_heads: bool = False
    n_best: int = 0
    sampling: bool = False
    stream: bool = False

    def __post_init__(self) -> None:
        if self.n_best < 0 or self.n_best == 1:
            raise ExportError(f"--n-best must be 2 at least; received {self.n_best}.")
        if (self.n_best or self.sampling) and not self.saved_models:
            raise ExportError(
                "--n-best and --sampling are signatures of SavedModels; leave out "
                "--no-saved-models, or these."
            )
        for precision in self.precisions:
            require_precision(precision)
        if self.portable and self.precisions:
            raise ExportError(
                f"{', '.join(self.precisions)}: other precisions need onnxruntime's own operators; "
                "leave out --portable, or --precision."
            )


def export(
    run: Path | str,
    bundle: Path | str,
    overwrite: bool = False,
    say: Callable[[str], object] = lambda line: None,
    options: ExportOptions = ExportOptions(),
) -> Manifest:
    """Make a bundle from a finished run.

    Args:
        run: folder of the run.
        bundle: folder of the bundle, which is made.
        overwrite: whether a bundle that is there is replaced.
        say: called with a line of text before each step.
        options: `ExportOptions`.

    Returns:
        The bundle's `seqkeras.serving.manifest.Manifest`.

    Raises:
        RunError: if the run can not be used.
        InUseError: if another process makes that bundle.
        ExportError: if there is a bundle already, or a part of the model can not be exported.
        ParityError: if what was exported answers differently.
        PrecisionError: if a precision answers too differently.
        OSError: if the bundle can not be written. Whatever is raised, no file of `bundle` changes.

    Example:
        >>> import keras, numpy as np
        >>> from seqkeras.export import save_run
        >>> from seqkeras.export.bundle import ExportOptions, export
        >>> frames = keras.Input((None, 3), name="frames")
        >>> pooled = keras.layers.GlobalAveragePooling1D()(frames)
        >>> model = keras.Model({"frames": frames}, keras.layers.Dense(2)(pooled))
        >>> fields = {"limits": {"source_length": 64}, "settings": {"labels": ["wave", "still"]}}
        >>> save_run("runs/own", model, "Classify", [{"input": np.ones((5, 3))}], **fields)
        >>> manifest = export("runs/own", "exported/own", options=ExportOptions(saved_models=False))
        >>> manifest.pipeline, list(manifest.graphs)
        ('Classify', ['model'])
    """
    trained, bundle = Path(run), Path(bundle)
    target = bundle.resolve()  # a link to a bundle stays, what it points to is replaced
    aside = written_aside(target, lambda: require_free(bundle, overwrite, trained))
    with aside as folder, steps_as_rows():
        loaded = read_run(trained)
        if loaded.trained_in:
            say(f"the model was trained in {loaded.trained_in}; it is exported in float32")
        searches: dict[str, Any] = {"n_best": options.n_best, "sampling": options.sampling}
        plan = loaded.plan(options.attention_heads, options.stream, **searches)
        making = Making(loaded, plan, options, folder, target.name, say)
        for stage in STAGES:
            making = dataclasses.replace(making, **(stage(making) or {}))
    return making.manifest


@dataclasses.dataclass(frozen=True)
class Making:
    """A bundle on its way through `STAGES`, each of which takes it and returns what it adds."""

    run: Run
    plan: ExportPlan
    options: ExportOptions
    folder: Path
    name: str
    say: Callable
    graphs: dict = dataclasses.field(default_factory=dict)  # role -> `Graph` in float32
    quantized: dict = dataclasses.field(default_factory=dict)  # precision -> role -> graph
    files: dict = dataclasses.field(default_factory=dict)  # precision -> role -> `GraphFile`
    saved_models: dict = dataclasses.field(default_factory=dict)  # path -> name -> `SignatureSpec`
    examples: list = dataclasses.field(default_factory=list)
    exported: Exported = None  # from `prove` to `write_requests`
    manifest: Manifest = None  # until `prove` makes it


@contextlib.contextmanager
def _as_export_error(what):
    """Raise an ExportError for an exception of the model's own code while it is traced."""
    try:
        yield
    except (ValueError, OSError, tf.errors.OpError):  # their messages are clear
        raise
    except Exception as error:
        raise ExportError(
            f"{what}: the model can not be traced with open sizes and with weights of its layers "
            f"alone: {reason_of(error)}."
        ) from error


def check(making: Making) -> None:
    """Raise an ExportError, with every reason, unless the bundle can be made and served."""
    run, plan, options = making.run, making.plan, making.options
    require_fit(run, plan)
    generating = {
        "--generate-in-graph": options.generate_in_graph,
        "--n-best and --sampling": options.n_best or options.sampling,
    }
    for option, is_asked in generating.items():
        if is_asked and plan.kind == SINGLE_PASS:
            raise ExportError(f"{run.record.pipeline} generates nothing; leave out {option}.")
    if options.stream and plan.kind != SINGLE_PASS:
        raise ExportError(
            f"{run.record.pipeline} streams the text that it generates; leave out --stream."
        )
    if options.generate_in_graph and reads_prefix(run.model):
        raise ExportError(
            "one graph that generates reads prompts up to the length of a batch's shortest "
            "one, but a GPT with mask 'prefix' reads each whole; leave out "
            "--generate-in-graph."
        )
    for precision in options.precisions:
        require_precision(precision, plan.graphs)


def write_run_files(making: Making) -> None:
    """Write what the bundle has from its run: the tokenizers, and how the task is evaluated."""
    record, folder = making.run.record, making.folder
    for role, path in record.tokenizers.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        making.run.tokenizers[role].to_file(folder / path)
    if record.evaluation:
        files.write_json(folder / EVALUATION, record.evaluation)


def convert(making: Making) -> dict[str, Any]:
    """Make the ONNX graph of each role."""
    graphs = {}
    signatures = making.plan.graphs
    for role, signature in slots.to_trace(signatures, making.options.portable).items():
        making.say(f"ONNX graph {role}: tracing, converting, checking")
        with _as_export_error(f"ONNX graph {role}"):
            graphs[role] = onnx_graphs.convert(
                signature.function,
                signature.inputs,
                signature.outputs,
                role,
                making.options.portable,
            )
    return {"graphs": slots.with_both_steps(graphs, signatures)}


def convert_to_precisions(making: Making) -> dict[str, Any]:
    """Make the graphs in the other precisions."""
    quantized = {}
    for precision in making.options.precisions:
        making.say(f"ONNX graphs in {precision}")
        quantized[precision] = quantize(_answering(making.graphs), precision)
    return {"quantized": quantized}


def generate_in_graph(making: Making) -> dict[str, Any]:
    """Make the graph that generates, if it is asked for."""
    if not making.options.generate_in_graph:
        return {}
    making.say("ONNX graph generate: a loop around the step")
    run, plan = making.run, making.plan
    make, limits = one_graph.language_model, {}
    if plan.kind == ENCODER_DECODER:
        make, limits = one_graph.encoder_decoder, source_limits(run.model)
    graph = make(
        _answering(making.graphs),
        plan.graphs,
        run.decoding,
        run.limits.target_length,
        making.options.portable,
        run.constraint,
        **limits,
    )
    return {"graphs": making.graphs | {GENERATE: graph}}


def write_graphs(making: Making) -> dict[str, Any]:
    """Write the graphs of all precisions."""
    written = {onnx_files.FLOAT32: making.graphs} | making.quantized
    needs = onnx_files.save_precisions(written, making.folder / "onnx")
    signatures = making.plan.saved_model | making.plan.graphs  # GENERATE is in the first alone
    begin = _begin(making)
    described = {
        precision: {
            role: GraphFile(
                f"onnx/{onnx_files.graph_file(role, precision)}",
                tuple(signatures[role].inputs),
                tuple(signatures[role].outputs),
                tuple(f"onnx/{file}" for file in others),
                *(begin if role == STREAM else ()),
            )
            for role, others in by_role.items()
        }
        for precision, by_role in needs.items()
    }
    return {"files": described}


def _begin(making):
    """Return the number of frames by which answers of a stream come late, and of those before the
    first answer."""
    if making.plan.streaming is None:
        return ()
    output = making.run.record.settings.get("output")
    counts = (making.plan.streaming.delays, making.plan.streaming.warm_ups)
    return tuple(
        by_output.get(output, max(count or 0 for count in by_output.values())) or 0
        for by_output in counts
    )


def write_saved_models(making: Making) -> dict[str, Any]:
    """Write the SavedModels on arrays and on strings, if they are asked for."""
    if not making.options.saved_models:
        making.say("no SavedModel is made or compared (--no-saved-models)")
        return {}
    on_arrays = saved_model.traced_once(making.plan.saved_model)
    saved_models = {ON_ARRAYS: on_arrays}
    by_text = _text_signatures(making, on_arrays) if making.options.strings else {}
    if by_text:
        saved_models[ON_STRINGS] = by_text
    making.say(f"SavedModel on arrays{', SavedModel on strings' * bool(by_text)}")
    for path, signatures in saved_models.items():
        with _as_export_error(path):
            saved_model.write(making.run.model, signatures, making.folder / path)
    described = {
        path: {
            key: SignatureSpec(tuple(signature.inputs), tuple(signature.outputs))
            for key, signature in named.items()
        }
        for path, named in saved_models.items()
    }
    return {"saved_models": described}


def _text_signatures(making, on_arrays):
    """Return the signatures on strings; none where the tokenizer can not become a graph."""
    run = making.run
    try:
        texts = TextModel(
            on_arrays,
            run.tokenizers,
            run.limits,
            run.decoding,
            run.record.settings,
            run.prefix,
        )
        return text_signatures(run.record.pipeline, texts)
    except ValueError as error:
        making.say(f"no SavedModel on strings: {error}")
        return {}


def prove(making: Making) -> dict[str, Any]:
    """Compare Keras, the SavedModels and the ONNX graphs on real inputs."""
    manifest = Manifest(
        graphs=making.files[onnx_files.FLOAT32],
        saved_models=making.saved_models,
        files=describe_files(making.folder),
        **making.plan.fields | {"name": making.name},
    )
    write_manifest(making.folder, manifest)
    making.say(f"Keras ={' SavedModel =' * bool(making.saved_models)} ONNX, on real inputs")
    exported = Exported(making.folder, manifest)
    parity, examples = verify(making.run, making.plan, exported)
    exported.manifest = dataclasses.replace(manifest, parity=parity)
    return {"exported": exported, "manifest": exported.manifest, "examples": examples}


def write_requests(making: Making) -> dict[str, Any]:
    """Write requests and settings for TensorFlow Serving, if there are SavedModels."""
    if making.saved_models:
        making.say("requests and settings for TensorFlow Serving")
        write_serving_files(making.exported, making.examples)
    return {"exported": None}  # the loaded models have done their work


def measure(making: Making) -> dict[str, Any]:
    """Compare the other precisions with float32."""
    precisions = {
        name: Precision(graph_files, {})
        for name, graph_files in making.files.items()
        if name != onnx_files.FLOAT32
    }
    if not precisions:
        return {}
    folder, run = making.folder, making.run
    manifest = dataclasses.replace(making.manifest, precisions=precisions)
    scores = scores_of(run, folder, manifest)
    inputs = run.inputs[:EXAMPLES], making.examples
    float32_bytes = onnx_files.stored_bytes(_answering(making.graphs))
    for name, unmeasured in precisions.items():
        making.say(f"{name} against float32, on real inputs")
        tolerances = making.options.tolerances
        figures = measuring.measure(folder, manifest, *inputs, name, tolerances, scores)
        sizes = {
            "float32_bytes": float32_bytes,
            "bytes": onnx_files.stored_bytes(making.quantized[name]),
        }
        precisions[name] = Precision(unmeasured.graphs, sizes | figures)
    return {"manifest": dataclasses.replace(manifest, precisions=precisions)}


def describe(making: Making) -> dict[str, Any]:
    """Write the model card and the manifest."""
    making.say("writing the model card and the manifest")
    card.write(making.folder, making.manifest)
    manifest = dataclasses.replace(making.manifest, files=describe_files(making.folder))
    write_manifest(making.folder, manifest)
    return {"manifest": manifest}


def _answering(graphs):
    """Return the graphs that every precision has."""
    return {role: graph for role, graph in graphs.items() if role not in (ATTENTION, GENERATE)}


STAGES = (
    check,
    write_run_files,
    convert,
    convert_to_precisions,
    generate_in_graph,
    write_graphs,
    write_saved_models,
    prove,
    write_requests,
    measure,
    describe,
)
