"""Labels of pictures: the fonts of texts, the glyphs of single characters, their order on the line.

Fonts come from packages, not from the system: DejaVu Sans with matplotlib, Noto Sans CJK with
notojp-matplotlib. What neither has is shown by its script's name, a single character by its code
point.

Left out: a Devanagari, Thai or other font that neither package has, Chinese variants of shared Han
characters (Noto's Japanese ones are drawn), embeddings, isolates and paired brackets in
mixed-direction text.
"""

import functools
import importlib.metadata
import itertools
import re
import unicodedata
from operator import itemgetter
from pathlib import Path

import arabic_reshaper
import matplotlib
from bidi import algorithm
from bidi.mirror import MIRRORED
from matplotlib.font_manager import FontProperties, fontManager, get_font

UNWRITTEN = re.compile(r"\[(?:U\+[0-9A-F]{4,}|[A-Z][a-z-]+)\]")  # of `readable`
SPACE, DOTTED_CIRCLE, ZERO_WIDTH_JOINER, TATWEEL = "␣", "\u25cc", "\u200d", "\u0640"
RIGHT_TO_LEFT_MARK = "\u200f"
RESHAPER = arabic_reshaper.ArabicReshaper(
    {"support_ligatures": False, "delete_harakat": False, "support_zwj": False}
)
# Types of characters that python-bidi drops, refuses or breaks lines at, and their replacements,
# which keep every character on the one line: neutrals, a letter, a tab.
STAND_INS = dict.fromkeys("LRE RLE LRO RLO PDF LRI RLI FSI PDI BN".split(), "ON")
STAND_INS |= {"": "L", "B": "S"}


# Characters and fonts


@functools.cache
def fonts():
    """Return the font files that labels use, the preferred one first."""
    # Found by its metadata: importing notojp_matplotlib would change matplotlib's default font.
    noto = importlib.metadata.distribution("notojp-matplotlib").locate_file(
        "notojp_matplotlib/fonts/NotoSansCJKjp-Regular.otf"
    )
    return str(Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSans.ttf")), str(noto)


@functools.cache
def families():
    """Return the names of these fonts, for matplotlib, which takes each glyph from the first that
    has it."""
    for font in fonts():
        fontManager.addfont(font)
    return [get_font(font).family_name for font in fonts()]


def font_of_texts(size):
    """Return the `FontProperties` of every text of a picture, in points.

    Such a text is `readable`, and is drawn with parse_math=False.
    """
    normal = dict.fromkeys(("style", "variant", "weight", "stretch"), "normal")
    return FontProperties(family=families(), size=size, **normal)


def monospace():
    return str(Path(matplotlib.get_data_path(), "fonts/ttf/DejaVuSansMono.ttf"))


@functools.cache
def cmap(font):
    """Return the code points that a font file has glyphs for."""
    return frozenset(get_font(font).get_charmap())


def has_glyph(font, character):
    return ord(character) in cmap(font) and unicodedata.category(character) != "Cc"


def has_ink(font, character):
    """Return whether the glyph is visible; spaces, control characters and fillers are not."""
    if unicodedata.category(character)[0] in "ZC" or not has_glyph(font, character):
        return False
    left, bottom, right, top = get_font(font).load_char(ord(character)).bbox
    return right > left and top > bottom


def font_of(text):
    """Return the first font with a visible glyph for every character of text, or None."""
    return next(
        (font for font in fonts() if all(has_ink(font, character) for character in text)), None
    )


def code_point(character):
    digits = f"{ord(character):04X}"
    return digits.zfill(len(digits) + len(digits) % 2)


def label(character):
    """Return the label of a single character; a combining mark gets a dotted circle as its base."""
    if unicodedata.category(character) == "Zs":  # also no-break spaces
        return SPACE
    return DOTTED_CIRCLE + character if unicodedata.category(character)[0] == "M" else character


def source_labels(source):
    """Return the label of every source character: Arabic letters as in their word, brackets
    turned."""
    joined = RESHAPER.reshape(source.replace(ZERO_WIDTH_JOINER, TATWEEL))
    labels = []
    for character, form, level in zip(source, joined, bidi_levels(source), strict=True):
        form = MIRRORED.get(form, form) if level % 2 else form
        if character != ZERO_WIDTH_JOINER and font_of(form):
            character = form  # DejaVu lacks some joined forms of letters that it has alone
        labels.append(label(character))
    return labels


def readable(text):
    """Return text for one line: what no font has becomes its script's name, as in "3 [Devanagari]".

    A mark in front tells matplotlib that the line reads from right to left. `notes_of` says what
    the brackets are.
    """
    parts = [RIGHT_TO_LEFT_MARK] if reads_right_to_left(text) else []
    for covered, run in itertools.groupby(text, _is_covered):
        for script, characters in itertools.groupby(run, None if covered else script_of):
            parts.append("".join(characters) if covered else script)
    return "".join(parts)


def notes_of(texts):
    """Return the line that a picture needs if a font lacks characters of its texts, in a list, or
    none.

    Args:
        texts: iterable of strings, `readable`.
    """
    lacks = any(UNWRITTEN.search(text) for text in texts)
    return ["in brackets: a script that no font here has"] if lacks else []


def _is_covered(character):
    return any(has_glyph(font, character) for font in fonts())


def script_of(character):
    category = unicodedata.category(character)
    if category[0] in "ZC":
        return " " if category[0] == "Z" or category == "Cc" else ""
    if category[0] in "LM":
        return f"[{unicodedata.name(character, 'unknown').split()[0].capitalize()}]"
    return f"[U+{ord(character):04X}]"


# Order on the line


def reads_right_to_left(text):
    """Return whether Arabic and Hebrew characters are at least half: "ar|" in front changes
    nothing."""
    directions = [unicodedata.bidirectional(character) for character in text]
    right_to_left = sum(directions.count(direction) for direction in ("R", "AL", "AN"))
    return right_to_left > 0 and right_to_left >= directions.count("L")


def visual_order(text):
    """Return the indices of the characters from left to right, as a reader sees them."""
    return [record["index"] for record in bidi_records(text)]


def bidi_levels(text):
    """Return the embedding level of every character; odd: it reads from right to left."""
    return [record["level"] for record in sorted(bidi_records(text), key=itemgetter("index"))]


def bidi_records(text):
    """Return python-bidi's records of the characters, from left to right: "index", "level" and
    more.

    Its `get_display` returns a string, so its steps are run here one by one, without X1 to X9.

    Reference: Unicode Bidirectional Algorithm, https://www.unicode.org/reports/tr9/
    """
    storage = algorithm.get_empty_storage()
    storage["base_level"] = int(reads_right_to_left(text))
    algorithm.get_embedding_levels(text, storage)
    for index, entry in enumerate(storage["chars"]):
        entry["index"] = index
        entry["type"] = entry["orig"] = STAND_INS.get(entry["type"], entry["type"])
    algorithm.calc_level_runs(storage)  # X10
    algorithm.resolve_weak_types(storage)  # W1 to W7
    algorithm.resolve_neutral_types(storage, debug=False)  # N1, N2
    algorithm.resolve_implicit_levels(storage, debug=False)  # I1, I2
    algorithm.reorder_resolved_levels(storage, debug=False)  # L1, L2
    return storage["chars"]
