"""The tokens of a WordPiece vocabulary in the characters of another model."""

from seqkeras.serving.text import CharacterTable, Tokenizer
from seqkeras.serving.text.vocabularies import UNK
from seqkeras.serving.text.word_piece import SPECIAL_TOKENS

UNKNOWN = "[UNK]"
INNER = "##"  # begins a piece that goes on with a word


def spelled_pieces(
    tokenizer: Tokenizer, characters: CharacterTable
) -> tuple[list[list[int]], list[int]]:
    """Return what `BiLMFeatures` and `WordCharacters` must know of a vocabulary.

    Args:
        tokenizer: the `Subwords` of a WordPiece vocabulary.
        characters: a `CharacterTable`.

    Returns:
        pieces: for each token the ids of its characters; [UNK] has one character, <unk>, and other
            special tokens have none.
        goes_on: the ids of the tokens that go on with the word before them.

    Raises:
        ValueError: if the tokenizer is no WordPiece.

    Example:
        >>> from seqkeras.tokenizers import CharacterTable, spelled_pieces, word_piece
        >>> tokenizer = word_piece(["[UNK]", "[CLS]", "[SEP]", "ab", "##c"])
        >>> spelled_pieces(tokenizer, CharacterTable.learn(["abc"]))
        ([[1], [], [], [4, 5], [6]], [4])
    """
    if not tokenizer.is_word_piece:
        raise ValueError(f"spelled_pieces: needs a WordPiece vocabulary; received {tokenizer!r}.")
    tokens = [tokenizer.token_of(index) for index in range(len(tokenizer))]
    goes_on = [
        index for index, token in enumerate(tokens) if token.startswith(INNER) and token != INNER
    ]
    pieces = [
        [] if token in SPECIAL_TOKENS else characters.encode(token.removeprefix(INNER) or token)
        for token in tokens
    ]
    if UNKNOWN in tokens:
        pieces[tokens.index(UNKNOWN)] = [UNK]
    return pieces, goes_on
