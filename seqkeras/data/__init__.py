"""Data: what the tasks are trained on."""
