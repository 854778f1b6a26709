"""Prompts of several lengths: their common length is read in one step, the rest step by step.

A prompt's first token takes the place of `<bos>`. The search's own tokens, T at most, follow it.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import keras
from keras import ops

from seqkeras.decoding import Constraint, Search
from seqkeras.decoding.loop import Loop
from seqkeras.decoding.waiting import behind_prompts, waiting
from seqkeras.export.generation import shrinking_batch
from seqkeras.tensors import Tensor


def begun(
    token_ids: Tensor, lengths: Tensor, num_beams: int, max_length: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the common part of all prompts, and the position of a search that has read it.

    Args:
        token_ids: (B, P) prompts, padded on the right.
        lengths: (B,), at least 1.
        num_beams: K.
        max_length: T.

    Returns:
        common: (B, 1, C) token ids.
        length: C - 1, the number of the search's tokens, int32.
        tokens: (B, K, T) int32, these tokens and zeros.
    """
    common = ops.min(lengths)
    places = ops.arange(max_length, dtype="int64")
    last = ops.cast(ops.shape(token_ids)[1] - 1, "int64")
    tokens = ops.take(token_ids, ops.minimum(places + 1, last), axis=1)
    tokens = ops.where(places < common - 1, tokens, 0)[:, None]  # (B, 1, T)
    tokens = tokens + ops.zeros((1, num_beams, 1), "int64")
    length = ops.cast(common - 1, "int32")
    return token_ids[:, None, :common], length, ops.cast(tokens, "int32")


def behind_first(token_ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the prompts without their first tokens, in the form that `seqkeras.decoding` takes."""
    # One column more, so that there is at least one.
    return ops.pad(token_ids[:, 1:], [(0, 0), (0, 1)]), lengths - 1


def with_first(
    token_ids: Tensor, lengths: Tensor, results: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """Return results of a search by name, behind the first tokens of their prompts."""
    is_found = ops.cast(results["generated_lengths"] > 0, "int32")
    rows = (-1, *[1] * (len(is_found.shape) - 1))
    first = ops.reshape(ops.cast(token_ids[:, 0], "int32"), rows) * is_found
    # Every prompt has a token: `lengths` is read, so that it stays an input.
    one = ops.reshape(ops.cast(ops.minimum(lengths, 1), "int32"), rows)
    return results | {
        "generated_ids": ops.concatenate([first[..., None], results["generated_ids"]], axis=-1),
        "generated_lengths": results["generated_lengths"] + one * is_found,
    }


def search_behind(
    model: keras.Model,
    search: Search,
    token_ids: Tensor,
    lengths: Tensor,
    max_length: int,
    constraint: Constraint | None = None,
) -> Any:
    """Return what `seqkeras.decoding.decode` generates after prompts, in a TensorFlow graph.

    A cache has no room for the last of the T + 1 tokens, `max_length` being T: no step reads it.
    """
    batch_size = ops.shape(token_ids)[0]
    prompt = behind_first(token_ids, lengths)
    loop = Loop(search, max_length, prompt=prompt, constraint=constraint)

    common, length, tokens = begun(token_ids, lengths, search.num_beams, max_length)
    state = model.initial_state(batch_size, **room_of(model, model.initial_state, max_length))
    step = model.step
    if getattr(model, "reads_prefix", False):
        # The loop counts the steps behind the shortest prompt: a row with a longer one waits.
        waits = lengths - ops.min(lengths)
        logits, state = behind_prompts(model.read, token_ids, lengths, state, waits)
        step = waiting(step)
    else:
        (logits, *_), state = model.read_beams(common, state)
    logits = ops.repeat(logits, search.num_beams, axis=1)
    state = {name: ops.repeat(tensor, search.num_beams, axis=1) for name, tensor in state.items()}
    progress = loop.begin_search(batch_size)
    carried = loop.advance(logits, [], length, tokens, state, progress)
    return search.results(*shrinking_batch.run(step, loop, carried, {}))


def room_of(model: keras.Model, begin: Callable[..., Any], max_length: int) -> dict[str, int]:
    """Return the keyword argument of a model's method `begin` that sets the length of its caches.

    Empty for a model without caches, or a method without such an argument.
    """
    caches = [entry for entry in model.state_entries if "cache_length" in entry.shape]
    takes = "max_length" in inspect.signature(begin).parameters
    return {"max_length": max_length} if caches and takes else {}
