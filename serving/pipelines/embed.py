"""Vectors of texts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ..checks import require_flag, shown
from ..results import Embedding
from .batching import TOKEN_BUDGET
from .inputs import TextReader, encoded, one_or_all, text_of
from .model import Model
from .settings import read_settings, wrong_output

SMALLEST = 1e-12  # norm that divides


@dataclass(frozen=True)
class Settings:
    """See `serving.pipelines`."""

    output: str | None = None
    normalize: bool = True

    def problems(self, outputs):
        """Yield what is wrong."""
        yield from wrong_output(outputs, self.output, ("batch", "dim"))


class Embed:
    """The vector of a text, of length 1 if the settings say so.

        similarity(a, b) = a . b / (‖a‖ ‖b‖)

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`, how its graph is run.

    Raises:
        BundleError: if the graph, the tokenizer or the settings are not what the pipeline needs.

    Reference: Reimers and Gurevych 2019, section 3, https://arxiv.org/abs/1908.10084
    """

    def __init__(self, folder, manifest, runtime=None):
        self.manifest = manifest
        self._settings = read_settings(folder, manifest, Settings)
        self._reader = TextReader(folder, manifest)
        self._model = Model(folder, manifest, runtime, [self._settings.output])

    def __call__(self, texts, normalize=None, truncate=False, token_budget=TOKEN_BUDGET):
        """Answer a text, or each text of a list.

        Args:
            texts: a string, or a dictionary of "text"; or a list of such.
            normalize: whether vectors have length 1; None: as the manifest says.
            truncate: cut what is over the limit.
            token_budget: the most tokens of a batch, padding among them.

        Returns:
            An `Embedding`; for a list, the list of theirs, in its order.

        Raises:
            ValueError: if a text is refused; nothing is answered then.
        """
        if normalize is None:
            normalize = self._settings.normalize
        require_flag("Embed: normalize", normalize)
        rows = encoded(texts, "Embed: text", self.encode, truncate, token_budget)
        vectors = self._model.answer(rows, _float32, token_budget)
        if normalize:
            vectors = [vector / max(np.linalg.norm(vector), SMALLEST) for vector in vectors]
        return one_or_all(texts, [Embedding(vector) for vector in vectors])

    def encode(self, text, name="Embed: text", truncate=False):
        """Return the `Encoding` of a text.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        text = text_of(text, name)
        return self._reader.read(text, name, truncate)

    def similarity(self, texts, others, truncate=False, token_budget=TOKEN_BUDGET):
        """Return the cosines of the vectors of two lists of texts, (texts, others) float32.

        Args:
            texts, others: lists of texts, or anything else that yields them.
            truncate, token_budget: as `Embed` takes them when it is called.

        Raises:
            ValueError: if a text or an option is refused.
        """
        for name, given in (("texts", texts), ("others", others)):
            if isinstance(given, (str, Mapping)) or not isinstance(given, Iterable):
                raise ValueError(
                    f"Embed: {name} must be a list of strings; received {shown(given)}."
                )
        texts, others = [*texts], [*others]
        vectors = self([*texts, *others], True, truncate, token_budget)
        rows, columns = vectors[: len(texts)], vectors[len(texts) :]
        cosines = np.array(
            [[row.vector @ column.vector for column in columns] for row in rows], "float32"
        )
        return cosines.reshape(len(rows), len(columns)).clip(-1, 1)  # rounding may go beyond


def _float32(_, vector):
    return vector.astype("float32")
