"""What samples.txt shows of masked language modelling: rows as the model sees them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from seqkeras.data.masking import IGNORED
from seqkeras.serving.pipelines.model import softmax
from seqkeras.spreading import spread

if TYPE_CHECKING:
    from seqkeras.tokenizers import Subwords

CANDIDATES = 3  # of each masked token
VERDICTS = ("follows", "another text")  # by the class of the second text


def masked_samples(
    model: keras.Model, tokenizer: Subwords, batches: Sequence[Any], most: int
) -> list[dict[str, str]]:
    """Return a dictionary for each of some rows: its texts, what is asked, and what is answered.

    A token that is asked for is a mask, or stands in angle quotes where the row holds a random
    token or the token itself instead. Candidates have their probabilities, and so has the verdict
    on a pair of texts.

    Args:
        model: the model, whose outputs are "masked" and, of pairs, "next".
        tokenizer: its vocabulary.
        batches: a list of (inputs, targets by head) of rows, from `PretrainingBatches`.
        most: how many rows at most, pairs of both classes in turn.
    """
    rows = [(batch, row) for batch in batches for row in range(len(batch[0]["lengths"]))]
    classes = [int(batch[1]["next"][row]) if "next" in batch[1] else None for batch, row in rows]
    return [_sample(model, tokenizer, *rows[index]) for index in sorted(spread(classes)[:most])]


def _sample(model, tokenizer, batch, row):
    inputs, targets = ({name: part[row] for name, part in parts.items()} for parts in batch)
    logits = model({name: part[None] for name, part in inputs.items()}, training=False)
    logits = {name: keras.ops.convert_to_numpy(part)[0] for name, part in logits.items()}
    asked = targets["masked"] != IGNORED
    answers = (_best(tokenizer, scores) for scores in logits["masked"][asked])
    shown = {
        "target": " | ".join(_pieces(tokenizer, targets["masked"][asked])),
        "answer": " | ".join(answers),
    }
    if "next" not in targets:
        return {"input": _text(tokenizer, inputs, asked, 0)} | shown
    shares = softmax(logits["next"])
    verdict = int(shares.argmax())
    return {
        "first": _text(tokenizer, inputs, asked, 0),
        "second": _text(tokenizer, inputs, asked, 1),
        **shown,
        "pair": f"{VERDICTS[int(targets['next'])]}; answer: {VERDICTS[verdict]} "
        f"{shares[verdict]:.0%}",
    }


def _text(tokenizer, inputs, asked, segment):
    """Return the tokens of one of a row's texts, with spaces between."""
    length = int(inputs["lengths"])
    segments = inputs.get("segment_ids", np.zeros(length, int))[:length]
    pieces = list(_pieces(tokenizer, inputs["token_ids"][:length]))
    for position in inputs["masked_positions"][asked]:
        if pieces[position] not in tokenizer.special_tokens:
            pieces[position] = f"‹{pieces[position]}›"
    return " ".join(
        piece for piece, segment_id in zip(pieces, segments, strict=True) if segment_id == segment
    )


def _best(tokenizer, scores):
    """Return the most probable tokens, with their probabilities."""
    best, shares = np.argsort(-scores, kind="stable")[:CANDIDATES], softmax(scores)
    return " ".join(
        f"{piece} {shares[index]:.0%}" for piece, index in zip(_pieces(tokenizer, best), best)
    )


def _pieces(tokenizer: Subwords, token_ids: Iterable[int]) -> Iterator[str]:
    """Yield tokens as they are read: byte pairs as characters."""
    for token_id in token_ids:
        if tokenizer.is_byte_level:
            yield tokenizer.decode([token_id], special_tokens=True).strip()
        else:
            yield tokenizer.token_of(int(token_id))
