"""Decoding: from a decoder's step to token ids.

The loop knows no model and no text. It runs any step that keeps this contract:

    step(token_ids, state) -> ((logits, *others), state)

`token_ids` is (B, K), the last token of each of K beams; a search without beams has K = 1. `logits`
is (B, K, V), of the next token, before softmax. `others` is empty, or begins with the attention to
the source, (B, K, S). B is the batch, V the vocabulary, S the length of the source.

The state is a flat dictionary of tensors. An entry per beam has shape (B, K, ...), and before the
first step (B, 1, ...); the step returns its next value, and a search reorders it with the beams. An
entry per source has shape (B, ...); the step reads it, and nothing changes, reorders or repeats
it. `StateEntry` describes an entry.

A function is enough for a search with one beam. A model has the step as a method. The loop and
export read these attributes of it:

    step(token_ids, state)    the step
    state_entries             a list of StateEntry, one for each entry of the state
    position_limit            the number of positions, or None; may be left out

A language model also has

    vocab_size                     V
    initial_state(batch_size)      the state before the first token
    read_beams(token_ids, state)   reads (B, K, T) tokens, and returns as step after the last
    model({"token_ids": ...})      (B, T, V) logits of a whole text; export alone calls it

An encoder-decoder also has

    target_vocab_size            V
    encode(token_ids, lengths)   the state before the first token, of (B, S) sources
    model({"token_ids": ..., "lengths": ..., "target_ids": ...})
                                 (B, T, V) logits of whole targets; export alone calls it

If a cache in the state has room for a fixed number of tokens, `initial_state` and `encode` take
`max_length`, the room. In an exported graph a cache grows instead; `seqkeras.transformer.Decoder`
reads both. An encoder-decoder with an attribute `source_features` takes frames, (B, S,
source_features), in place of the source's `token_ids`.

`seqkeras.models.GPT`, `seqkeras.models.RNNLanguageModel`, `seqkeras.models.Transformer` and
`seqkeras.models.RNNSeq2Seq` keep the contract.
"""

from seqkeras.decoding.beam import beam
from seqkeras.decoding.compiled import compiled
from seqkeras.decoding.constraint import Constraint
from seqkeras.decoding.greedy import greedy
from seqkeras.decoding.loop import Search, StateEntry, decode, generate
from seqkeras.decoding.processors import (
    BannedTokens,
    ForcedToken,
    MinLength,
    Prefix,
    RepetitionPenalty,
    Temperature,
    TopK,
    TopP,
)
from seqkeras.decoding.rows import in_batches
from seqkeras.decoding.sampling import sample
from seqkeras.decoding.spans import best_spans

__all__ = [
    "BannedTokens",
    "Constraint",
    "ForcedToken",
    "MinLength",
    "Prefix",
    "RepetitionPenalty",
    "Search",
    "StateEntry",
    "Temperature",
    "TopK",
    "TopP",
    "beam",
    "best_spans",
    "compiled",
    "decode",
    "generate",
    "greedy",
    "in_batches",
    "sample",
]
