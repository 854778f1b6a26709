"""SavedModels for TensorFlow Serving.

`saved_model/1` takes token ids, `saved_model_text/1` strings. Both hold core TensorFlow operators
only, and load without our code.
"""

import re

import tensorflow as tf

from export.signatures import Signature
from seqkeras.tokenizers import EOS, PAD, UNK
from serving.manifest import TensorSpec


def write(model, signatures, folder):
    """Write a model's signatures as a SavedModel.

    Args:
        model: the Keras model, for its weights.
        signatures: name -> `Signature`.
        folder: to make.
    """
    module = tf.Module()  # Keras's ExportArchive would store every variable twice
    module.weights = [variable.value for variable in model.variables]
    functions = {name: _traced(signature) for name, signature in signatures.items()}
    tf.saved_model.save(module, str(folder), signatures=functions)


def _traced(signature):
    names = [spec.name for spec in signature.inputs]

    @tf.function(input_signature=_tensor_specs(signature), autograph=False)
    def function(*tensors):
        return signature.function(**dict(zip(names, tensors, strict=True)))

    return function


def _tensor_specs(signature):
    return [
        tf.TensorSpec(
            [size if isinstance(size, int) else None for size in spec.shape],
            spec.dtype,
            spec.name,
        )
        for spec in signature.inputs
    ]


def text_signature(generate, source, target, limits, text_prefix):
    """Strings in, strings out, around a signature that generates token ids.

    A batch with a text that `serving` would refuse is refused whole, with an InvalidArgumentError.

    Args:
        generate: `Signature` of (token_ids, lengths) -> generated_ids, scores, as in `signatures`.
        source, target: the `CharacterTable` of each side.
        limits, text_prefix: as in the manifest.
    """
    encode = _Encoder(source)
    characters = tf.constant(
        ["" if i < len(_SPECIAL) else c for i, c in enumerate(target.characters)]
    )
    pattern = _accepted_text(text_prefix)

    def translate(text):
        accepted = tf.strings.regex_full_match(text, pattern)
        lengths = tf.strings.length(text, unit="UTF8_CHAR")
        short_enough = lengths <= limits.source_length
        checks = [
            tf.debugging.Assert(tf.reduce_all(accepted), [_refusal(text_prefix)]),
            tf.debugging.Assert(
                tf.reduce_all(short_enough),
                [f"text: at most {limits.source_length} characters; nothing was truncated."],
            ),
        ]
        with tf.control_dependencies(checks):
            token_ids, lengths = encode(text)
        results = generate.function(token_ids, lengths)
        answer = tf.strings.reduce_join(tf.gather(characters, results["generated_ids"]), axis=1)
        return {"text": answer, "score": results["scores"]}

    return Signature(
        translate,
        [TensorSpec("text", "string", ("batch",))],
        [
            TensorSpec("text", "string", ("batch",)),
            TensorSpec("score", "float32", ("batch",)),
        ],
    )


_SPECIAL = range(EOS + 1)


class _Encoder:
    """`CharacterTable.encode` and `pad` as operators: one table look-up for each code point."""

    def __init__(self, table):
        known = table.characters[len(_SPECIAL) :]
        self.code_points, self.ids = zip(
            *sorted((ord(c), i + len(_SPECIAL)) for i, c in enumerate(known))
        )

    def __call__(self, text):
        ragged = tf.strings.unicode_decode(text, "UTF-8", errors="strict")
        code_points = ragged.to_tensor(default_value=-1)  # (B, S)
        place = tf.searchsorted(self.code_points, tf.reshape(code_points, [-1]))
        place = tf.reshape(tf.minimum(place, len(self.ids) - 1), tf.shape(code_points))
        known = tf.gather(self.code_points, place) == code_points
        ids = tf.where(known, tf.gather(self.ids, place), UNK)
        return tf.where(code_points < 0, PAD, ids), ragged.row_lengths()


def _accepted_text(prefix):
    visible = r"(?s).*[^\s\pZ].*"
    if prefix is None:
        return visible
    values = "|".join(re.escape(value) for value in prefix.values)
    return rf"(?s)(?:{values}){re.escape(prefix.separator)}.*[^\s\pZ].*"


def _refusal(prefix):
    if prefix is None:
        return "text: must not be empty."
    return (
        f"text: must be a {prefix.name}, then {prefix.separator} and something after it; "
        f"known: {', '.join(prefix.values)}."
    )
