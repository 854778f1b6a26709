"""manifest.json: the one description of what is in a bundle.

The dataclasses below are the format: reading checks JSON against their fields and their types, and
every reason to refuse a manifest comes in one error. Export writes manifests, serving reads them.
The files themselves are held against the manifest by size and sha256.
"""

import dataclasses
import hashlib
import json
import math
import os
import time
import types
from dataclasses import dataclass, field
from pathlib import Path

SCHEMA_VERSION = 2
MANIFEST = "manifest.json"
STATE_IS_PER = ("beam", "source")
PAUSES = 20 * (0.05,)  # seconds between the attempts to read a bundle that is being replaced


class BundleError(ValueError):
    """A bundle that can not be used as it is; the message is one line and names a way out."""


@dataclass(frozen=True)
class TensorSpec:
    """One tensor; an axis of `shape` is a size or a symbolic name."""

    name: str
    dtype: str
    shape: tuple[int | str, ...]


@dataclass(frozen=True)
class Signature:
    """What a SavedModel's signature takes and gives."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]


@dataclass(frozen=True)
class Graph:
    """An ONNX file, with what it takes and gives, and the files of weights that it reads."""

    file: str
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    weights: tuple[str, ...] = ()

    @property
    def files(self):
        """All that must be there to open it."""
        return (self.file, *self.weights)


@dataclass(frozen=True)
class StateEntry:
    """A tensor passed from step to step: one per "beam", or one per "source" for all its beams."""

    name: str
    per: str


@dataclass(frozen=True)
class TextPrefix:
    """Texts must begin with one of `values` and the separator; `name` says what the values are."""

    name: str
    separator: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class Limits:
    """The longest source and target, in tokens: <eos> counts in the target.

    What answers in one go has no target; a language model's holds its prompt too.
    """

    source_length: int
    target_length: int = 1


@dataclass(frozen=True)
class DecodingDefaults:
    """What a pipeline does unless told otherwise, and the ids that begin and end a text."""

    beam_size: int = 1
    length_penalty: float = 0.0
    start_id: int = 2
    end_id: int = 3


@dataclass(frozen=True)
class Precision:
    """The graphs in another precision than float32, and what was measured of them.

    Attributes:
        graphs: role -> `Graph`.
        figures: size, speed and score beside float32's.
    """

    graphs: dict[str, Graph]
    figures: dict


@dataclass(frozen=True)
class FileEntry:
    """What a file must be to be the one that was exported."""

    bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """A bundle's content. Paths are relative to its folder and written with "/".

    Attributes:
        pipeline: the class of `serving.pipelines` that runs this bundle.
        created: ISO 8601 time of the export.
        versions: library -> version that exported it.
        tokenizers, graphs: role -> file of a tokenizer, role -> `Graph`.
        state: what the decoder passes from step to step.
        saved_models: folder -> signature name -> `Signature`.
        settings: what the pipeline asks beside the rest, such as labels, in its own words.
        precisions: name -> `Precision`, of those beside float32.
        examples: a few inputs, as the pipeline takes them.
        scores, parity: what training and export measured, in their own words.
        files: path -> `FileEntry`, of every file but the manifest.

    Raises:
        BundleError: with every reason, if the fields contradict each other or the format.
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
    graphs: dict[str, Graph]
    state: tuple[StateEntry, ...]
    saved_models: dict[str, dict[str, Signature]]
    examples: tuple
    scores: dict
    parity: dict
    files: dict[str, FileEntry]
    settings: dict = field(default_factory=dict)
    precisions: dict[str, Precision] = field(default_factory=dict)

    def __post_init__(self):
        _refuse([*self._wrong_values(), *self._wrong_paths()])

    @property
    def graph_files(self):
        """The files of all graphs, in every precision, each once."""
        graphs = [*self.graphs.values()]
        for precision in self.precisions.values():
            graphs += precision.graphs.values()
        return tuple(dict.fromkeys(file for each in graphs for file in each.files))

    @property
    def beam_state(self):
        """Names of the state entries that follow the beams."""
        return tuple(entry.name for entry in self.state if entry.per == "beam")

    @property
    def source_state(self):
        """Names of the state entries that stay with their source."""
        return tuple(entry.name for entry in self.state if entry.per == "source")

    def parse_settings(self, kind):
        """Return the settings as a `kind`, a dataclass, and every reason why they are none."""
        problems = []
        arguments = _parse_fields(kind, self.settings, "settings", problems)
        return None if problems else kind(**arguments), problems

    def to_json(self):
        """Return the manifest as JSON text that `from_json` reads back."""
        text = json.dumps(dataclasses.asdict(self), indent=2, ensure_ascii=False, allow_nan=False)
        return text + "\n"

    @classmethod
    def from_json(cls, text):
        """Read a manifest from JSON, as text or UTF-8 bytes.

        Raises:
            BundleError: if it is not JSON, has a newer schema, or, with every reason, if fields
                are missing, unknown or wrong.
        """
        try:
            content = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise BundleError(
                f"{MANIFEST} is not valid JSON ({error}): it is truncated or altered. "
                "Copy or export the bundle again."
            ) from error
        version = content.get("schema_version") if isinstance(content, dict) else None
        if type(version) is int and version > SCHEMA_VERSION:
            raise BundleError(
                f"{MANIFEST} has schema {version}; this seqkeras-serving reads up to "
                f"{SCHEMA_VERSION}: upgrade seqkeras-serving."
            )
        problems = []
        arguments = _parse_fields(cls, content, "", problems)
        _refuse(problems)
        return cls(**arguments)

    def _wrong_values(self):
        if not 1 <= self.schema_version <= SCHEMA_VERSION:
            known = f"from 1 to {SCHEMA_VERSION}"
            yield f"schema_version must be {known}; received {self.schema_version}"
        for name, value in (
            ("limits.source_length", self.limits.source_length),
            ("limits.target_length", self.limits.target_length),
            ("decoding.beam_size", self.decoding.beam_size),
        ):
            if value < 1:
                yield f"{name} must be at least 1; received {value}"
        if not math.isfinite(self.decoding.length_penalty):
            yield f"decoding.length_penalty must be finite; received {self.decoding.length_penalty}"
        for entry in self.state:
            if entry.per not in STATE_IS_PER:
                expected = " or ".join(repr(per) for per in STATE_IS_PER)
                yield f"state {entry.name!r} must be per {expected}; received {entry.per!r}"
        names = [entry.name for entry in self.state]
        if len(set(names)) < len(names):
            yield f"state names must be distinct; received {', '.join(names)}"
        prefix = self.text_prefix
        if prefix and not (prefix.separator and prefix.values):
            yield "text_prefix must have a separator and values"
        for path, entry in self.files.items():
            if entry.bytes < 0 or len(entry.sha256) != 64 or set(entry.sha256) - set(_HEX_DIGITS):
                yield f"files {path!r} must have its size and 64 hexadecimal digits of sha256"

    def _wrong_paths(self):
        used = [*self.tokenizers.values(), *self.graph_files]
        for path in used:
            if path not in self.files:
                yield f"files must list {path!r}, which is used"
        for path in {**dict.fromkeys(used), **self.files, **self.saved_models}:
            if not _is_inside(path):
                yield f"path {path!r} must lie inside the bundle"


