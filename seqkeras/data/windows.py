"""Windows of a stream of token ids, for `seqkeras.data.batches.Batches`.

    inputs are y(s) ... y(s + T - 1), targets y(s + 1) ... y(s + T), for a window that starts at s

Which windows make a batch is a function of the seed and the step alone, so that a run that was
stopped goes on with the batches that it would have seen.

Reference: random windows: https://github.com/karpathy/nanoGPT (train.py); rows that go on from
batch to batch: Zaremba et al. 2014, section 4.1, https://arxiv.org/abs/1409.2329
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from seqkeras.data.batches import Batches
from seqkeras.data.mixing import MixedBatches
from seqkeras.data.stored import joined_arrays

NO_TARGET = -1


class Windows:
    """The windows of a stream, by their starts.

    Args:
        tokens: (tokens,) integers.
        length: T, of a window.
        shift: how many tokens a window begins after its start.
    """

    dtype = np.dtype("int64")

    def __init__(self, tokens: np.ndarray, length: int, shift: int = 0):
        self.tokens, self.steps = tokens, np.arange(shift, shift + length)
        self.shape = len(tokens), length

    def __getitem__(self, starts: np.ndarray) -> np.ndarray:
        """Return (len(starts), T) int64."""
        return self.tokens[starts[:, None] + self.steps].astype(self.dtype)


class PrefixTargets(Windows):
    """Targets of windows that begin with a prefix: `NO_TARGET` where the model sees the target.

    Args:
        tokens, length: see `Windows`, of targets.
        prefix_lengths: the `PrefixLengths`.
    """

    def __init__(self, tokens: np.ndarray, length: int, prefix_lengths: "PrefixLengths"):
        super().__init__(tokens, length, 1)
        self.prefix_lengths = prefix_lengths

    def __getitem__(self, starts: np.ndarray) -> np.ndarray:
        """Return (len(starts), T) int64."""
        is_seen = self.steps < self.prefix_lengths[starts][:, None]
        return np.where(is_seen, NO_TARGET, super().__getitem__(starts))


class PrefixLengths:
    """The length of the prefix of each window, from 1 to T: a draw for each row of each batch.

    Args:
        num_tokens: number of tokens of the stream.
        length: T, of a window.
        seed: seed of what is drawn; what is drawn depends on it and on the starts of the batch.
    """

    dtype = np.dtype("int64")

    def __init__(self, num_tokens: int, length: int, seed: int):
        self.shape, self.most, self.seed = (num_tokens,), length, seed

    def __getitem__(self, starts: np.ndarray) -> np.ndarray:
        """Return (len(starts),) int64."""
        generator = np.random.default_rng([self.seed, *starts])
        return generator.integers(1, self.most + 1, size=len(starts))


class RandomOrders:
    """The order of the positions of each window: a permutation for each row of each batch.

    Args: see `PrefixLengths`.
    """

    dtype = np.dtype("int64")

    def __init__(self, num_tokens: int, length: int, seed: int):
        self.shape, self.seed = (num_tokens, length), seed

    def __getitem__(self, starts: np.ndarray) -> np.ndarray:
        """Return (len(starts), T) int64."""
        generator = np.random.default_rng([self.seed, *starts])
        positions = np.arange(self.shape[1], dtype=self.dtype)
        return generator.permuted(np.tile(positions, (len(starts), 1)), axis=1)


class Begins:
    """Whether a part of the stream begins at a token.

    Args:
        num_tokens: number of tokens of the stream.
        starts: where the parts begin.
    """

    dtype = np.dtype(bool)

    def __init__(self, num_tokens: int, starts: np.ndarray):
        self.shape, self.starts = (num_tokens,), starts

    def __getitem__(self, starts: np.ndarray) -> np.ndarray:
        """Return (len(starts),) booleans."""
        return np.isin(starts, self.starts)


class RandomStarts:
    """Starts that are drawn anew at each step, all equally probable.

    Args:
        num_tokens: number of tokens of the stream.
        length: T, of a window.
        batch_size: windows in each batch.
        seed: seed of what is drawn.

    Attributes:
        batches_per_pass: how many batches have as many tokens as the stream.

    Raises:
        ValueError: if the stream has no window.
    """

    def __init__(self, num_tokens: int, length: int, batch_size: int, seed: int):
        _require_tokens(type(self).__name__, num_tokens, length + 1)
        self.num_starts, self.batch_size, self.seed = num_tokens - length, batch_size, seed
        self.batches_per_pass = max((num_tokens - 1) // (length * batch_size), 1)

    def from_step(self, step: int) -> Iterator[np.ndarray]:
        """Yield (batch_size,) starts for `step`, `step + 1`, and so on without end."""
        while True:
            generator = np.random.default_rng([self.seed, step])
            yield generator.integers(self.num_starts, size=self.batch_size)
            step += 1


class ConsecutiveStarts:
    """Starts of which each row's is where the row ended in the batch before.

    The stream is cut into as many parts of equal length as a batch has rows. Each row reads its
    part from begin to end; then the next pass begins. What fills no window is left out.

    Args: see `RandomStarts`, without seed: nothing is drawn.

    Attributes:
        starts: (batch_size,), where the parts begin.
        batches_per_pass: how many batches a part has.

    Raises:
        ValueError: if a part has no window.
    """

    def __init__(self, num_tokens: int, length: int, batch_size: int):
        _require_tokens(type(self).__name__, num_tokens, batch_size * length + 1)
        self.batch_size = batch_size
        size = (num_tokens - 1) // batch_size
        self.starts = np.arange(batch_size) * size
        self.steps = np.arange(size // length) * length
        self.batches_per_pass = len(self.steps)

    def from_step(self, step: int) -> Iterator[np.ndarray]:
        """Yield (batch_size,) starts for `step`, `step + 1`, and so on without end."""
        while True:
            yield self.starts + self.steps[step % self.batches_per_pass]
            step += 1


def random_windows(tokens: np.ndarray, length: int, batch_size: int, seed: int) -> Batches:
    """Return `Batches` of windows that begin anywhere in a stream.

    Args:
        tokens: (tokens,) integers.
        length: T, of a window.
        batch_size: windows in each batch.
        seed: seed of what is drawn.

    Returns:
        `Batches` of {"token_ids": (B, T)} and targets (B, T), the tokens one step later.

    Raises:
        ValueError: if the stream has no window.

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import random_windows
        >>> batches = random_windows(np.arange(100), 5, batch_size=2, seed=0)
        >>> inputs, targets = next(batches.from_step(0))
        >>> inputs["token_ids"].shape, bool((targets == inputs["token_ids"] + 1).all())
        ((2, 5), True)
    """
    order = RandomStarts(len(tokens), length, batch_size, seed)
    return Batches({"token_ids": Windows(tokens, length)}, Windows(tokens, length, 1), order)


def mixed_windows(
    streams: Sequence[np.ndarray], length: int, batch_size: int, weights: Sequence[float], seed: int
) -> Batches:
    """Return `random_windows` of several streams; each batch is of one stream, drawn by weight.

    Args:
        streams: arrays (tokens,) of integers.
        length, batch_size, seed: see `random_windows`.
        weights: a positive number for each stream; see `MixedBatches`.

    Returns:
        `Batches` of {"token_ids": (B, T)} and targets (B, T).

    Raises:
        ValueError: if a stream has no window, or weights and streams differ in number.

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import mixed_windows
        >>> streams = [np.arange(100), np.arange(500, 550)]
        >>> batches = mixed_windows(streams, 5, batch_size=2, weights=[3.0, 1.0], seed=0)
        >>> inputs, targets = next(batches.from_step(0))
        >>> np.unique(inputs["token_ids"] < 500).size  # a batch is of one stream
        1
    """
    sizes = [len(stream) for stream in streams]
    orders = [RandomStarts(size, length, batch_size, seed) for size in sizes]
    offsets = np.cumsum([0, *sizes[:-1]])
    order, tokens = MixedBatches(orders, offsets, weights, seed), joined_arrays(streams)
    return Batches({"token_ids": Windows(tokens, length)}, Windows(tokens, length, 1), order)


def with_prefixes(windows: Batches, seed: int) -> Batches:
    """Return windows that begin with a prefix: its inner tokens are no targets.

        P ~ uniform on 1 ... T, the length of a window's prefix, for each row of each batch

    Args:
        windows: `random_windows`.
        seed: seed of what is drawn.

    Returns:
        The same `Batches` with the input {"prefix_lengths": (B,)}; targets within a prefix are -1.

    Reference: Raffel et al. 2020, section 3.2.1, https://arxiv.org/abs/1910.10683

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import random_windows, with_prefixes
        >>> windows = with_prefixes(random_windows(np.arange(100), 5, batch_size=2, seed=0), seed=0)
        >>> inputs, targets = next(windows.from_step(0))
        >>> ((targets == -1).sum(axis=1) == inputs["prefix_lengths"] - 1).tolist()
        [True, True]
    """
    inputs: Any = windows.arrays[0]
    (num_tokens, length), tokens = inputs["token_ids"].shape, inputs["token_ids"].tokens
    prefix_lengths = PrefixLengths(num_tokens, length, seed)
    targets = PrefixTargets(tokens, length, prefix_lengths)
    return Batches({**inputs, "prefix_lengths": prefix_lengths}, targets, windows.order)


def with_orders(windows: Batches, seed: int) -> Batches:
    """Return windows with a random order of their positions, for every row of every batch.

    Args:
        windows: `random_windows`.
        seed: seed of what is drawn.

    Returns:
        The same `Batches` with the input {"order": (B, T)}, a permutation of 0 ... T - 1 a row.

    Reference: Yang et al. 2019, section 2.2, https://arxiv.org/abs/1906.08237

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import random_windows, with_orders
        >>> windows = with_orders(random_windows(np.arange(100), 5, batch_size=2, seed=0), seed=0)
        >>> inputs, targets = next(windows.from_step(0))
        >>> np.sort(inputs["order"]).tolist()
        [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    """
    inputs: Any = windows.arrays[0]
    num_tokens, length = inputs["token_ids"].shape
    orders = RandomOrders(num_tokens, length, seed)
    return Batches({**inputs, "order": orders}, windows.arrays[1], windows.order)


def consecutive_windows(tokens: np.ndarray, length: int, batch_size: int) -> Batches:
    """Return `Batches` whose rows go on where they ended in the batch before.

    Args:
        tokens, length, batch_size: see `random_windows`.

    Returns:
        `Batches` of {"token_ids": (B, T), "begins": (B,)} and targets (B, T); `begins` is True for
        rows that begin anew.

    Raises:
        ValueError: if the part of a row has no window.

    Reference: Zaremba et al. 2014, section 4.1, https://arxiv.org/abs/1409.2329

    Example:
        >>> import numpy as np
        >>> from seqkeras.data import consecutive_windows
        >>> batches = consecutive_windows(np.arange(13), length=3, batch_size=2).from_step(0)
        >>> next(batches)[0]["token_ids"].tolist()
        [[0, 1, 2], [6, 7, 8]]
        >>> next(batches)[0]["token_ids"].tolist()  # goes on where the rows ended
        [[3, 4, 5], [9, 10, 11]]
    """
    order = ConsecutiveStarts(len(tokens), length, batch_size)
    inputs = {"token_ids": Windows(tokens, length), "begins": Begins(len(tokens), order.starts)}
    return Batches(inputs, Windows(tokens, length, 1), order)


def _require_tokens(who, num_tokens, needed):
    if num_tokens < needed:
        raise ValueError(
            f"{who}: the stream must have {needed:,} tokens at least; received {num_tokens:,}."
        )
