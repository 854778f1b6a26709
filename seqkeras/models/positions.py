"""What tells a Transformer where tokens stand, and what each kind adds to a model.

"paper", "tensor2tensor", "marian"   `SinusoidalPositions`, added to the embeddings
"learned"    `LearnedPositions`, added to the embeddings: no row may have more tokens
"relative"   vectors of distances up to `RELATIVE_CLIP` in each self-attention (Shaw et al. 2018)
"bias"       `DistanceBias` of the scores, one for all blocks of a stack (T5)
"""

from seqkeras.attention import DistanceBias
from seqkeras.embeddings import LearnedPositions, SinusoidalPositions
from seqkeras.embeddings.position import FORMS

POSITIONS = (*FORMS, "learned", "relative", "bias")
RELATIVE_CLIP = 16  # of Shaw et al. 2018, section 4.1


def require_kind(model, positions):
    """Raise a ValueError for an unknown kind."""
    if positions not in POSITIONS:
        raise ValueError(
            f"{type(model).__name__}: positions must be one of {POSITIONS}; received {positions!r}."
        )


def most_positions(config):
    """Return the number of learned positions of a model's config; None for no limit."""
    return config["max_length"] if config["positions"] == "learned" else None


def position_vectors(positions, dim, dtype, max_length, **options):
    """Return the layer whose vectors are added to embeddings, or None; `options` and max_length
    are those of `LearnedPositions`."""
    if positions == "learned":
        return LearnedPositions(max_length, dim, **options, dtype=dtype)
    return SinusoidalPositions(dim, positions, dtype=dtype) if positions in FORMS else None


def add_positions(vectors, embedded, positions):
    """Return (..., T, D) embeddings, with the vectors of their positions where there are any.

    Args:
        vectors: what `position_vectors` returned.
    """
    return embedded if vectors is None else embedded + vectors(positions)


def relative_clip(positions):
    """Return the option `relative_clip` of the blocks."""
    return RELATIVE_CLIP if positions == "relative" else None


def bias_of_stack(positions, num_heads, bidirectional, dtype):
    """Return the `DistanceBias` of a stack, or None."""
    if positions != "bias":
        return None
    return DistanceBias(num_heads, bidirectional=bidirectional, dtype=dtype)
