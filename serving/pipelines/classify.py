"""The class of a text or of a pair of texts, or a number of it."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..results import Classification
from .batching import TOKEN_BUDGET
from .inputs import TextReader, each_of, one_or_all, parts_of
from .model import Model, sigmoid, softmax
from .settings import read_settings, wrong_output


@dataclass(frozen=True)
class Settings:
    """See `serving.pipelines`."""

    output: str | None = None
    labels: tuple[str, ...] = ()
    multi_label: bool = False
    threshold: float = 0.5
    pairs: bool | None = None

    def problems(self, outputs):
        """Yield what is wrong."""
        yield from wrong_output(outputs, self.output, ("batch", len(self.labels) or 1))
        if len(set(self.labels)) < len(self.labels):
            yield "settings.labels must be distinct"
        if self.multi_label and not self.labels:
            yield "settings.multi_label needs labels"
        if not 0 < self.threshold < 1:
            yield f"settings.threshold must be between 0 and 1; received {self.threshold}"


class Classify:
    """The label of a text, or of a pair of texts.

        scores = softmax(logits), or sigmoid(logits) of a model of several labels at once

    Without labels the model is one of regression, and its number is the score.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`, how its graph is run.

    Raises:
        BundleError: if the graph, the tokenizer or the settings are not what the pipeline needs.
    """

    fields = ("text", "pair")

    def __init__(self, folder, manifest, runtime=None):
        self.manifest = manifest
        self._settings = read_settings(folder, manifest, Settings)
        self._reader = TextReader(folder, manifest)
        self._model = Model(folder, manifest, runtime, [self._settings.output])

    def __call__(self, texts, truncate=False, token_budget=TOKEN_BUDGET):
        """Answer a text or a pair, or each one of a list.

        Args:
            texts: a string; a pair as a tuple or as a dictionary of "text" and "pair"; or a list
                of such.
            truncate: cut what is over the limit; of a pair, the longer text.
            token_budget: the most tokens of a batch, padding among them.

        Returns:
            A `Classification`; for a list, the list of theirs, in its order.

        Raises:
            ValueError: if a text is refused; nothing is answered then.
        """
        each, names = each_of(texts, "Classify: text")
        rows = [self.encode(text, name, truncate) for text, name in zip(each, names)]
        return one_or_all(texts, self._model.answer(rows, self._answer, token_budget))

    def encode(self, text, name="Classify: text", truncate=False):
        """Return the `Encoding` of a text or a pair.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        if isinstance(text, Mapping) and set(text) == {"text"}:
            text = text["text"]
        is_pair = isinstance(text, (tuple, Mapping))
        if self._settings.pairs not in (None, is_pair):
            expected = "a pair of texts" if self._settings.pairs else "one text, and no pair"
            raise ValueError(f"{name} must be {expected}.")
        if not is_pair:
            return self._reader.read(text, name, truncate)
        names = [f"{name}, {field}" for field in self.fields]
        return self._reader.read_pair(*parts_of(text, self.fields, name), names, truncate)

    def _answer(self, _, logits):
        settings = self._settings
        if not settings.labels:
            return Classification(labels=(), score=float(logits[0]), scores={})
        scores = (sigmoid if settings.multi_label else softmax)(logits).tolist()
        ranked = dict(sorted(zip(settings.labels, scores), key=lambda item: -item[1]))
        best = next(iter(ranked))
        labels = (best,)
        if settings.multi_label:
            labels = tuple(label for label, score in ranked.items() if score > settings.threshold)
        return Classification(labels, ranked[best], ranked)
