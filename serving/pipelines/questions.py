"""Encode questions about contexts: as subwords, or as words and their characters."""

from dataclasses import dataclass

from ..manifest import MANIFEST, BundleError
from ..text import CharacterTable, Subwords, WordTable, pad
from ..text.packing import pad_nested
from .inputs import TextReader, open_tokenizer, require_length, require_token, too_long
from .model import TOKENS, Packing
from .spelled_words import spelled, words_within
from .windows import Windows


@dataclass(frozen=True)
class Question:
    """A question about a context.

    Attributes:
        context: the given text.
        windows: its `Windows`.
        offsets: (start, end) of each token of the context.
    """

    context: str
    windows: Windows
    offsets: list


class SubwordQuestions:
    """Encodes questions with their contexts in windows, as pairs of texts.

    Args:
        tokenizer: a `Subwords`.
        limit: the most tokens that the model reads at once.
        settings: the settings of `Answer`.
    """

    packing = TOKENS

    def __init__(self, tokenizer, limit, settings):
        self._tokenizer, self._limit, self._settings = tokenizer, limit, settings
        self._window = min(settings.window, limit)

    @classmethod
    def of_bundle(cls, folder, manifest, settings):
        """Return the pipeline of a bundle.

        Raises:
            BundleError: if the tokenizer takes no pairs, or the settings leave no room for a
                context.
        """
        tokenizer = TextReader(folder, manifest).tokenizer
        if not isinstance(tokenizer, Subwords):
            reason = "Answer needs a tokenizer of pairs, WordPiece or byte-level BPE"
            raise BundleError(reason, where=folder)
        questions = cls(tokenizer, manifest.limits.source_length, settings)
        for problem in questions.problems():
            raise BundleError(problem, where=folder, subject=MANIFEST)
        return questions

    def problems(self):
        """Yield what is wrong with the settings."""
        num_special = len(self._tokenizer.analyze("", ""))
        if self._window <= self._settings.question_length + num_special:
            yield (
                "settings.window and limits.source_length must leave room for a context after "
                f"settings.question_length, {self._settings.question_length}, and {num_special} "
                f"special tokens; received {self._settings.window} and {self._limit}"
            )

    def read(self, question, context, name, truncate=False):
        """Return the `Question`.

        Args:
            question, context: texts that are not blank.
            name: name of the input, for errors.
            truncate: cut a question over the limit; contexts may have any length.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        limit, stride = self._settings.question_length, self._settings.stride
        if not truncate:
            require_length(question, limit, f"{name}, question")
        length = len(self._tokenizer.encode(question))
        require_token(length, f"{name}, question")
        if length > limit and not truncate:
            raise too_long(f"{name}, question", length, limit)
        encodings = self._tokenizer.windows(question, context, self._window, stride, limit)
        windows = Windows.of(encodings, stride, before=min(length, limit))
        require_token(windows.tokens[0], f"{name}, context")
        return Question(context, windows, windows.of_text("offsets"))


@dataclass(frozen=True)
class _Words:
    """The words of a context and of a query, with the ids of words and characters."""

    context_ids: list
    context_characters: list
    context_words: list
    query_ids: list
    query_characters: list
    query_words: list

    def __len__(self):
        return len(self.context_ids)


def _arrays(rows):
    arrays = {}
    for side in ("context", "query"):
        arrays[f"{side}_ids"], arrays[f"{side}_lengths"] = pad(
            [getattr(row, f"{side}_ids") for row in rows]
        )
        characters = [getattr(row, f"{side}_characters") for row in rows]
        arrays[f"{side}_characters"] = pad_nested(characters)
    return arrays


class WordQuestions:
    """Encodes questions and contexts as words with characters; a context is one window.

    Args:
        words, characters: a `WordTable` and a `CharacterTable`.
        limit: the most words of a context.
        settings: the settings of `Answer`.

    Reference: Seo et al. 2017, section 2, https://arxiv.org/abs/1611.01603
    """

    packing = Packing(
        _arrays,
        frozenset(
            f"{side}_{part}"
            for side in ("context", "query")
            for part in ("ids", "characters", "lengths")
        ),
        labels=lambda row: {"context_ids": row.context_words, "query_ids": row.query_words},
    )

    def __init__(self, words, characters, limit, settings):
        self._words, self._characters = words, characters
        self._limit, self._settings = limit, settings

    @classmethod
    def of_bundle(cls, folder, manifest, settings):
        """Return the pipeline of a bundle.

        Raises:
            BundleError: if the tables of words and of characters are missing, or the settings are
                those of a model that allows questions without an answer.
        """
        words = open_tokenizer(folder, manifest, "words", WordTable)
        characters = open_tokenizer(folder, manifest, "characters", CharacterTable)
        if settings.no_answer:
            raise BundleError(
                "settings.no_answer must be false for a model of words, which always has an answer",
                where=folder,
                subject=MANIFEST,
            )
        return cls(words, characters, manifest.limits.source_length, settings)

    def read(self, question, context, name, truncate=False):
        """Return the `Question`.

        Args:
            question, context: texts that are not blank.
            name: name of the input, for errors.
            truncate: cut a question or a context over the limit.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        query, _ = self._read(
            question, f"{name}, question", self._settings.question_length, truncate
        )
        ids_and_characters, places = self._read(context, f"{name}, context", self._limit, truncate)
        row = _Words(*ids_and_characters, *query)
        return Question(context, Windows([row], [range(len(places))], [0]), places)

    def _read(self, text, name, limit, truncate):
        places = words_within(text, name, limit, truncate)
        characters = spelled(self._characters, text, places, self._settings.word_length)
        words = [text[start:end] for start, end in places]
        return (list(map(self._words.lookup, words)), characters, words), places
