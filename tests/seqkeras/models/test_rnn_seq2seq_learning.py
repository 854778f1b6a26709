"""Encoder-decoders learn a rule that holds for what they have not seen, and a batch by heart."""

import keras
import numpy as np
import pytest

from seqkeras.decoding import compiled, greedy
from seqkeras.models import LuongDecoder
from seqkeras.schedules import LinearDecay
from tests.arrays import needs_tensorflow, numbers
from tests.catalogue.seq2seq import model_of

pytestmark = [
    pytest.mark.long,
    needs_tensorflow,
]  # minutes elsewhere, and the gradients are the same there
BOS, EOS, FIRST = 2, 3, 4
BATCH_SIZE = 64
AFTER = {"decoder": LuongDecoder}


def copied(source):
    return source


def turned(source):
    return source[::-1]


def examples(count, order, seed, longest, symbols):
    """Sources of 2 to `longest` random tokens, and targets: the same in the order wanted."""
    random = np.random.default_rng(seed)
    lengths = random.integers(2, longest + 1, count)
    sources, targets = np.zeros((count, longest), int), np.zeros((count, longest + 1), int)
    for row, length in enumerate(lengths):
        sources[row, :length] = random.integers(FIRST, FIRST + symbols, length)
        targets[row, : length + 1] = [*order(sources[row, :length]), EOS]
    shifted = np.concatenate([np.full((count, 1), BOS), targets[:, :-1]], axis=1)
    return {"token_ids": sources, "lengths": lengths, "target_ids": shifted}, targets


def train(arguments, inputs, targets, symbols, steps):
    """A model after so many steps; its rate falls to zero."""
    keras.utils.set_random_seed(0)
    size = FIRST + symbols
    sizes = {"source_vocab_size": size, "target_vocab_size": size, "embedding_dim": 16}
    model = model_of(**{**sizes, "units": 32, "decoder_units": 48, **arguments})
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0)
    falling = keras.optimizers.schedules.CosineDecay(0.01, steps)
    optimizer = keras.optimizers.Adam(falling, global_clipnorm=1.0)
    model.build()
    optimizer.build(model.trainable_variables)  # or Keras traces the training step twice
    model.compile(optimizer, loss, jit_compile=False)
    model.fit(inputs, targets, batch_size=len(targets) // steps, shuffle=False, verbose=0)
    return model


def share_right(model, inputs, targets):
    """How many of the rows greedy decoding gives whole."""

    @compiled
    def translate(token_ids, lengths):
        state = model.encode(token_ids, lengths)
        return greedy(model.step, state, start_id=BOS, end_id=EOS, max_length=targets.shape[1])[0]

    found = numbers(translate(inputs["token_ids"], inputs["lengths"]))
    return np.mean(np.all(found == targets, axis=1))


@pytest.mark.parametrize(
    "order, arguments, steps",
    [
        (copied, AFTER | {"attention": "general", "cell": "lstm"}, 200),
        (turned, {"teacher_forcing": LinearDecay(1.0, 0.002)}, 200),
        (np.sort, {"cell": "lstm"}, 200),
        (copied, {"attention": "hard"}, 400),
    ],
    ids=["copy", "reverse", "sort", "copy, hard"],
)
def test_attention_learns_a_rule_that_holds_for_unseen_sequences(order, arguments, steps):
    task = {"order": order, "longest": 6, "symbols": 7}
    inputs, targets = examples(BATCH_SIZE * steps, **task, seed=0)
    model = train(arguments, inputs, targets, task["symbols"], steps)
    seen = set(map(bytes, inputs["token_ids"]))
    inputs, targets = examples(500, **task, seed=1)
    unseen = np.array([bytes(source) not in seen for source in inputs["token_ids"]])
    assert unseen.sum() > 50
    rows = {name: each[unseen] for name, each in inputs.items()}
    assert share_right(model, rows, targets[unseen]) > 0.95
