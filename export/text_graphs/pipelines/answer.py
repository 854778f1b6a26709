"""An answer to a question, out of a context: the best span."""

import tensorflow as tf

from export.signatures import Signature
from export.text_graphs.characters import checked
from export.text_graphs.pipelines.model import outputs_of, score, strings
from export.text_graphs.reading import Reader
from export.text_graphs.whole_characters import whole_characters
from serving.manifest import TensorSpec


def answer(signatures, tokenizers, limits, decoding, settings):
    """ "question" and "context" to the "answer" in it, its "start" and "end", and its "score".

        score = start(i) + end(j),  i <= j < i + answer_length, of the context's tokens

    Beside it stands "null_score", start(0) + end(0): a model that knows questions without an answer
    gives "" where score <= null_score + no_answer_threshold, at -1.
    """
    window = min(settings.get("window", 384), limits.source_length)
    reader = Reader(tokenizers["text"], window)
    model = signatures["serving_default"]
    longest = settings.get("answer_length", 30)

    def function(question, context):
        question, context = checked(question, "question"), checked(context, "context")
        read = reader(question, context)
        outputs = outputs_of(model, read)
        starts, ends = outputs[settings["start"]], outputs[settings["end"]]
        size = tf.shape(starts)[1]
        order = tf.range(size)
        sizes = reader.tokenize(question).token_ids.row_lengths()
        own = read.starts >= 0
        own &= tf.cumsum(tf.cast(own, tf.int64), axis=1) > sizes[:, None]
        apart = order[None] - order[:, None]
        allowed = own[:, :, None] & own[:, None] & (apart >= 0) & (apart < longest)
        scores = tf.where(allowed, starts[:, :, None] + ends[:, None], -float("inf"))
        scores = tf.reshape(scores, [tf.shape(starts)[0], size * size])
        best = tf.argmax(scores, axis=-1, output_type=tf.int32)
        score, null = tf.reduce_max(scores, axis=-1), starts[:, 0] + ends[:, 0]
        start = tf.gather(read.starts, best // size, batch_dims=1)
        end = tf.gather(read.ends, best % size, batch_dims=1)
        start, end = whole_characters(context, start, end)
        found = score > -float("inf")
        if settings.get("no_answer"):
            found &= score > null + settings.get("no_answer_threshold", 0.0)
        start, end = tf.where(found, start, -1), tf.where(found, end, -1)
        begin = tf.maximum(start, 0)
        text = tf.strings.substr(context, begin, tf.maximum(end - begin, 0), unit="UTF8_CHAR")
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
