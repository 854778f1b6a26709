"""Open a bundle's graphs in onnxruntime, and check them against the manifest.

Each graph has its own threads. They spin briefly between two operations, but not after a run: the
spinning threads of an encoder would take the cores from its decoder, as would the threads of
another program. 32 steps of a Transformer of base size on two cores took 148 ms with this setting,
175 ms without spinning, and 156 ms with onnxruntime's default; next to another busy program, 251,
207 and 309 ms.
"""

import os
import posixpath
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import onnxruntime

from .checks import require_count, shown
from .external_data import external_files
from .int8 import overflows
from .manifest import MANIFEST, BundleError, GraphFile, Manifest

# onnxruntime's log severity: fatal errors only. Other errors arrive as exceptions. One of its
# warnings tells of a result, an output of another size than declared: `_Session` refuses that.
QUIET = 4
SPIN = "20"  # microseconds
MOST_THREADS = 1024  # onnxruntime starts all threads, even if they do not help
NOT_RUN = (
    "If ids are out of its bounds, the tokenizer is another model's: export the bundle again; if "
    "memory is short, ask for a smaller token_budget."
)
_ONNXRUNTIME = f"onnxruntime {onnxruntime.__version__}"
FLOAT32, CPU = "float32", "CPUExecutionProvider"
# On a CPU a SkipLayerNormalization takes four times as long as the Adds and the LayerNormalization
# that it replaces: without it, BERT-base is 1.1 times as fast, and 1.3 times in int8.
SLOWER_ON_CPU = ("SkipLayerNormFusion",)
# In older versions, the memory plan of one run gave wrong numbers in a later run of the same sizes,
# for BiDAF (https://github.com/microsoft/onnxruntime/issues/18672).
PLANS_MEMORY_FROM = (1, 19)
# In 1.18, attention that writes into its cache is wrong where several tokens follow others.
WRITES_IN_PLACE_FROM = (1, 20)
# onnxruntime's exact kernel for int8, which is slower where the other one is exact too.
EXACT_INT8 = "session.x64quantprecision"


@dataclass(frozen=True)
class Runtime:
    """The options that run graphs.

    Args:
        precision: "float32", or one of the manifest's precisions.
        threads: how many threads one operation may use; None: one for each core.
        providers: onnxruntime's execution providers, by name with or without "ExecutionProvider",
            the preferred one first; the CPU runs the rest. A tuple holds a name and onnxruntime's
            options: ("CUDA", {"device_id": 1}).
        before: None, or a function that is called before each run of a graph; what it raises ends
            the call of the pipeline.
        observe: None, or a function that is called after each run of a graph with its role and its
            inputs and outputs by name, without caches.
        in_place: whether a graph may write into an array that it reads, where it can: on the CPU.
        cache_bytes: the most bytes of the caches of answers that share steps, and of a batch of
            others; further answers wait until there is room. None: no limit.

    Raises:
        ValueError: if `threads` or `cache_bytes` is out of range, or a provider is not installed.
    """

    precision: str = FLOAT32
    threads: int | None = None
    providers: tuple = ()
    before: Callable[[], None] | None = None
    observe: Callable | None = None
    in_place: bool = True
    cache_bytes: int | None = None

    def __post_init__(self):
        if not isinstance(self.precision, str):
            raise ValueError(f"load: precision must be a name; received {shown(self.precision)}.")
        if self.threads is not None:
            require_count("load: threads", self.threads, most=MOST_THREADS)
        if self.cache_bytes is not None:
            require_count("load: cache_bytes", self.cache_bytes)
        object.__setattr__(self, "providers", _with_full_names(self.providers))

    def graphs_of(self, manifest: Manifest) -> dict[str, GraphFile]:
        """Return the graphs in this precision, as role -> `GraphFile`.

        Raises:
            ValueError: if the bundle has no such precision.
        """
        if self.precision == FLOAT32:
            return manifest.graphs
        if self.precision not in manifest.precisions:
            known = ", ".join([FLOAT32, *manifest.precisions])
            raise ValueError(
                f"load: precision must be one of the bundle's, {known}; "
                f"received {shown(self.precision)}."
            )
        return manifest.graphs | manifest.precisions[self.precision].graphs

    def session(self, model: str | os.PathLike[str] | bytes) -> onnxruntime.InferenceSession:
        """Return onnxruntime's session of a model, a path or bytes."""
        return onnxruntime.InferenceSession(
            model,
            self.session_options(),
            providers=[
                *(provider if provider[1] else provider[0] for provider in self.providers),
                CPU,
            ],
            disabled_optimizers=() if self.providers else SLOWER_ON_CPU,
        )

    @property
    def writes_in_place(self) -> bool:
        """Whether a graph may write into an array that it reads."""
        return self.in_place and not self.providers and _version() >= WRITES_IN_PLACE_FROM

    def most_padding(self, packing: Any) -> int | None:
        """Return the most tokens of a batch that may be padding, by default what a `Packing` says;
        None for any number."""
        return packing.most_padding

    def external_files(self, model: str | os.PathLike[str]) -> tuple[str, ...]:
        """Return the names of the other files from which a model reads weights."""
        return external_files(model)

    def session_options(self, exact_int8: bool = True) -> onnxruntime.SessionOptions:
        """Return onnxruntime's options.

        Args:
            exact_int8: whether int8 products must be exact; else they are as fast as they can be.
        """
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads or 0
        options.log_severity_level = QUIET
        options.enable_mem_pattern = _version() >= PLANS_MEMORY_FROM
        options.add_session_config_entry("session.intra_op.spin_duration_us", SPIN)
        options.add_session_config_entry("session.force_spinning_stop", "1")
        if exact_int8 and overflows():
            options.add_session_config_entry(EXACT_INT8, "1")
        return options


