"""Encoder-decoders learn a rule that holds for what they have not seen, and a batch by heart."""

import keras
import numpy as np
import pytest

from seqkeras.decoding import compiled, greedy
from seqkeras.models import ClassicalDecoder, LuongDecoder
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
FIRST_STATE = {"decoder": ClassicalDecoder}
CLASSICAL = {
    "initial_state": FIRST_STATE | {"cell": "lstm", "cell_states": True},
    "context": FIRST_STATE | {"reads_context": True, "reads_output": False},
    "context_and_output": FIRST_STATE
    | {"reads_context": True, "context": "map", "cell": "simple_rnn"},
    "third classical": {"decoder": "classical_context_and_output", "first_state": "learned"}
    | {"bidirectional": True},
}


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


def share_right_of_unseen(arguments, order, longest, symbols, steps):
    """Of 500 sources, those that a model has not seen in its training and turns into targets."""
    task = {"order": order, "longest": longest, "symbols": symbols}
    inputs, targets = examples(BATCH_SIZE * steps, **task, seed=0)
    model = train(arguments, inputs, targets, symbols, steps)
    seen = set(map(bytes, inputs["token_ids"]))
    inputs, targets = examples(500, **task, seed=1)
    unseen = np.array([bytes(source) not in seen for source in inputs["token_ids"]])
    assert unseen.sum() > 50
    return share_right(
        model, {name: each[unseen] for name, each in inputs.items()}, targets[unseen]
    )


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
    assert share_right_of_unseen(arguments, order, longest=6, symbols=7, steps=steps) > 0.95


@pytest.mark.parametrize("arguments", CLASSICAL.values(), ids=CLASSICAL)
def test_a_decoder_without_attention_turns_unseen_sequences_round(arguments):
    assert share_right_of_unseen(arguments, turned, longest=5, symbols=7, steps=500) > 0.95
