"""The inputs and outputs of a bundle as named columns, a value for each row.

Names, types and shapes are the same as in the signatures on strings of its SavedModel
(`saved_model_text/1`), so that clients of both protocols on tensors work unchanged:

    pipeline    inputs                  outputs
    Translate   text                    text, score
    Generate    text                    text, score
    Classify    text; text, pair        scores, label; of a regression score
    Tag         text                    tags, scores, starts, ends, of each word
    Answer      question, context       answer, start, end, score
    Choose      text, choices           choice, index, scores
    Embed       text                    embedding
    FillMask    text                    text, tokens, scores
    Forecast    series, known           values, quantiles

Bundles that were exported with --n-best or --sampling have these signatures too:

    n_best      text                                        texts, scores
    sample      text, temperature, top_k, top_p, seed       text, score

Models of frames take `frames` in place of `text`. Rows that are shorter than others are padded with
"", 0 or -1. What reads strings gives `error` too, the reason of a row that is refused and has no
values, "" for the others; and takes "truncate" in place of "serving_default", "truncate_pair" in
place of "pair", and so on, to cut long texts. Rows of a table are no columns: the server's own API
takes these.

Unlike the SavedModel's, tags belong to words, the score of a span is its probability, and
"sample", of `Generate` alone, draws by other random numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..checks import shown
from ..pipelines.arrays import FRAMES
from ..pipelines.generate import Generate
from ..pipelines.pipeline import Pipeline
from .http_refusal import HttpRefusal, as_http

STRING, FLOAT, INTEGER, LONG = "string", "float32", "int32", "int64"
NOTHING = {STRING: "", FLOAT: 0.0, INTEGER: -1}  # behind the values of a row, and in a refused one
DEFAULT, PAIR, TRUNCATE = "serving_default", "pair", "truncate"
N_BEST, SAMPLE = "n_best", "sample"
ON_STRINGS = "saved_model_text/1"  # the manifest's name of the SavedModel on strings
NUMBERS = {FRAMES: FRAMES, "series": "window", "known": "known"}  # name -> the graph's name


@dataclass(frozen=True)
class Column:
    """A named tensor.

    Attributes:
        name, dtype: "string", "float32", "int32" or "int64".
        shape: shape of a row; -1 for an open axis.
        read: of outputs: takes an answer, returns the row's value.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] = ()
    read: Callable[[Any], Any] = lambda answer: answer


ERROR = Column("error", STRING)
DRAWN = (  # how a row is sampled
    Column("temperature", FLOAT),
    Column("top_k", INTEGER),
    Column("top_p", FLOAT),
    Column("seed", LONG),
)


@dataclass(frozen=True)
class Signature:
    """The columns that a bundle takes and gives.

    Attributes:
        inputs, outputs: the columns.
        options: options of the pipeline.
        room: the tokens that follow a prompt that is cut; None: prompts are not cut. Only prompts
            that are refused are cut, since others leave more room.
    """

    inputs: tuple[Column, ...]
    outputs: tuple[Column, ...]
    options: dict[str, Any] = field(default_factory=dict)
    room: int | None = None

    def options_of_rows(self, columns: dict[str, np.ndarray]) -> list[dict[str, Any]] | None:
        """Return the options of each row, beside the options of all rows; None without any.

        Args:
            columns: see `values`, which checks them.
        """
        if DRAWN[0] not in self.inputs:
            return None
        return [
            {
                "sample": True,
                "temperature": temperature,
                "top_k": top_k or None,
                "top_p": top_p,
                "seed": seed % 2**64,
            }
            for temperature, top_k, top_p, seed in zip(
                *(columns[column.name].tolist() for column in DRAWN)
            )
        ]

    def values(self, columns: dict[str, np.ndarray]) -> list:
        """Return the pipeline's inputs.

        Args:
            columns: name -> (B, ...) array, of objects for strings.

        Raises:
            HttpRefusal: if a column has another rank, or another number of rows.
        """
        rows = {name: len(array) if array.ndim else 0 for name, array in columns.items()}
        for column in self.inputs:
            array = columns[column.name]
            if array.ndim == 2 and not column.shape and array.shape[1] == 1:
                columns[column.name] = array[:, 0]  # as models of Triton with batches take it
            elif array.ndim != 1 + len(column.shape):
                expected = ", ".join(map(str, (-1, *column.shape)))
                received = ", ".join(map(str, array.shape))
                raise HttpRefusal(
                    400, f"{column.name} must have shape ({expected}); received ({received})"
                )
        if len(set(rows.values())) > 1:
            counts = ", ".join(f"{name} {count}" for name, count in rows.items())
            raise HttpRefusal(400, f"all inputs must have as many rows; received {counts}")
        inputs = [
            columns[column.name].tolist() if column.dtype == STRING else list(columns[column.name])
            for column in self.inputs
            if column not in DRAWN
        ]
        return [row[0] if len(row) == 1 else row for row in zip(*inputs)]

    def columns(self, answers: Sequence) -> dict[str, np.ndarray]:
        """Return name -> (B, ...) array of the answers.

        Args:
            answers: answers of all rows; an exception for one that was refused.

        Raises:
            Exception: the first one among the answers that is no refusal, or that the signature
                has no column for.
        """
        for answer in answers:
            is_refused = isinstance(answer, Exception)
            if is_refused and (ERROR not in self.outputs or as_http(answer).status >= 500):
                raise answer
        return {column.name: _stacked(column, answers) for column in self.outputs}


