"""Answer: a question and a context to the span of the context that answers."""

import numpy as np

from seqkeras.export.feeds import TEXTS
from seqkeras.export.pipelines.expected import MARGIN, ExpectedAnswer
from seqkeras.export.pipelines.record import PipelineRecord
from seqkeras.export.pipelines.targets import Targets, are_texts, is_text, of_answers, text_of
from seqkeras.export.text_graphs.pipelines.answer import answer
from seqkeras.metrics import squad_exact_match, squad_f1
from seqkeras.serving.pipelines.answer import Settings

TARGETS = Targets(
    {"exact match": of_answers(squad_exact_match, text_of), "F1": of_answers(squad_f1, text_of)},
    'a text or a list of texts, "" for no answer',
    lambda target, _: is_text(target) or (are_texts(target) and bool(target)),
)


def _row_length(limits, settings):
    return min(limits.source_length, settings.get("window", Settings.window))


def _expected(outputs, answer, pipeline, given):
    """Return the answer with its position; if there may be no answer, also its margin over none."""
    margins, numbers = [], {}
    for other in answer.alternatives:
        margins.append(np.log(answer.score) - np.log(max(other.score, np.finfo(float).tiny)))
    if answer.margin is not None:
        threshold = pipeline.manifest.settings.get("no_answer_threshold", 0.0)
        margins.append(abs(answer.margin - threshold))
        margin = outputs["score"] - outputs["null_score"]
        numbers = {"numbers": margin, "expected_numbers": answer.margin}
    return ExpectedAnswer(
        f"{outputs['answer'].decode()} ({outputs['start']})",
        f"{answer.text} ({-1 if answer.start is None else answer.start})",
        min(map(abs, margins), default=np.inf) < MARGIN,
        **numbers,
    )


def _differences(manifest):
    yield (
        "`score` is the sum of two logits, of where the answer begins and where it ends, and no "
        "probability; `null_score` is the score of no answer."
    )
    if manifest.settings.get("no_answer"):
        yield (
            'Where there is no answer, `answer` is "", `start` and `end` are -1, and `score` is '
            "still the best span's: `margin` of `serving` is `score` less `null_score`."
        )


def _input_limits(manifest, unit):
    settings, most = manifest.settings, manifest.limits.source_length
    length = settings.get("question_length", Settings.question_length)
    question = f"A question of at most {length} {unit}"
    if unit != "tokens":
        return f"{question}, and a context of at most {most}."
    window = _row_length(manifest.limits, settings)
    return f"{question}, and a context of any length: it is read in windows of {window}."


RECORD = PipelineRecord(
    feeds=TEXTS,
    row_length=_row_length,
    logits=lambda settings: ("start", "end"),
    targets=lambda settings: TARGETS,
    strings=answer,
    expected=_expected,
    expected_by={"n_best": 2},  # so that answers have scores
    differences=_differences,
    input_limits=_input_limits,
    word_length=lambda settings: settings.get("word_length", Settings.word_length),
)
