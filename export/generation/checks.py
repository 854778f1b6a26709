"""Assertions in a graph, which ONNX has no operator for.

A Gather with an index out of range is an error of the runtime, whose message contains the node's
name: that name states the violated condition. Does not hold for all providers: some GPU providers
read out of range without an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto

if TYPE_CHECKING:
    from seqkeras.export.generation.graph_composer import GraphComposer

LEAST, MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def checked_inputs(
    composer: GraphComposer,
    vocab_size: int | None = None,
    source_length: int | None = None,
    room: int | None = None,
    source: str = "token_ids",
) -> dict[str, str]:
    """Insert checks between the inputs `token_ids` (B, S) and `lengths` (B,) and their readers.

    Args:
        vocab_size: how many ids there are; None if unknown.
        source_length: the greatest S; None for any.
        room: the most tokens of a prompt, so that something can follow; None for no prompts.
        source: name of the first input; values are checked for token ids only.

    Returns:
        name -> the name of the checked tensor.
    """
    checks = _Checks(composer)
    of_tokens = source == "token_ids"
    rows, columns = (checks.size(source, axis) for axis in (0, 1))
    checks.require(rows, 1, MOST, f"{source}: must have a row at least")
    checks.require(columns, 1, MOST, f"{source}: must have a column at least")
    if source_length is not None:
        demand = f"{source}: at most {source_length} in a row"
        checks.require(columns, LEAST, source_length, demand)
    if of_tokens and vocab_size is None:
        checks.require("token_ids", 0, MOST, "token_ids: each must be from 0 on")
    elif of_tokens:
        demand = f"token_ids: each must be from 0 to {vocab_size - 1}"
        checks.require("token_ids", 0, vocab_size - 1, demand)
    demand = f"lengths: must be as many as {source} has rows"
    checks.require(checks.size("lengths", 0), rows, rows, demand)
    demand = f"lengths: each must be from 1 to the length of {source}"
    checks.require("lengths", 1, columns, demand)
    if room is not None:
        demand = f"lengths: at most {room}, so that something can follow a prompt"
        checks.require("lengths", LEAST, room, demand)
    behind = {name: checks.behind(name) for name in ["token_ids"] * of_tokens + ["lengths"]}
    return {source: source} | behind


class _Checks:
    """Nodes that fail or return 0; the checked tensors depend on them."""

    def __init__(self, composer: GraphComposer):
        self.composer, self.zero = composer, composer.constant("0", np.array(0))

    def size(self, name, axis):
        """Return the size of a tensor along an axis, a scalar."""
        shape = self.composer.node("Shape", [name], f"{name}/shape/{axis}")
        return self.composer.node("Gather", [shape, self._scalar(axis)], f"{name}/size/{axis}")

    def require(self, name, least, most, demand):
        """Fail with the node name `demand` unless all values are from `least` to `most`."""
        limits = [
            limit if isinstance(limit, str) else self._scalar(limit) for limit in (least, most)
        ]
        clipped = self.composer.node("Clip", [name, *limits], f"{demand}/clipped")
        equal = self.composer.node("Equal", [clipped, name], f"{demand}/equal")
        wrong = self.composer.node("Not", [equal], f"{demand}/wrong")
        ones = self.composer.node("Cast", [wrong], f"{demand}/ones", to=TensorProto.INT64)
        count = self.composer.node("ReduceSum", [ones], f"{demand}/count", keepdims=0)
        zeros = self.composer.constant("[0]", np.array([0]))
        zero = self.composer.node("Gather", [zeros, count], demand)
        self.zero = self.composer.node("Add", [self.zero, zero], f"{demand}/and before")

    def behind(self, name):
        """Return the name of a copy of a tensor that is available after all checks."""
        return self.composer.node("Add", [name, self.zero], f"{name}/checked")

    def _scalar(self, number):
        return self.composer.constant(f"{number}", np.array(number))