def signatures_of(pipeline: Pipeline) -> dict[str, Signature]:
    """Return name -> `Signature` of a pipeline; empty if it reads rows of a table."""
    if getattr(pipeline, "rows", None) is not None:
        return {}
    plain = (FRAMES,) if getattr(pipeline, "reads_json", False) else ("text",)
    fields = tuple(getattr(pipeline, "fields", plain))
    outputs = OUTPUTS[type(pipeline).__name__](pipeline.manifest)
    if fields == ("text", PAIR) and not pipeline.manifest.settings.get("pairs"):
        alone = _by_fields(pipeline, fields[:1], outputs)
        return alone | _by_fields(pipeline, fields, outputs, PAIR)
    signatures = _by_fields(pipeline, fields, outputs)
    exported = pipeline.manifest.saved_models.get(ON_STRINGS, {})
    if N_BEST in exported:
        count = exported[N_BEST].outputs[0].shape[-1]
        beams = max(count, pipeline.manifest.decoding.num_beams)
        options = {"n_best": count, "num_beams": beams}
        signatures |= _by_fields(pipeline, fields, _several(count), N_BEST, options)
    if SAMPLE in exported and isinstance(pipeline, Generate):
        signatures |= _by_fields(pipeline, fields, outputs, SAMPLE, drawn=DRAWN)
    return signatures


def _by_fields(pipeline, fields, outputs, name=DEFAULT, options=None, drawn=()):
    """Return the signature of that name, and for strings the one that cuts long texts."""
    inputs, options = _inputs(pipeline, fields), options or {}
    if any(column.dtype != STRING for column in inputs):
        return {name: Signature(inputs, outputs)}
    inputs, outputs = (*inputs, *drawn), (*outputs, ERROR)
    plain = Signature(inputs, outputs, options)
    if isinstance(pipeline, Generate):
        limits = pipeline.manifest.limits
        room = max(limits.target_length - limits.source_length, 1)
        cutting = Signature(inputs, outputs, options, room)
    else:
        cutting = Signature(inputs, outputs, options | {"truncate": True})
    cuts = TRUNCATE if name == DEFAULT else f"{TRUNCATE}_{name}"
    return {name: plain, cuts: cutting}


def _inputs(pipeline, fields):
    graphs = pipeline.manifest.graphs.values()
    shapes = {spec.name: spec.shape for graph in graphs for spec in graph.inputs}
    return tuple(_input(name, shapes.get(NUMBERS.get(name), ())) for name in fields)


def _input(name, shape):
    if name in NUMBERS:
        return Column(
            name, FLOAT, tuple(size if isinstance(size, int) else -1 for size in shape[1:])
        )
    return Column(name, STRING, (-1,) if name == "choices" else ())


def _stacked(column, answers):
    """Return the values of all rows, padded to one shape; a refused row has padding only."""
    dtype = object if column.dtype == STRING else column.dtype
    if column is ERROR:
        return np.array([_reason(answer) for answer in answers], dtype)
    values = [
        (row, column.read(answer))
        for row, answer in enumerate(answers)
        if not isinstance(answer, Exception)
    ]
    arrays = [
        np.array(value, dtype).reshape(_shape(value, len(column.shape))) for _, value in values
    ]
    sizes = [tuple(max(size, 0) for size in column.shape), *(array.shape for array in arrays)]
    shape = np.max(sizes, axis=0).astype(int)
    stacked = np.full((len(answers), *shape), NOTHING[column.dtype], dtype)
    for (row, _), array in zip(values, arrays):
        stacked[(row, *map(slice, array.shape))] = array[()]
    return stacked


