"""Signatures on strings, around those on token ids. They hold core operators of TensorFlow only.

Leaves out what several calls make of one text: windows over long contexts, words and entities of
tags. A text that is too long is refused.
"""

import tensorflow as tf

from export import saved_model
from export.families.saved_models import by_default
from export.signatures import Signature
from export.text_graphs.characters import behind, checked
from export.text_graphs.reading import Reader
from export.text_graphs.whole_characters import whole_characters
from serving.manifest import TensorSpec
from serving.text import CharacterTable, WordTable


def text_signatures(
    pipeline, signatures, tokenizers, limits, decoding, settings=None, text_prefix=None
):
    """The signatures on strings of a SavedModel, as the pipeline of that name answers.

    Args:
        pipeline: its name; Answer, Classify, Embed, Generate, Tag and Translate have signatures.
        signatures: name -> `Signature` on token ids.
        tokenizers: role -> a tokenizer of `serving.text`; "source" and "target", or "text".
        limits, decoding, settings, text_prefix: as in the manifest.

    Returns:
        name -> `Signature`, none for another pipeline.

    Raises:
        ValueError: if a tokenizer can not be put into a graph.
    """
    if pipeline not in MAKERS:
        return {}
    if any(isinstance(each, WordTable) for each in tokenizers.values()):
        raise ValueError(f"text graph: {pipeline} of words or trees is not known.")
    tables = [role for role, each in tokenizers.items() if isinstance(each, CharacterTable)]
    if tables:
        if pipeline != "Translate" or len(tables) < len(tokenizers):
            raise ValueError(
                f"text graph: a table of characters is known of both sides of Translate; received "
                f"one as {tables[0]} of {pipeline}."
            )
        source, target = tokenizers["source"], tokenizers["target"]
        generate = signatures[by_default(signatures)]
        by_text = saved_model.text_signature(generate, source, target, limits, text_prefix)
        return {"serving_default": by_text}
    options = dict(settings or {})
    if pipeline == "Translate":
        options["text_prefix"] = text_prefix
    return MAKERS[pipeline](signatures, tokenizers, limits, decoding, options)


def translate(signatures, tokenizers, limits, decoding, settings):
    """ "text" to "text" and "score", its log-probability, which beams have over the length penalty.

    By as many beams as `serving` follows by default; so is `generate`.
    """
    model = signatures[by_default(signatures)]
    reader = Reader(tokenizers["source"], limits.source_length)
    writer = Reader(tokenizers["target"], limits.target_length).tokenize
    pattern, refusal = saved_model.accepted_text(settings["text_prefix"])

    def function(text):
        read = reader(checked(text, accepted=pattern, refusal=refusal))
        found = _call(model, read)
        ids = found["generated_ids"]
        kept = tf.sequence_mask(found["generated_lengths"], tf.shape(ids)[1])
        kept &= ids != tf.cast(decoding.end_id, ids.dtype)
        return {"text": writer.decode(ids, kept), "score": found["scores"]}

    return {"serving_default": Signature(function, [_text("text")], [_text("text"), _score()])}


def generate(signatures, tokenizers, limits, decoding, settings):
    """ "text" to the "text" that follows it, and "score"; see `translate`."""
    model = signatures[by_default(signatures)]
    most = min(limits.source_length, limits.target_length - 1)
    reader = Reader(tokenizers["text"], most, end_id=decoding.end_id)

    def function(text):
        read = reader(checked(text))
        ids, lengths = read.token_ids, read.lengths
        if settings.get("start"):
            first = tf.fill([tf.shape(ids)[0], 1], tf.constant(decoding.start_id, ids.dtype))
            ids, lengths = tf.concat([first, ids], axis=1), lengths + 1
        found = model.function(token_ids=ids, lengths=lengths)
        ids = found["generated_ids"]
        size = tf.shape(ids)[1]
        kept = tf.sequence_mask(found["generated_lengths"], size)
        kept &= ids != tf.cast(decoding.end_id, ids.dtype)
        whole = reader.tokenize.decode(ids, kept)
        prompt = reader.tokenize.decode(ids, kept & tf.sequence_mask(lengths, size))
        return {"text": behind(prompt, whole), "score": found["scores"]}

    return {"serving_default": Signature(function, [_text("text")], [_text("text"), _score()])}


