"""Training: options in, a run folder out."""