def read_manifest(folder):
    """Return the manifest of the bundle in `folder`.

    Raises:
        BundleError: if there is none, or it can not be read.
    """
    folder = Path(folder)
    try:
        text = (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise BundleError(_missing(folder, error)) from error
    try:
        return Manifest.from_json(text)
    except BundleError as error:
        raise BundleError(f"{folder}: {error}") from error


def write_manifest(folder, manifest):
    """Write `manifest` into `folder`, after reading it back as serving will.

    Raises:
        BundleError: if it would not be read.
    """
    text = manifest.to_json()
    Manifest.from_json(text)
    (Path(folder) / MANIFEST).write_text(text, encoding="utf-8")


def describe_files(folder):
    """Return path -> `FileEntry` of every file in `folder` but its manifest, sorted by path."""
    folder = Path(folder)
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*")}
    return {
        path: FileEntry(bytes=file.stat().st_size, sha256=_sha256(file))
        for path, file in sorted(files.items())
        if file.is_file() and path != MANIFEST
    }


def verify_files(folder, manifest, names=None):
    """Hold files against the manifest by size and sha256.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        names: which of `manifest.files`; None: all.

    Raises:
        BundleError: naming every file that is missing, truncated or altered.
    """
    names = manifest.files if names is None else names
    problems = [_file_problem(Path(folder) / name, name, manifest.files[name]) for name in names]
    problems = [problem for problem in problems if problem]
    if problems:
        raise BundleError(f"{folder}: {'; '.join(problems)}. Copy or export the bundle again.")


def read_bundle(folder, read):
    """Return `read(manifest)` of a bundle that did not change meanwhile.

    An exporter that replaces a bundle renames the old folder aside, as its sibling
    `.NAME.replaced-…`, then the new one in. A reader that meets the gap between the two, or files
    of both, tries again, for up to a second. A bundle that is plainly missing or damaged is
    refused at once.

    Raises:
        BundleError: if the bundle can not be read, or still changes after a second.
    """
    folder = Path(folder)
    for pause in (*PAUSES, None):
        before = _manifest_bytes(folder)
        try:
            result = read(read_manifest(folder))
            if _manifest_bytes(folder) == before:
                return result
            failure = BundleError(f"{folder}: it was replaced while it was read. Try again.")
        except (OSError, ValueError) as error:
            if pause is None or not _is_being_replaced(folder, before):
                raise
            failure = error
        if pause is not None:
            time.sleep(pause)
    raise failure


def _is_being_replaced(folder, before):
    # Old folders first, manifest second: a replacement that ends in between still shows.
    folder_itself = folder.resolve()
    try:
        siblings = os.listdir(folder_itself.parent)
    except OSError:
        siblings = []
    aside = any(name.startswith(f".{folder_itself.name}.replaced-") for name in siblings)
    return aside or _manifest_bytes(folder) != before


def _manifest_bytes(folder):
    try:
        return (folder / MANIFEST).read_bytes()
    except OSError:
        return None


def _missing(folder, error):
    if not folder.exists():
        return (
            f"{folder}: there is no such folder; expected a bundle, as python -m export makes it."
        )
    if not folder.is_dir():
        return f"{folder} is a file; expected a bundle's folder, as python -m export makes it."
    if isinstance(error, FileNotFoundError):
        return f"{folder} has no {MANIFEST}; expected a bundle, as python -m export makes it."
    return f"{folder / MANIFEST} can not be read: {error.strerror}."


def _file_problem(file, name, expected):
    try:
        size = file.stat().st_size
        if size != expected.bytes:
            return f"{name} has {size} bytes, expected {expected.bytes}: truncated or altered"
        if _sha256(file) != expected.sha256:
            return f"{name} does not have the manifest's sha256: altered"
    except FileNotFoundError:
        return f"{name} is missing"
    except OSError as error:
        return f"{name} can not be read: {error.strerror}"
    return None


def _sha256(file):
    with open(file, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


_HEX_DIGITS = "0123456789abcdef"


def _is_inside(path):
    parts = path.split("/")
    return not set(parts) & {"", ".", ".."} and not set(path) & set("\\:\0")


def _refuse(problems):
    if problems:
        raise BundleError(f"{MANIFEST}: {'; '.join(problems)}.")


def _refuse_constant(name):
    raise ValueError(f"{name} is not JSON")


def _parse_fields(kind, value, where, problems):
    """Return the fields of dataclass `kind` found in the JSON object `value`."""
    if not isinstance(value, dict):
        problems.append(f"{where or 'it'} must be an object; received {_short(value)}")
        return {}
    inside = f"{where}." if where else ""
    declared = {each.name: each for each in dataclasses.fields(kind)}
    for name, each in declared.items():
        if name not in value and _is_required(each):
            problems.append(f"{inside}{name} is missing")
    problems.extend(f"{inside}{name} is unknown" for name in value if name not in declared)
    return {
        name: _parse(each.type, value[name], f"{inside}{name}", problems)
        for name, each in declared.items()
        if name in value
    }


def _is_required(each):
    return each.default is each.default_factory is dataclasses.MISSING


def _parse(kind, value, where, problems):
    """Return the JSON `value` as a `kind`; append to `problems` where it is none."""
    kinds = kind.__args__ if isinstance(kind, types.UnionType) else (kind,)
    if value is None and types.NoneType in kinds:
        return None
    kind, *others = (k for k in kinds if k is not types.NoneType)
    if dataclasses.is_dataclass(kind):
        arguments = _parse_fields(kind, value, where, found := [])
        problems.extend(found)
        return None if found else kind(**arguments)
    container, inner = getattr(kind, "__origin__", kind), getattr(kind, "__args__", ())
    if container is tuple and isinstance(value, list):
        if not inner:
            return tuple(value)
        return tuple(_parse(inner[0], v, f"{where}[{i}]", problems) for i, v in enumerate(value))
    if container is dict and isinstance(value, dict):
        if not inner:
            return value
        return {k: _parse(inner[1], v, f"{where}.{k}", problems) for k, v in value.items()}
    if kind is float and type(value) is int:
        return float(value)
    if type(value) not in (kind, *others):
        expected = " or ".join(_JSON_NAMES[k] for k in (container, *others))
        problems.append(f"{where} must be {expected}; received {_short(value)}")
    return value


_JSON_NAMES = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    dict: "an object",
    tuple: "a list",
}


def _short(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:39]}…"
