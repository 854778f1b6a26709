"""What recurrent encoder-decoders are put together from: stacks, bridges and decoders."""

import numpy as np

from seqkeras.attention import (
    Attention,
    DotScore,
    GeneralScore,
    HardAttention,
    LocalAttention,
    MultiHeadAttention,
)
from seqkeras.models import (
    BahdanauDecoder,
    Bridge,
    ClassicalDecoder,
    LuongDecoder,
    OwnState,
    RecurrentStack,
)
from tests.arrays import floats, right_padded
from tests.catalogue.case import B, Case, D, S, T, U

V, E, W = 19, 7, 13  # target vocabulary, its embeddings, width of the encoder's states
OPTIONS = {"dropout": 0.3, "never_generated": [0, 5]}


def stack_case(cell, **options):
    inputs = {"sequences": floats(B, S, D), "mask": right_padded([5, 3], S)}
    lengths = {"sequences": 1, "mask": 1}
    name = f"RecurrentStack({cell}, {options})"
    return Case(
        name, lambda: RecurrentStack(cell, U, dropout=0.3, **options), lambda: inputs, lengths
    )


def bridge_case(name, make):
    return Case(name, make, lambda: {"states": [floats(B, W), floats(B, W, seed=1)]})


def decoder_case(name, make, num_states=1, context=False, fed=True):
    """A case of a decoder; `fed` if it reads the target."""
    inputs = {
        "target_ids": np.random.default_rng(0).integers(1, V, (B, T)),
        "values": floats(B, S, W),
        "initial_state": [floats(B, W, seed=place) for place in range(num_states)],
        "source_mask": right_padded([5, 3], S),
    }
    if context:
        inputs["context"] = floats(B, W)
    lengths = {"target_ids": 1, "values": 1, "source_mask": 1}
    return Case(name, make, lambda: inputs, lengths, past=("target_ids",) if fed else (), scale=10)


STACKS = [stack_case("gru", num_layers=2), stack_case("lstm", num_layers=2, bidirectional=True)]
BRIDGES = [
    bridge_case("Bridge", lambda: Bridge(U, 2, cell_states=True)),
    bridge_case("Bridge(0)", lambda: Bridge(W, 0)),
    bridge_case("OwnState", lambda: OwnState(U)),
    bridge_case("OwnState(learned)", lambda: OwnState(U, learned=True, cell_states=True)),
]
DECODERS = [
    decoder_case(
        "ClassicalDecoder",
        lambda: ClassicalDecoder(V, E, W, reads_context=True, cell="lstm", **OPTIONS),
        num_states=2,
        context=True,
    ),
    decoder_case(
        "ClassicalDecoder(no word)",
        lambda: ClassicalDecoder(V, None, W, num_layers=2, **OPTIONS),
        num_states=2,
        fed=False,
    ),
    decoder_case(
        "BahdanauDecoder",
        lambda: BahdanauDecoder(V, E, W, Attention(GeneralScore()), readout=False, **OPTIONS),
    ),
    decoder_case(
        "BahdanauDecoder(heads)",
        lambda: BahdanauDecoder(V, E, W, MultiHeadAttention(3, 2), **OPTIONS),
    ),
    decoder_case(
        "BahdanauDecoder(hard)",
        lambda: BahdanauDecoder(V, E, W, HardAttention(DotScore()), entropy_weight=0.1, **OPTIONS),
    ),
    decoder_case(
        "LuongDecoder",
        lambda: LuongDecoder(
            V, E, W, LocalAttention(GeneralScore(), 2), input_feeding=True, **OPTIONS
        ),
    ),
    decoder_case(
        "LuongDecoder(tied)",
        lambda: LuongDecoder(V, W, W, Attention(DotScore()), tie_weights=True, **OPTIONS),
    ),
]
CASES = [*STACKS, *BRIDGES, *DECODERS]
