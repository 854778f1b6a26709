"""Choose: a text and choices to the best continuation."""

from seqkeras.export.feeds import TEXTS
from seqkeras.export.pipelines.expected import MARGIN, ExpectedAnswer
from seqkeras.export.pipelines.record import PipelineRecord
from seqkeras.export.pipelines.targets import Targets, of_answers
from seqkeras.export.text_graphs.pipelines.choose import choose
from seqkeras.metrics import exact_match

TARGETS = Targets(
    {"accuracy": of_answers(exact_match, lambda answer: answer.index)},
    "the place of a choice, from 0",
    lambda target, row: type(target) is int and 0 <= target < len(row.choices),
)


def _expected(outputs, answer, pipeline, given):
    second, best = sorted(answer.scores)[-2:]
    return ExpectedAnswer(
        f"{outputs['choice'].decode()} ({outputs['index']})",
        f"{answer.text} ({answer.index})",
        best - second < MARGIN,
        outputs["scores"],
        answer.scores,
    )


def _input_limits(manifest, unit):
    most = manifest.limits.source_length
    return f"A text and choices, of which none has more than {most} tokens with the text."


RECORD = PipelineRecord(
    feeds={
        name: (dtype, (shape[0], "choices", *shape[1:])) for name, (dtype, shape) in TEXTS.items()
    },
    targets=lambda settings: TARGETS,
    strings=choose,
    expected=_expected,
    input_limits=_input_limits,
)
