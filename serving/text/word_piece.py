"""WordPiece, BERT's tokenizer."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path

from .subwords import Subwords, require_library

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def word_piece(
    vocabulary: Sequence[str],
    lowercase: bool = True,
    strip_accents: bool | None = None,
    max_word_length: int = 100,
    in_texts: Collection[str] = SPECIAL_TOKENS,
) -> Subwords:
    """Return the `Subwords` of BERT.

    Words end at white space, punctuation and each Chinese character; control characters and NUL are
    dropped. A word is split into the longest token at its start, then the longest token of the
    rest, written with ##, and so on; a word that can not be split so is [UNK].

    Args:
        vocabulary: the tokens; a token's id is its index.
        lowercase: whether the model is "uncased".
        strip_accents: whether "é" becomes "e"; None for the value of `lowercase`, as in BERT.
        max_word_length: longer words are [UNK]: 100 characters at Hugging Face, 200 at Google.
        in_texts: special tokens that are read where they are written in a text: all at Hugging
            Face. Others are text there: "[SEP]" is [, SEP and ].

    Raises:
        ValueError: if the vocabulary lacks [UNK], [CLS] or [SEP], or holds a token twice.
        ImportError: if `tokenizers` is not installed.

    Reference: Devlin et al. 2019, section 3, https://arxiv.org/abs/1810.04805;
    https://github.com/google-research/bert (tokenization.py)

    Example:
        >>> from seqkeras.serving.text import word_piece
        >>> special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        >>> tokenizer = word_piece([*special, "play", "##ing", "##ed"])
        >>> tokenizer.analyze("Playing played").tokens
        ['[CLS]', 'play', '##ing', 'play', '##ed', '[SEP]']
        >>> tokenizer.encode("played runs")  # 1 is [UNK]
        [5, 7, 1]
    """
    library = require_library()
    ids = {token: index for index, token in enumerate(vocabulary)}
    _require(vocabulary, ids)
    model = library.models.WordPiece(
        ids, unk_token="[UNK]", max_input_chars_per_word=max_word_length
    )
    tokenizer = library.Tokenizer(model)
    tokenizer.normalizer = library.normalizers.BertNormalizer(
        lowercase=lowercase, strip_accents=strip_accents
    )
    tokenizer.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = library.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, ids[token]) for token in SPECIAL_TOKENS if token in ids],
    )
    tokenizer.decoder = library.decoders.WordPiece()
    tokenizer.add_special_tokens(
        [token for token in SPECIAL_TOKENS if token in ids and token in in_texts]
    )
    return Subwords(tokenizer.to_str())


def read_vocabulary(path: str | os.PathLike[str]) -> list[str]:
    """Return the tokens of a `vocab.txt`, one in each line.

    Args:
        path: path of the file.

    Returns:
        A list of strings; the index of a token is its id.

    Raises:
        ValueError: if the file is not UTF-8, or has a token twice.
        OSError: if the file can not be read.

    Example:
        >>> import pathlib, tempfile
        >>> from seqkeras.serving.text import read_vocabulary
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = pathlib.Path(folder, "vocab.txt")
        ...     _ = file.write_text("[PAD]\\n[UNK]\\nplay\\n##ing\\n", encoding="utf-8")
        ...     read_vocabulary(file)
        ['[PAD]', '[UNK]', 'play', '##ing']
    """
    try:
        lines = Path(path).read_bytes().decode().split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: a vocabulary must be UTF-8: {error}.") from error
    if not lines[-1]:
        lines.pop()
    tokens, line_of = [line.removesuffix("\r") for line in lines], {}
    for line, token in enumerate(tokens, start=1):
        if line_of.setdefault(token, line) < line:
            raise ValueError(
                f"{path}, line {line}: tokens must be distinct; {token!r} stands in line "
                f"{line_of[token]} too."
            )
    return tokens


def _require(vocabulary, ids):
    missing = [token for token in ("[UNK]", "[CLS]", "[SEP]") if token not in ids]
    if missing:
        raise ValueError(
            f"word_piece: the vocabulary must hold {', '.join(missing)}; "
            f"received {len(vocabulary)} tokens without."
        )
    if len(ids) < len(vocabulary):
        repeated = next(token for index, token in enumerate(vocabulary) if ids[token] != index)
        raise ValueError(f"word_piece: tokens must be distinct; received {repeated!r} twice.")