def _reason(answer):
    return as_http(answer).message if isinstance(answer, Exception) else ""


def _shape(row, rank):
    """Return the shape of nested lists, whose inner ones have one size; of none, zeros."""
    shape = []
    while len(shape) < rank:
        shape.append(len(row))
        row = row[0] if len(row) else ()
    return shape


def _text_and_score(manifest):
    return (
        Column("text", STRING, read=lambda answer: answer.text),
        Column("score", FLOAT, read=lambda answer: answer.score),
    )


def _several(count):
    """Return the columns of an answer and its alternatives; a score of -inf where there is none."""

    def of_all(field, nothing):
        def read(answer):
            values = [getattr(result, field) for result in (answer, *answer.alternatives)]
            return values + [nothing] * (count - len(values))

        return read

    return (
        Column("texts", STRING, (count,), of_all("text", "")),
        Column("scores", FLOAT, (count,), of_all("score", -np.inf)),
    )


def _classes(manifest):
    labels = manifest.settings.get("labels") or ()
    if not labels:
        return (Column("score", FLOAT, read=lambda answer: answer.score),)
    return (
        Column(
            "scores",
            FLOAT,
            (len(labels),),
            lambda answer: [answer.scores[label] for label in labels],
        ),
        Column("label", STRING, read=_label),
    )


def _label(answer):
    """Return the most probable label; "" where none of the labels fits."""
    return "" if answer.labels == (None,) else next(iter(answer.scores))


def _tags(manifest):
    def of_words(field):
        return lambda answer: [getattr(word, field) for word in answer.words]

    return (
        Column("tags", STRING, (-1,), of_words("tag")),
        Column("scores", FLOAT, (-1,), of_words("score")),
        Column("starts", INTEGER, (-1,), of_words("start")),
        Column("ends", INTEGER, (-1,), of_words("end")),
    )


def _span(manifest):
    def offset(field):
        return lambda answer: -1 if getattr(answer, field) is None else getattr(answer, field)

    return (
        Column("answer", STRING, read=lambda answer: answer.text),
        Column("start", INTEGER, read=offset("start")),
        Column("end", INTEGER, read=offset("end")),
        Column("score", FLOAT, read=lambda answer: answer.score),
    )


def _choice(manifest):
    return (
        Column("choice", STRING, read=lambda answer: answer.text),
        Column("index", INTEGER, read=lambda answer: answer.index),
        Column("scores", FLOAT, (-1,), lambda answer: answer.scores),
    )


def _vector(manifest):
    return (Column("embedding", FLOAT, (-1,), lambda answer: answer.vector),)


def _fillers(manifest):
    def of_fillers(field):
        return lambda answer: [[getattr(filler, field) for filler in mask] for mask in answer.masks]

    return (
        Column("text", STRING, read=lambda answer: answer.text),
        Column("tokens", STRING, (-1, -1), of_fillers("token")),
        Column("scores", FLOAT, (-1, -1), of_fillers("score")),
    )


def _forecast(manifest):
    values = Column("values", FLOAT, (-1, -1), lambda answer: answer.values)
    if not manifest.settings.get("quantiles"):
        return (values,)
    read = lambda answer: list(answer.quantiles.values())  # noqa: E731 (a column's reader)
    return (values, Column("quantiles", FLOAT, (-1, -1, -1), read))


OUTPUTS = {
    "Translate": _text_and_score,
    "Generate": _text_and_score,
    "Classify": _classes,
    "Tag": _tags,
    "Answer": _span,
    "Choose": _choice,
    "Embed": _vector,
    "FillMask": _fillers,
    "Forecast": _forecast,
}


def require_signature(signatures: dict[str, Signature], name: str, bundle: str) -> Signature:
    """Return a signature.

    Raises:
        HttpRefusal: if there is none of that name, or none at all.
    """
    if not signatures:
        raise HttpRefusal(400, f"{bundle} reads rows of a table: ask POST /v1/bundles/{bundle}")
    if not isinstance(name, str) or name not in signatures:
        raise HttpRefusal(400, f"there is no signature {shown(name)}")
    return signatures[name]


def floats(array: np.ndarray) -> list:
    """Return float32 as nested lists of numbers with as many digits as tell them apart; null for
    the score of -inf of an answer that there is not."""
    if array.ndim > 1:
        return [floats(row) for row in array]
    return [float(f"{number:.9g}") if np.isfinite(number) else None for number in array]
