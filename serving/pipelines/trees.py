"""Convert bracketed trees, or plain texts, to the arrays of a recursive network."""

from dataclasses import dataclass

from ..checks import shown
from ..text import WordTable
from ..text.trees import Nodes, node_arrays, parse_tree, tree_over
from .inputs import (
    MOST_CHARACTERS,
    open_tokenizer,
    require_length,
    require_token,
    require_words,
    too_long,
)
from .model import ROLE, Packing

INPUTS = frozenset({"token_ids", "lengths", "children", "levels"})


@dataclass(frozen=True)
class TreeRow:
    """A tree's `Nodes`."""

    nodes: Nodes

    def __len__(self):
        return len(self.nodes)

    def written(self):
        """Yield the index and the words of each node, in the order of the text."""
        for index in self.nodes.written:
            words = (self.nodes.trees[node].word for node in self.nodes.under(index))
            yield index, " ".join(word for word in words if word is not None)


class TreeReader:
    """Converts bracketed trees to a model's inputs. Labels are parsed and ignored. With a shape it
    converts plain texts, by a tree of that shape over the words of a text.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        shape: one of `serving.text.trees.SHAPES`; None for trees in brackets.

    Raises:
        BundleError: if the table of words is missing.
    """

    unit, fields = "text", ("text",)

    def __init__(self, folder, manifest, shape=None):
        self._shape = shape
        self._words = open_tokenizer(folder, manifest, "words", WordTable)
        self._limit = manifest.limits.source_length
        shapes = {spec.name: spec.shape for spec in manifest.graphs[ROLE].inputs}
        self._most_children = shapes.get("children", (0,))[-1]
        self.packing = Packing(self._arrays, INPUTS)

    def read(self, text, name, truncate=False):
        """Return the `TreeRow` of a tree, or of a plain text.

        Args:
            text: the tree in brackets, or the text.
            name: of it, for errors.
            truncate: cut a text over the limit; trees in brackets are never cut.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        require_words(text, name)
        if self._shape is None:
            return TreeRow(self._nodes_in_brackets(text, name))
        words, limit = self._words_of(text, name, truncate), (self._limit + 1) // 2
        if len(words) > limit and not truncate:
            raise too_long(name, len(words), limit, "words")
        return TreeRow(Nodes(tree_over(words[:limit], self._shape)))

    def _words_of(self, text, name, truncate):
        if not truncate:
            require_length(text, self._limit, name)
        words = [text[start:end] for start, end in self._words.places(text)]
        require_token(words, name)
        return words

    def _nodes_in_brackets(self, text, name):
        count = text.count("(")
        if count > self._limit or len(text) > max(MOST_CHARACTERS, 1000 * self._limit):
            size = f"{count} nodes" + f" of {len(text)} characters" * (count <= self._limit)
            raise ValueError(
                f"{name} has {size}; the limit is {self._limit}. "
                "A tree is never cut: ask about a part of it."
            )
        try:
            nodes = Nodes(parse_tree(text))
        except ValueError as error:
            raise ValueError(
                f"{name} must be a tree in brackets, as (3 (2 A) (2 film)): {error}; "
                f"received {shown(text)}."
            ) from error
        most = max(map(len, nodes.children))
        if most > self._most_children:
            raise ValueError(
                f"{name} has a node of {most} children; the model reads {self._most_children}."
            )
        return nodes

    def _arrays(self, rows):
        return node_arrays([row.nodes for row in rows], self._words.lookup, self._most_children)
