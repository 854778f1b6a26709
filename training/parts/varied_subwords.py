"""Training texts whose words each batch cuts into other subwords."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.data.batches import Sequences
from seqkeras.runs import RunError
from seqkeras.tokenizers import SentencePieces
from seqkeras.tokenizers.varied import VariedPieces, VariedWordPieces, require_varied
from seqkeras.training.parts.encoded_texts import in_parts

if TYPE_CHECKING:
    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer
    from seqkeras.training.options import FitOptions

TOKENS, LENGTHS = "token_ids", "lengths"


def varied_inputs(
    options: FitOptions, inputs: Mapping[str, Any], targets: Any, run: RunFiles
) -> Callable[[int, np.ndarray], tuple[Any, Any]] | None:
    """Return a function: (number of a batch, its rows) -> their inputs and targets, with words that
    are cut anew; None without --subword-dropout.

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

    def of_batch(number, rows):
        whole = inputs[TOKENS].chosen(rows).each_row()
        ids, places = map(Sequences, zip(*vary(whole, seed_of(options.seed, number), limit)))
        made = {TOKENS: ids, LENGTHS: ids.lengths}
        made |= {name: _along(values, rows, places) for name, values in along.items()}
        return {name: made[name] for name in inputs}, _along(targets, rows, places, of_first=True)

    return of_batch


def varied_texts(
    role: str,
    tokenizer: Tokenizer,
    texts: Iterable[str],
    encoded: Sequences,
    rate: float,
    special_tokens: bool,
) -> Callable[[np.ndarray, int], list[list[int]]]:
    """Return a function: (rows, seed) -> token ids of their texts, with words that are cut anew.

    Args:
        role: role of the tokenizer.
        tokenizer: what cuts the texts.
        texts: texts of training.
        encoded: token ids of the texts, as the tokenizer cuts them.
        rate: the rate of --subword-dropout.
        special_tokens: whether the token ids have special tokens around the text.

    Raises:
        RunError: if the tokenizer cuts words in one way only.
    """
    require_ways(role, tokenizer)
    if isinstance(tokenizer, SentencePieces):
        vary_texts = VariedPieces(tokenizer, rate, special_tokens)
        content = Sequences.joined(map(_in_utf8, in_parts(texts)))

        def of_texts(rows, seed):
            whole = content.chosen(rows).each_row()
            return vary_texts([bytes(row).decode() for row in whole], seed)

        return of_texts
    vary = VariedWordPieces(tokenizer, rate)
    return lambda rows, seed: [ids for ids, _ in vary(encoded.chosen(rows).each_row(), seed)]


def _in_utf8(texts):
    """Return the bytes of texts as `Sequences`."""
    rows = [*map(str.encode, texts)]
    lengths = np.fromiter(map(len, rows), "int64")
    return Sequences.flat(np.frombuffer(b"".join(rows), "uint8"), lengths)


def seed_of(*numbers: int) -> int:
    """Return the seed of what a batch draws, of the training's seed and the batch's number."""
    return int(np.random.default_rng(numbers).integers(2**63))


def require_ways(role: str, tokenizer: Tokenizer) -> None:
    """Raise a `RunError` unless the tokenizer of a role cuts words in several ways."""
    try:
        require_varied(tokenizer)
    except ValueError as error:
        raise RunError(f"--subword-dropout: the {role} {error} Leave it out.") from error


def _along(values, rows, places, of_first=False):
    """Return values of tokens for tokens that are cut anew; what a row has stays.

    Args:
        values: of all rows.
        rows: integers, which of them.
        places: `Sequences`, for each token of these rows the index of its word's first token.
        of_first: whether the other tokens of a word have none but the padding.
    """
    if not isinstance(values, Sequences):
        return values[rows]
    starts, lengths = values.starts[rows], places.lengths
    taken = values.values[np.repeat(starts, lengths) + places.values]
    if of_first:
        is_of_before = np.append(False, places.values[1:] == places.values[:-1])[: len(taken)]
        is_of_before[places.starts[lengths > 0]] = False
        taken = np.where(is_of_before, values.padding, taken)
    return Sequences.flat(taken, lengths, values.padding)
