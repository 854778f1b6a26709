"""Compare a model's own preprocessor with a tokenizer of seqkeras.

A task of KerasNLP (KerasHub) has one as `preprocessor`. Not compared are preprocessors with outputs
other than "token_ids" and a "padding_mask", and inputs other than texts and pairs of texts.
"""

import numpy as np

from seqkeras.tokenizers.keras_nlp_tokenizers import reads_in_tf_data

MOST_TEXTS = 1024  # to compare


def unlike_preprocessor(model, tokenizer, inputs):
    """Yield a problem if a model's preprocessor reads texts differently from a tokenizer.

    Args:
        model: a Keras model, with a `preprocessor` or without.
        tokenizer: a tokenizer of `seqkeras.serving.text`.
        inputs: texts, or pairs of texts.
    """
    preprocessor = getattr(model, "preprocessor", None)
    pairs = [_parts(text) for text in inputs[:MOST_TEXTS]]
    numbers = {len(pair) for pair in pairs}
    if preprocessor is None or len(numbers) != 1 or numbers - {1, 2}:
        return
    try:
        theirs = _rows(preprocessor, pairs)
    except Exception as error:  # the preprocessor's own code can raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        yield f"the model's preprocessor must read the run's texts; it says: {reason:.300}"
        return
    if theirs is None:
        return
    ours = [tokenizer.analyze(*texts).token_ids for texts in pairs]
    different = [row for row in zip(pairs, theirs, ours, strict=True) if row[1] != row[2]]
    if different:
        texts, *rows = different[0]
        yield (
            f"the model's preprocessor reads {len(different)} of {len(pairs)} texts otherwise than "
            f"the tokenizer: {' and '.join(map(repr, texts)):.100} {_told(tokenizer, *rows)}: "
            "make the tokenizer by from_keras_nlp(model.preprocessor), or set model.preprocessor "
            "to None if the model was trained on other ids"
        )


def _parts(value):
    """Return the texts of an input, or none if it holds something else."""
    parts = value if isinstance(value, list | tuple) else [value]
    return tuple(parts) if all(isinstance(part, str) for part in parts) else ()


def _rows(preprocessor, pairs):
    """Return the real ids of each text; None if the preprocessor gives something else."""
    columns = tuple(map(list, zip(*pairs, strict=True)))

    def read(*texts):
        return preprocessor(texts[0]) if len(texts) == 1 else preprocessor(x=texts)

    if reads_in_tf_data():
        import tensorflow as tf  # needed for texts only

        [rows] = tf.data.Dataset.from_tensors(columns).map(read)
    else:
        rows = read(*columns)
    if not isinstance(rows, dict) or not {"token_ids", "padding_mask"} <= set(rows):
        return None
    token_ids, mask = (np.asarray(rows[name]) for name in ("token_ids", "padding_mask"))
    return [row[real.astype(bool)].tolist() for row, real in zip(token_ids, mask, strict=True)]


def _told(tokenizer, theirs, ours):
    """Return the first difference of two rows of ids, in words."""
    if theirs == ours[: len(theirs)] or (
        len(theirs) < len(ours) and theirs[:-1] == ours[: len(theirs) - 1]
    ):
        return f"has {len(theirs)} tokens there and {len(ours)} here"
    index = next((n for n, (a, b) in enumerate(zip(theirs, ours)) if a != b), len(ours))
    token_there, token_here = (
        repr(tokenizer.token_of(row[index])) if index < len(row) else "nothing"
        for row in (theirs, ours)
    )
    return f"has {token_there} there and {token_here} here as token {index}"
