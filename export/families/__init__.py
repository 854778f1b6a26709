"""The graphs of a model, by the way it answers: in a single pass, or token by token.

A model that has all of `HAS_ENCODER_DECODER` is an encoder-decoder, one that has all of
`HAS_LANGUAGE_MODEL` a language model (`seqkeras.decoding` says what these are); any other answers
in a single pass.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from seqkeras.export.families import decoders, saved_models, single
from seqkeras.export.families.attending import attention_graph
from seqkeras.export.families.streams import stream_graph
from seqkeras.export.feeds import ENCODER_DECODER, LANGUAGE_MODEL, SINGLE_PASS
from seqkeras.export.generation.searches import Generation
from seqkeras.export.signatures import Signature
from seqkeras.runs.reference import OwnCall
from seqkeras.serving.manifest import StateEntry
from seqkeras.serving.pipelines.attention import ROLE as ATTENTION
from seqkeras.serving.streams import ROLE as STREAM

if TYPE_CHECKING:
    import keras

    from seqkeras.serving.manifest import TensorSpec
    from seqkeras.streams import Streaming

__all__ = ["ExportPlan", "plan_export"]

HAS_ENCODER_DECODER = ("encode", "step", "state_entries", "target_vocab_size")
HAS_LANGUAGE_MODEL = ("read_beams", "state_entries", "vocab_size")


@dataclasses.dataclass(frozen=True)
class ExportPlan:
    """The graphs and signatures that are exported of a model.

    Attributes:
        kind: "encoder-decoder", "language model" or "single pass".
        graphs: role -> `Signature` of an ONNX graph.
        saved_model: name -> `Signature` of the SavedModel on token ids.
        state: what a decoder step passes to the next.
        own_call: the call that has the outputs of the graph "model"; None for a model of seqkeras.
        streaming: what the graph of a stream computes; None without one.
        fields: name -> value of the manifest's fields that do not describe files; the plan of a run
            has them.

    Example:
        >>> from seqkeras.export.families import plan_export
        >>> from seqkeras.models import RNNLanguageModel
        >>> model = RNNLanguageModel(11, 3, 5)
        >>> model.build(None)
        >>> plan = plan_export(model)
        >>> plan.kind, [entry.per for entry in plan.state]
        ('language model', ['beam', 'beam'])
    """

    kind: str
    graphs: dict[str, Signature]
    saved_model: dict[str, Signature]
    state: tuple[StateEntry, ...] = ()
    own_call: OwnCall | None = None
    streaming: Streaming | None = None
    fields: Mapping = dataclasses.field(default_factory=dict)


def plan_export(
    model: keras.Model,
    inputs: Sequence[TensorSpec] | None = None,
    attention_heads: bool = False,
    feeds: Mapping[str, Any] | None = None,
    vectors: bool = False,
    binding: Mapping[str, Any] | None = None,
    by_numbers: bool = False,
    stream: bool = False,
    **generation: Any,
) -> ExportPlan:
    """Return the graphs and signatures to export of a Keras model.

    Args:
        model: a Keras model that is built.
        inputs: list of `TensorSpec` of a model that answers in a single pass; None to infer them.
        attention_heads: whether to export the attention of each head of each layer too: as outputs
            of an encoder-decoder's step, as a separate graph of any other model.
        feeds: name -> (dtype, shape) of what the pipeline feeds to a model that seqkeras does not
            define; None if no pipeline will serve the model.
        vectors: whether the pipeline answers with vectors.
        binding: name of an input -> its place in the model's own call, where that has another name
            or none: see `seqkeras.export.families.binding.bound`.
        by_numbers: whether the caller can tell by numbers which feed of the pipeline an input of
            another name is; then the error has the possible bindings.
        stream: whether to export the stream of a model of frames, too.
        generation: fields of a `Generation`.

    Returns:
        An `ExportPlan`.

    Raises:
        AmbiguousInputs: a ValueError, if nothing tells which input of the model is which.
        ValueError: if the model's inputs are unknown, it can not be called with them, or it has no
            attention, or no stream, to export.

    Example:
        >>> from seqkeras.export.families import plan_export
        >>> from seqkeras.models import RNNSeq2Seq
        >>> model = RNNSeq2Seq.bahdanau(11, 13, 3, 5, decoder_units=7)
        >>> model.build(None)
        >>> plan = plan_export(model)
        >>> plan.kind, list(plan.graphs)
        ('encoder-decoder', ['encoder', 'decoder_step'])
    """
    generates = Generation(**generation)
    if _has_all(model, HAS_ENCODER_DECODER):
        return ExportPlan(
            ENCODER_DECODER,
            decoders.encoder_decoder_graphs(model, attention_heads),
            saved_models.encoder_decoder(model, generates),
            decoders.state_entries(model),
        )
    if _has_all(model, HAS_LANGUAGE_MODEL):
        graphs = decoders.language_model_graphs(model)
        if attention_heads:
            function = decoders.left_to_right(model, model.attention_weights)
            graphs[ATTENTION] = attention_graph(model, decoders.text_of(model), function)
        return ExportPlan(
            LANGUAGE_MODEL,
            graphs,
            saved_models.language_model(model, generates),
            decoders.state_entries(model),
        )
    graphs, own_call = single.graphs(model, inputs, feeds, vectors, binding, by_numbers)
    saved_model = saved_models.single(model, graphs)
    if attention_heads:
        rows = single.rows_of(model, graphs["model"].inputs)
        paths = own_call.paths if own_call else None
        graphs[ATTENTION] = attention_graph(model, rows, binding=paths)
    state, streaming = (), None
    if stream:
        graphs[STREAM], state, streaming = stream_graph(model, graphs["model"], own_call)
        saved_model[STREAM] = graphs[STREAM]
    return ExportPlan(SINGLE_PASS, graphs, saved_model, state, own_call, streaming)


def _has_all(model, names):
    return all(hasattr(model, name) for name in names)
