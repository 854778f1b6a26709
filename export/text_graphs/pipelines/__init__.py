"""The pipelines of `serving` in graphs: strings in, answers out."""
