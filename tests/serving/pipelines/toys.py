"""Whole bundles of models that answer in a single pass, and the same models for one text in NumPy.

x(t)   = E[token_id(t)] + S[segment_id(t)]
tokens = x W                     (length, n)
pooled = mean of x over the real tokens, times W     (n,)
chain  = x W + A                 (length, n + 1, n)
"""

import numpy as np
from onnx import TensorProto

from seqkeras import serving
from seqkeras.serving.manifest import Limits
from seqkeras.serving.text import word_piece
from tests.serving.written import model_of, save_graphs, write

TOKENS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat on mat ##s do ##g . , h ##e big dog ran to paris "
    "new york ? who where old"
).split()
TOKENIZER = word_piece(TOKENS)
WORDS = [token for token in TOKENS if token.isalpha()]
DIM, LIMIT, VOCAB_SIZE = 7, 31, len(TOKENS)
INPUTS = """int64[batch,length] token_ids, int64[batch] lengths, int64[batch,length] segment_ids"""
CHOICES = INPUTS.replace("[batch", "[batch,choices")
# What stands behind W, by what the model is for: inputs, outputs, nodes.
KINDS = {
    "pooled": (INPUTS, "float[batch,{n}] output", "output = Identity (pooled)"),
    "tokens": (INPUTS, "float[batch,length,{n}] output", "output = Identity (tokens)"),
    "tokens and pooled": (
        INPUTS,
        "float[batch,length,{n}] output",
        "everywhere = Unsqueeze (pooled, but_last)\noutput = Add (tokens, everywhere)",
    ),
    "chain": (
        INPUTS,
        "float[batch,length,{rows},{n}] output",
        "alone = Unsqueeze (tokens, but_last)\noutput = Add (alone, A)",
    ),
    "masked": (
        f"{INPUTS}, int64[batch,masks] masked_positions",
        "float[batch,masks,{n}] output",
        "places_3d = Unsqueeze (masked_positions, last)\n"
        "output = GatherND <batch_dims = 1> (tokens, places_3d)",
    ),
    "span": (
        INPUTS,
        "float[batch,length] start, float[batch,length] end",
        "a, b = Split <axis = -1, num_outputs = 2> (tokens)\n"
        "start = Squeeze (a, last)\nend = Squeeze (b, last)",
    ),
    "choice": (CHOICES, "float[batch,choices] output", "output = Squeeze (pooled, last)"),
}


class Toy:
    """The weights of a model of n outputs, and the model for one `Encoding`."""

    def __init__(self, n, seed=0, vocab_size=VOCAB_SIZE):
        random = np.random.default_rng(seed)
        self.E = random.normal(0, 1, (vocab_size, DIM)).astype("float32")
        self.S = random.normal(0, 1, (2, DIM)).astype("float32")
        self.W = random.normal(0, 1, (DIM, n)).astype("float32")
        self.A = random.normal(0, 1, (n + 1, n)).astype("float32")

    def hidden(self, encoding):
        return self.E[encoding.token_ids] + self.S[encoding.segment_ids]

    def tokens(self, encoding):
        return self.hidden(encoding) @ self.W

    def pooled(self, encoding):
        return self.hidden(encoding).mean(axis=0) @ self.W

    def graph(self, kind):
        inputs, outputs, nodes = KINDS[kind]
        return model_of(
            f"""
            model ({inputs}) => ({outputs.format(n=self.W.shape[1], rows=len(self.A))}) {{
                by_token = Gather (E, token_ids)
                by_segment = Gather (S, segment_ids)
                x = Add (by_token, by_segment)
                tokens = MatMul (x, W)
                shape = Shape <start = -1> (token_ids)
                length = Squeeze (shape)
                places = Range (zero, length, one)
                ends = Unsqueeze (lengths, last)
                real = Less (places, ends)
                real_float = Cast <to = {TensorProto.FLOAT}> (real)
                mask = Unsqueeze (real_float, last)
                masked = Mul (x, mask)
                sum = ReduceSum <keepdims = 0> (masked, but_last)
                count = Cast <to = {TensorProto.FLOAT}> (ends)
                mean = Div (sum, count)
                pooled = MatMul (mean, W)
                {nodes}
            }}
            """,
            E=self.E,
            S=self.S,
            W=self.W,
            A=self.A,
            zero=np.int64(0),
            one=np.int64(1),
            last=np.int64([-1]),
            but_last=np.int64([-2]),
        )


def write_bundle(folder, pipeline, graph, settings=None, tokenizer=TOKENIZER, **changes):
    """Write a bundle of one graph into `folder`, with `changes` to its manifest.

    `tokenizer` is that of the role "text", or a dictionary of several.
    """
    fields = {
        "limits": Limits(source_length=LIMIT),
        "settings": settings or {},
        "tokenizers": tokenizer if isinstance(tokenizer, dict) else {"text": tokenizer},
        "graphs": save_graphs(folder, {"model": graph}),
    }
    return write(folder, pipeline, **(fields | changes))


def load(folder, pipeline, graph, settings=None, **changes):
    """The pipeline of such a bundle."""
    return serving.load(write_bundle(folder, pipeline, graph, settings, **changes), threads=1)


def texts_of_many_lengths(count, seed=0, most=LIMIT - 2):
    """Texts of words of the vocabulary, which are one token each."""
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(1, most + 1))) for _ in range(count)]
