"""One ONNX graph from token ids to token ids: a Loop around the exported step graph.

What stands before the steps, behind each of them and at the end is the loop of `seqkeras.decoding`
itself, traced in these three parts; the step between them is the graph that `serving` runs too.
"""

import numpy as np

from export.generation.checks import checked_inputs
from export.generation.joining import Joined
from export.generation.searches import PromptedSearch, Search


def encoder_decoder(
    graphs,
    signatures,
    decoding,
    max_length,
    portable=False,
    constraint=None,
    vocab_size=None,
    source_length=None,
):
    """The graph (token_ids, lengths) -> (generated_ids, generated_lengths, scores).

    An encoder of frames takes these in the place of token_ids. Inputs that can not be meant are an
    error of the runtime, which says what must hold.

    Args:
        graphs: "encoder" and "decoder_step", `export.graph.Graph`s.
        signatures: the `Signature`s that they were made of.
        decoding: the manifest's `DecodingDefaults`: one beam is greedy search.
        max_length: the most tokens of a result, `<eos>` among them.
        portable: as of the graphs.
        constraint: a `seqkeras.decoding.Constraint` of results, or None.
        vocab_size: how many ids a source may have; None if that is not known.
        source_length: the most tokens of a source; None for any number.

    Returns:
        An `export.graph.Graph`.
    """
    search = Search(decoding, max_length, signatures["decoder_step"], constraint)
    parts = search.convert(portable)
    joined = Joined()
    [source, _] = (spec.name for spec in signatures["encoder"].inputs)
    given = checked_inputs(joined, vocab_size, source_length, source=source)
    state = joined.add(graphs["encoder"], "encoder", given)
    carried = joined.add(parts["begin"], "begin", {"lengths": given["lengths"]})
    state |= joined.empty_caches(signatures["decoder_step"])
    carried = joined.loop(graphs["decoder_step"], parts["advance"], carried, state, max_length)
    return joined.finish(parts["results"], carried, signatures["encoder"].inputs)


def language_model(graphs, signatures, decoding, max_length, portable=False, constraint=None):
    """The graph (token_ids, lengths) of prompts -> (generated_ids, generated_lengths, scores).

    What all prompts have is read at once; what the longer ones have beyond is forced, step by step.
    A result begins with its prompt, which costs nothing. Inputs that can not be meant are an error
    of the runtime, which says what must hold.

    Args:
        graphs: "decoder_step", an `export.graph.Graph`.
        signatures, decoding, portable, constraint: see `encoder_decoder`.
        max_length: the most tokens of a prompt and its continuation, `<eos>` among them.

    Returns:
        An `export.graph.Graph`.
    """
    signature = signatures["decoder_step"]
    search = PromptedSearch(decoding, max_length, signature, constraint)
    parts = search.convert(portable)
    joined = Joined()
    given = checked_inputs(joined, search.vocab_size, room=max_length - 1)
    begun = joined.add(parts["begin"], "begin", given)
    state = joined.empty_caches(signature) | joined.zero_states(signature)
    step = graphs["decoder_step"].copy(
        [each.name for each in signature.outputs if each.name.startswith(("logits", "next_"))]
    )
    read = {"token_ids": begun["common"], "beam_index": begun["rows"]}
    stepped = joined.add(step, "prompt", state | read)
    logits = joined.apply("Expand", stepped["logits"], np.array([1, search.beams, 1]))
    advanced = joined.add(parts["advance"], "first", given | begun | {"logits": logits})
    going = advanced.pop("going")  # not if the first token fills the room
    carried = {
        name.removeprefix("next_"): each
        for name, each in (stepped | advanced).items()
        if name.startswith("next_")
    }
    # The state behind the prompt is of one beam, whatever number of beams goes on from it.
    carried["beam_index"] = joined.apply("Div", carried["beam_index"], np.array(search.beams))
    carried = joined.loop(
        graphs["decoder_step"], parts["advance"], carried, given, max_length, going
    )
    return joined.finish(parts["results"], carried, search.prompt, given)