def _version():
    """Return onnxruntime's version as two numbers."""
    return tuple(map(int, onnxruntime.__version__.split(".")[:2]))


def open_session(folder, manifest, role, runtime, inputs, outputs, optional=frozenset()):
    """Return the session of a graph that takes `inputs` and gives at least `outputs`.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        role: which of its graphs.
        runtime: a `Runtime`.
        inputs, outputs: sets of names.
        optional: names of inputs that it may also take.

    Raises:
        ValueError: if the bundle lacks the precision.
        BundleError: if the graph is missing, can not be opened, or is not what the manifest says.
    """
    graphs = runtime.graphs_of(manifest)
    if role not in graphs:
        raise BundleError(f"no {role} graph is named", where=folder, subject=MANIFEST)
    graph = graphs[role]
    _require_listed_weights(folder, graph, runtime)
    try:
        session = runtime.session(folder / graph.file)
    except Exception as error:  # onnxruntime's exceptions have no common base class
        raise BundleError(
            f"{_ONNXRUNTIME} can not open it: {str(error).splitlines()[0]}",
            where=folder,
            subject=graph.file,
            advice="",
        ) from error
    missing = [name for name, _ in runtime.providers if name not in session.get_providers()]
    if missing:
        raise BundleError(
            f"{_ONNXRUNTIME} has {', '.join(missing)} and can not start it",
            where=folder,
            advice="Are its driver and libraries installed?",
        )
    problems = [
        *_differences("input", graph.inputs, session.get_inputs()),
        *_differences("output", graph.outputs, session.get_outputs()),
    ]
    takes, gives = ({spec.name for spec in specs} for specs in (graph.inputs, graph.outputs))
    problems += [f"it lacks {name}" for name in sorted(inputs - takes | outputs - gives)]
    problems += [
        f"it has an input {name}, which the pipeline does not feed"
        for name in sorted(takes - inputs - optional)
    ]
    if problems:
        raise UnexpectedGraph(
            *problems, where=folder, subject=f"{graph.file} is not the {role} graph expected"
        )
    return _Session(session, role, folder, graph.file, runtime)


def _require_listed_weights(folder, graph, runtime):
    """Raise a BundleError if a graph reads weights from a file that the manifest does not list.

    Listed files are verified by sha256; the content of others is unknown.
    """
    try:
        names = runtime.external_files(folder / graph.file)
    except ValueError as error:
        raise BundleError(f"{graph.file} is no ONNX graph: {error}", where=folder) from error
    except OSError as error:
        reason = f"{graph.file} can not be read: {error.strerror}"
        raise BundleError(reason, where=folder, advice="") from error
    graph_folder = posixpath.dirname(graph.file)
    unlisted = [name for name in names if posixpath.join(graph_folder, name) not in graph.weights]
    if unlisted:
        raise BundleError(
            f"{graph.file} reads weights from {', '.join(map(repr, unlisted))}, which "
            f"{MANIFEST} does not name among its weights",
            where=folder,
        )


class UnexpectedGraph(BundleError):
    """A graph whose inputs or outputs are not those that its pipeline needs."""


