"""Compare generated texts with Keras's: of greedy search, and of the run's beams.

Compared are the SavedModel's signatures, the ONNX graph that generates, `serving` with beams, and
the signature on strings, each with its defaults. A text that differs is accepted if it is a tie for
Keras; ties are counted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.export.exported import ON_ARRAYS
from seqkeras.export.families.saved_models import by_default
from seqkeras.export.pipelines.record import MARGIN, expected_text
from seqkeras.export.verifying.parity import batches, in_keras, of_arrays, rows_of
from seqkeras.export.verifying.strings import answers_on_strings, compare_on_strings
from seqkeras.serving.opening import Runtime

if TYPE_CHECKING:
    from seqkeras.export.exported import Exported
    from seqkeras.export.families import ExportPlan
    from seqkeras.export.verifying.parity import Comparison

BY_BEAMS = 64  # inputs at most, since beams take several times as long
GREEDY = "generate"  # the signature; its name is the ONNX graph's too


@dataclasses.dataclass(frozen=True)
class KerasResults:
    """The results of a search in Keras."""

    inputs: Sequence
    texts: Sequence[str]
    scores: np.ndarray
    is_tie: Callable  # (row, text, score) -> whether Keras gives that text the same score

    def of(self, rows: Sequence[int]) -> KerasResults:
        """Return the results of some rows; indices out of range are ignored."""
        rows = [row for row in rows if row < len(self.inputs)]
        return KerasResults(
            [self.inputs[row] for row in rows],
            [self.texts[row] for row in rows],
            self.scores[rows],
            lambda index, text, score: self.is_tie(rows[index], text, score),
        )

    def check_against(
        self, comparison: Comparison, name: str, texts: Sequence[Any], scores: np.ndarray
    ) -> None:
        """Compare another backend's results with these."""
        comparison.compare_texts(
            name,
            texts,
            self.texts,
            self.inputs,
            lambda row, text: self.is_tie(row, text, scores[row]),
        )
        same = [row for row, text in enumerate(self.texts) if text == texts[row]]
        comparison.compare_numbers(name, np.asarray(scores)[same], self.scores[same])


def generated(
    function: Callable[..., Any], given: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the outputs of a generating function for arrays by name, called in batches."""
    parts = [function(**rows_of(given, batch)) for batch in batches(len(given["lengths"]))]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def compare_searches(
    comparison: Comparison,
    plan: ExportPlan,
    pipeline: Any,
    exported: Exported,
    given: Mapping[str, np.ndarray],
    greedy: Any,
    texts_of: Callable[[np.ndarray], list[str]],
    whole: Sequence[int],
) -> None:
    """Compare all signatures and graphs that generate with Keras.

    Args:
        given: name -> array, inputs of the signatures on token ids.
        texts_of: (N, T) generated ids -> list of N texts.
        whole: the rows whose inputs the pipeline and the signature on strings read whole.
    """
    default = by_default(plan.saved_model)
    searches = {GREEDY: greedy}
    if default != GREEDY:
        searches[default] = _by_beams(plan.saved_model[default], given, greedy.inputs, texts_of)
        expected = searches[default].of(whole)
        answers = pipeline(expected.inputs)
        scores = np.array([answer.score for answer in answers])
        expected.check_against(comparison, "onnx_beam", [answer.text for answer in answers], scores)
    for name, key, function in _other_backends(exported, default):
        answers = generated(function, rows_of(given, slice(len(searches[key].inputs))))
        texts = texts_of(answers["generated_ids"])
        searches[key].check_against(comparison, name, texts, answers["scores"])
    expected = searches[default].of(whole)
    compare_on_strings(
        comparison,
        answers_on_strings(exported, expected.inputs),
        expected.inputs,
        lambda row, outputs: expected_text(
            outputs,
            expected.texts[row],
            expected.scores[row],
            lambda text: expected.is_tie(row, text, outputs["score"]),
        ),
    )


def _by_beams(signature, feeds, inputs, texts_of):
    """Return the results of Keras's beam search; another text with the same score is a tie."""
    answers = generated(in_keras(signature), rows_of(feeds, slice(BY_BEAMS)))
    scores = answers["scores"]
    return KerasResults(
        inputs[:BY_BEAMS],
        texts_of(answers["generated_ids"]),
        scores,
        lambda row, text, score: bool(abs(score - scores[row]) < MARGIN),
    )


def _other_backends(exported, default):
    """Yield (backend, name of its search, function of arrays) of those that take ids."""
    manifest = exported.manifest
    if by_ids := exported.signatures(ON_ARRAYS):
        yield "saved_model", GREEDY, of_arrays(by_ids[GREEDY])
        if default != GREEDY:
            yield "saved_model_beam", default, of_arrays(by_ids[default])
    if GREEDY in manifest.graphs:
        session = Runtime().session(exported.folder / manifest.graphs[GREEDY].file)
        names = [output.name for output in session.get_outputs()]
        yield (
            "onnx_generate",
            default,
            lambda **given: dict(zip(names, session.run(names, given), strict=True)),
        )
