"""Tokenizers of `seqkeras.serving.text` in a graph, and what signatures on strings share.

They use core operators of TensorFlow, and of tensorflow-text, which a stock TensorFlow Serving
links: the kernels of WordPiece and SentencePiece, NFC, and regular expressions. Byte-level pairs
use core operators: tensorflow-text has no kernel for them, and KerasNLP's operators split white
space differently and return no offsets.
"""