class _Session:
    """A session that reports a failed run in one line; `before`, `observe`: see `Runtime`."""

    def __init__(self, session, role, folder, file, runtime):
        self._session, self._role = session, role
        self._before, self._observe = runtime.before, runtime.observe
        self._folder, self._file = folder, file
        self._sizes = {
            output.name: [(axis, n) for axis, n in enumerate(output.shape) if isinstance(n, int)]
            for output in session.get_outputs()
        }
        self._shapes = {}  # name of an output -> its shape in the last run, which was checked

    def __repr__(self):
        places = ", ".join(
            name.removesuffix("ExecutionProvider") for name in self._session.get_providers()
        )
        return f"<session {self._role}: {str(self._folder / self._file)!r}, on {places}>"

    def __getattr__(self, name):
        return getattr(self._session, name)

    def run(self, names, inputs):
        if self._before is not None:
            self._before()
        try:
            outputs = self._session.run(names, inputs)
        except Exception as error:  # onnxruntime's exceptions have no common base class
            raise self._failure(error) from error
        for name, output in zip(names or self._sizes, outputs):
            if self._shapes.get(name) == output.shape:
                continue
            if any(output.shape[axis] != size for axis, size in self._sizes[name]):
                expected = ", ".join(f"{size} on axis {axis}" for axis, size in self._sizes[name])
                raise BundleError(
                    f"it gave {name} of shape {output.shape}, and declares {expected}",
                    where=self._folder,
                    subject=self._file,
                )
            self._shapes[name] = output.shape
        if self._observe is not None:
            self._observe(self._role, inputs, dict(zip(names, outputs)))
        return outputs

    def run_with_iobinding(self, binding, options=None):
        if self._before is not None:
            self._before()
        try:
            self._session.run_with_iobinding(binding, options)
        except Exception as error:
            raise self._failure(error) from error

    def _failure(self, error):
        return BundleError(
            f"{_ONNXRUNTIME} can not run it: {' '.join(str(error).split())}",
            where=self._folder,
            subject=self._file,
            advice=NOT_RUN,
        )


_DTYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
    "tensor(string)": "string",
}


def _with_full_names(providers):
    """Return onnxruntime's names of execution providers with their options, without the CPU."""
    if isinstance(providers, str):
        providers = (providers,)
    if not isinstance(providers, (list, tuple)):
        raise ValueError(
            f"load: providers must be a name, or a list of names; received {shown(providers)}."
        )
    suffix = "ExecutionProvider"
    available = {name.lower(): name for name in onnxruntime.get_available_providers()}
    full_names = {}
    for provider in providers:
        name, options = provider, {}
        if (
            isinstance(provider, (list, tuple))
            and len(provider) == 2
            and isinstance(provider[1], dict)
        ):
            name, options = provider
        full = available.get(f"{str(name).lower().removesuffix(suffix.lower())}{suffix.lower()}")
        if full is None:
            known = ", ".join(name.removesuffix(suffix) for name in available.values())
            raise ValueError(
                f"load: providers must be of this onnxruntime {onnxruntime.__version__}, which has "
                f"{known}; received {shown(provider)}. Other builds of onnxruntime have others."
            )
        if full == CPU and options:
            raise ValueError(f"load: providers: CPU takes no options; received {shown(options)}.")
        full_names.setdefault(full, options)
    return tuple(provider for provider in full_names.items() if provider[0] != CPU)


def _differences(kind, specs, arguments):
    """Yield where the manifest's specs and the graph's arguments disagree."""
    declared = {spec.name: (spec.dtype, spec.shape) for spec in specs}
    actual = {a.name: (_DTYPES.get(a.type, a.type), tuple(a.shape)) for a in arguments}
    for name in sorted(declared.keys() | actual.keys()):
        if name not in actual:
            yield f"{kind} {name} is in the manifest only"
        elif name not in declared:
            yield f"{kind} {name} is in the graph only"
        elif not _agree(declared[name], actual[name]):
            yield f"{kind} {name} is {_describe(*actual[name])}, not {_describe(*declared[name])}"


def _agree(declared, actual):
    (dtype, shape), (actual_dtype, actual_shape) = declared, actual
    sizes = [
        (a, b) for a, b in zip(shape, actual_shape) if isinstance(a, int) and isinstance(b, int)
    ]
    return (
        dtype == actual_dtype and len(shape) == len(actual_shape) and all(a == b for a, b in sizes)
    )


def _describe(dtype, shape):
    return f"{dtype} ({', '.join(map(str, shape))})"
