"""The type of a tensor in annotations."""

from typing import Any, TypeAlias

Tensor: TypeAlias = Any  # TensorFlow, JAX, PyTorch and NumPy have no common class
