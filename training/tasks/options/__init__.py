"""The options of each task, and its help; they are read without Keras."""
