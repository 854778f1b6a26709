"""Embeddings of texts, and features of their words."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from ..checks import require_flag, shown
from ..manifest import Manifest
from ..opening import Runtime
from ..results import Embedding, WordFeatures
from .arrays import FRAMES, FrameReader, takes_frames
from .attention import AttentionGraph
from .batching import TOKEN_BUDGET
from .inputs import TextReader, encoded, one_or_all, text_of
from .model import ROLE, TOKENS, Model, unwarned
from .pipeline import Pipeline
from .settings import read_settings, wrong_output
from .spelled_words import SpelledWords

SMALLEST = 1e-12  # smallest norm to divide by


@dataclass(frozen=True)
class Settings:
    """See `serving.pipelines`."""

    output: str | None = None
    normalize: bool = True

    def problems(self, outputs):
        """Yield what is wrong."""
        yield from wrong_output(outputs, self.output, ("batch", "dim"))


@dataclass(frozen=True)
class WordSettings(Settings):
    """Settings of a model of words; see `serving.pipelines`."""

    word_length: int = 50

    def problems(self, outputs):
        """Yield what is wrong."""
        yield from wrong_output(outputs, self.output, ("batch", "layers", "length", "dim"))
        if self.word_length < 1:
            yield f"settings.word_length must be at least 1; received {self.word_length}"


class Embed(Pipeline):
    """The vector of a text, or of frames, of length 1 if the settings say so.

        similarity(a, b) = a . b / (‖a‖ ‖b‖)

    A bidirectional language model has layers for every word; the vector of a text is the mean over
    layers and words.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`, how its graph is run.

    Raises:
        BundleError: if the graph, the tokenizer or the settings are not what the pipeline needs.

    Reference: Reimers and Gurevych 2019, section 3, https://arxiv.org/abs/1908.10084; words:
    Peters et al. 2018, section 3.2, https://arxiv.org/abs/1802.05365

    Example:
        >>> from seqkeras.serving import load
        >>> embed = load("bundles/sentences", threads=1)
        >>> first, second = embed(["A model may be small.", "Small words."])
        >>> first.vector.shape, round(first.similarity(first), 3)
        ((16,), 1.0)
    """

    def __init__(self, folder: Path, manifest: Manifest, runtime: Runtime | None = None):
        self.manifest = manifest
        self._of_words = "characters" in manifest.tokenizers
        self.reads_json = takes_frames(manifest, ROLE)
        kind = WordSettings if self._of_words else Settings
        self._settings = read_settings(folder, manifest, kind)
        self._reader: FrameReader | SpelledWords | TextReader
        packing = TOKENS
        if self.reads_json:
            self._reader = FrameReader.of_graph(folder, manifest, ROLE)
            packing = FrameReader.packing
        elif self._of_words:
            self._reader = SpelledWords(folder, manifest, self._settings.word_length)
            packing = self._reader.packing
        else:
            self._reader = TextReader(folder, manifest)
        self._model = Model(folder, manifest, runtime, [self._settings.output], packing)
        self._attention = AttentionGraph(folder, manifest, runtime, packing)

    @overload
    def __call__(self, texts: str | Mapping[str, str], *args: Any, **options: Any) -> Embedding: ...

    @overload
    def __call__(self, texts: list, *args: Any, **options: Any) -> list[Embedding]: ...

    def __call__(
        self,
        texts: str | Mapping[str, str] | list,
        normalize: bool | None = None,
        truncate: bool = False,
        token_budget: int = TOKEN_BUDGET,
        words: bool = False,
        attention: bool | str = False,
    ) -> Embedding | list[Embedding]:
        """Answer a text, or each text of a list.

        Args:
            texts: a string, or a dictionary of "text"; to a model of frames an array (length,
                features), or a tuple of its rows; or a list of these.
            normalize: whether vectors have length 1; None: as the manifest says.
            truncate: cut texts over the limit.
            token_budget: the most tokens of a batch, padding among them.
            words: also return the layers of every word, if the model has them.
            attention: how much each token attends to each other, of a bundle that was exported with
                --attention-heads: True for the mean of the last layer's heads, "heads" for each
                head of each layer, "words" for weights of whole words.

        Returns:
            An `Embedding`; for a list, a list of them, in its order.

        Raises:
            ValueError: if a text is refused; nothing is answered then.
            NoFiniteNumber: a BundleError, if the model gives NaN or infinity for an input.
        """
        if normalize is None:
            normalize = self._settings.normalize
        require_flag("Embed: normalize", normalize)
        require_flag("Embed: words", words)
        if words and not self._of_words:
            raise ValueError("Embed: words must be False; this model gives a vector for a text.")
        self._attention.require("Embed", attention)
        name = f"Embed: {FRAMES if self.reads_json else 'text'}"
        rows = encoded(texts, name, self.encode, truncate, token_budget, reader=self._reader)

        def read(index, output):
            if not self._of_words:
                return Embedding(_normalized(output, normalize))
            return embedding_of_words(rows[index], output, normalize, words)

        answers = self._model.answer(rows, read, token_budget)
        answers = self._attention.attach(answers, rows, attention, token_budget)
        return one_or_all(texts, answers, name)

    def encode(self, text: Any, name: str = "Embed: text", truncate: bool = False) -> Any:
        """Return the model's input for a text, an `Encoding` or a `SpelledText`, or frames.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        text = text if self.reads_json else text_of(text, name)
        return self._reader.read(text, name, truncate)

    def similarity(
        self, texts: Any, others: Any, truncate: bool = False, token_budget: int = TOKEN_BUDGET
    ) -> np.ndarray:
        """Return the cosines of the vectors of two lists of texts, (texts, others) float32.

        Args:
            texts, others: lists of texts or of frames, or anything else that yields them.
            truncate, token_budget: in the form that `Embed` takes when it is called.

        Raises:
            ValueError: if a text or an option is refused.
        """
        for name, strings in (("texts", texts), ("others", others)):
            if isinstance(strings, (str, Mapping)) or not isinstance(strings, Iterable):
                raise ValueError(
                    f"Embed: {name} must be a list of strings; received {shown(strings)}."
                )
        texts, others = [*texts], [*others]
        vectors = self([*texts, *others], True, truncate, token_budget)
        rows, columns = vectors[: len(texts)], vectors[len(texts) :]
        cosines = np.array(
            [[row.vector @ column.vector for column in columns] for row in rows], "float32"
        )
        return cosines.reshape(len(rows), len(columns)).clip(-1, 1)  # rounding may exceed 1


@unwarned
def embedding_of_words(row, layers, normalize, words):
    """Return the `Embedding` of a `SpelledText`; layers (L, T or more, D)."""
    layers = layers[:, : len(row)].astype("float32")
    vector = _normalized(layers.mean(axis=(0, 1)), normalize)
    return Embedding(vector, _features(row, layers) if words else ())


@unwarned
def _normalized(vector, normalize):
    vector = vector.astype("float32")
    if not normalize:
        return vector
    norm = np.linalg.norm(vector)
    if np.isinf(norm):  # of squares that float32 does not hold
        norm = np.linalg.norm(vector.astype("float64"))
    return (vector / max(norm, SMALLEST)).astype("float32")


def _features(row, layers):
    """Return the `WordFeatures` of the words of a `SpelledText`; layers (L, T, D)."""
    return tuple(
        WordFeatures(row.text[start:end], start, end, layers[:, index].copy())
        for index, (start, end) in enumerate(row.places)
    )