def classify(signatures, tokenizers, limits, decoding, settings):
    """ "text", or "text" and "pair", to "scores" of all labels and the best "label".

    Without labels "score" is the number of a regression.
    """
    reader = Reader(tokenizers["text"], limits.source_length)
    model, labels = signatures["serving_default"], list(settings.get("labels", ()))
    pairs = settings.get("pairs")

    def answer(read):
        logits = _call(model, read)[_output(model, settings)]
        if not labels:
            return {"score": logits[:, 0]}
        scores = tf.sigmoid(logits) if settings.get("multi_label") else tf.nn.softmax(logits)
        return {"scores": scores, "label": tf.gather(tf.constant(labels), tf.argmax(scores, -1))}

    def single(text):
        return answer(reader(checked(text)))

    def pair(text, pair):
        return answer(reader(checked(text), checked(pair, "pair")))

    outputs = [_score()]
    if labels:
        outputs = [TensorSpec("scores", "float32", ("batch", len(labels))), _text("label")]
    of_one = Signature(single, [_text("text")], outputs)
    of_two = Signature(pair, [_text("text"), _text("pair")], outputs)
    if pairs is None:
        return {"serving_default": of_one, "pair": of_two}
    return {"serving_default": of_two if pairs else of_one}


def tag(signatures, tokenizers, limits, decoding, settings):
    """ "text" to the "tags" of its tokens with "scores", and "starts" and "ends" in the text.

    Special tokens and padding have the tag "" and lie at -1.
    """
    reader = Reader(tokenizers["text"], limits.source_length)
    model = signatures["serving_default"]
    labels = tf.constant(list(settings["labels"]))

    def function(text):
        read = reader(checked(text))
        scores = tf.nn.softmax(_call(model, read)[_output(model, settings)])
        own = read.starts >= 0
        return {
            "tags": tf.where(own, tf.gather(labels, tf.argmax(scores, axis=-1)), ""),
            "scores": tf.where(own, tf.reduce_max(scores, axis=-1), 0.0),
            "starts": read.starts,
            "ends": read.ends,
        }

    shape = ("batch", "length")
    outputs = [
        TensorSpec("tags", "string", shape),
        TensorSpec("scores", "float32", shape),
        TensorSpec("starts", "int32", shape),
        TensorSpec("ends", "int32", shape),
    ]
    return {"serving_default": Signature(function, [_text("text")], outputs)}


def embed(signatures, tokenizers, limits, decoding, settings):
    """ "text" to its "embedding", of length 1 if the settings say so."""
    reader = Reader(tokenizers["text"], limits.source_length)
    model = signatures["serving_default"]
    name = _output(model, settings)

    def function(text):
        vectors = _call(model, reader(checked(text)))[name]
        if settings.get("normalize", True):
            norms = tf.norm(vectors, axis=-1, keepdims=True)
            vectors = tf.math.divide_no_nan(vectors, norms)
        return {"embedding": vectors}

    [spec] = [each for each in model.outputs if each.name == name]
    outputs = [TensorSpec("embedding", "float32", spec.shape)]
    return {"serving_default": Signature(function, [_text("text")], outputs)}


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
        outputs = _call(model, read)
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
            [_text("question"), _text("context")],
            [
                _text("answer"),
                TensorSpec("start", "int32", ("batch",)),
                TensorSpec("end", "int32", ("batch",)),
                _score(),
                TensorSpec("null_score", "float32", ("batch",)),
            ],
        )
    }


# Pipeline -> what makes its signatures; another pipeline has none.
MAKERS = {
    "Answer": answer,
    "Classify": classify,
    "Embed": embed,
    "Generate": generate,
    "Tag": tag,
    "Translate": translate,
}


def _call(signature, read):
    """What a signature on token ids gives, of those inputs that it takes."""
    return signature.function(**{spec.name: getattr(read, spec.name) for spec in signature.inputs})


def _output(signature, settings):
    return settings.get("output") or signature.outputs[0].name


def _text(name):
    return TensorSpec(name, "string", ("batch",))


def _score():
    return TensorSpec("score", "float32", ("batch",))
