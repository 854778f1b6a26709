"""Scores of tags of words, and of the entities that they mark."""

from collections.abc import Iterable, Sequence
from typing import Any

from seqkeras.metrics.pairs import exact_match, pairs_of
from seqkeras.serving.entities import entities


def entity_f1(tags: Iterable[Sequence[str]], targets: Iterable[Sequence[str]]) -> float:
    """Return F1 of the entities of all sentences; an entity counts with its words and its label.

        F1 = 2 common / (found + true);  0 where there is no entity in either, as in seqeval

    Args:
        tags, targets: for each sentence a list of the tags of its words, in IOB2, IOBES, BILOU
            or BMES.

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: if there is no sentence, or not one target for each.

    Reference: Tjong Kim Sang and De Meulder 2003, section 2.4, https://aclanthology.org/W03-0419

    Example:
        >>> from seqkeras.metrics import entity_f1
        >>> targets = [["B-PER", "I-PER", "O", "B-LOC"]]
        >>> entity_f1([["B-PER", "O", "O", "B-LOC"]], targets)  # half a name is no entity found
        0.5
    """
    return _scores(*_both("entity_f1", tags, targets))["f1"]


def entity_scores(
    tags: Iterable[Sequence[str]], targets: Iterable[Sequence[str]]
) -> dict[str, Any]:
    """Return precision, recall and F1 of the entities of all sentences, and by label.

        precision = common / found,  recall = common / true,  F1 = 2 common / (found + true)

    A share of nothing is 0, as in seqeval.

    Args:
        tags, targets: see `entity_f1`.

    Returns:
        A dictionary of "entities", the number of true entities, "precision", "recall" and "f1"; and
        "by_label": label -> a dictionary of these four, for labels that are found or true.

    Raises:
        ValueError: if there is no sentence, or not one target for each.

    Reference: Tjong Kim Sang and De Meulder 2003, section 2.4, https://aclanthology.org/W03-0419

    Example:
        >>> from seqkeras.metrics import entity_scores
        >>> scores = entity_scores([["B-PER", "O", "O"]], [["B-PER", "O", "B-LOC"]])
        >>> scores["precision"], scores["recall"], scores["by_label"]["LOC"]["recall"]
        (1.0, 0.5, 0.0)
    """
    answered, true = _both("entity_scores", tags, targets)
    labels = sorted({label for _, label, *_ in answered | true})
    by_label = {
        label: _scores(
            *({entity for entity in side if entity[1] == label} for side in (answered, true))
        )
        for label in labels
    }
    return _scores(answered, true) | {"by_label": by_label}


def _both(who, tags, targets):
    """Return the entities of tags and of targets: sets of (sentence, label, first word, end)."""
    answered, true = set(), set()
    for sentence, both in enumerate(pairs_of(who, tags, targets)):
        for side, spelled in zip((answered, true), both):
            side.update((sentence, *entity) for entity in entities(spelled))
    return answered, true


def _scores(answered, true):
    common = len(answered & true)
    return {
        "entities": len(true),
        "precision": common / len(answered) if answered else 0.0,
        "recall": common / len(true) if true else 0.0,
        "f1": 2 * common / (len(answered) + len(true)) if answered or true else 0.0,
    }


def tag_accuracy(tags: Iterable[Sequence[str]], targets: Iterable[Sequence[str]]) -> float:
    """Return the share of words that have their target's tag, over all sentences.

    Args:
        tags, targets: for each sentence a list of the tags of its words.

    Returns:
        A number from 0 to 1.

    Raises:
        ValueError: if there is no word, or not one target for each.

    Example:
        >>> from seqkeras.metrics import tag_accuracy
        >>> tag_accuracy([["DET", "NOUN"], ["VERB", "X"]], [["DET", "NOUN"], ["VERB", "ADV"]])
        0.75
    """
    words, true_tags = [], []
    for answered, true in pairs_of("tag_accuracy", tags, targets):
        if len(answered) != len(true):
            raise ValueError(
                "tag_accuracy: needs one target for each word; received the tags "
                f"{', '.join(answered)} and the targets {', '.join(true)}."
            )
        words += answered
        true_tags += true
    return exact_match(words, true_tags)
