"""The ids of many texts: by the library's own loop, where the tokenizer has one."""

from collections.abc import Sequence

from seqkeras.serving.text import SentencePieces, Subwords, Tokenizer


def encode_all(
    tokenizer: Tokenizer, texts: Sequence[str], special_tokens: bool = False
) -> list[list[int]]:
    """Return the ids of many texts, as `encode` or `analyze` gives them.

    Args:
        tokenizer: one of `seqkeras.tokenizers`.
        texts: a list of strings.
        special_tokens: whether special tokens stand around each text, as `analyze` sets them.

    Returns:
        A list of ids for each text.

    Raises:
        ValueError: if the tokenizer can not read a text.

    Example:
        >>> from seqkeras.tokenizers import CharacterTable, encode_all
        >>> encode_all(CharacterTable.learn(["abc"]), ["abc", "cab!"])
        [[4, 5, 6], [6, 4, 5, 1]]
    """
    if isinstance(tokenizer, Subwords | SentencePieces):
        return tokenizer.encode_all(texts, special_tokens)
    if special_tokens:
        return [tokenizer.analyze(text).token_ids for text in texts]
    return [*map(tokenizer.encode, texts)]
