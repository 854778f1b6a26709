"""The label, or the number, of a text or a pair of texts."""

import tensorflow as tf

from seqkeras.export.text_graphs.characters import checked
from seqkeras.export.text_graphs.pipelines.model import (
    PAIR,
    by_strings,
    output_name,
    outputs_of,
    score,
    strings,
)
from seqkeras.export.text_graphs.reading import Reader
from seqkeras.serving.manifest import TensorSpec


def classify(signatures, tokenizers, limits, decoding, settings):
    """Map "text", or "text" and "pair", to "scores" of all labels and the best "label".

    Without labels, "score" is the number of a regression. A tokenizer without pairs has no
    signature of pairs.
    """
    reader = Reader(tokenizers["text"], limits.source_length)
    model, labels = signatures["serving_default"], list(settings.get("labels", ()))
    name, sizes = output_name(model, settings), {e.name: e.shape[-1] for e in model.outputs}
    pairs = settings.get("pairs")
    if pairs and not reader.takes_pairs:
        raise ValueError("text graph: settings.pairs need a tokenizer of pairs; this takes none.")

    def answer(encoded):
        logits = outputs_of(model, encoded)[name]
        if not labels:
            return {"score": logits[:, 0]}, encoded.errors
        if sizes[name] == 1 < len(labels):  # one logit for two labels: the first label's logit is 0
            logits = tf.concat([tf.zeros_like(logits), logits], axis=-1)
        scores = tf.sigmoid(logits) if settings.get("multi_label") else tf.nn.softmax(logits)
        best = tf.gather(tf.constant(labels), tf.argmax(scores, -1))
        return {"scores": scores, "label": best}, encoded.errors

    def single(text, truncate):
        return answer(reader(checked(text), truncate=truncate))

    def pair(text, pair, truncate):
        return answer(reader(checked(text), checked(pair, "pair"), truncate=truncate))

    outputs = [score()]
    if labels:
        outputs = [TensorSpec("scores", "float32", ("batch", len(labels))), strings("label")]
    of_two = [strings("text"), strings("pair")]
    if pairs:
        return by_strings(pair, of_two, outputs)
    signatures = by_strings(single, of_two[:1], outputs)
    if pairs is None and reader.takes_pairs:
        signatures |= by_strings(pair, of_two, outputs, PAIR)
    return signatures
