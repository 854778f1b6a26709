"""Parts of the tasks; importing them imports Keras."""
