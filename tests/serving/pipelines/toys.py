"""Whole bundles of models that answer in a single pass, and the same models for one text in NumPy.

x(t)   = E[token_id(t)] + S[segment_id(t)]
tokens = x W                     (length, n)
pooled = mean of x over the real tokens, times W     (n,)
chain  = x W + A                 (length, n + 1, n)
"""

import io

import numpy as np
import sentencepiece
from onnx import TensorProto
from tokenizers import Tokenizer, decoders, models

from seqkeras import serving
from seqkeras.serving.manifest import Limits
from seqkeras.serving.text import SentencePieces, Subwords, WordTable, byte_pairs, word_piece
from tests.references.tokenizers import bytes_to_characters
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
                places = Range (int_0, length, int_1)
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
            **vars(self),
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
    return serving.load(write_bundle(folder, pipeline, graph, settings, **changes), threads=1)


def texts_of_many_lengths(count, seed=0, most=LIMIT - 2):
    """Texts of words of the vocabulary, which are one token each."""
    random = np.random.default_rng(seed)
    return [" ".join(random.choice(WORDS, random.integers(1, most + 1))) for _ in range(count)]


FORECAST = np.random.default_rng(0).normal(size=(6, 2 * 4)).astype("float32")


def forecaster(num_features=3, known="", quantiles=""):
    """The sum of the real steps times W, as (2 steps, 4 targets), or 2 targets of 2 quantiles."""
    nodes = "summed = Add (own, known)" if known else "summed = Identity (own)"
    shape = [0, 2, 2, 2] if quantiles else [0, 2, 4]
    size = "2,2,2" if quantiles else "2,4"
    known = ", float[batch,2,4] known" if known else ""
    return model_of(
        f"""
        model (float[batch,length,{num_features}] window, int64[batch] lengths{known}) =>
            (float[batch,{size}] output)
        {{
            shape = Shape <start = 1, end = 2> (window)
            length = Squeeze (shape)
            places = Range (int_0, length, int_1)
            ends = Unsqueeze (lengths, axis_1)
            real = Less (places, ends)
            real_float = Cast <to = 1> (real)
            mask = Unsqueeze (real_float, last)
            masked = Mul (window, mask)
            sum = ReduceSum <keepdims = 0> (masked, axis_1)
            flat = MatMul (sum, W)
            own = Reshape (flat, steps)
            {nodes}
            output = Reshape (summed, sizes)
        }}
        """,
        W=FORECAST[:num_features],
        steps=np.int64([0, 2, 4]),
        sizes=np.int64(shape),
    )


FRAMES = np.random.default_rng(5).normal(size=(4, 3)).astype("float32")


def frames_graph(weights=FRAMES, per_frame=False):
    """The logits of each frame, its numbers times weights, or the sum of them all."""
    nodes = (
        "output = Identity (own)" if per_frame else "output = ReduceSum <keepdims=0> (own, axis_1)"
    )
    num_features, size = weights.shape
    shape = f"batch,length,{size}" if per_frame else f"batch,{size}"
    inputs = f"float[batch,length,{num_features}] frames, int64[batch] lengths"
    return model_of(
        f"""
        model ({inputs}) => (float[{shape}] output) {{
            own = MatMul (frames, W)
            {nodes}
        }}
        """,
        W=weights,
    )


TREE_WORDS = WordTable.learn("a very good bad film".split())
TREE = "(3 (2 A) (4 (2 good) (2 (very) (unheard))))"
TREE_INPUTS = """int64[batch,nodes] token_ids, int64[batch] lengths, int64[batch,nodes,3] children,
int64[batch,height,width] levels"""


def tree_graph(n=2):
    """logits(node) = E[word], and 10 more for the first label of a node that has children."""
    E = np.random.default_rng(0).normal(0, 1, (len(TREE_WORDS), n)).astype("float32")
    return E, model_of(
        f"""
        model ({TREE_INPUTS}) => (float[batch,nodes,{n}] output) {{
            by_word = Gather (E, token_ids)
            most = ReduceMax <keepdims = 1> (children, last)
            inner = GreaterOrEqual (most, int_0)
            ten = Where (inner, tens, zeros)
            output = Add (by_word, ten)
        }}
        """,
        E=E,
        tens=np.float32([[[10] + [0] * (n - 1)]]),
        zeros=np.float32([[[0] * n]]),
    )


BYTES = ["<|endoftext|>", *bytes_to_characters().values()]


def of_bytes(more=(), merges=()):
    """Byte-level BPE of a token for each byte, <|endoftext|> before them, and of these merges."""
    return byte_pairs({token: place for place, token in enumerate([*BYTES, *more])}, [*merges])


def with_byte_fallback():
    """BPE as Llama's: spaces are part of tokens, and what is unknown is bytes."""
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    vocabulary = {token: place for place, token in enumerate(["<unk>", *bytes_, *"▁abcdé,.", "▁a"])}
    options = {"byte_fallback": True, "unk_token": "<unk>"}
    tokenizer = Tokenizer(models.BPE(vocabulary, [("▁", "a")], **options))
    parts = decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()
    tokenizer.decoder = decoders.Sequence([*parts, decoders.Strip(" ", 1, 0)])
    return Subwords(tokenizer.to_str())


def sentence_pieces(texts=("the old dogs ran", "to the cat"), ends=True, **options):
    """SentencePiece learned from texts, with <s> and </s> around a text."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*texts] * 5),
        model_writer=written,
        hard_vocab_limit=False,
        minloglevel=2,
        **{"vocab_size": 60, "model_type": "bpe"} | options,
    )
    return SentencePieces(
        written.getvalue(), **{"prefix": ["<s>"], "suffix": ["</s>"]} if ends else {}
    )
