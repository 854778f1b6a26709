"""Checks and encoding of pipelines' inputs: one text, or several parts."""

import itertools
import math
from collections.abc import Mapping

import numpy as np

from ..checks import require_count, require_flag, shown
from ..manifest import MANIFEST, BundleError, NoFiniteNumber, OverLimit
from ..text import SentencePieces, Subwords, WordTable, read_tokenizer

MOST_CHARACTERS = 2**22  # of a text, or 1,000 for each token of its limit if that is more


def named_inputs(inputs, name, plural=None):
    """Return the inputs as a list, and their names for errors.

    Args:
        inputs: a list of inputs; anything else is one.
        name: name of an input, such as "Tag: text".
        plural: plural of the name; None: the name with an s.
    """
    if isinstance(inputs, list):
        plural = plural or f"{name.removesuffix('s')}s"
        return inputs, [f"{plural}[{index}]" for index in range(len(inputs))]
    return [inputs], [name]


def encoded(inputs, name, encode, truncate, token_budget, plural=None, reader=None):
    """Return the model's input for each input, as a list.

    Args:
        inputs, name, plural: see `named_inputs`.
        encode: takes an input, its name and `truncate`.
        truncate, token_budget: options of all pipelines, which are checked here.
        reader: None, or what `encode` reads by. It may have `read_all`, which takes a list of
            inputs and returns the model's input for each, or None if `encode` must look at one.

    Raises:
        ValueError: if an option is wrong, or see `encode`.
    """
    who = name.partition(":")[0]
    require_flag(f"{who}: truncate", truncate)
    require_count(f"{who}: token_budget", token_budget)
    if hasattr(reader, "read_all") and not truncate and isinstance(inputs, list):
        rows = reader.read_all(inputs)
        if rows is not None:
            return rows
    return [
        encode(value, input_name, truncate)
        for value, input_name in zip(*named_inputs(inputs, name, plural))
    ]


def one_or_all(inputs, answers, name, plural=None):
    """Return the list of answers to a list of inputs; for one input, its answer.

    Args:
        inputs, name, plural: see `named_inputs`.
        answers: list of answers; None for one that the model does not give.

    Raises:
        NoFiniteNumber: if an answer has a number that is not finite.
    """
    for index, answer in enumerate(answers):
        if not _is_finite(answer):
            raise NoFiniteNumber(named_inputs(inputs, name, plural)[1][index])
    return answers if isinstance(inputs, list) else answers[0]


def each_or_error(answers, name):
    """Return each answer, or a `NoFiniteNumber` in the place of one with no finite number."""
    return [answer if _is_finite(answer) else NoFiniteNumber(name) for answer in answers]


def _is_finite(answer):
    return answer is not None and all(map(_are_finite, answer.numbers()))


def _are_finite(numbers):
    if isinstance(numbers, float):  # NumPy would take ten times as long for one
        return math.isfinite(numbers)
    return np.isfinite(numbers).all()


def parts_of(value, fields, name):
    """Return the parts of an input: a dictionary of `fields`, or a tuple in their order.

    Raises:
        ValueError: if it is neither.
    """
    if isinstance(value, Mapping) and set(value) == set(fields):
        return tuple(value[field] for field in fields)
    if isinstance(value, tuple) and len(value) == len(fields):
        return value
    expected = " and ".join(fields)
    raise ValueError(
        f"{name} must be a tuple or a dictionary of {expected}; received {shown(value)}."
    )


def text_of(value, name):
    """Return the text of an input: a string, or a dictionary of "text".

    Raises:
        ValueError: if it is another dictionary.
    """
    if isinstance(value, Mapping):
        [value] = parts_of(value, ("text",), name)
    return value


def require_words(text, name, surrogates=False):
    """Raise a ValueError unless `text` is a string that is not blank; see `require_text`."""
    require_text(text, name, surrogates)
    if not text.strip():
        raise ValueError(f"{name} is {'blank' if text else 'empty'}; write something to answer.")


def require_text(text, name, surrogates=False):
    """Raise a ValueError unless `text` is a string that UTF-8 can encode.

    Args:
        text: the value.
        name: of it, for errors.
        surrogates: allow lone surrogates, which a table of characters reads as unknown.
    """
    if not isinstance(text, str):
        raise ValueError(f"{name} must be a string; received {shown(text)}.")
    try:
        text.encode(errors="surrogatepass" if surrogates else "strict")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name} must hold no lone surrogate; received {text[error.start]!r} at {error.start}."
        ) from error


def require_length(text, limit, name):
    """Raise a ValueError if a text is far over a limit, before it is split into tokens.

    The tokens of 100 MB of text would take 3 GB.

    Args:
        text: the text.
        limit: the most tokens.
        name: name of the text, for errors.
    """
    if len(text) > most_characters(limit):
        raise too_long(name, len(text), f"{limit} tokens", "characters")


def most_characters(limit):
    """Return the most characters of a text of at most `limit` tokens."""
    return max(MOST_CHARACTERS, 1000 * limit)


