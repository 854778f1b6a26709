"""A bundle with a language model of a few hundred weights, whose cache is its memory.

What token y leaves in the cache depends on its place t; the last token and the sum of all give

    entry_t = E[y_t] * P[t]        logits_t = sum_{s <= t} entry_s W + M[y_t]
"""

import numpy as np

from seqkeras.serving.manifest import DecodingDefaults, Limits, StateEntry
from seqkeras.serving.text import BOS, EOS, UNK, CharacterTable
from tests.serving.written import model_of, save_graphs, write

TABLE = CharacterTable.learn(["abcdefg"])
LIMIT, MEMORY, VOCAB_SIZE = 17, 5, len(TABLE)
DECODING = DecodingDefaults(start_id=BOS, end_id=EOS)


class ToyLanguageModel:
    """The weights, and the model for one text."""

    def __init__(self, vocab_size=VOCAB_SIZE, limit=LIMIT, unknown=0.0):
        random = np.random.default_rng(0)
        self.E = random.normal(0, 1, (vocab_size, MEMORY)).astype("float32")
        self.P = random.normal(0, 1, (limit, MEMORY)).astype("float32")
        self.W = random.normal(0, 1, (MEMORY, vocab_size)).astype("float32")
        self.M = random.normal(0, 1, (vocab_size, vocab_size)).astype("float32")
        self.M[:, UNK] += unknown

    def log_probs(self, token_ids):
        """The (V,) log-probabilities of what follows the ids."""
        memory = (self.E[token_ids] * self.P[: len(token_ids)]).sum(axis=0)
        logits = (memory @ self.W + self.M[token_ids[-1]]).astype("float64")
        return logits - np.log(np.exp(logits).sum())

    def behind(self, prompt):
        """The function of what is generated that `tests.serving.references` takes."""
        return lambda token_ids: self.log_probs([*prompt, *token_ids])


def write_bundle(folder, model=None, tokenizer=TABLE, **changes):
    """Write the bundle of `model` into `folder`, with `changes` to its manifest."""
    model = model or ToyLanguageModel()
    fields = {
        "limits": Limits(len(model.P), len(model.P)),
        "decoding": DECODING,
        "state": (StateEntry("entries", "beam"),),
    }
    graphs = save_graphs(folder, {"decoder_step": decoder_step_graph(model)})
    return write(folder, "Generate", graphs, {"text": tokenizer}, **(fields | changes))


def decoder_step_graph(model):
    """token_ids, beam_index, k, entries -> candidates, logits, the next entries."""
    vocab_size = len(model.E)
    return model_of(
        f"""
        decoder_step (
            int64[batch,beam,length] token_ids, int64[batch,beam] beam_index, int64 k,
            float[previous_rows,1,past_length,{MEMORY}] entries
        ) => (
            float[batch,beam,k] candidate_log_probs, int64[batch,beam,k] candidate_ids,
            float[batch,beam,{vocab_size}] logits,
            float[rows,1,total_length,{MEMORY}] next_entries
        ) {{
            rows_index = Reshape (beam_index, last)
            past = Gather (entries, rows_index)
            past_shape = Shape (past)
            past_length = Gather (past_shape, int_2)
            ids_shape = Shape (token_ids)
            length = Gather (ids_shape, int_2)
            total = Add (past_length, length)
            places = Range (past_length, total, int_1)
            at_places = Gather (P, places)
            embedded = Gather (E, token_ids)
            new = Mul (embedded, at_places)
            length_1 = Unsqueeze (length, axis_0)
            memory_1 = Constant <value_ints = [{MEMORY}]> ()
            new_shape = Concat <axis = 0> (last, axis_1, length_1, memory_1)
            new_rows = Reshape (new, new_shape)
            next_entries = Concat <axis = 2> (past, new_rows)
            memory_rows = ReduceSum <keepdims = 0> (next_entries, axes_1_2)
            beam_shape = Shape (beam_index)
            memory_shape = Concat <axis = 0> (beam_shape, memory_1)
            memory = Reshape (memory_rows, memory_shape)
            from_memory = MatMul (memory, W)
            last_ids = Gather <axis = 2> (token_ids, minus_one)
            from_last = Gather (M, last_ids)
            logits = Add (from_memory, from_last)
            log_probs = LogSoftmax <axis = -1> (logits)
            k_1 = Unsqueeze (k, axis_0)
            candidate_log_probs, candidate_ids = TopK <axis = -1> (log_probs, k_1)
        }}
        """,
        minus_one=np.int64(-1),
        **vars(model),
    )
