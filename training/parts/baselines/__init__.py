"""Plain methods that a model must beat, on the same validation examples by the same scores."""
