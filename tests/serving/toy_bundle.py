"""A whole bundle with a model of a few dozen weights that moves each letter on by one.

    "up|bad" -> "cbe"

The model is written twice: as the two ONNX graphs of the contract, and below as NumPy for one
source and one hypothesis, which the tests hold the pipeline against. Its source position p counts
up, a soft attention looks at p, and a memory of all tokens so far gives each prefix a distribution
of its own:

    weights_s = softmax_s(-2 (p - s)^2)             over the source's own positions
    memory'   = tanh(memory / 2 + E[token])
    logits    = weights . onehot(source) M + memory' W + 9 max(0, p - length + 1) onehot(<eos>)
    p'        = p + 1
"""

import numpy as np
from onnx import TensorProto

from seqkeras.serving.manifest import Limits, SignatureSpec, StateEntry, TensorSpec, TextPrefix
from seqkeras.serving.text import BOS, EOS, CharacterTable
from tests.serving.written import model_of, save_graphs, write

LETTERS = "abcdefg"
SOURCE = CharacterTable.learn([LETTERS, "updown|"])
TARGET = CharacterTable.learn([LETTERS])
PREFIXES = ("down", "up")
EXAMPLES = ("up|bad", "up|cab", "down|egad")
SOURCE_LENGTH, TARGET_LENGTH, MEMORY = 13, 7, 5
STATE = (
    StateEntry("position", "beam"),
    StateEntry("memory", "beam"),
    StateEntry("keys", "source"),
    StateEntry("lengths", "source"),
)


class ToyModel:
    """The weights, and the model for one source and one hypothesis."""

    def __init__(self, seed=0):
        random = np.random.default_rng(seed)
        source, target = len(SOURCE), len(TARGET)
        self.M = random.normal(0, 0.3, (source, target)).astype("float32")
        for letter, following in zip(LETTERS, LETTERS[1:] + LETTERS[:1]):
            self.M[SOURCE.encode(letter), TARGET.encode(following)] += 3
        self.E = random.normal(0, 1, (target, MEMORY)).astype("float32")
        self.W = random.normal(0, 0.5, (MEMORY, target)).astype("float32")

    def log_probs(self, source, target):
        """The (V,) log-probabilities of what follows the ids `target` of the ids `source`."""
        memory = np.zeros(MEMORY)
        for token in [BOS, *target]:
            memory = np.tanh(memory / 2 + self.E[token])
        onehot = np.eye(len(SOURCE))[source]
        position = start(source) + len(target)
        logits = self.attention(source, len(target)) @ onehot @ self.M + memory @ self.W
        logits[EOS] += 9 * max(0, position - len(source) + 1)
        logits[:EOS] = -np.inf
        return logits - np.log(np.exp(logits).sum())

    def attention(self, source, t):
        """The (S,) weights with which target token t looks at the ids `source`."""
        scores = np.exp(-2.0 * (start(source) + t - np.arange(len(source))) ** 2)
        return scores / scores.sum()


def start(source):
    """Where the text begins, behind the prefix."""
    return list(source).index(SOURCE.encode("|")[0]) + 1


def write_bundle(folder, model=None, **changes):
    """Write the bundle of `model` into `folder`, with `changes` to its manifest."""
    models = {"encoder": encoder_graph(), "decoder_step": decoder_step_graph(model or ToyModel())}
    graphs = save_graphs(folder, models)
    (folder / "saved_model/1").mkdir(parents=True)
    (folder / "saved_model/1/saved_model.pb").write_bytes(b"not opened by serving")
    fields = {
        "task": "letters",
        "text_prefix": TextPrefix(name="direction", separator="|", values=PREFIXES),
        "limits": Limits(source_length=SOURCE_LENGTH, target_length=TARGET_LENGTH),
        "state": STATE,
        "saved_models": {
            "saved_model/1": {
                "serving_default": SignatureSpec(
                    inputs=(TensorSpec("token_ids", "int64", ("batch", "source_length")),),
                    outputs=(TensorSpec("logits", "float32", ("batch", "target_length", 11)),),
                )
            }
        },
        "examples": EXAMPLES,
        "scores": {"exact_match": 0.9875, "by_direction": {"up": 1.0, "down": 0.975}},
        "parity": {"max_difference": 1.5e-6},
        "pipeline": "Translate",
    } | changes
    tokenizers = {"source": SOURCE, "target": TARGET}
    return write(folder, graphs=graphs, tokenizers=tokenizers, **fields)


