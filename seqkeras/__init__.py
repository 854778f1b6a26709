"""Sequence models from RNN to BERT as Keras layers and models."""

__version__ = "0.1.0"
