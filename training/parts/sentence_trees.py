"""Plain sentences and their labels, read by a recursive network over trees of their words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqkeras.losses import SmoothedCrossEntropy
from seqkeras.runs import RunError
from seqkeras.serving.text.trees import Nodes
from seqkeras.training.console import console
from seqkeras.training.parts.classification import ClassificationReading
from seqkeras.training.parts.labelled_texts import MOST_TOKENS
from seqkeras.training.parts.trees import (
    NO_LABEL,
    Example,
    TreeModelling,
    labelled_tree,
    word_table,
    words_in,
    words_of,
)
from seqkeras.training.wording import counted

if TYPE_CHECKING:
    from seqkeras.serving.text import Tokenizer


class SentenceTreeReading(ClassificationReading):
    """Sentences as trees of `--tree-shape` over their words, and their labels."""

    num_children = 2

    def _rows(self, path: Path | str) -> list[tuple[Any, Any, Any]]:
        rows, limit, shape = [], self._most_words, self.options.shape
        long = 0
        for line, (text, label), group in super()._rows(path):
            words = words_of(text)
            long += len(words) > limit
            nodes = Nodes(labelled_tree(words[:limit], shape, label))
            rows.append((line, Example(text, label, nodes, f"{path}, line {line}"), group))
        is_trained = self.source_length is None
        if is_trained and rows and all(len(words_of(row.text)) < 2 for _, row, _ in rows):
            raise RunError(
                f"{path}: every text is one word, of which no tree can be made; choose another "
                "--encoder, or give texts of several words."
            )
        if long:
            more = f"of more than --max-length {limit} words"
            console.print(f"  {counted(long, f'texts {more} are', f'text {more} is')} cut")
        return rows

    @property
    def _most_words(self):
        return self.options.max_length or MOST_TOKENS

    def has_token(self, text: str) -> bool:
        return bool(words_of(text))

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        return word_table(self.options, examples)

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        yield "inputs", "words", map(words_in, examples)

    def limits(self) -> dict[str, int]:
        return {"source_length": 2 * self._most_words - 1}  # nodes

    def settings(self) -> dict[str, Any]:
        return {"tree_shape": self.options.shape}


class SentenceTreeModelling(TreeModelling):
    """Trees of sentences to a binary tree LSTM with logits at the root."""

    cell = "binary"

    def loss(self) -> Any:
        return SmoothedCrossEntropy(self.options.label_smoothing, ignore_class=NO_LABEL)