def encoder_graph(tokenizer=SOURCE, bar="|"):
    """token_ids, lengths -> the state before the first step, which looks behind the token `bar`."""
    vocab_size = len(tokenizer)
    return model_of(
        f"""
        encoder (int64[batch,source_length] token_ids, int64[batch] lengths) => (
            float[batch,1,1] position, float[batch,1,{MEMORY}] memory,
            float[batch,source_length,{vocab_size}] keys, int64[batch] lengths
        ) {{
            keys = OneHot (token_ids, depth, off_on)
            is_bar = Equal (token_ids, bar)
            is_bar_float = Cast <to = {TensorProto.FLOAT}> (is_bar)
            bar_at = ArgMax <axis = 1, keepdims = 1> (is_bar_float)
            bar_at_float = Cast <to = {TensorProto.FLOAT}> (bar_at)
            start = Add (bar_at_float, one)
            position = Unsqueeze (start, axis_2)
            memory = Mul (position, no_memory)
        }}
        """,
        depth=np.int64(vocab_size),
        off_on=np.float32([0, 1]),
        bar=np.int64(tokenizer.id_of(bar)),
        no_memory=np.zeros((1, 1, MEMORY), "float32"),
    )


def decoder_step_graph(model, end_id=EOS):
    """token_ids, beam_index, k, state -> candidates, the next state."""
    source_size, vocab_size = model.M.shape
    return model_of(
        f"""
        decoder_step (
            int64[batch,beam] token_ids, int64[batch,beam] beam_index, int64 k,
            float[previous_batch,previous_beam,1] position,
            float[previous_batch,previous_beam,{MEMORY}] memory,
            float[batch,source_length,{source_size}] keys, int64[batch] lengths
        ) => (
            float[batch,beam,k] candidate_log_probs, int64[batch,beam,k] candidate_ids,
            float[batch,beam,{vocab_size}] logits,
            float[batch,beam,source_length] attention_weights,
            float[batch,beam,1] next_position, float[batch,beam,{MEMORY}] next_memory
        ) {{
            positions = Reshape (position, rows_of_1)
            p = Gather (positions, beam_index)
            memories = Reshape (memory, rows_of_memory)
            m = Gather (memories, beam_index)

            shape = Shape (keys)
            source_length = Gather (shape, int_1)
            places = Range (int_0, source_length, int_1)
            lengths_column = Unsqueeze (lengths, axis_1)
            own = Less (places, lengths_column)
            padding_mask = Unsqueeze (own, axis_1)
            places_float = Cast <to = {TensorProto.FLOAT}> (places)
            distance = Sub (p, places_float)
            distance_2 = Mul (distance, distance)
            scores = Mul (distance_2, sharpness)
            masked = Where (padding_mask, scores, minus_infinity)
            attention_weights = Softmax <axis = -1> (masked)
            context = MatMul (attention_weights, keys)

            half = Mul (m, one_half)
            embedded = Gather (E, token_ids)
            sum = Add (half, embedded)
            next_memory = Tanh (sum)

            lengths_float = Cast <to = {TensorProto.FLOAT}> (lengths_column)
            lengths_cube = Unsqueeze (lengths_float, axis_1)
            next_position = Add (p, one)
            overrun = Sub (next_position, lengths_cube)
            positive = Relu (overrun)
            ending = Mul (positive, eos)

            from_source = MatMul (context, M)
            from_memory = MatMul (next_memory, W)
            both = Add (from_source, from_memory)
            all = Add (both, ending)
            logits = Add (all, banned)
            log_probs = LogSoftmax <axis = -1> (logits)
            k_vector = Unsqueeze (k, axis_0)
            candidate_log_probs, candidate_ids = TopK <axis = -1> (log_probs, k_vector)
        }}
        """,
        rows_of_1=np.int64([-1, 1]),
        rows_of_memory=np.int64([-1, MEMORY]),
        sharpness=np.float32(-2),
        minus_infinity=np.float32(-np.inf),
        one_half=np.float32(0.5),
        eos=np.float32(9) * np.eye(vocab_size, dtype="float32")[end_id],
        banned=np.float32([-np.inf] * end_id + [0] * (vocab_size - end_id)),
        **vars(model),
    )
