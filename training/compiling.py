"""Functions of a model, compiled once for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from seqkeras.decoding import compiled

if TYPE_CHECKING:
    import keras


class OncePerModel:
    """Model -> a compiled function of it; it is made anew only for another model.

    Args:
        function_of: model -> the function that `seqkeras.decoding.compiled` takes.
    """

    def __init__(self, function_of: Callable[[keras.Model], Callable[..., Any]]):
        self.function_of = function_of
        self._model = self._compiled = None

    def __call__(self, model: keras.Model) -> Any:
        if model is not self._model:
            self._model, self._compiled = model, compiled(self.function_of(model))
        return self._compiled
