"""The fields of a manifest, as dataclasses that refuse contradictions."""

import dataclasses
import functools
import os
import re
from dataclasses import dataclass, field
from typing import Self, TypeVar

from ..parsing import as_json, parse_json
from .fields import parse_fields
from .refusal import Refusal

SCHEMA_VERSION = 3
"""The version of the format that is written; a manifest of a newer one is refused."""
MANIFEST = "manifest.json"
"""The name of the file."""
STATE_IS_PER = ("beam", "source", "stream")
MOST_BYTES = 2**24  # of a manifest
LARGEST_ID = 2**31 - 1  # fits every index of onnxruntime and NumPy
LONGEST = 2**24  # tokens; the memory of a target is allocated at once
EXPORT_AGAIN = "Export the bundle again."
UPGRADE = "Upgrade seqkeras-serving."
"""The way out that errors name where a bundle is newer than what reads it."""
COPY_AGAIN = "Copy or export the bundle again."
"""The way out that errors name where a file is damaged."""
HEX_DIGITS = "0123456789abcdef"
MOST_PENALTY = 10  # of GNMT's length penalty, positive or negative


Settings = TypeVar("Settings")


class BundleError(Refusal):
    """A bundle that can not be used; the message is one line and names a way out.

    Args:
        reasons, where, subject: see `Refusal`.
        advice: a sentence that names a way out; default: "Export the bundle again."

    Example:
        >>> from seqkeras.serving import load
        >>> load("no/such/bundle")
        Traceback (most recent call last):
            ...
        seqkeras.serving.manifest.format.BundleError: no/such/bundle: there is no such folder...
    """

    def __init__(
        self,
        *reasons: str,
        where: str | os.PathLike[str] | None = None,
        subject: str | None = None,
        advice: str = EXPORT_AGAIN,
    ):
        super().__init__(*reasons, where=where, subject=subject, advice=advice)


class NoFiniteNumber(BundleError):
    """An input for which a model gives NaN or infinity.

    Args:
        name: name of the input.

    Example:
        >>> from seqkeras.serving.manifest import NoFiniteNumber
        >>> print(NoFiniteNumber("Classify: text 3"))
        Classify: text 3: the model gives no finite number for it.
    """

    def __init__(self, name: str):
        super().__init__("the model gives no finite number for it", where=name, advice="")


