"""What a bidirectional language model promises: to know what either side says of a word."""

import keras
import numpy as np

from seqkeras.models import BiLM
from tests.learning import tasks
from tests.seqkeras.models.support import compiled

LOSS = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)


def examples(count, random):
    """Inputs, targets and what they cost at best."""
    word_ids, lengths, ceiling = tasks.enclosed(count, random)
    inputs = {
        "character_ids": np.stack([word_ids % 4, word_ids // 4], axis=-1) + 1,
        "lengths": lengths,
    }
    real = word_ids > 0
    targets = {
        "forward_logits": np.pad(word_ids[:, 1:], [(0, 0), (0, 1)]),
        "backward_logits": np.pad(word_ids[:, :-1], [(0, 0), (1, 0)]) * real,
    }
    return inputs, targets, ceiling


def test_both_directions_reach_the_entropy_of_sentences_they_have_not_seen():
    keras.utils.set_random_seed(1)
    random = np.random.default_rng(1)
    inputs, targets, _ = examples(64 * 320, random)
    model = BiLM(
        vocab_size=15,
        character_vocab_size=5,
        character_dim=5,
        widths=[1, 2],
        filters=[7, 11],
        units=31,
        projection_dim=23,
        num_layers=1,
        num_highways=1,
    )
    falling = keras.optimizers.schedules.CosineDecay(0.02, 320)
    compiled(model, inputs, dict.fromkeys(targets, LOSS), falling)
    model.fit(inputs, targets, batch_size=64, verbose=0, shuffle=False)
    inputs, targets, ceiling = examples(1000, random)
    logits = model.predict(inputs, batch_size=500, verbose=0)
    for direction, each in targets.items():
        loss = float(LOSS(each, logits[direction]))
        assert -0.01 < loss - ceiling < 0.05, direction
