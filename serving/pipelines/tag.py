"""Tag each word of a text, and find the entities that the tags mark."""

import bisect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from ..checks import shown
from ..entities import SCHEMES, entities, is_tag
from ..manifest import MANIFEST, BundleError, Manifest
from ..opening import Runtime
from ..results import Entity, Tagging, Word
from ..rows import Rows
from ..streams import StreamGraph, Streaming
from ..text import Subwords, whole_characters
from .arrays import FRAMES, FrameReader, takes_frames
from .attention import AttentionGraph
from .batching import TOKEN_BUDGET, in_groups
from .chains import marginals, most_probable
from .inputs import TextReader, encoded, one_or_all, require_token, require_words, text_of
from .model import ROLE, TOKENS, Model, softmax, unwarned
from .pipeline import Pipeline
from .settings import (
    read_settings,
    require_windows,
    row_problems,
    stride_problems,
    wrong_logits,
)
from .windows import Windows

WORDS = ("tokenizer", "spaces")


@dataclass(frozen=True)
class Settings:
    """See `serving.pipelines`."""

    labels: tuple[str, ...]
    output: str | None = None
    scheme: str | None = "IOB2"
    words: str = "tokenizer"
    stride: int | None = None
    rows: Rows | None = None

    def problems(self, outputs):
        """Yield what is wrong."""
        chain = ("batch", "length", len(self.labels) + 1)
        is_chain = self.output in outputs and len(outputs[self.output].shape) == len(chain) + 1
        axes = chain if is_chain else chain[:2]
        yield from wrong_logits(outputs, self.output, axes, self.labels)
        if self.words not in WORDS:
            yield f"settings.words must be one of {', '.join(WORDS)}; received {self.words!r}"
        yield from stride_problems(self.stride)
        yield from row_problems(self.rows)
        if self.scheme is not None and self.scheme not in SCHEMES:
            yield f"settings.scheme must be one of {', '.join(SCHEMES)}; received {self.scheme!r}"
        elif self.scheme:
            wrong = [tag for tag in self.labels if not is_tag(tag, self.scheme)]
            if wrong:
                yield f"settings.labels must be {self.scheme} tags; received {', '.join(wrong)}"


@dataclass(frozen=True)
class _Row:
    """The model's input for a text.

    Attributes:
        text: the given text.
        windows: its `Windows`.
        places: (start, end) of each word that has tokens.
        tokens: for each window, the indices of its words and the positions of their first tokens.
    """

    text: str
    windows: Windows
    places: list
    tokens: list