@dataclass(frozen=True)
class TensorSpec:
    """A tensor that a graph reads or returns.

    Attributes:
        name: name of the tensor.
        dtype: "float32", "int64" or another.
        shape: tuple of axes; an axis is a size, or a symbolic name such as "batch".

    Example:
        >>> from seqkeras.serving.manifest import read_manifest
        >>> read_manifest("bundles/reviews").graphs["model"].inputs[0]
        TensorSpec(name='token_ids', dtype='int64', shape=('batch', 'length'))
    """

    name: str
    dtype: str
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class SignatureSpec:
    """The inputs and outputs of a SavedModel's signature.

    Attributes:
        inputs, outputs: tuples of `TensorSpec`.

    Example:
        >>> from seqkeras.serving.manifest import read_manifest
        >>> signatures = read_manifest("bundles/reviews").saved_models["saved_model/1"]
        >>> [spec.name for spec in signatures["serving_default"].inputs]
        ['token_ids', 'lengths', 'segment_ids']
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


@dataclass(frozen=True)
class GraphFile:
    """An ONNX file.

    Attributes:
        file: path of the file.
        inputs, outputs: tuples of `TensorSpec`.
        weights: paths of the files of weights that the graph reads.
        delay: number of frames by which the answers of a stream come late.
        warm_up: number of frames at the start of a stream that have no answer.

    Example:
        >>> from seqkeras.serving.manifest import read_manifest
        >>> graph = read_manifest("bundles/reviews").graphs["model"]
        >>> graph.files, [spec.shape for spec in graph.outputs]
        (('onnx/model.onnx',), [('batch', 3)])
    """

    file: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    weights: tuple[str, ...] = ()
    delay: int = 0
    warm_up: int = 0

    @property
    def files(self) -> tuple[str, ...]:
        """All files that are needed to open the graph."""
        return (self.file, *self.weights)


@dataclass(frozen=True)
class StateEntry:
    """A tensor that is passed from step to step.

    Attributes:
        name: name of the tensor.
        per: what has a tensor of its own: "beam", "source" or "stream".

    Example:
        >>> from seqkeras.serving.manifest import read_manifest
        >>> manifest = read_manifest("bundles/dates")
        >>> sorted({entry.per for entry in manifest.state})  # what follows beams, what stays
        ['beam', 'source']
    """

    name: str
    per: str


@dataclass(frozen=True)
class TextPrefix:
    """What texts must begin with: one of some values, and a separator.

    Attributes:
        name: what the values are, such as "locale".
        separator: the string between value and text.
        values: the values.

    Example:
        >>> from seqkeras.serving.manifest import TextPrefix
        >>> prefix = TextPrefix("locale", "|", ("de", "fr"))  # a text begins with "de|" or "fr|"
        >>> [value + prefix.separator for value in prefix.values]
        ['de|', 'fr|']
    """

    name: str
    separator: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Limits:
    """The longest source and target, in tokens: <eos> counts in the target.

    Models that answer in a single pass have no target; a language model's target includes its
    prompt.

    Attributes:
        source_length: the most tokens of a source.
        target_length: the most tokens of a target.

    Example:
        >>> from seqkeras.serving.manifest import Limits, read_manifest
        >>> Limits(source_length=128)
        Limits(source_length=128, target_length=1)
        >>> read_manifest("bundles/dates").limits.target_length
        11
    """

    source_length: int
    target_length: int = 1


@dataclass(frozen=True)
class DecodingDefaults:
    """The default options of a pipeline, and the ids that begin and end a text.

    Attributes:
        num_beams: number of beams.
        length_penalty: alpha of `seqkeras.decoding.beam`.
        start_id, end_id: ids of the tokens that begin and end a text.
        regex: regular expression that the whole of a generated text matches; None: any text.

    Example:
        >>> from seqkeras.serving.manifest import read_manifest
        >>> read_manifest("bundles/dates").decoding
        DecodingDefaults(num_beams=2, length_penalty=0.0, start_id=2, end_id=3, regex=None)
    """

    num_beams: int = 1
    length_penalty: float = 0.0
    start_id: int = 2
    end_id: int = 3
    regex: str | None = None


@dataclass(frozen=True)
class Precision:
    """The graphs in a precision other than float32, and their measurements.

    Attributes:
        graphs: role -> `GraphFile`.
        figures: size, speed and score compared with float32's.

    Example:
        >>> from seqkeras.serving.manifest import GraphFile, Precision
        >>> graph = GraphFile("onnx/model.int8.onnx", inputs=(), outputs=())
        >>> Precision({"model": graph}, figures={}).graphs["model"].files
        ('onnx/model.int8.onnx',)
    """

    graphs: dict[str, GraphFile]
    figures: dict


@dataclass(frozen=True)
class FileEntry:
    """The size and the digest of an exported file.

    Attributes:
        bytes: size of the file.
        sha256: 64 hexadecimal digits.

    Example:
        >>> import hashlib, pathlib
        >>> from seqkeras.serving.manifest import read_manifest
        >>> entry = read_manifest("bundles/reviews").files["tokenizer/text.json"]
        >>> content = pathlib.Path("bundles/reviews/tokenizer/text.json").read_bytes()
        >>> entry.bytes == len(content), entry.sha256 == hashlib.sha256(content).hexdigest()
        (True, True)
    """

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """A bundle's content. Paths are relative to its folder and written with "/".

    Attributes:
        schema_version: version of the format, `SCHEMA_VERSION`.
        name: name of the bundle.
        task: what the model was trained for.
        pipeline: the class of `serving.pipelines` that runs this bundle.
        created: ISO 8601 time of the export.
        text_prefix: `TextPrefix` of the texts; None for none.
        limits: `Limits` of lengths.
        decoding: `DecodingDefaults`.
        versions: library -> the version that exported the bundle.
        tokenizers, graphs: role -> file of a tokenizer, role -> `GraphFile`.
        state: the tensors that a decoder, or a stream, passes from step to step.
        saved_models: folder -> signature name -> `SignatureSpec`.
        settings: further settings of the pipeline, such as labels; see `serving.pipelines`.
        precisions: name -> `Precision`, for each precision other than float32.
        examples: a few inputs, in the pipeline's form.
        scores, parity: figures of training and of export.
        files: path -> `FileEntry`, of every file except the manifest.

    Raises:
        BundleError: with every reason, if the fields contradict each other or the format.

    Example:
        >>> from seqkeras.serving.manifest import Manifest, read_manifest
        >>> manifest = read_manifest("bundles/reviews")
        >>> manifest.pipeline, manifest.settings["labels"]
        ('Classify', ['low', 'middle', 'high'])
        >>> Manifest.from_json(manifest.to_json()) == manifest
        True
    """

    schema_version: int
    name: str
    task: str
    pipeline: str
    created: str
    versions: dict[str, str]
    tokenizers: dict[str, str]
    text_prefix: TextPrefix | None
    limits: Limits
    decoding: DecodingDefaults
    graphs: dict[str, GraphFile]
    state: tuple[StateEntry, ...]
    saved_models: dict[str, dict[str, SignatureSpec]]
    examples: tuple
    scores: dict
    parity: dict
    files: dict[str, FileEntry]
    settings: dict = field(default_factory=dict)
    precisions: dict[str, Precision] = field(default_factory=dict)

    def __post_init__(self):
        _refuse([*self._wrong_values(), *self._wrong_paths()])

    def __repr__(self) -> str:
        size = sum(entry.bytes for entry in self.files.values())
        precisions = ", ".join(["float32", *self.precisions])
        return (
            f"<Manifest {self.name!r}: {self.pipeline}, {precisions}, "
            f"{len(self.files)} files of {size:,} bytes, made {self.created}>"
        )

    @property
    def plain_name(self) -> str:
        """The name, valid in addresses and in the settings of TensorFlow Serving."""
        return re.sub("[^A-Za-z0-9._-]+", "_", self.name)

    @property
    def graph_files(self) -> tuple[str, ...]:
        """The files of all graphs, in every precision, each once."""
        graphs = [*self.graphs.values()]
        for precision in self.precisions.values():
            graphs += precision.graphs.values()
        return tuple(dict.fromkeys(file for graph in graphs for file in graph.files))

    @property
    def beam_state(self) -> tuple[str, ...]:
        """Names of the state entries that follow the beams."""
        return tuple(entry.name for entry in self.state if entry.per == "beam")

    @property
    def source_state(self) -> tuple[str, ...]:
        """Names of the state entries that stay with their source."""
        return tuple(entry.name for entry in self.state if entry.per == "source")

    @property
    def stream_state(self) -> tuple[str, ...]:
        """Names of the state entries of a stream."""
        return tuple(entry.name for entry in self.state if entry.per == "stream")

    def parse_settings(self, kind: type[Settings]) -> tuple[Settings | None, list[str]]:
        """Return the settings as a `kind`, a dataclass, and every reason against them."""
        problems = []
        arguments = parse_fields(kind, self.settings, "settings", problems)
        return None if problems else kind(**arguments), problems

    def to_json(self) -> str:
        """Return the manifest as JSON text that `from_json` reads back: each entry has a line."""
        fields = dataclasses.asdict(self).items()
        lines = (f"  {as_json(name)}: {_by_entry(value)}" for name, value in fields)
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a manifest from JSON, as text or UTF-8 bytes.

        Raises:
            BundleError: if it is not JSON, has another schema, or, with every reason, if fields
                are missing, unknown or wrong.
        """
        if len(text) > MOST_BYTES:
            raise BundleError(
                f"must have at most {MOST_BYTES:,} bytes; it has more",
                subject=MANIFEST,
                advice=COPY_AGAIN,
            )
        try:
            content = parse_json(text, parse_constant=_refuse_constant)
        except ValueError as error:
            raise BundleError(
                f"is not valid JSON ({error}): it is truncated or altered",
                subject=MANIFEST,
                advice=COPY_AGAIN,
            ) from error
        version = content.get("schema_version") if isinstance(content, dict) else None
        if type(version) is int and version != SCHEMA_VERSION:
            raise BundleError(
                f"has schema {version}; this seqkeras-serving reads schema {SCHEMA_VERSION}",
                subject=MANIFEST,
                advice=UPGRADE if version > SCHEMA_VERSION else EXPORT_AGAIN,
            )
        problems = []
        arguments = parse_fields(cls, content, "", problems)
        _refuse(problems)
        return cls(**arguments)

    def _wrong_values(self):
        if self.schema_version != SCHEMA_VERSION:
            yield f"schema_version must be {SCHEMA_VERSION}; received {self.schema_version}"
        for name, value, least, most in (
            ("limits.source_length", self.limits.source_length, 1, LONGEST),
            ("limits.target_length", self.limits.target_length, 1, LONGEST),
            ("decoding.num_beams", self.decoding.num_beams, 1, LARGEST_ID),
            ("decoding.start_id", self.decoding.start_id, 0, LARGEST_ID),
            ("decoding.end_id", self.decoding.end_id, 0, LARGEST_ID),
        ):
            if not least <= value <= most:
                bound = f"at least {least}" if value < least else f"at most {most}"
                yield f"{name} must be {bound}; received {value}"
        if not abs(self.decoding.length_penalty) <= MOST_PENALTY:
            yield (
                f"decoding.length_penalty must be from -{MOST_PENALTY} to {MOST_PENALTY}; "
                f"received {self.decoding.length_penalty}"
            )
        for entry in self.state:
            if entry.per not in STATE_IS_PER:
                yield (
                    f"state {entry.name!r} must be per 'beam', 'source' or 'stream'; received "
                    f"{entry.per!r}"
                )
        names = [entry.name for entry in self.state]
        if len(set(names)) < len(names):
            yield f"state names must be distinct; received {', '.join(names)}"
        prefix = self.text_prefix
        if prefix and not (prefix.separator and prefix.values):
            yield "text_prefix must have a separator and values"
        for path, entry in self.files.items():
            if entry.bytes < 0 or len(entry.sha256) != 64 or set(entry.sha256) - set(HEX_DIGITS):
                yield f"files {path!r} must have its size and 64 hexadecimal digits of sha256"

    def _wrong_paths(self):
        used = [*self.tokenizers.values(), *self.graph_files]
        for path in used:
            if path not in self.files:
                yield f"files must list {path!r}, which is used"
        for path in {**dict.fromkeys(used), **self.files, **self.saved_models}:
            if not _is_inside(path):
                yield f"path {path!r} must lie inside the bundle"


def _by_entry(value):
    """Return a field as JSON text, in which each entry of a list or a dictionary has a line."""
    as_text = functools.partial(as_json, allow_nan=False)
    if not value or not isinstance(value, (dict, list, tuple)):
        return as_text(value)
    if isinstance(value, dict):
        (begin, end), entries = "{}", [f"{as_text(k)}: {as_text(v)}" for k, v in value.items()]
    else:
        (begin, end), entries = "[]", map(as_text, value)
    return f"{begin}\n    " + ",\n    ".join(entries) + f"\n  {end}"


def _is_inside(path):
    # onnxruntime 1.17 takes weights in "*/_ORT_MEM_ADDR_/*" for an address of the process's memory.
    parts = path.split("/")
    return not set(parts) & {"", ".", ".."} and not set(path) & set("\\:*\0")


def _refuse(problems):
    if problems:
        raise BundleError(*problems, subject=MANIFEST, advice="")


def _refuse_constant(name):
    raise ValueError(f"{name} is not JSON")
