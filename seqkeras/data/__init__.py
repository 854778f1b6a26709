"""Data of the training tasks."""