class Tag(Pipeline):
    """The tags of a text's words.

        tag(word) = argmax of softmax(logits at the word's first token)

    A model of chains of tags gives potentials (length, tags + 1, tags). Its answer is the most
    probable sequence of tags; a score is the tag's probability over all sequences.

    A text over the limit is refused or cut. If the settings have a `stride`, it is read in windows,
    and a word's tag comes from the window in which its first token has the most context. A model of
    frames tags each frame, as a word without letters.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`, how its graph is run.

    Raises:
        BundleError: if the graph, the tokenizer or the settings are not what the pipeline needs.

    Reference: Devlin et al. 2019, section 5.3, https://arxiv.org/abs/1810.04805

    Example:
        >>> from seqkeras.serving import load
        >>> tag = load("bundles/entities", threads=1)
        >>> [(word.text, word.start, word.end) for word in tag("Small words!").words]
        [('Small', 0, 5), ('words', 6, 11), ('!', 11, 12)]
    """

    def __init__(self, folder: Path, manifest: Manifest, runtime: Runtime | None = None):
        self.manifest = manifest
        self._settings = read_settings(folder, manifest, Settings)
        self._reader: Any  # a FrameReader or a TextReader
        self.reads_json = takes_frames(manifest, ROLE)
        self.rows = self._settings.rows
        if self.reads_json:
            self._reader = FrameReader.of_graph(folder, manifest, ROLE, self._settings.rows)
            _require_tags_of_frames(folder, manifest.graphs[ROLE], self._settings.output)
            graph = StreamGraph(folder, manifest, runtime, self._settings.output, {FRAMES})
            self.streaming = Streaming(
                "Tag", graph, self._reader.follow, self._answer_of_frame, self.rows
            )
        else:
            self._reader = TextReader(folder, manifest)
        tokenizer = getattr(self._reader, "tokenizer", None)
        require_windows(folder, self._settings.stride, tokenizer)
        packing = self._reader.packing if self.reads_json else TOKENS
        self._model = Model(folder, manifest, runtime, [self._settings.output], packing)
        self._attention = AttentionGraph(folder, manifest, runtime, packing)

    @overload
    def __call__(
        self, texts: str | tuple[str, ...] | Mapping[str, Any], *args: Any, **options: Any
    ) -> Tagging: ...

    @overload
    def __call__(self, texts: list, *args: Any, **options: Any) -> list[Tagging]: ...

    def __call__(
        self,
        texts: str | tuple[str, ...] | Mapping[str, Any] | list,
        truncate: bool = False,
        token_budget: int = TOKEN_BUDGET,
        attention: bool | str = False,
    ) -> Tagging | list[Tagging]:
        """Answer a text, or each text of a list.

        Args:
            texts: a string, or a tuple of its words, which are then joined by spaces and keep their
                places in that, and which a table of words looks up whole; or a dictionary of
                "text", which is one of these; to a model of frames an array (length, features), or
                a tuple of its rows, which with `settings.rows` are dictionaries of values by
                column, or lists of them in order; or a list of these.
            truncate: cut a text over the limit; words that are cut have no tags. With a `stride`,
                no text is cut.
            token_budget: the most tokens of a batch, padding among them.
            attention: how much each token attends to each other, of a bundle that was exported with
                --attention-heads: True for the mean of the last layer's heads, "heads" for each
                head of each layer, "words" for weights of whole words. A text in windows has the
                first window's weights.

        Returns:
            A `Tagging`; for a list, a list of them, in its order.

        Raises:
            ValueError: if a text is refused; nothing is answered then.
            NoFiniteNumber: a BundleError, if the model gives NaN or infinity for an input.
        """
        self._attention.require("Tag", attention)
        name = f"Tag: {FRAMES if self.reads_json else 'text'}"
        rows = encoded(texts, name, self.encode, truncate, token_budget)
        if self.reads_json:
            tags = self._model.answer(
                rows,
                lambda index, logits: tagging_of_frames(logits[: len(rows[index])], self._settings),
                token_budget,
            )
            tags = self._attention.attach(tags, rows, attention, token_budget)
            return one_or_all(texts, tags, name)
        of_texts = [row.windows.rows for row in rows]
        windows = [window for text in of_texts for window in text]
        firsts = [first_tokens for row in rows for _, first_tokens in row.tokens]
        logits = self._model.answer(
            windows, lambda index, logits: logits[firsts[index]], token_budget
        )
        answers = [self._answer(*pair) for pair in zip(rows, in_groups(logits, of_texts))]
        read = (text[0] for text in of_texts)
        answers = self._attention.attach(answers, read, attention, token_budget)
        return one_or_all(texts, answers, name)

    def _answer_of_frame(self, logits, frame, _):
        scores = softmax(logits).tolist()
        score = max(scores)
        return Word("", self._settings.labels[scores.index(score)], frame, frame + 1, score)

    def marked_text(self, value: Any) -> str:
        """Return the text of an input in which entities have their places.

        Raises:
            ValueError: if the input is a dictionary of anything but "text".
        """
        text = text_of(value, "Tag: text")
        return " ".join(text) if isinstance(text, tuple) else text

    def encode(self, text: Any, name: str = "Tag: text", truncate: bool = False) -> Any:
        """Return what the model reads of a text.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        if self.reads_json:
            return self._reader.read(text, name, truncate)
        text = text_of(text, name)
        words, places = (), None
        if isinstance(text, tuple):
            words = text
            text, places = joined(words, name)
        elif self._settings.words == "spaces":
            require_words(text, name)
            places = [match.span() for match in re.finditer(r"\S+", text)]
        stride = self._settings.stride
        if stride is None:
            offsets = places if self._reader.reads_words else None
            windows = Windows.of([self._reader.read(text, name, truncate, offsets)], stride=1)
        else:
            windows = Windows.of(self._reader.read_windows(text, name, stride), stride)
        if places is None:
            places, tokens = words_of_tokenizer(text, windows, self._reader.tokenizer)
        else:
            places, tokens = tokens_of_words(windows, places)
        if len(places) < len(words):  # some words were cut, or have no token
            for number, word in enumerate(words):
                require_token(self._reader.tokenizer.encode(word), f"{name}, word {number}")
        return _Row(text, windows, places, _by_window(windows, np.array(tokens, int)))

    def _answer(self, row, logits_by_window):
        logits = np.empty((len(row.places), *logits_by_window[0].shape[1:]), "float32")
        for (words, _), word_logits in zip(row.tokens, logits_by_window):
            logits[words] = word_logits
        words = tuple(
            Word(row.text[start:end], self._settings.labels[tag], start, end, score)
            for (start, end), tag, score in zip(row.places, *best_tags(logits))
        )
        return Tagging(words, entities_of(row.text, words, self._settings.scheme))


@unwarned
def best_tags(logits):
    """Return the tags of words, as numbers, and their probabilities.

    Args:
        logits: (words, tags), or the potentials (words, tags + 1, tags) of a chain.
    """
    if logits.ndim == 3:
        tags, scores = most_probable(logits), marginals(logits)
    else:
        scores = softmax(logits)
        tags = scores.argmax(axis=-1)
    return tags, [float(score[tag]) for tag, score in zip(tags, scores)]


def tagging_of_frames(logits, settings):
    """Return the `Tagging` of the logits of frames, see `best_tags`: words without letters.

    Args:
        settings: the `Settings`, for labels and scheme.
    """
    words = tuple(
        Word("", settings.labels[tag], index, index + 1, score)
        for index, (tag, score) in enumerate(zip(*best_tags(logits)))
    )
    return Tagging(words, entities_of("", words, settings.scheme))


def entities_of(text, words, scheme):
    """Return the tuple of `Entity` that the tags of words spell; of no scheme there are none.

    Args:
        text: in which the words are.
        words: tuple of `Word`.
        scheme: scheme of the tags, one of `SCHEMES`, or None.
    """
    if scheme is None:
        return ()
    tagged = []
    for label, first, behind in entities([word.tag for word in words]):
        inside = words[first:behind]
        start, end = inside[0].start, inside[-1].end
        score = sum(word.score for word in inside) / len(inside)
        tagged.append(Entity(text[start:end], label, start, end, score))
    return tuple(tagged)


def _require_tags_of_frames(folder, graph, output):
    """Raise a BundleError unless an output has logits for each frame."""
    length, shape = (
        spec.shape[1]
        for specs, name in ((graph.inputs, FRAMES), (graph.outputs, output))
        for spec in specs
        if spec.name == name
    )
    if length != shape:
        raise BundleError(
            f"output {output} must have logits for every frame, {length} of them; it has {shape}: "
            'write padding="same" or "causal" and strides=1, and leave pooling of frames out',
            where=folder,
            subject=MANIFEST,
        )


def joined(words, name):
    """Return the text of words, and their places in it."""
    places, start = [], 0
    for number, word in enumerate(words):
        require_words(word, f"{name}, word {number}")
        if word.split() != [word]:
            raise ValueError(f"{name}, word {number} must hold no space; received {shown(word)}.")
        places.append((start, start + len(word)))
        start += len(word) + 1
    return " ".join(words), places


def _by_window(windows, tokens):
    """Return for each window the indices of its words, and the positions of their first tokens.

    Args:
        windows: the `Windows` of a text.
        tokens: the index, in the text, of each word's first token.
    """
    owners, windows_of_tokens = windows.owners()[tokens], []
    for number, (places, first) in enumerate(zip(windows.tokens, windows.firsts)):
        words = np.flatnonzero(owners == number)
        windows_of_tokens.append((words, tokens[words] - first + places.start))
    return windows_of_tokens


def tokens_of_words(windows, places):
    """Return the places of the words that have tokens, and the indices of their first tokens.

    Args:
        windows: the `Windows` of a text.
        places: places of its words.
    """
    starts = [start for start, _ in places]
    first_tokens = {}
    for token, (start, end) in enumerate(windows.of_text("offsets")):
        word = bisect.bisect_right(starts, max(start, end - 1)) - 1
        if word < 0 and end > start:  # a space before the first word
            continue
        first_tokens.setdefault(max(word, 0), token)
    return [places[word] for word in first_tokens], [*first_tokens.values()]


def words_of_tokenizer(text, windows, tokenizer):
    """Return the places of a tokenizer's words, and the indices of their first tokens.

    Words hold no spaces. A mark belongs to the word of the character before it, and so do letters
    after the mark that would belong to that word without it: byte-level BPE splits at marks.

    Args:
        text: the text.
        windows: its `Windows`.
        tokenizer: the tokenizer that made the windows.
    """
    offsets = windows.of_text("offsets")
    first_tokens, ends = {}, {}
    for token, ((_, end), word) in enumerate(zip(offsets, windows.of_text("word_ids"))):
        first_tokens.setdefault(word, token)
        ends[word] = end
    places, tokens = [], []
    for token, end in zip(first_tokens.values(), ends.values()):
        start = offsets[token][0]
        start += len(text[start:end]) - len(text[start:end].lstrip())  # the space before the word
        end = whole_characters(text, start, end)[1]
        if places and start < places[-1][1] < end:  # it begins with marks of the previous word
            start = places[-1][1]
            while offsets[token][1] <= start:
                token += 1
        if places and start == places[-1][1] < end and _is_split_by_marks(text, start, tokenizer):
            places[-1] = places[-1][0], end
        elif start < end and (not places or start >= places[-1][1]):
            places.append((start, end))
            tokens.append(token)
    return places, tokens


def _is_split_by_marks(text, index, tokenizer):
    """Return whether a word of byte-level BPE begins at a position only because of marks before
    it."""
    base = whole_characters(text, index - 1, index)[0]
    if index - base < 2 or not isinstance(tokenizer, Subwords):
        return False
    return len(tokenizer.words(text[base] + text[index])) == 1