def require_token(token_id, name):
    """Raise a ValueError if a tokenizer found no token in a text that is not blank.

    WordPiece drops invisible characters such as NUL and U+200B; SentencePiece, some of them.

    Args:
        token_id: the tokens, or any value that is true if there are some.
        name: name of the text, for errors.
    """
    if not token_id:
        raise ValueError(f"{name} has no token; write something to answer.")


def open_tokenizer(folder, manifest, role, kind=None):
    """Return the tokenizer of `role`, checked to be a `kind` if that is given.

    Raises:
        BundleError: if it is missing, can not be read, is of another kind, or its library is
            missing.
    """
    if role not in manifest.tokenizers:
        raise BundleError(f"no {role} tokenizer is named", where=folder, subject=MANIFEST)
    file = folder / manifest.tokenizers[role]
    try:
        tokenizer = read_tokenizer(file)
    except ImportError as error:
        raise BundleError(str(error), where=file, advice="") from error
    except ValueError as error:
        raise BundleError(str(error)) from error
    if kind and not isinstance(tokenizer, kind):
        raise BundleError(
            f"must be a {kind.__name__}; it is a {type(tokenizer).__name__}",
            where=folder,
            subject=manifest.tokenizers[role],
        )
    return tokenizer


class TextReader:
    """Texts, or pairs of texts, to token ids.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.

    Attributes:
        tokenizer, limit: the tokenizer "text", and the most tokens of a text or a pair.
        takes_pairs: whether the tokenizer takes pairs of texts.
        reads_words: whether the tokenizer is a table of words.

    Raises:
        BundleError: if the bundle has no tokenizer of subwords, and no table of words.
    """

    def __init__(self, folder, manifest):
        self.tokenizer = open_tokenizer(folder, manifest, "text")
        if not isinstance(self.tokenizer, (Subwords, SentencePieces, WordTable)):
            raise BundleError(
                "the text tokenizer must be one of subwords or a table of words; it is a "
                f"{type(self.tokenizer).__name__}",
                where=folder,
            )
        self.limit = manifest.limits.source_length
        self.reads_words = isinstance(self.tokenizer, WordTable)
        self.takes_pairs = isinstance(self.tokenizer, Subwords)

    def read(self, text, name, truncate=False, places=None):
        """Return the `Encoding` of a text.

        Args:
            text: the text.
            name: of it, for errors.
            truncate: cut what is over the limit.
            places: (start, end) of words, for a table of words; None: it splits the text itself.

        Raises:
            ValueError: beginning with `name`, if the text can not be answered.
        """
        require_words(text, name)
        options = {} if places is None else {"places": places}
        return self._fitted((name,), truncate, text, **options)

    def read_all(self, texts):
        """Return the `Encoding`s of texts, or None if `read` must look at one of them."""
        if not isinstance(self.tokenizer, Subwords):
            return None
        most = most_characters(self.limit)
        if not all(isinstance(text, str) and len(text) <= most for text in texts):
            return None
        if not all(text and not text.isspace() for text in texts):
            return None
        try:
            encodings = self.tokenizer.analyze_all(texts)
        except ValueError:
            return None
        fewest = self.tokenizer.num_special + 1  # a text has a token
        fits = all(fewest <= len(encoding) <= self.limit for encoding in encodings)
        return encodings if fits else None

    def read_pair(self, text, pair, names, truncate=False):
        """Return the `Encoding` of a pair of texts.

        Args:
            text, pair: the texts.
            names: names of the two, for errors.
            truncate: cut the longer one, token by token, until both fit.

        Raises:
            ValueError: beginning with a name, if they can not be answered.
        """
        for part, name in zip((text, pair), names, strict=True):
            require_words(part, name)
        if not self.takes_pairs:
            raise ValueError(f"{names[1]} is one too many: the bundle's tokenizer takes no pairs.")
        return self._fitted(names, truncate, text, pair)

    def read_windows(self, text, name, stride):
        """Return the `Encoding`s of the windows of a text, which may have any length.

        Args:
            text: the text.
            name: of it, for errors.
            stride: the distance in tokens between the starts of two windows.

        Raises:
            ValueError: beginning with `name`, if the text can not be answered.
        """
        require_words(text, name)
        encodings = self.tokenizer.windows(None, text, self.limit, stride)
        require_token(any(encodings[0].offsets), name)
        return encodings

    def _fitted(self, names, truncate, *texts, **options):
        if not truncate:
            for text, name in zip(texts, names):
                require_length(text, self.limit, name)
        encoding = self.tokenizer.analyze(*texts, **options)
        if _runs(encoding.offsets) < len(texts):  # only then, reading them again is worthwhile
            for text, name in zip(texts, names):
                require_token(self.tokenizer.encode(text), name)
        if len(encoding) <= self.limit:
            return encoding
        if truncate:
            return self.tokenizer.analyze(*texts, max_length=self.limit, truncate=True, **options)
        unit = "words" if self.reads_words else "tokens"
        raise too_long(names[0], len(encoding), self.limit, unit)


def _runs(offsets):
    """Return the number of runs of text tokens between special tokens."""
    return sum(key for key, _ in itertools.groupby(offset is not None for offset in offsets))


def too_long(name, length, limit, unit="tokens"):
    """Return the error for an input over the limit."""
    return OverLimit(f"{name} has {length} {unit}; the limit is {limit}")
