"""Batches of several corpora, more of one than of another.

Which corpus a batch is of depends on the seed and the step alone, so that a run that was stopped
continues with exactly the batches that it would have seen.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

DRAWN = 2**32 - 1  # beside the seed: no pass has this number


class MixedBatches:
    """Batches of several corpora: each batch is of one corpus, which is drawn by weight.

        p(corpus i) = w(i) / (w(1) + ... + w(n))

    Each corpus is read pass by pass in its own order, however often it is drawn.

    Args:
        orders: an order for each corpus, such as `seqkeras.data.BucketedBatches`, with one batch
            size.
        offsets: for each corpus the number that is added to the indices of its rows.
        weights: w, a positive number for each corpus.
        seed: seed of what is drawn.

    Attributes:
        batch_size: rows in each batch, or None where batches differ.
        batches_per_pass: number of batches in which the first corpus is seen about once.

    Raises:
        ValueError: if weights and orders differ in number, or a weight is not positive.

    Reference: batches of one corpus each: https://github.com/facebookresearch/fairseq
    (MultiCorpusSampledDataset); weights: https://opennmt.net/OpenNMT-py/FAQ.html

    Example:
        >>> from seqkeras.data import BucketedBatches, MixedBatches
        >>> orders = [BucketedBatches(lengths, 2, seed=0) for lengths in ([3, 4, 5, 6], [7, 8])]
        >>> order = MixedBatches(orders, offsets=[0, 4], weights=[1.0, 3.0], seed=0)
        >>> order.batches_per_pass  # the 2 batches of the first corpus are a quarter of them
        8
    """

    def __init__(
        self,
        orders: Sequence[Any],
        offsets: Sequence[int] | np.ndarray,
        weights: Sequence[float],
        seed: int,
    ):
        if len(weights) != len(orders) or min(weights) <= 0:
            raise ValueError(
                f"MixedBatches: expected {len(orders)} positive weights; received {weights}."
            )
        self.orders, self.offsets, self.seed = orders, offsets, seed
        self.bounds = np.cumsum(weights)[:-1] / sum(weights)
        self.batch_size = orders[0].batch_size
        share = weights[0] / sum(weights)
        self.batches_per_pass = round(orders[0].batches_per_pass / share)

    def from_step(self, step: int) -> Iterator[np.ndarray]:
        """Yield row indices for `step`, `step + 1`, and so on without end."""
        generator = np.random.default_rng([self.seed, DRAWN])
        before = np.bincount(self._drawn(generator, step), minlength=len(self.orders))
        going = [order.from_step(int(count)) for order, count in zip(self.orders, before)]
        while True:
            [corpus] = self._drawn(generator, 1)
            yield next(going[corpus]) + self.offsets[corpus]

    def of_pass(self, number: int) -> list[np.ndarray]:
        """Return the row indices of every batch of a pass."""
        batches = self.from_step(number * self.batches_per_pass)
        return [next(batches) for _ in range(self.batches_per_pass)]

    def _drawn(self, generator, count):
        """Return the corpora of the next batches; one by one or together, they are the same."""
        return np.searchsorted(self.bounds, generator.random(count), side="right")
