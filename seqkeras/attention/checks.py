"""Check that queries, keys, values and masks fit each other."""

from seqkeras.shapes import fits, require_mask, require_sequence, shape_of, what_is


def require_attention(layer, query, key, value, masks, num_heads=None):
    """Raise a ValueError if tensors or masks of a call do not fit each other, where shapes are
    known.

    Args:
        layer: the layer that errors name.
        query: (B, T, Q).
        key: (B, S, K).
        value: (B, S, D).
        masks: attention_mask, query_mask, key_mask, value_mask, arrays, tensors or None.
        num_heads: N, where an attention mask may have an axis of heads.
    """
    attention_mask, query_mask, key_mask, value_mask = masks
    require_sequence(layer, query=query.shape, key=key.shape, value=value.shape)
    if not fits(key.shape[:2], value.shape[:2]):
        raise ValueError(
            f"{type(layer).__name__}: key and value must have the same batch and length; "
            f"received {tuple(key.shape)} and {tuple(value.shape)}."
        )
    require_mask(layer, query_mask, query.shape, "query_mask", "query")
    require_mask(layer, key_mask, key.shape, "key_mask", "key")
    require_mask(layer, value_mask, value.shape, "value_mask", "value")
    if attention_mask is not None:
        _require_attention_mask(layer, attention_mask, (*query.shape[:2], key.shape[1]), num_heads)


def _require_attention_mask(layer, mask, sizes, num_heads):
    """Require a mask (B or 1, T or 1, S), or with heads (B or 1, N or 1, T or 1, S)."""
    received = shape_of(mask)
    # A size of 1 broadcasts, and fits any size.
    repeated = (*(None if size == 1 else size for size in received[:-1]), *received[-1:])
    with_heads = (sizes[0], num_heads, *sizes[1:])
    if fits(repeated, sizes) or (num_heads and fits(repeated, with_heads)):
        return
    heads = f" or (batch, heads, target, source), {with_heads}" if num_heads else ""
    raise ValueError(
        f"{type(layer).__name__}: attention_mask must have shape (batch, target, source), "
        f"{sizes}{heads}, or 1 for all but the source; received {what_is(mask)}. A padding mask "
        "(batch, source) becomes one of attention by mask[:, None]."
    )
