"""Batches of rows of different lengths with little padding, and their answers in order."""

TOKEN_BUDGET = 4096  # tokens of a batch, with padding
MOST_PADDING = 64  # tokens; with more padding, an additional call of the graph is cheaper


def batches(lengths, token_budget=TOKEN_BUDGET, most_padding=None):
    """Yield the indices of the rows of each batch, the shortest rows first.

    A batch of n rows, the longest of m tokens, is n m tokens of work.

    Args:
        lengths: the number of tokens of each row.
        token_budget: the most tokens of a batch; a longer row is a batch alone.
        most_padding: the most tokens of a batch that are padding; None for any number.
    """
    batch, tokens = [], 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[index]
        padded = (len(batch) + 1) * length
        padding = padded - tokens - length
        if batch and (
            padded > token_budget or (most_padding is not None and padding > most_padding)
        ):
            yield batch
            batch, tokens = [], 0
        batch.append(index)
        tokens += length
    if batch:
        yield batch


def answer_in_batches(rows, lengths, answer, token_budget=TOKEN_BUDGET, most_padding=None):
    """Return the answers to `rows`, in their order.

    Args:
        rows: what to answer.
        lengths, token_budget, most_padding: see `batches`.
        answer: takes a list of rows, returns an answer to each.
    """
    answers = [None] * len(rows)
    for batch in batches(lengths, token_budget, most_padding):
        for index, result in zip(batch, answer([rows[index] for index in batch]), strict=True):
            answers[index] = result
    return answers


def in_groups(values, groups):
    """Return, for each group, the list of as many of the values, which stand in the groups' order.

    Args:
        values: one for each member of each group.
        groups: collections, of which the sizes are read.
    """
    ahead = iter(values)
    return [[next(ahead) for _ in group] for group in groups]
