"""One ONNX graph from token ids to token ids: a Loop around the exported step graph.

The loop of `seqkeras.decoding` is traced in three parts: before the steps, after each step, and at
the end. The step itself is the graph that `serving` runs too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from seqkeras.export.generation.checks import checked_inputs
from seqkeras.export.generation.graph_composer import GraphComposer
from seqkeras.export.generation.search_parts import PROMPT, SearchParts

if TYPE_CHECKING:
    from seqkeras.decoding import Constraint
    from seqkeras.export.graph import Graph
    from seqkeras.export.signatures import Signature
    from seqkeras.serving.manifest import DecodingDefaults


def encoder_decoder(
    graphs: Mapping[str, Graph],
    signatures: Mapping[str, Signature],
    decoding: DecodingDefaults,
    max_length: int,
    portable: bool = False,
    constraint: Constraint | None = None,
    vocab_size: int | None = None,
    source_length: int | None = None,
) -> Graph:
    """Return the graph (token_ids, lengths) -> (generated_ids, generated_lengths, scores).

    For an encoder of frames, frames replace token_ids. A result has at most `max_length` tokens,
    `<eos>` among them. Invalid inputs are an error of the runtime, whose message states the
    condition; `vocab_size` and `source_length` limit a source, None for no limit.
    """
    search = SearchParts(decoding, max_length, signatures["decoder_step"], constraint)
    parts = search.convert(portable)
    composer = GraphComposer()
    [source, _] = (spec.name for spec in signatures["encoder"].inputs)
    inputs = checked_inputs(composer, vocab_size, source_length, source=source)
    state = composer.add(graphs["encoder"], "encoder", inputs)
    carried = composer.add(parts["begin"], "begin", {"lengths": inputs["lengths"]})
    state |= composer.empty_caches(signatures["decoder_step"])
    carried = composer.loop(graphs["decoder_step"], parts["advance"], carried, state, max_length)
    return composer.finish(parts["results"], carried, signatures["encoder"].inputs)


def language_model(
    graphs: Mapping[str, Graph],
    signatures: Mapping[str, Signature],
    decoding: DecodingDefaults,
    max_length: int,
    portable: bool = False,
    constraint: Constraint | None = None,
) -> Graph:
    """Return the graph (token_ids, lengths) -> (generated_ids, generated_lengths, scores).

    The common length of all prompts is read in one step; the rest of the longer ones is forced,
    step by step. A result begins with its prompt, which does not count in its score, and has at
    most `max_length` tokens. Invalid inputs are an error of the runtime, as above.
    """
    signature = signatures["decoder_step"]
    search = SearchParts(decoding, max_length, signature, constraint, prompted=True)
    parts = search.convert(portable)
    composer = GraphComposer()
    inputs = checked_inputs(composer, search.vocab_size, room=max_length - 1)
    begun = composer.add(parts["begin"], "begin", inputs)
    state = composer.empty_caches(signature) | composer.zero_states(signature)
    step = graphs["decoder_step"].copy(
        [spec.name for spec in signature.outputs if spec.name.startswith(("logits", "next_"))]
    )
    read = {"token_ids": begun["common"], "beam_index": begun["rows"]}
    stepped = composer.add(step, "prompt", state | read)
    logits = composer.apply("Expand", stepped["logits"], np.array([1, search.beams, 1]))
    advanced = composer.add(parts["advance"], "first", inputs | begun | {"logits": logits})
    going = advanced.pop("going")  # false if the first token reaches `max_length`
    carried = {
        name.removeprefix("next_"): tensor
        for name, tensor in (stepped | advanced).items()
        if name.startswith("next_")
    }
    # After the prompt the state has one beam, from which all beams continue.
    carried["beam_index"] = composer.apply("Div", carried["beam_index"], np.array(search.beams))
    carried = composer.loop(
        graphs["decoder_step"], parts["advance"], carried, inputs, max_length, going
    )
    return composer.finish(parts["results"], carried, PROMPT, inputs)
