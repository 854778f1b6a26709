"""Transformer: blocks of attention and feed-forward, as encoder and as decoder."""

from seqkeras.transformer.decoder import Decoder, DecoderBlock
from seqkeras.transformer.encoder import Encoder, EncoderBlock
from seqkeras.transformer.feed_forward import FeedForward
from seqkeras.transformer.layer_norm import LayerNorm
from seqkeras.transformer.two_stream import TwoStreamBlock, TwoStreamDecoder

__all__ = [
    "Decoder",
    "DecoderBlock",
    "Encoder",
    "EncoderBlock",
    "FeedForward",
    "LayerNorm",
    "TwoStreamBlock",
    "TwoStreamDecoder",
]
