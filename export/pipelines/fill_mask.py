"""FillMask: a text with masks to the tokens that fill them."""

import itertools

import numpy as np

from seqkeras.export.feeds import TEXTS
from seqkeras.export.pipelines.expected import MARGIN, ExpectedAnswer
from seqkeras.export.pipelines.record import PipelineRecord
from seqkeras.export.pipelines.targets import Targets, are_texts
from seqkeras.export.text_graphs.pipelines.fill_mask import fill_mask
from seqkeras.metrics import exact_match


def _accuracy(answers, targets):
    tokens = [fillers[0].token for answer in answers for fillers in answer.masks]
    return exact_match(tokens, itertools.chain(*targets))


TARGETS = Targets(
    {"accuracy": _accuracy},
    "a list of a token for each mask",
    lambda target, row: are_texts(target) and len(target) == len(row.masks),
)


def _expected(outputs, answer, pipeline, given):
    """Return the text, and the scores of the best tokens, of which several may be equally good."""
    scores = np.array([[filler.score for filler in fillers] for fillers in answer.masks])
    return ExpectedAnswer(
        outputs["text"].decode(),
        answer.text,
        bool(np.any(scores[:, :1] - scores[:, 1:2] < MARGIN)),
        outputs["scores"][: len(scores)],
        scores,
    )


RECORD = PipelineRecord(
    feeds=TEXTS, targets=lambda settings: TARGETS, strings=fill_mask, expected=_expected
)
