"""Texts that no one would write, for tokenizers that must agree on all of them."""

import random

RANGES = [  # Latin, marks, Greek, Cyrillic, signs, kana, Chinese, Cherokee, ligatures, more
    (1, 0x250),
    (0x300, 0x530),
    (0x1E00, 0x2100),
    (0x3000, 0x3100),
    (0x4E00, 0x4E20),
    (0xAB70, 0xAB80),
    (0xFB00, 0xFB07),
    (0x20000, 0x20003),
    (0x1F600, 0x1F610),
]


def random_texts(count, seed=0):
    """So many texts of up to 30 characters, half of them from all over Unicode."""
    draw = random.Random(seed)
    pool = [chr(each) for first, end in RANGES for each in range(first, end)]
    return [
        "".join(
            draw.choice(pool if draw.random() < 0.5 else "ab cd  e'st\n\t1 2")
            for _ in range(draw.randint(1, 30))
        )
        for _ in range(count)
    ]


SPECIAL_TOKENS = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] <pad> <unk> <s> </s> <mask> <bos> <eos> <|endoftext|>"
).split()


def special_texts():
    """Texts with every special token: alone, between words, between letters, and several."""
    for token in SPECIAL_TOKENS:
        yield from (token, f"a {token} b", f"{token} a", f"a{token}b", f"a{token}{token} b")
    yield "[SEP] x [PAD] y"
    yield " ".join(SPECIAL_TOKENS)
    yield "".join(SPECIAL_TOKENS)
