"""A run becomes a bundle: written to a temporary folder, verified, then renamed into place."""

import contextlib
import dataclasses
from pathlib import Path

import tensorflow as tf

from seqkeras import files
from seqkeras.export import card, measuring, onnx_files, onnx_graphs, saved_model
from seqkeras.export.about import about
from seqkeras.export.checks.fit import ExportError, require_fit
from seqkeras.export.families.calling import reason_of
from seqkeras.export.families.decoders import reads_prefix
from seqkeras.export.families.saved_models import source_limits
from seqkeras.export.feeds import ENCODER_DECODER, SINGLE_PASS
from seqkeras.export.generation import one_graph
from seqkeras.export.generation.searches import Searches
from seqkeras.export.keras_layers import steps_as_rows
from seqkeras.export.pipelines.strings import text_signatures
from seqkeras.export.place import require_free
from seqkeras.export.quantize import quantize, require_precision
from seqkeras.export.run import read_run
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

GENERATE = "generate"  # graphs of this role and of ATTENTION exist in float32 only


@dataclasses.dataclass(frozen=True)
class ExportOptions:
    """What a bundle holds.

    Args:
        precisions: names beside float32, see `seqkeras.export.quantize`.
        tolerances: how much worse these may answer.
        portable: graphs of standard ONNX operators only, for runtimes other than onnxruntime.
        generate_in_graph: also one graph from token ids to token ids.
        saved_models: whether there are SavedModels beside the graphs.
        strings: whether one of them takes strings.
        attention_heads: whether the graphs can give the attention of each head of each layer.
        n_best: how many results the SavedModels' signatures `n_best` give to an input; 0 for no
            such signature.
        sampling: whether the SavedModels have signatures `sample`.

    Raises:
        ValueError: if no model can be exported with these options together.
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

    def __post_init__(self):
        if self.n_best < 0 or self.n_best == 1:
            raise ExportError(f"--n-best must be 2 at least; received {self.n_best}.")
        for precision in self.precisions:
            require_precision(precision)
        if self.portable and self.precisions:
            raise ExportError(
                f"{', '.join(self.precisions)}: other precisions need onnxruntime's own operators; "
                "leave out --portable, or --precision."
            )


def export(run, bundle, overwrite=False, say=lambda line: None, options=ExportOptions()):
    """Make a bundle from a finished run.

    Args:
        run: folder of the run.
        bundle: folder to make.
        overwrite: replace the bundle that is there.
        say: called with a line of text before each step.
        options: `ExportOptions`.

    Returns:
        The bundle's `Manifest`.

    Raises:
        RunError: if the run can not be used.
        InUseError: if another process makes that bundle.
        ExportError: if there is a bundle already, or a part of the model can not be exported.
        ParityError: if what was exported answers differently.
        PrecisionError: if a precision answers too differently.
        OSError: if it can not be written. Whatever is raised, no file of `bundle` has changed.
    """
    trained, bundle = Path(run), Path(bundle)
    place = bundle.resolve()  # a link to a bundle stays, what it points to is replaced
    aside = written_aside(place, lambda: require_free(bundle, overwrite, trained))
    with aside as folder, steps_as_rows():
        run = read_run(trained)
        if run.trained_in:
            say(f"the model was trained in {run.trained_in}; it is exported in float32")
        making = _Bundle(run, options, folder, place.name, say)
        making.require_fit()
        manifest = making.write()
        say("writing the model card and the manifest")
        card.write(folder, manifest)
        manifest = dataclasses.replace(manifest, files=describe_files(folder))
        write_manifest(folder, manifest)
    return manifest


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


class _Bundle:
    """A bundle that is being written, part by part, with the fields of its manifest."""

    def __init__(self, run, options, folder, name, say):
        self.run, self.options = run, options
        self.folder, self.name, self.say = folder, name, say
        self.plan = run.plan(options.attention_heads, Searches(options.n_best, options.sampling))

    def require_fit(self):
        """Raise an ExportError, with every reason, unless the bundle can be made and served."""
        require_fit(self.run, self.plan)
        if self.options.generate_in_graph and self.plan.kind == SINGLE_PASS:
            pipeline = self.run.record.pipeline
            raise ExportError(f"{pipeline} generates nothing; leave out --generate-in-graph.")
        if (self.options.n_best or self.options.sampling) and self.plan.kind == SINGLE_PASS:
            pipeline = self.run.record.pipeline
            raise ExportError(f"{pipeline} generates nothing; leave out --n-best and --sampling.")
        if self.options.generate_in_graph and reads_prefix(self.run.model):
            raise ExportError(
                "one graph that generates reads prompts up to the length of a batch's shortest "
                "one, but a GPT with mask 'prefix' reads each whole; leave out "
                "--generate-in-graph."
            )
        for precision in self.options.precisions:
            require_precision(precision, self.plan.graphs)

    def write(self):
        """Write and verify all that the bundle holds but the model card; its manifest so far."""
        self._write_tokenizers()
        self._write_evaluation()
        converted = self._convert()
        graphs = {role: graph for role, graph in converted.items() if role != ATTENTION}
        quantized = {name: self._quantize(graphs, name) for name in self.options.precisions}
        whole = converted | self._generate_in_graph(graphs)
        written = {onnx_files.FLOAT32: whole} | quantized
        needs = onnx_files.save_precisions(written, self.folder / "onnx")
        described = {name: self._describe(name, needs[name]) for name in needs}
        float32 = described.pop(onnx_files.FLOAT32)
        manifest = Manifest(
            graphs=float32,
            saved_models=self._write_saved_models() if self.options.saved_models else {},
            files=describe_files(self.folder),
            **about(self.run, self.plan, self.name),
        )
        write_manifest(self.folder, manifest)
        self.say("Keras = SavedModel = ONNX, on real inputs")
        parity, examples = verify(self.run, self.plan, self.folder, manifest)
        if manifest.saved_models:
            self.say("requests and settings for TensorFlow Serving")
            write_serving_files(self.folder, manifest, examples)
        unmeasured = {name: Precision(graph_files, {}) for name, graph_files in described.items()}
        manifest = dataclasses.replace(manifest, parity=parity, precisions=unmeasured)
        scores = scores_of(self.run, self.folder, manifest) if unmeasured else None
        precisions = {
            name: Precision(
                described[name],
                {
                    "float32_bytes": onnx_files.stored_bytes(graphs),
                    "bytes": onnx_files.stored_bytes(quantized[name]),
                }
                | self._measure(manifest, examples, name, scores),
            )
            for name in described
        }
        return dataclasses.replace(manifest, precisions=precisions)

    def _write_evaluation(self):
        if evaluation := self.run.record.evaluation:
            files.write_json(self.folder / EVALUATION, evaluation)

    def _write_tokenizers(self):
        for role, path in self.run.record.tokenizers.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            self.run.tokenizers[role].to_file(self.folder / path)

    def _convert(self):
        graphs = {}
        for role, signature in self.plan.graphs.items():
            self.say(f"ONNX graph {role}: tracing, converting, checking")
            with _as_export_error(f"ONNX graph {role}"):
                graphs[role] = onnx_graphs.convert(
                    signature.function,
                    signature.inputs,
                    signature.outputs,
                    role,
                    self.options.portable,
                )
        return graphs

    def _quantize(self, graphs, precision):
        self.say(f"ONNX graphs in {precision}")
        return quantize(graphs, precision)

    def _measure(self, manifest, examples, precision, scores):
        self.say(f"{precision} against float32, on real inputs")
        return measuring.measure(
            self.folder,
            manifest,
            self.run.inputs[:EXAMPLES],
            examples,
            precision,
            self.options.tolerances,
            scores,
        )

    def _describe(self, precision, needs):
        """Return a dictionary: role -> the manifest's `GraphFile` of that precision."""
        signatures = self.plan.saved_model | self.plan.graphs  # of GENERATE in the first alone
        return {
            role: GraphFile(
                f"onnx/{onnx_files.graph_file(role, precision)}",
                tuple(signatures[role].inputs),
                tuple(signatures[role].outputs),
                tuple(f"onnx/{file}" for file in files),
            )
            for role, files in needs.items()
        }

    def _generate_in_graph(self, graphs):
        """Return the graph that generates, by its role, if it is asked for."""
        if not self.options.generate_in_graph:
            return {}
        self.say("ONNX graph generate: a loop around the step")
        make, limits = one_graph.language_model, {}
        if self.plan.kind == ENCODER_DECODER:
            make, limits = one_graph.encoder_decoder, source_limits(self.run.model)
        graph = make(
            graphs,
            self.plan.graphs,
            self.run.decoding,
            self.run.limits.target_length,
            self.options.portable,
            self.run.constraint,
            **limits,
        )
        return {GENERATE: graph}

    def _write_saved_models(self):
        saved_models = {"saved_model/1": self.plan.saved_model}
        by_text = self._text_signatures() if self.options.strings else {}
        if by_text:
            saved_models["saved_model_text/1"] = by_text
        self.say(f"SavedModel on arrays{', SavedModel on strings' * bool(by_text)}")
        for path, signatures in saved_models.items():
            with _as_export_error(path):
                saved_model.write(self.run.model, signatures, self.folder / path)
        return {
            path: {
                key: SignatureSpec(tuple(signature.inputs), tuple(signature.outputs))
                for key, signature in named.items()
            }
            for path, named in saved_models.items()
        }

    def _text_signatures(self):
        """Return the signatures on strings; none where the tokenizer can not become a graph."""
        run = self.run
        try:
            return text_signatures(
                run.record.pipeline,
                self.plan.saved_model,
                run.tokenizers,
                run.limits,
                run.decoding,
                settings=run.record.settings,
                text_prefix=run.prefix,
            )
        except ValueError as error:
            self.say(f"no SavedModel on strings: {error}")
            return {}
