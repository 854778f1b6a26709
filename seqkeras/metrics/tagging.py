"""Scores of tags of words, and of the entities that they mark."""

from seqkeras.metrics.pairs import exact_match, pairs_of
from serving.entities import entities


def entity_f1(tags, targets):
    """F1 of the entities of all sentences; an entity counts with its words and its label.

        F1 = 2 common / (found + true);  0 where there is no entity in either, as in seqeval

    Args:
        tags, targets: for each sentence a list of the tags of its words, in IOB2, IOBES, BILOU
            or BMES.

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: if there is no sentence, or not one target for each.

    Reference: Tjong Kim Sang and De Meulder 2003, section 2.4, https://aclanthology.org/W03-0419
    """
    pairs = [
        (set(entities(found)), set(entities(true)))
        for found, true in pairs_of("entity_f1", tags, targets)
    ]
    common = sum(len(found & true) for found, true in pairs)
    total = sum(len(found) + len(true) for found, true in pairs)
    return 2 * common / total if total else 0.0


def tag_accuracy(tags, targets):
    """The share of words that have their target's tag, over all sentences.

    Args:
        tags, targets: for each sentence a list of the tags of its words.

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: if there is no word, or not one target for each.
    """
    words, true_tags = [], []
    for found, true in pairs_of("tag_accuracy", tags, targets):
        if len(found) != len(true):
            raise ValueError(
                "tag_accuracy: needs one target for each word; received the tags "
                f"{', '.join(found)} and the targets {', '.join(true)}."
            )
        words += found
        true_tags += true
    return exact_match(words, true_tags)
