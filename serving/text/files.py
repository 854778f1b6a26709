"""Read a tokenizer of any kind from its file, such as one in a bundle's `tokenizer/`."""

import os
from pathlib import Path

from ..parsing import parse_json
from .sentence_pieces import SentencePieces
from .subwords import Subwords
from .vectorized_words import VectorizedWords
from .vocabularies import CharacterTable
from .words import WordTable


def read_tokenizer(
    path: str | os.PathLike[str],
) -> CharacterTable | WordTable | Subwords | SentencePieces:
    """Return the tokenizer of a file.

    Args:
        path: a file that `to_file` of a tokenizer wrote, or Hugging Face's `tokenizer.json`.

    Returns:
        A `CharacterTable`, `WordTable`, `VectorizedWords`, `Subwords` or `SentencePieces`.

    Raises:
        ValueError: if the file holds no tokenizer.
        OSError: if the file can not be read.
        ImportError: if the library that the tokenizer needs is not installed.

    Example:
        >>> import tempfile
        >>> from seqkeras.serving.text import CharacterTable, read_tokenizer
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     CharacterTable.learn(["abc"]).to_file(f"{folder}/text.json")
        ...     read_tokenizer(f"{folder}/text.json")
        <CharacterTable: 7 characters>
    """
    try:
        content = parse_json(Path(path).read_bytes())
    except ValueError as error:
        raise ValueError(f"{path}: a tokenizer's file must be JSON: {error}.") from error
    kinds: dict[str, type[CharacterTable | WordTable | SentencePieces]] = {
        "characters": CharacterTable,
        "words": WordTable,
        "vectorized_words": VectorizedWords,
        "sentencepiece": SentencePieces,
    }
    kind = content.get("type") if isinstance(content, dict) else None
    if isinstance(kind, str) and kind in kinds:
        return kinds[kind].from_file(path)
    if isinstance(content, dict) and isinstance(content.get("model"), dict):
        return Subwords.from_file(path)
    raise ValueError(
        f"{path}: must hold a table of characters or words, a tokenizer.json or a SentencePiece "
        "model in JSON."
    )
