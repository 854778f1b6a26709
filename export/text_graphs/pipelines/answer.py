"""An answer to a question, out of a context: the best span."""

import tensorflow as tf

from export.signatures import Signature
from export.text_graphs.characters import BLANK, checked, require
from export.text_graphs.pipelines.model import outputs_of, score, strings
from export.text_graphs.reading import Reader
from export.text_graphs.whole_characters import whole_characters
from serving.manifest import TensorSpec
from serving.pipelines.answer import Settings

SPACES = [point for point in range(0x3001) if chr(point).isspace()]  # no further one is a space


def answer(signatures, tokenizers, limits, decoding, settings):
    """ "question" and "context" to the "answer" in it, its "start" and "end", and its "score".

        score = start(i) + end(j),  i <= j < i + answer_length, of the context's tokens

    The answer has no white space around it, and is more than that. Beside it stands
    "null_score", start(0) + end(0): a model that knows questions without an answer gives "" where
    score <= null_score + no_answer_threshold, at -1.
    """
    options = Settings(**settings)
    reader = Reader(tokenizers["text"], min(options.window, limits.source_length))
    model = signatures["serving_default"]
    longest, most = options.answer_length, options.question_length

    def function(question, context):
        question, context = checked(question, "question"), checked(context, "context")
        sizes = reader.tokenize(question).token_ids.row_lengths()
        message = f"question: at most {most} tokens; nothing was truncated."
        question = require(question, (sizes <= most, message))
        read = reader(question, context, names=("question", "context"))
        outputs = outputs_of(model, read)
        starts, ends = outputs[options.start], outputs[options.end]
        size = tf.shape(starts)[1]
        order = tf.range(size)
        own = read.starts >= 0
        own &= tf.cumsum(tf.cast(own, tf.int64), axis=1) > sizes[:, None]
        apart = order[None] - order[:, None]
        allowed = own[:, :, None] & own[:, None] & (apart >= 0) & (apart < longest)
        allowed &= _say_something(context, read)
        scores = tf.where(allowed, starts[:, :, None] + ends[:, None], -float("inf"))
        scores = tf.reshape(scores, [tf.shape(starts)[0], size * size])
        best = tf.argmax(scores, axis=-1, output_type=tf.int32)
        score, null = tf.reduce_max(scores, axis=-1), starts[:, 0] + ends[:, 0]
        start = tf.gather(read.starts, best // size, batch_dims=1)
        end = tf.gather(read.ends, best % size, batch_dims=1)
        start, end = _trimmed(context, *whole_characters(context, start, end))
        found = score > -float("inf")
        if options.no_answer:
            found &= score > null + options.no_answer_threshold
        start, end = tf.where(found, start, -1), tf.where(found, end, -1)
        text = _part(context, start, end)
        return {"answer": text, "start": start, "end": end, "score": score, "null_score": null}

    return {
        "serving_default": Signature(
            function,
            [strings("question"), strings("context")],
            [
                strings("answer"),
                TensorSpec("start", "int32", ("batch",)),
                TensorSpec("end", "int32", ("batch",)),
                score(),
                TensorSpec("null_score", "float32", ("batch",)),
            ],
        )
    }


def _say_something(texts, read):
    """(B, T, T): which spans, by their first and last token, are more than white space."""
    code_points = tf.strings.unicode_decode(texts, "UTF-8").to_tensor(SPACES[0])  # (B, n)
    visible = tf.cast(tf.reduce_all(code_points[..., None] != SPACES, axis=-1), tf.int32)
    seen = tf.pad(tf.cumsum(visible, axis=1), [[0, 0], [1, 0]])  # before each place
    most = tf.shape(visible)[1]  # tokens of the question may lie behind it
    before, behind = (
        tf.gather(seen, tf.clip_by_value(places, 0, most), batch_dims=1)
        for places in (read.starts, read.ends)
    )
    return behind[:, None] > before[:, :, None]


def _trimmed(texts, start, end):
    """The places of parts of texts without the white space around them."""
    text = tf.strings.regex_replace(_part(texts, start, end), f"^[{BLANK}]+", "")
    start = end - tf.strings.length(text, unit="UTF8_CHAR")
    text = tf.strings.regex_replace(text, f"[{BLANK}]+$", "")
    return start, start + tf.strings.length(text, unit="UTF8_CHAR")


def _part(texts, start, end):
    """The parts of texts; "" of one that begins at -1."""
    start = tf.maximum(start, 0)
    return tf.strings.substr(texts, start, tf.maximum(end - start, 0), unit="UTF8_CHAR")
