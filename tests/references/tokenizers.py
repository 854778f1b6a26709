"""Words to pieces, straight from the papers."""


def word_pieces(word, vocabulary):
    """The longest token that a word begins with, then of what remains; else [UNK].

    Reference: https://github.com/google-research/bert (tokenization.WordpieceTokenizer)
    """
    pieces, start = [], 0
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(piece)
        start = end
    return pieces


def byte_pairs(symbols, merges):
    """Merge the pair that stands first among the merges, wherever it is, until there is none.

    Reference: Sennrich et al. 2016, algorithm 1, https://arxiv.org/abs/1508.07909
    """
    symbols = list(symbols)
    while True:
        pairs = set(zip(symbols, symbols[1:])) & set(merges)
        if not pairs:
            return symbols
        best = min(pairs, key=merges.index)
        merged, place = [], 0
        while place < len(symbols):
            width = 2 if tuple(symbols[place : place + 2]) == best else 1
            merged.append("".join(symbols[place : place + width]))
            place += width
        symbols = merged


def bytes_to_characters():
    """GPT-2's alphabet: visible Latin-1 bytes stand for themselves, the others for what follows.

    Reference: https://github.com/openai/gpt-2 (encoder.bytes_to_unicode)
    """
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [each for each in range(256) if each not in visible]
    return {
        **{each: chr(each) for each in visible},
        **{each: chr(256 + place) for place, each in enumerate(others)},
    }
