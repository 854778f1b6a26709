"""Hypothesis's strategies for the inputs of each pipeline: right ones, odd ones, wrong ones."""

from hypothesis import strategies as st

WORDS = "a A model may be small. Small words, and smaller ones! is here there The reads few".split()
SPECIAL = (
    "[PAD] [UNK] [CLS] [SEP] [MASK] <s> </s> <pad> <unk> <mask> <bos> <eos> <|endoftext|> ## \u2581"
).split()
# Accents composed and not, scripts without spaces, emoji of several code points, what is not seen.
FOREIGN = [
    "\u00e9t\u00e9",
    "e\u0301",
    "\u65e5\u672c\u8a9e",
    "\u5317\u4eac\u5e02",
    "\u0e44\u0e17\u0e22",
]
FOREIGN += [
    "\u0645\u0627\u0631\u0633",
    "\U0001f469\u200d\U0001f52c",
    "\u200b",
    "\x00",
    "\ufeff",
    "\u00ad",
]
SPACES = [" ", "", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2028"]

pieces = st.one_of(
    st.sampled_from(WORDS),
    st.sampled_from(SPECIAL),
    st.sampled_from(FOREIGN),
    st.text(max_size=6),
    st.integers(-(10**12), 10**12).map(str),
)


@st.composite
def texts(draw, most=9):
    """A text of up to `most` pieces, with any space between them."""
    parts = draw(st.lists(pieces, max_size=most))
    return "".join(part + draw(st.sampled_from(SPACES)) for part in parts)


long_texts = st.builds(lambda word, count: f"{word} " * count, pieces, st.integers(20, 70))
# What JSON can hold, and no pipeline of texts takes.
odd = st.sampled_from(
    [None, True, 1, 2.5, {}, {"text": 1}, {"txt": "a"}, (), ("a", "b", "c"), ("a", 1), "\ud800 a"]
)
text = st.one_of(texts(), texts(), texts(), long_texts, odd)
pair = st.one_of(text, st.tuples(texts(), texts()))


def masked(mask):
    """A text with masks, mostly."""
    parts = st.lists(
        st.tuples(st.one_of(pieces, st.just(mask)), st.sampled_from(SPACES)), max_size=7
    )
    last = st.sampled_from([mask, mask, "a"])
    return st.builds(lambda parts, last: "".join(map("".join, parts)) + last, parts, last)


def choice(part, least):
    """A text with choices, of which each is drawn from `part`."""
    return st.fixed_dictionaries(
        {"text": part, "choices": st.lists(part, min_size=least, max_size=4)}
    )


begun = st.builds("{} {}".format, st.sampled_from(WORDS), texts(2))
choices = st.one_of(choice(begun, 2), choice(begun, 2), choice(texts(3), 1), odd)
questions = st.one_of(st.tuples(texts(4), texts(20)), odd)


def trees(words=("a", "small", "film", "[PAD]", "(", "-LRB-", "\u65e5")):
    """A tree in brackets, or a text that is none."""
    leaf = st.sampled_from(words).map("({})".format)
    tree = st.recursive(leaf, lambda part: st.builds("(2 {} {})".format, part, part), max_leaves=9)
    return st.one_of(tree, tree, texts(3), odd)


LARGE = (3e38, -3e38, 1e39, float("inf"))  # in float32, and beyond it


def frames(features, large=(), most=19):
    """Rows of numbers, some all zero, wherever they stand; or what is no array of that shape."""
    number = st.sampled_from([*5 * [0.0, 1.0, -1.5, 0.25, 1e-12, 3.0e4], *large])
    row = st.lists(number, min_size=features, max_size=features).map(tuple)
    rows = st.lists(st.one_of(row, st.just((0.0,) * features)), max_size=most).map(tuple)
    wrong = [None, "frames", ((1.0,),), (("a",) * features,), ((1.0,) * features, (1.0,))]
    return st.one_of(rows, rows, rows, st.sampled_from(wrong))
