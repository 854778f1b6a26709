"""The limits of a model: tokens in a row, sizes of vocabularies, finite weights.

The functions that end in `_problems` yield what a run breaks, in words.
"""

import keras
import numpy as np

from seqkeras.embeddings import LearnedPositions

# Role of a tokenizer -> the inputs that take its ids.
IDS = {
    "text": ("token_ids",),
    "source": ("token_ids",),
    "target": ("target_ids",),
    "words": ("token_ids", "context_ids", "query_ids"),
    "characters": ("context_characters", "query_characters", "character_ids"),
}


def most_tokens(model):
    """Return the number of learned positions of a model, or of the encoder below its heads.

    None is for no limit: other positions know every distance.
    """
    for part in (model, getattr(model, "encoder", None)):
        for layer in (getattr(part, "positions", None), *getattr(part, "layers", ())):
            if isinstance(layer, LearnedPositions):
                return layer.max_length - getattr(part, "ahead", 0)
    return None


def room_for_tokens(model):
    """Return how many tokens the cache of a model that generates has room for; None for as many as
    a search asks for."""
    room = getattr(model, "max_length", None) or getattr(model, "sizes", {}).get("max_length")
    knows_every_distance = getattr(model, "positions", model) is None
    return None if knows_every_distance else room


def position_problems(model, source_length):
    """Yield a problem if a row may have more tokens than the model has positions."""
    most = most_tokens(model)
    if most is not None and source_length > most:
        yield (
            f"limits.source_length must be at most the model's positions, {most}; received "
            f"{source_length}"
        )


def weight_problems(model):
    """Yield the first of a model's weights that are NaN or infinite."""
    for weight in model.weights:
        if not np.isfinite(keras.ops.convert_to_numpy(weight)).all():
            yield f"the model's weights are not finite, {weight.path} among them: train again"
            return


def vocabulary_problems(model, tokenizers):
    """Yield the tokenizers that have more tokens than the model has rows for."""
    limits = getattr(model, "id_limits", {})
    for role, tokenizer in tokenizers.items():
        for limit_name, size in {limits[name] for name in IDS.get(role, ()) if name in limits}:
            if len(tokenizer) > size:
                yield (
                    f"the {role} tokenizer must have at most the model's {limit_name}, {size}, "
                    f"tokens; it has {len(tokenizer)}"
                )
