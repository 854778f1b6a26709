"""Tokenizers of `serving.text` in a graph, and the signatures on strings that they make.

Beside core operators of TensorFlow they hold those of tensorflow-text, which a stock TensorFlow
Serving links: its kernels of WordPiece and SentencePiece, its NFC, its regular expressions.
Byte-level pairs are core operators: no kernel of tensorflow-text makes them, and KerasNLP's
operators split white space otherwise and do not say where a token lies.
"""
