"""Choose: a text and choices to the best continuation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from seqkeras.export.feeds import TEXTS
from seqkeras.export.pipelines.record import MARGIN, ExpectedAnswer, PipelineRecord, TextModel
from seqkeras.export.pipelines.targets import Targets, of_answers
from seqkeras.export.text_graphs.characters import checked, require
from seqkeras.export.text_graphs.reading import Reader
from seqkeras.export.text_graphs.row_errors import first_in
from seqkeras.export.text_graphs.signatures import by_strings, output_name, outputs_of, strings
from seqkeras.metrics import exact_match
from seqkeras.serving.manifest import TensorSpec

if TYPE_CHECKING:
    from seqkeras.export.signatures import Signature


def choose(source: TextModel) -> dict[str, Signature]:
    """Map "text" and "choices" to the best "choice", its "index", and the "scores" of all.

    All rows of a batch have as many choices; a row with a refused choice is refused.
    """
    reader = Reader(source.tokenizers["text"], source.limits.source_length)
    model = source.signatures["serving_default"]

    def function(text, choices, truncate):
        shape = tf.shape(choices)
        choices = require(choices, (shape[1] > 1, "choices: must be two at least."))
        texts = checked(text).repeated(shape[1])
        flat_choices = checked(tf.reshape(choices, [-1]), "choices")
        encoded = reader(texts, flat_choices, truncate=truncate)
        logits = outputs_of(model, encoded.grouped(shape))[output_name(model, source.settings)]
        best = tf.argmax(logits, axis=-1, output_type=tf.int32)
        answers = {
            "choice": tf.gather(choices, best, batch_dims=1),
            "index": best,
            "scores": tf.nn.softmax(logits),
        }
        return answers, first_in(tf.reshape(encoded.errors, shape))

    inputs = [strings("text"), TensorSpec("choices", "string", ("batch", "choices"))]
    outputs = [
        strings("choice"),
        TensorSpec("index", "int32", ("batch",)),
        TensorSpec("scores", "float32", ("batch", "choices")),
    ]
    return by_strings(function, inputs, outputs)


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


RECORD = PipelineRecord(
    feeds={
        name: (dtype, (shape[0], "choices", *shape[1:])) for name, (dtype, shape) in TEXTS.items()
    },
    targets=lambda settings: TARGETS,
    strings=choose,
    expected=_expected,
    input_limits=lambda manifest, unit: (
        "A text and choices, of which none has more than "
        f"{manifest.limits.source_length} tokens with the text."
    ),
)
