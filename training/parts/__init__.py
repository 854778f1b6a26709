"""What the tasks are made of; it is imported with Keras."""
