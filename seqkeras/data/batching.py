"""Batches of rows of like length, as a pure function of the step.

The order depends on the seed and the step alone, so that a run that was stopped continues with
exactly the batches that it would have seen.
"""

import numpy as np

POOL = 50  # batches that are sorted together


class BucketedBatches:
    """Shuffled batches whose rows have about the same length.

    In every pass over the data: shuffle all rows, sort them by length within pools of `POOL`
    batches, cut the pools into batches, shuffle the batches. Rows that fill no batch sit that pass
    out.

    Args:
        lengths: (rows,) integers.
        batch_size: rows in each batch.
        seed: of all shuffling.

    Raises:
        ValueError: if there are fewer rows than one batch holds.
    """

    def __init__(self, lengths, batch_size, seed):
        if len(lengths) < batch_size:
            raise ValueError(
                f"BucketedBatches: a batch of {batch_size} needs as many rows; "
                f"received {len(lengths)}."
            )
        self.lengths = np.asarray(lengths)
        self.batch_size = batch_size
        self.seed = seed
        self.batches_per_pass = len(lengths) // batch_size

    def from_step(self, step):
        """Yields (batch_size,) row indices for `step`, `step + 1`, and so on without end."""
        while True:
            number, offset = divmod(step, self.batches_per_pass)
            for batch in self._one_pass(number)[offset:]:
                yield batch
                step += 1

    def _one_pass(self, number):
        generator = np.random.default_rng([self.seed, number])
        rows = generator.permutation(len(self.lengths))
        rows = rows[: self.batches_per_pass * self.batch_size]
        pools = [
            rows[start : start + POOL * self.batch_size]
            for start in range(0, len(rows), POOL * self.batch_size)
        ]
        ordered = [pool[np.argsort(self.lengths[pool], kind="stable")] for pool in pools]
        batches = np.concatenate(ordered).reshape(-1, self.batch_size)
        return batches[generator.permutation(len(batches))]
