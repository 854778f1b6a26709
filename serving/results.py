"""The answers of pipelines.

Scores are probabilities unless a class says otherwise. Offsets refer to the given text:
text[start:end].
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .printing import in_line, text_and_score
from .reprs import with_shapes

if TYPE_CHECKING:  # NumPy is imported together with a pipeline
    import numpy

__all__ = [
    "Choice",
    "Classification",
    "Embedding",
    "Entity",
    "Filler",
    "Filling",
    "Forecasting",
    "Generation",
    "Node",
    "Span",
    "Tagging",
    "Translation",
    "Word",
    "WordFeatures",
]


@dataclass(frozen=True)
class Attended:
    """The attention of an answer, if it was requested.

    Attributes:
        attention: None, or float32: (L, N, T, S), for each layer and head the weights of T tokens
            over S tokens; or (T, S), the mean of the last layer's heads. Rows sum to 1.
        source_tokens, target_tokens: the tokens, or words, of its columns and rows.
    """

    attention: "numpy.ndarray | None" = field(default=None, compare=False, repr=False, kw_only=True)
    source_tokens: tuple = field(default=(), compare=False, repr=False, kw_only=True)
    target_tokens: tuple = field(default=(), compare=False, repr=False, kw_only=True)

    def numbers(self) -> Iterator:
        """Yield numbers or arrays: if one that the model gives is not finite, so is one of these.

        A softmax over NaN is NaN everywhere, so the score of one label stands for all.
        """
        yield getattr(self, "score", 0.0)
        if self.attention is not None:
            yield self.attention


@dataclass(frozen=True, eq=False)
class Translation:
    """A generated text and its score.

    Attributes:
        text: the answer.
        score: the total log-probability of the answer, divided by the length penalty.
        attention: None, or on request a (T, S) float32 array: for each target token of `text`, the
            weight of each source token. Rows sum to 1. With "heads" it is (L, N, T, S).
        alternatives: with n_best > 1, the other answers, the best first.
        source_tokens, target_tokens: the tokens of the columns and rows of `attention`; empty
            without it.

    Example:
        >>> from seqkeras.serving import load
        >>> translate = load("bundles/dates", threads=1)
        >>> answer = translate("de|Samstag, 3. Mai 2014", num_beams=3, n_best=3)
        >>> len(answer.alternatives), answer.score >= answer.alternatives[0].score
        (2, True)
    """

    text: str
    score: float
    attention: "numpy.ndarray | None" = None
    alternatives: "tuple[Translation, ...]" = ()
    source_tokens: tuple = ()
    target_tokens: tuple = ()

    __repr__ = with_shapes
    numbers = Attended.numbers


UNWRITTEN = {"written": False}  # of a field that is no part of an answer's JSON


@dataclass(frozen=True)
class Generation(Attended):
    """A text that follows a prompt.

    Attributes:
        text: what follows, or with `echo` the prompt too.
        score: the total log-probability of the generated tokens, in the distribution from which
            they were chosen, divided by the length penalty.
        finish: why the text ends: "end" (the model's end token), "stop" (a stop string) or
            "length".
        alternatives: with n_best > 1, the other answers; of beams, the best first.
        num_prompt_tokens, num_new_tokens: numbers of tokens that were read, and that were
            generated, <eos> included; they are no part of the answer's JSON.
        attention: None, or on request float32: (T, S), the mean of the last layer's heads, or
            (L, N, T, S), of each layer and head. Rows sum to 1.
        source_tokens, target_tokens: the tokens, or words, of the columns and rows of `attention`;
            empty without it.

    Example:
        >>> from seqkeras.serving import load
        >>> generate = load("bundles/stories", threads=1)
        >>> generation = generate("A model", max_new_tokens=3)
        >>> generation.num_new_tokens <= 3, generation.finish in ("end", "stop", "length")
        (True, True)
    """

    text: str
    score: float
    finish: str
    alternatives: "tuple[Generation, ...]" = ()
    num_prompt_tokens: int = field(default=0, compare=False, repr=False, metadata=UNWRITTEN)
    num_new_tokens: int = field(default=0, compare=False, repr=False, metadata=UNWRITTEN)


@dataclass(frozen=True)
class Node:
    """A subtree with its classes.

    Attributes:
        text: the words of the subtree.
        labels, score, scores: see `Classification`.

    Example:
        >>> from seqkeras.serving.results import Node
        >>> node = Node("very good", ("4",), 0.9, {"4": 0.9, "3": 0.1})
        >>> node.scores[node.labels[0]]
        0.9
    """

    text: str
    labels: tuple
    score: float
    scores: dict


@dataclass(frozen=True)
class Classification(Attended):
    """The classes of a text or a tree, or its number.

    Attributes:
        labels: the most probable label, or None where none of the labels fits, if the model tells;
            for several at once, those over the threshold, the most probable first; for a
            regression, none.
        score: score of the most probable label, or of None; for a regression, the number.
        scores: label -> score, the most probable first; of all labels, or of `top` of them. The
            rest to 1 is the score of None, if the model tells.
        nodes: on request, the `Node`s of a tree in the order of the text: one for each opening
            bracket, the root first.
        attention: None, or on request float32: (T, S), the mean of the last layer's heads, or
            (L, N, T, S), of each layer and head. Rows sum to 1.
        source_tokens, target_tokens: the tokens, or words, of the columns and rows of `attention`;
            empty without it.

    Example:
        >>> from seqkeras.serving.results import Classification
        >>> answer = Classification(("good",), 0.9, {"good": 0.9, "bad": 0.1})
        >>> answer.labels, answer.score
        (('good',), 0.9)
        >>> answer.line(ranked=True)
        'good\\t0.9000\\tbad\\t0.1000'
    """

    labels: tuple
    score: float
    scores: dict
    nodes: tuple = ()

    def numbers(self) -> Iterator:
        """Yield the scores of the answer and of its nodes, and its attention."""
        yield from super().numbers()
        if self.nodes:
            yield [node.score for node in self.nodes]

    def line(self, ranked: bool = False) -> str:
        """Return the labels and their scores; for the nodes of a tree, a line each.

        Args:
            ranked: all labels that have a score, and not the answer's alone.
        """
        if self.nodes:
            return "".join(
                f"{in_line(node.text)}\t{_classes(node, ranked)}\n" for node in self.nodes
            )
        return _classes(self, ranked)


@dataclass(frozen=True)
class Word:
    """A word with its tag.

    Attributes:
        text: the word; "" for a frame.
        tag: the tag.
        start, end: offsets of the word in the text.
        score: probability of the tag.

    Example:
        >>> from seqkeras.serving.results import Word
        >>> word = Word("Ada", "B-PER", start=0, end=3, score=0.98)
        >>> word.line()
        'Ada/B-PER'
    """

    text: str
    tag: str
    start: int
    end: int
    score: float

    def line(self) -> str:
        """Return the word with its tag; a frame has no text."""
        return f"{in_line(self.text)}/{in_line(self.tag)}" if self.text else in_line(self.tag)


@dataclass(frozen=True)
class Entity:
    """A named entity of one or more words.

    Attributes:
        text: the words as written.
        label: the label, such as "PER".
        start, end: offsets in the text.
        score: the mean of the scores of the words.

    Example:
        >>> from seqkeras.serving.results import Entity
        >>> text, entity = "Ada Lovelace wrote.", Entity("Ada Lovelace", "PER", 0, 12, 0.97)
        >>> text[entity.start : entity.end] == entity.text
        True
    """

    text: str
    label: str
    start: int
    end: int
    score: float


@dataclass(frozen=True)
class Tagging(Attended):
    """A text's words with their tags, and the entities that the tags mark.

    Attributes:
        words: tuple of `Word`.
        entities: tuple of `Entity`.
        attention: None, or on request float32: (T, S), the mean of the last layer's heads, or
            (L, N, T, S), of each layer and head. Rows sum to 1.
        source_tokens, target_tokens: the tokens, or words, of the columns and rows of `attention`;
            empty without it.

    Example:
        >>> from seqkeras.serving.results import Entity, Tagging, Word
        >>> words = (Word("Ada", "B-PER", 0, 3, 0.98), Word("wrote", "O", 4, 9, 0.99))
        >>> tagging = Tagging(words, entities=(Entity("Ada", "PER", 0, 3, 0.98),))
        >>> tagging.line()
        'Ada/B-PER wrote/O'
        >>> tagging.marks()
        [(0, 3, 'PER 0.9800')]
    """

    words: tuple
    entities: tuple

    def numbers(self) -> Iterator:
        """Yield the scores of words, and the attention."""
        yield from super().numbers()
        yield [word.score for word in self.words]

    def line(self) -> str:
        """Return the words with their tags."""
        return " ".join(word.line() for word in self.words)

    def marks(self) -> list:
        """Return (start, end, label and score) of each entity."""
        return [
            (entity.start, entity.end, f"{in_line(entity.label)} {entity.score:.4f}")
            for entity in self.entities
        ]


@dataclass(frozen=True)
class Span(Attended):
    """The span of a context that answers a question.

    Attributes:
        text: the text of the span; "" if there is no answer.
        start, end: offsets in the context; None if there is no answer.
        score: probability of the span among all spans, and no answer if the model allows that.
        margin: the best span's score minus the score of no answer, in logits; None for a model that
            always answers.
        alternatives: with n_best > 1, other spans, the best first.
        attention: None, or on request float32: (T, S), the mean of the last layer's heads, or
            (L, N, T, S), of each layer and head. Rows sum to 1.
        source_tokens, target_tokens: the tokens, or words, of the columns and rows of `attention`;
            empty without it.

    Example:
        >>> from seqkeras.serving.results import Span
        >>> context, span = "The tower stands in Paris.", Span("Paris", 20, 25, score=0.8)
        >>> context[span.start : span.end]
        'Paris'
        >>> Span("", None, None, score=0.7).line()  # no answer
        '\\t0.7000'
    """

    text: str
    start: int | None
    end: int | None
    score: float
    margin: float | None = None
    alternatives: "tuple[Span, ...]" = ()

    line = text_and_score

    def numbers(self) -> Iterator:
        """Yield score, margin and attention."""
        yield from super().numbers()
        yield self.margin or 0.0

    def marks(self) -> list:
        """Return [(start, end, score)]; without an answer an empty span before the context."""
        if self.start is None:
            return [(0, 0, f"no answer {self.score:.4f}")]
        return [(self.start, self.end, f"{self.score:.4f}")]


@dataclass(frozen=True)
class Choice(Attended):
    """The choice that fits best.

    Attributes:
        text: the choice.
        index: index of the choice in the list of choices.
        score: probability of the choice.
        scores: probabilities of all choices, in their order.
        attention: None, or on request float32: (T, S), the mean of the last layer's heads, or
            (L, N, T, S), of each layer and head. Rows sum to 1.
        source_tokens, target_tokens: the tokens, or words, of the columns and rows of `attention`;
            empty without it.

    Example:
        >>> from seqkeras.serving.results import Choice
        >>> choice = Choice("blue", index=0, score=0.75, scores=(0.75, 0.25))
        >>> choice.scores[choice.index], choice.line()
        (0.75, 'blue\\t0.7500')
    """

    text: str
    index: int
    score: float
    scores: tuple

    line = text_and_score


@dataclass(frozen=True, eq=False)
class WordFeatures:
    """The features of a bidirectional language model for a word of a text.

    Attributes:
        text: the word.
        start, end: offsets of the word in the text.
        layers: (L, D) float32, the lowest layer first; a learned mix of them is ELMo's feature.

    Example:
        >>> import numpy as np
        >>> from seqkeras.serving.results import WordFeatures
        >>> WordFeatures("small", 2, 7, layers=np.zeros((3, 14), "float32"))
        WordFeatures(text='small', start=2, end=7, layers=<float32 (3, 14)>)
    """

    text: str
    start: int
    end: int
    layers: "numpy.ndarray"

    __repr__ = with_shapes


@dataclass(frozen=True, eq=False)
class Embedding(Attended):
    """The vector of a text.

    Attributes:
        vector: (D,) float32.
        words: a tuple of `WordFeatures`, if requested.
        attention: None, or on request float32: (T, S), the mean of the last layer's heads, or
            (L, N, T, S), of each layer and head. Rows sum to 1.
        source_tokens, target_tokens: the tokens, or words, of the columns and rows of `attention`;
            empty without it.

    Example:
        >>> import numpy as np
        >>> from seqkeras.serving.results import Embedding
        >>> east, north = Embedding(np.array([2.0, 0.0])), Embedding(np.array([0.0, 3.0]))
        >>> east.similarity(east), east.similarity(north)
        (1.0, 0.0)
    """

    vector: "numpy.ndarray"
    words: tuple = ()

    __repr__ = with_shapes

    def numbers(self) -> Iterator:
        """Yield the vector, the layers of words, and the attention."""
        yield from super().numbers()
        yield self.vector
        yield from (word.layers for word in self.words)

    def similarity(self, other: "Embedding") -> float:
        """Return the cosine of the angle to another `Embedding`; 0 if one vector is zero."""
        one, two = self.vector.astype("float64"), other.vector.astype("float64")
        norms = float(one @ one) * float(two @ two)
        cosine = float(one @ two) / norms**0.5 if norms else 0.0
        return max(-1.0, min(cosine, 1.0))  # rounding may exceed 1

    def line(self) -> str:
        """Return the numbers of the vector."""
        return " ".join(f"{number:.7g}" for number in self.vector)


@dataclass(frozen=True)
class Filler:
    """A token that fills a mask.

    Attributes:
        token: the token, as the vocabulary writes it.
        score: probability of the token at the mask.

    Example:
        >>> from seqkeras.serving.results import Filler
        >>> max([Filler("cat", 0.3), Filler("dog", 0.6)], key=lambda filler: filler.score).token
        'dog'
    """

    token: str
    score: float


@dataclass(frozen=True)
class Filling(Attended):
    """A text with its masks filled.

    Attributes:
        text: the text, with the most probable token for each mask.
        masks: for each mask, the tuple of its `Filler`s, the most probable first.
        attention: None, or on request float32: (T, S), the mean of the last layer's heads, or
            (L, N, T, S), of each layer and head. Rows sum to 1.
        source_tokens, target_tokens: the tokens, or words, of the columns and rows of `attention`;
            empty without it.

    Example:
        >>> from seqkeras.serving.results import Filler, Filling
        >>> filling = Filling("The cat sat.", masks=((Filler("cat", 0.6), Filler("dog", 0.3)),))
        >>> filling.line()
        'The cat sat.\\tcat 0.6000 dog 0.3000'
    """

    text: str
    masks: tuple

    def numbers(self) -> Iterator:
        """Yield the scores of each mask's first filler, and the attention."""
        yield from super().numbers()
        yield [fillers[0].score for fillers in self.masks]

    def line(self) -> str:
        """Return the text, then the fillers of each mask."""
        masks = (
            " ".join(f"{in_line(filler.token)} {filler.score:.4f}" for filler in mask)
            for mask in self.masks
        )
        return "\t".join([in_line(self.text), *masks])


@dataclass(frozen=True, eq=False)
class Forecasting:
    """The values that follow a series.

    Attributes:
        values: (horizon, targets) float32, or float64 from a model that reads rows. From a model of
            quantiles: the values of the quantile nearest to 1/2.
        quantiles: quantile -> (horizon, targets) values; empty if the model has none.
        unknown: column -> category -> number of rows with that category, which the model does not
            know and reads as if it were missing; empty if all categories are known.

    Example:
        >>> import numpy as np
        >>> from seqkeras.serving.results import Forecasting
        >>> answer = Forecasting(np.array([[1.5], [2.0]]), {0.9: np.array([[3.0], [4.0]])})
        >>> answer
        Forecasting(values=<float64 (2, 1)>, quantiles={0.9: <float64 (2, 1)>})
        >>> answer.line()
        '1.5\\t2'
    """

    values: "numpy.ndarray"
    quantiles: dict
    unknown: dict = field(default_factory=dict)

    __repr__ = with_shapes

    def numbers(self) -> Iterator:
        """Yield the values, and the values of each quantile."""
        yield self.values
        yield from self.quantiles.values()

    def line(self) -> str:
        """Return the values, step by step."""
        digits = 12 if self.values.dtype == "float64" else 7
        return "\t".join(
            " ".join(f"{number:.{digits}g}" for number in step) for step in self.values
        )


def _classes(answer, ranked):
    if not answer.scores:
        return f"{answer.score:.4f}"
    none = [("null", answer.score)] if answer.labels == (None,) else []
    labels = answer.scores if ranked else answer.labels[len(none) :]
    scored = none + [(in_line(label), answer.scores[label]) for label in labels]
    return "\t".join(f"{label}\t{score:.4f}" for label, score in scored)
