"""Keras's layer `TextVectorization` as a table of words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqkeras.serving.text.vectorized_words import VectorizedWords

if TYPE_CHECKING:
    import keras


def from_text_vectorization(layer: keras.layers.TextVectorization) -> VectorizedWords:
    """Return the `VectorizedWords` that reads texts as a `keras.layers.TextVectorization` does.

    The ids are the same. An `output_sequence_length` is not kept: a run's limits say how many words
    there may be.

    Args:
        layer: a layer with a vocabulary, by `adapt` or given, whose output_mode is "int" and which
            splits at white space.

    Returns:
        The `VectorizedWords`.

    Raises:
        ValueError: with every reason, if the layer reads texts in a way that the table can not.

    Example:
        >>> import keras
        >>> from seqkeras.tokenizers import from_text_vectorization
        >>> layer = keras.layers.TextVectorization(vocabulary=["stop", "dont"])
        >>> layer(["Don't stop!"]).numpy().tolist()
        [[3, 2]]
        >>> from_text_vectorization(layer).encode("Don't stop!")
        [3, 2]
    """
    config = layer.get_config()
    reasons = []
    if callable(config["standardize"]):
        reasons.append(
            "standardize must be the name of one, not a function: change the texts by it, and give "
            "TextVectorization(standardize=None, vocabulary=layer.get_vocabulary()[2:])"
        )
    if config["split"] != "whitespace":
        named = "a function" if callable(config["split"]) else repr(config["split"])
        reasons.append(
            f"split must be 'whitespace'; received {named}: join the words by spaces, or train on "
            "the ids of a CharacterTable"
        )
    if config["ngrams"] is not None:
        reasons.append(f"ngrams must be None; received {config['ngrams']}: train on single words")
    if config["output_mode"] != "int":
        reasons.append(
            f"output_mode must be 'int'; received {config['output_mode']!r}: train on ids, and "
            "begin the model with what makes vectors of them"
        )
    elif len(layer.get_vocabulary()) <= 2:
        reasons.append("it must have a vocabulary: adapt it")
    if str(config["encoding"]).lower().replace("-", "") != "utf8":
        reasons.append(f"encoding must be 'utf-8'; received {config['encoding']!r}")
    if reasons:
        raise ValueError(f"from_text_vectorization: {'; '.join(reasons)}.")
    words = [*VectorizedWords.special_tokens, *map(str, layer.get_vocabulary()[2:])]
    return VectorizedWords(words, config["standardize"])
