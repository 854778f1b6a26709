"""What pipelines are given: inputs of one text or of several that belong together."""

import itertools
from collections.abc import Mapping

from ..checks import require_count, require_flag, shown
from ..manifest import MANIFEST, BundleError, Refusal
from ..text import SentencePieces, Subwords, WordTable, read_tokenizer

MOST_CHARACTERS = 2**22  # of a text, or 1,000 for each token of its limit if these are more


def each_of(inputs, name, plural=None):
    """Return the inputs as a list, and a name of each for errors.

    Args:
        inputs: a list of inputs; anything else is one.
        name: what an input is, as "Tag: text".
        plural: of it; None: with an s if it has none.
    """
    if isinstance(inputs, list):
        plural = plural or f"{name.removesuffix('s')}s"
        return inputs, [f"{plural}[{place}]" for place in range(len(inputs))]
    return [inputs], [name]


def encoded(inputs, name, encode, truncate, token_budget, plural=None):
    """Return what the model reads of each input, as a list.

    Args:
        inputs, name, plural: as `each_of` takes them.
        encode: takes an input, its name and `truncate`.
        truncate, token_budget: options of every pipeline, which are checked here.

    Raises:
        ValueError: if an option is wrong, or as `encode` does.
    """
    who = name.partition(":")[0]
    require_flag(f"{who}: truncate", truncate)
    require_count(f"{who}: token_budget", token_budget)
    return [encode(value, own, truncate) for value, own in zip(*each_of(inputs, name, plural))]


def one_or_all(inputs, answers):
    """Return the list of answers to a list of inputs; for one input, its answer."""
    return answers if isinstance(inputs, list) else answers[0]


def parts_of(value, fields, name):
    """Return the values that an input holds: a dictionary of `fields`, or a tuple in their order.

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
    """Return the text that an input is, or that it holds, a dictionary of "text".

    Raises:
        ValueError: if it is another dictionary.
    """
    if isinstance(value, Mapping):
        [value] = parts_of(value, ("text",), name)
    return value


def require_words(text, name, surrogates=False):
    """Raise a ValueError unless `text` is a string that says something; see `require_text`."""
    require_text(text, name, surrogates)
    if not text.strip():
        raise ValueError(f"{name} is {'blank' if text else 'empty'}; write something to answer.")


def require_text(text, name, surrogates=False):
    """Raise a ValueError unless `text` is a string that UTF-8 can hold.

    Args:
        text: what is given.
        name: of it, for errors.
        surrogates: allow lone surrogates, which a table of characters takes as unknown.
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
        name: of the text, for errors.
    """
    if len(text) > max(MOST_CHARACTERS, 1000 * limit):
        raise too_long(name, len(text), f"{limit} tokens", "characters")


def require_token(found, name):
    """Raise a ValueError if a tokenizer found no token in a text that is no blank.

    WordPiece leaves out what can not be seen, as NUL and U+200B; SentencePiece some of it.

    Args:
        found: the tokens, or anything that tells whether there are some.
        name: of the text, for errors.
    """
    if not found:
        raise ValueError(f"{name} has no token; write something to answer.")


def open_tokenizer(folder, manifest, role, kind=None):
    """Return the tokenizer of `role`, which is a `kind` if one is asked for.

    Raises:
        BundleError: if there is none, it can not be read, it is of another kind, or the library
            that it needs is missing.
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
        takes_pairs: whether the tokenizer does.
        reads_words: whether it is a table of words.

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
            places: where the words lie that a table of words is asked for; None: as it splits them.

        Raises:
            ValueError: beginning with `name`, if the text can not be answered.
        """
        require_words(text, name)
        options = {} if places is None else {"places": places}
        return self._fitted((name,), truncate, text, **options)

    def read_pair(self, text, pair, names, truncate=False):
        """Return the `Encoding` of a pair of texts.

        Args:
            text, pair: the texts.
            names: of the two, for errors.
            truncate: cut the longer one, token by token, until both fit.

        Raises:
            ValueError: beginning with a name, if they can not be answered.
        """
        for each, name in zip((text, pair), names, strict=True):
            require_words(each, name)
        if not self.takes_pairs:
            raise ValueError(f"{names[1]} is one too many: the bundle's tokenizer takes no pairs.")
        return self._fitted(names, truncate, text, pair)

    def read_windows(self, text, name, stride):
        """Return the `Encoding`s of the windows of a text, which may have any length.

        Args:
            text: the text.
            name: of it, for errors.
            stride: how many tokens a window begins behind the one before.

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
        if _runs(encoding.offsets) < len(texts):  # only then is it worth to read them again
            for text, name in zip(texts, names):
                require_token(self.tokenizer.encode(text), name)
        if len(encoding) <= self.limit:
            return encoding
        if truncate:
            return self.tokenizer.analyze(*texts, max_length=self.limit, truncate=True, **options)
        unit = "words" if self.reads_words else "tokens"
        raise too_long(names[0], len(encoding), self.limit, unit)


def _runs(offsets):
    """Return how many runs of tokens of texts special ones stand around."""
    return sum(key for key, _ in itertools.groupby(each is not None for each in offsets))


def too_long(name, length, limit, unit="tokens"):
    """Return the error of an input that is over the limit."""
    return Refusal(
        f"{name} has {length} {unit}; the limit is {limit}",
        advice="Nothing was truncated: shorten it, or ask for truncate=True.",
    )
