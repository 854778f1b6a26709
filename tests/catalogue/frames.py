"""Encoder-decoders whose source is frames, and not tokens."""

import functools

from seqkeras.models import RNNSeq2Seq, Transformer
from tests.arrays import floats
from tests.catalogue import seq2seq, transformer_models
from tests.catalogue.case import B, Case, S

FEATURES = 5
OF_FRAMES = {"source_vocab_size": None, "source_features": FEATURES}
SCALING = [[0.3, -0.5, 0.0, 0.7, 0.2], [1.3, 0.5, 1.0, 0.7, 1.1]]  # means, deviations


def inputs():
    tokens = seq2seq.translation_inputs()
    rest = {name: tokens[name] for name in ("lengths", "target_ids")}
    return {"frames": floats(B, S, FEATURES), **rest}


def recurrent(**options):
    arguments = seq2seq.SIZES | OF_FRAMES | {"cell": "lstm", "dropout": 0.3, "encoder_layers": 2}
    return RNNSeq2Seq.bahdanau(**arguments | options)


def transformer(**options):
    sizes = transformer_models.SIZES | OF_FRAMES | {"num_layers": 1, "dropout": 0.3}
    return Transformer(**sizes | {"target_vocab_size": 19, "max_length": 13} | options)


CASES = [
    Case(
        f"{name}(frames)",
        functools.partial(make, source_scaling=SCALING),
        inputs,
        {"frames": 1, "target_ids": 1},
        past=("target_ids",),
    )
    for name, make in (("RNNSeq2Seq", recurrent), ("Transformer", transformer))
]
