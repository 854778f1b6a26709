"""All that export knows about a pipeline: one record, which the stages of export read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from seqkeras.export.feeds import FRAMES, SINGLE_PASS
from seqkeras.serving.manifest import DecodingDefaults, Limits, Manifest, TextPrefix

if TYPE_CHECKING:
    from seqkeras.export.signatures import Signature
    from seqkeras.serving.text import Tokenizer

MARGIN = 1e-4  # answers may differ if the scores of the best two differ by less


def _none(*_):
    return ()


def text_of_tokens(manifest: Manifest, unit: str) -> str:
    """Return a sentence on a text, and how long it may be."""
    if manifest.settings.get("stride"):
        length = manifest.limits.source_length
        return f"Text of any length: it is read in windows of {length} tokens."
    return f"Text of at most {manifest.limits.source_length} {unit}."


def without_windows(manifest: Manifest) -> Iterator[str]:
    """Yield a sentence on long texts, where the pipeline reads these in windows."""
    if manifest.settings.get("stride"):
        yield (
            f"A text of more than {manifest.limits.source_length} tokens is refused, or cut by "
            "`truncate`: no windows are read."
        )


@dataclasses.dataclass(frozen=True)
class PipelineRecord:
    """The knowledge of export about a pipeline of `serving`.

    Attributes:
        model_kind: kind of the models that the pipeline serves, see `ExportPlan`.
        feeds: the inputs that the pipeline can feed: name -> (dtype, symbolic shape); a model takes
            a subset.
        feeds_frames: whether it feeds frames instead, where there is no tokenizer.
        needs_targets: whether each example on which models are compared needs a target.
        row_length: (limits, settings) -> the most tokens of a row that a model reads.
        setting_problems: settings -> problems that serving would accept.
        logits: settings -> names of the settings that name outputs of logits; by default the only
            output.
        vectors: whether answers are vectors, which are compared by direction.
        targets: settings -> the `Targets`; None for no score.
        strings: `TextModel` -> signatures on strings by name; None for none.
        expected: (outputs of a signature on strings, the pipeline's answer, the pipeline, its
            input) -> an `ExpectedAnswer`; None for models that generate, whose texts are compared.
        expected_by: options with which the pipeline's answers hold all that is compared.
        differences: manifest -> sentences on how answers of signatures on strings differ from the
            pipeline's.
        input_limits: (manifest, unit) -> a sentence on what an input is, and how long it may be.
        word_length: settings -> number of characters of a word that are read; None for all.

    Example:
        >>> from seqkeras.export.pipelines import record_of
        >>> record = record_of("Forecast")
        >>> record.model_kind, sorted(record.feeds)
        ('single pass', ['known', 'lengths', 'padding_mask', 'window'])
    """

    model_kind: str = SINGLE_PASS
    feeds: Mapping = dataclasses.field(default_factory=dict)
    feeds_frames: bool = False
    needs_targets: bool = False
    row_length: Callable = lambda limits, settings: limits.source_length
    setting_problems: Callable = _none
    logits: Callable = lambda settings: ("output",)
    vectors: bool = False
    targets: Callable = lambda settings: None
    strings: Callable | None = None
    expected: Callable | None = None
    expected_by: Mapping = dataclasses.field(default_factory=dict)
    differences: Callable = _none
    input_limits: Callable = text_of_tokens
    word_length: Callable = lambda settings: None

    def feeds_of(self, tokenizers: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """Return the pipeline's feeds; `tokenizers`: role -> tokenizer, None for feeds of texts."""
        if tokenizers is not None and not tokenizers and self.feeds_frames:
            return FRAMES
        return self.feeds

    def logits_among(
        self, settings: Mapping[str, Any], outputs: Collection[str]
    ) -> tuple[str, ...]:
        """Return the names, of a model's outputs, of the logits that the pipeline reads."""
        keys = self.logits(settings)
        named = [settings[key] for key in keys if key in settings]
        return tuple(name for name in outputs if keys and name in (named or outputs))


@dataclasses.dataclass(frozen=True)
class TextModel:
    """A model of texts, of which signatures on strings are made.

    Attributes:
        signatures: signatures on token ids by name.
        tokenizers: role -> tokenizer.
        limits, decoding, settings, text_prefix: those of the bundle's manifest.
    """

    signatures: Mapping[str, Signature]
    tokenizers: Mapping[str, Tokenizer]
    limits: Limits
    decoding: DecodingDefaults | None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    text_prefix: TextPrefix | None = None


@dataclasses.dataclass(frozen=True)
class ExpectedAnswer:
    """An answer of a signature on strings, and the expected one."""

    actual: str = ""
    expected: str = ""
    is_tie: bool = False  # whether another string has the same score, up to `MARGIN`
    numbers: object = ()
    expected_numbers: object = ()  # of the same shape


def expected_text(
    outputs: Mapping[str, Any], expected: str, score: float, is_tie: Callable[[str], bool]
) -> ExpectedAnswer:
    """Return the `ExpectedAnswer` of a generated text; `is_tie` takes another text."""
    text = outputs["text"].decode()
    if text != expected:
        return ExpectedAnswer(text, expected, is_tie(text))
    return ExpectedAnswer(text, expected, numbers=outputs["score"], expected_numbers=score)
