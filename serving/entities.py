"""Entities from the tags of words."""

LETTERS = {"IOB2": "BIO", "IOBES": "BIOES", "BILOU": "BIOLU", "BMES": "BMOES"}
SCHEMES = (*LETTERS,)
AS_IOBES = {"L": "E", "U": "S", "M": "I"}


def is_tag(tag, scheme):
    """Return whether a tag is one of a scheme: "O", or a letter, "-" and a label."""
    letter, hyphen, label = tag[:1], tag[1:2], tag[2:]
    return tag == "O" or letter in {*LETTERS[scheme]} - {"O"} and hyphen == "-" and label != ""


def entities(tags):
    """Return (label, first word, word after the last) of each entity in the tags of words.

    All schemes are read alike, with L for E, U for S and M for I. Invalid sequences of tags are
    read like conlleval does: a word continues the entity before it if its own tag is I or E, the
    tag before is B or I, and both have one label; any other tag except O begins an entity.

    Reference: Tjong Kim Sang and De Meulder 2003, https://aclanthology.org/W03-0419 (conlleval)
    """
    spans, before = [], ("O", "")
    for index, tag in enumerate(tags):
        letter, _, label = tag.partition("-")
        letter = AS_IOBES.get(letter, letter)
        goes_on = letter in "IE" and before[0] in "BI" and label == before[1]
        if goes_on:
            spans[-1][2] = index + 1
        elif letter != "O":
            spans.append([label, index, index + 1])
        before = letter, label
    return [tuple(entity) for entity in spans]
