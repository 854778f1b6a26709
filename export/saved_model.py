"""SavedModels for TensorFlow Serving.

`saved_model/1` takes token ids, `saved_model_text/1` strings. Both hold core TensorFlow operators
only, and load without our code.
"""

import functools
import re
import sys
import unicodedata

import tensorflow as tf

from export.signatures import Signature, tensorflow_specs
from export.text_graphs.characters import ANYTHING, VISIBLE, checked
from export.text_graphs.lookup import find
from seqkeras import composites
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

    @tf.function(input_signature=tensorflow_specs(signature.inputs), autograph=False)
    def function(*tensors):
        with composites.as_nodes(()):  # a graph to keep: no operator of the GPU that traces it
            return signature.function(**dict(zip(names, tensors, strict=True)))

    return function


def text_signature(generate, source, target, limits, text_prefix):
    """Strings in, strings out, around a signature that generates token ids.

    A batch with a text that `serving` would refuse is refused whole, with an InvalidArgumentError;
    so is one with text that is not composed (NFC), which `serving` would compose.

    Args:
        generate: `Signature` of (token_ids, lengths) -> generated_ids, scores, as in `signatures`.
        source, target: the `CharacterTable` of each side.
        limits, text_prefix: as in the manifest.
    """
    encode = _Encoder(source)
    characters = tf.constant(
        ["" if i < len(_SPECIAL) else c for i, c in enumerate(target.characters)]
    )
    pattern, refusal = accepted_text(text_prefix)

    def translate(text):
        text = checked(text, accepted=pattern, refusal=refusal)
        lengths = tf.strings.length(text, unit="UTF8_CHAR")
        fits = tf.reduce_all(lengths <= limits.source_length)
        message = f"text: at most {limits.source_length} characters; nothing was truncated."
        with tf.control_dependencies([tf.debugging.Assert(fits, [message])]):
            code_points = tf.strings.unicode_decode(text, "UTF-8", errors="strict")
        token_ids, lengths = encode(code_points)
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
    """`CharacterTable.encode` and `pad` as operators, on ragged code points of composed text."""

    def __init__(self, table):
        known = table.characters[len(_SPECIAL) :]
        self.code_points, self.ids = zip(
            *sorted((ord(c), i + len(_SPECIAL)) for i, c in enumerate(known))
        )

    def __call__(self, ragged):
        code_points = ragged.to_tensor(default_value=-1)  # (B, S)
        singles, pairs = _uncomposed()
        adjacent = tf.cast(code_points, tf.int64)
        adjacent = adjacent[:, :-1] * _PAIR + adjacent[:, 1:]
        uncomposed = tf.reduce_any(find(singles, code_points)[0]) | tf.reduce_any(
            find(pairs, adjacent)[0]
        )
        check = tf.debugging.Assert(
            ~uncomposed,
            ["text: must be composed (Unicode NFC), as unicodedata.normalize makes it."],
        )
        with tf.control_dependencies([check]):
            known, place = find(self.code_points, code_points)
        ids = tf.where(known, tf.gather(self.ids, place), UNK)
        return tf.where(code_points < 0, PAD, ids), ragged.row_lengths()


_PAIR = 2**21  # more than any code point: a pair of them as one number


@functools.cache
def _uncomposed():
    """What NFC would change: single code points, and pairs that it composes, both ascending.

    A mark that composes with a letter further back than its neighbour is not seen.
    """
    singles, pairs = [], []
    for code_point in range(sys.maxunicode + 1):
        character = chr(code_point)
        decomposed = unicodedata.normalize("NFD", character)
        if decomposed == character:
            continue
        if unicodedata.normalize("NFC", character) != character:
            singles.append(code_point)
            continue
        *others, last = decomposed
        # The last step of the composition: all but the last code point compose to one.
        composed = unicodedata.normalize("NFC", "".join(others))
        if len(composed) == 1:
            pairs.append(ord(composed) * _PAIR + ord(last))
    return sorted(singles), sorted(set(pairs))


def accepted_text(prefix):
    """The regular expression of the texts that begin as they must, and what is said of others."""
    if prefix is None:
        return ANYTHING, "must not be empty or blank."
    values = "|".join(re.escape(value) for value in prefix.values)
    return (
        rf"(?s)(?:{values}){re.escape(prefix.separator)}.*{VISIBLE}.*",
        f"must be a {prefix.name}, then {prefix.separator} and something after it; "
        f"known: {', '.join(prefix.values)}.",
    )
