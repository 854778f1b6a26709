"""A decoder's step whose caches are buffers: each row has a length of its own, written in place.

A step that appends to its caches copies all of them, at every step: with 32 rows of 200 tokens the
copies of one layer of 512 take ten times as long as the attention itself. onnxruntime's
GroupQueryAttention writes new keys and values behind each row's own, into the buffer that it reads
if a caller binds that as the output too.

    MultiHeadAttention(query, key, value, past)  ->  GroupQueryAttention(…, past, lengths)

Rows of different lengths may so share a step, as iteration-level scheduling needs it.

Reference: Yu et al. 2022, section 4 ("Orca: A Distributed Serving System for Transformer-Based
Generative Models"); the operator:
https://github.com/microsoft/onnxruntime/blob/main/docs/ContribOperators.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from onnx import TensorProto, helper

from seqkeras.export.composites import MICROSOFT
from seqkeras.export.graph import attributes_of, become
from seqkeras.export.onnx_graphs import check, declare
from seqkeras.serving.session import CACHE_LENGTH as PAST
from seqkeras.serving.session import STEP
from seqkeras.serving.slots import LENGTHS
from seqkeras.serving.slots import ROLE as SLOTS

if TYPE_CHECKING:
    from seqkeras.export.graph import Graph
    from seqkeras.export.signatures import Signature

OPERATOR = "GroupQueryAttention"
LAST, TOTAL = f"{LENGTHS}/last", f"{LENGTHS}/total"


def to_trace(signatures: Mapping[str, Signature], portable: bool) -> dict[str, Signature]:
    """Return the signatures that are traced, by role: one for both graphs of a step."""
    left_out = STEP if SLOTS in signatures and not portable else SLOTS
    return {role: signature for role, signature in signatures.items() if role != left_out}


def with_both_steps(
    graphs: Mapping[str, Graph], signatures: Mapping[str, Signature]
) -> dict[str, Graph]:
    """Return the graphs by role, of those that were traced.

    Args:
        graphs: the graphs of `to_trace`; the attention of "decoder_slots" appends to its caches.
            This function owns that graph.
        signatures: all signatures by role.

    Returns:
        For "decoder_slots" two graphs: "decoder_step", which continues the beams that its
        `beam_index` names; and "decoder_slots" itself, but where the attention can not write into
        its caches, as with a bias on the scores.
    """
    graphs = dict(graphs)
    traced = graphs.pop(SLOTS, None)
    if traced is not None:
        graphs[STEP] = _appending(traced, signatures[STEP])
        if _write_in_place(traced):
            graphs[SLOTS] = traced
    return graphs


def _appending(graph, signature):
    """Return the step that reorders its caches, and reads from their length how many tokens they
    have."""
    outputs = {value.name for value in graph.model.graph.output}
    step = graph.copy(outputs)
    caches = [spec.name for spec in signature.inputs if PAST in spec.shape]
    first = caches[0]
    names = {name: f"{name}/continued" for name in caches} | {LENGTHS: f"{LENGTHS}/all"}
    for node in step.nodes:
        for index, name in enumerate(node.input):
            node.input[index] = names.get(name, name)
    step.constants |= {f"{LENGTHS}/flat": np.array([-1])}
    rows = f"{LENGTHS}/rows"
    made = [
        ("Reshape", ["beam_index", f"{LENGTHS}/flat"], rows, {}),
        *(("Gather", [name, rows], names[name], {"axis": 0}) for name in caches),
        ("Shape", [first], f"{LENGTHS}/length", {"start": 2, "end": 3}),
        ("Shape", [rows], f"{LENGTHS}/count", {}),
        ("Expand", [f"{LENGTHS}/length", f"{LENGTHS}/count"], names[LENGTHS], {}),
    ]
    _insert(step, 0, made)
    declare(step, signature.inputs, signature.outputs)
    check(step, STEP)
    return step


def _write_in_place(graph):
    """Let a step write into its caches; return whether each of them can be."""
    caches = {value.name for value in graph.model.graph.input}
    appending = [node for node in graph.nodes if _appends(node)]
    written = {name for node in appending for name in node.input[6:8]}
    outputs = [value for value in graph.model.graph.output if value.name.startswith("next_")]
    if not written or not written <= caches or len(written) != len(outputs):
        return False
    if not all(_is_plain(node) for node in appending):
        return False
    for node in appending:
        heads = attributes_of(node)["num_heads"]
        inputs = [*node.input[:3], *node.input[6:8], LAST, TOTAL]
        become(node, OPERATOR, inputs, MICROSOFT, num_heads=heads, kv_num_heads=heads)
    _add_lengths(graph, appending[0].input[0])
    return True


def _appends(node):
    return node.op_type == "MultiHeadAttention" and len(node.input) > 7 and node.input[6] != ""


def _is_plain(node):
    """Return whether attention is causal, and nothing is added to its scores."""
    return not any(node.input[3:6]) and attributes_of(node).get("unidirectional", 0) == 1


def _add_lengths(graph, query):
    """Add what the operator reads: the place of each row's last token, and the longest length."""
    graph.constants[f"{LENGTHS}/one"] = np.array([1])
    new, lengths, places, longest = (
        f"{LENGTHS}/{name}" for name in ("new", "lengths", "places", "longest")
    )
    made = [
        ("Shape", [query], new, {"start": 1, "end": 2}),
        ("Add", [LENGTHS, new], lengths, {}),
        ("Sub", [lengths, f"{LENGTHS}/one"], places, {}),
        ("Cast", [places], LAST, {"to": TensorProto.INT32}),
        ("ReduceMax", [lengths], longest, {"keepdims": 0}),
        ("Cast", [longest], TOTAL, {"to": TensorProto.INT32}),
    ]
    after = next(index for index, node in enumerate(graph.nodes, start=1) if query in node.output)
    _insert(graph, after, made)


def _insert(graph, index, made):
    """Insert nodes of one output each, (operator, inputs, output, attributes)."""
    nodes = (
        helper.make_node(op_type, inputs, [output], output, **attributes)
        for op_type, inputs, output, attributes in made
    )
    graph.insert(index, *nodes)
