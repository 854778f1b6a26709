"""Tokenizers of `serving.text` in a graph, and the signatures on strings that they make.

They hold core operators of TensorFlow only, so a stock TensorFlow Serving loads them.
"""
