"""Training texts whose words each pass cuts into other subwords."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.data.batches import Sequences
from seqkeras.runs import RunError
from seqkeras.tokenizers import SentencePieces
from seqkeras.tokenizers.varied import VariedWordPieces, require_varied, varied_pieces
from seqkeras.training.parts.encoded_texts import in_parts

if TYPE_CHECKING:
    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer
    from seqkeras.training.options import FitOptions

TOKENS, LENGTHS = "token_ids", "lengths"


def varied_inputs(
    options: FitOptions, inputs: Mapping[str, Any], targets: Any, run: RunFiles
) -> Callable[[int], tuple[Any, Any]] | None:
    """Return a function: number of a pass -> inputs and targets, with words that are cut anew; None
    without --subword-dropout.

    Args:
        options: options of the task.
        inputs: "token_ids", and what else there is for each token, or each row.
        targets: an array with a row for each text, or `Sequences`, where the first token of a word
            has the target of the word.
        run: has the tokenizer "text" and the limit of tokens.

    Raises:
        RunError: if the tokenizer cuts words in one way only.
    """
    if not options.subword_dropout:
        return None
    tokenizer, limit = run.tokenizers["text"], run.record.limits["source_length"]
    require_ways("text", tokenizer)
    vary = VariedWordPieces(tokenizer, options.subword_dropout)
    along = {name: values for name, values in inputs.items() if name not in (TOKENS, LENGTHS)}

    def of_pass(number):
        cut = vary.each(inputs[TOKENS].each_row(), seed_of(options.seed, number), limit)
        token_ids, of_others, of_targets, start = [], [], [], 0
        for some in in_parts(cut):
            rows = slice(start, start + len(some))
            start = rows.stop
            token_ids.append(Sequences([ids for ids, _ in some]))
            places = Sequences([places for _, places in some])
            of_others.append([_along(values, rows, places) for values in along.values()])
            of_targets.append(_along(targets, rows, places, of_first=True))
        ids = Sequences.joined(token_ids)
        made = {TOKENS: ids, LENGTHS: ids.lengths}
        made |= zip(along, map(_joined, zip(*of_others, strict=True)), strict=True)
        return {name: made[name] for name in inputs}, _joined(of_targets)

    return of_pass


def varied_texts(
    role: str,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    rows: Sequence[Sequence[int]],
    rate: float,
    special_tokens: bool,
) -> Callable[[int], list[list[int]]]:
    """Return a function: seed -> token ids of texts whose words are cut anew.

    Args:
        role: role of the tokenizer.
        tokenizer: what cuts the texts.
        texts: texts of training.
        rows: token ids of the texts, as the tokenizer cuts them.
        rate: the rate of --subword-dropout.
        special_tokens: whether the rows have special tokens around the text.

    Raises:
        RunError: if the tokenizer cuts words in one way only.
    """
    require_ways(role, tokenizer)
    if isinstance(tokenizer, SentencePieces):
        return lambda seed: varied_pieces(tokenizer, texts, rate, seed, special_tokens)
    vary = VariedWordPieces(tokenizer, rate)
    return lambda seed: [ids for ids, _ in vary(rows, seed)]


def seed_of(*numbers: int) -> int:
    """Return the seed of what a pass draws, of the training's seed and the number of the pass."""
    return int(np.random.default_rng(numbers).integers(2**63))


def require_ways(role: str, tokenizer: Tokenizer) -> None:
    """Raise a `RunError` unless the tokenizer of a role cuts words in several ways."""
    try:
        require_varied(tokenizer)
    except ValueError as error:
        raise RunError(f"--subword-dropout: the {role} {error} Leave it out.") from error


def _along(values, part, places, of_first=False):
    """Return values of tokens for tokens that are cut anew; what a row has stays.

    Args:
        values: of all rows.
        part: a slice of the rows.
        places: `Sequences`, for each token of these rows the index of its word's first token.
        of_first: whether the other tokens of a word have none but the padding.
    """
    if not isinstance(values, Sequences):
        return values[part]
    starts, lengths = values.starts[part], places.lengths
    taken = values.values[np.repeat(starts, lengths) + places.values]
    if of_first:
        is_of_before = np.append(False, places.values[1:] == places.values[:-1])[: len(taken)]
        is_of_before[places.starts[lengths > 0]] = False
        taken = np.where(is_of_before, values.padding, taken)
    return Sequences.flat(taken, lengths, values.padding)


def _joined(parts):
    is_of_tokens = isinstance(parts[0], Sequences)
    return Sequences.joined(parts) if is_of_tokens else np.concatenate(parts)
