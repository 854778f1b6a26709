"""Encoder-decoders: `encode` a source, then `step` through the target."""

import numpy as np

from seqkeras.models import RNNSeq2Seq
from tests.catalogue.case import B, Case, S, T


def translation_inputs():
    random = np.random.default_rng(0)
    return {
        "token_ids": random.integers(1, 17, (B, S)),
        "lengths": np.array([5, 3]),
        "target_ids": random.integers(1, 19, (B, T)),
    }


def seq2seq_case(cell):
    def make():
        return RNNSeq2Seq(
            source_vocab_size=17,
            target_vocab_size=19,
            embedding_dim=7,
            units=11,
            decoder_units=13,
            cell=cell,
            dropout=0.3,
            never_generated=[0, 5],
        )

    lengths = {"token_ids": 1, "target_ids": 1}
    return Case(f"RNNSeq2Seq({cell})", make, translation_inputs, lengths, past=("target_ids",))


CASES = [seq2seq_case("gru"), seq2seq_case("lstm")]
