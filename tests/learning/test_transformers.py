"""What Transformers promise: to transduce, to memorise, to learn a language from its gaps."""

from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from seqkeras.decoding import greedy
from seqkeras.models import GPT, Bert, MaskedLMHead, NextSentenceHead, Transformer, WithHeads
from seqkeras.tokenizers import learn_byte_pairs
from tests.arrays import numbers
from tests.learning import transformer_tasks as tasks
from tests.seqkeras.models.support import compiled

CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
LIMIT, UNSEEN_LENGTHS = 9, (4, 7)


def trained(model, inputs, targets, loss, learning_rate, batch_size):
    """The model after one pass: the rate rises for a tenth of the steps and falls to zero."""
    steps = len(inputs["token_ids"]) // batch_size
    warm_up = steps // 10
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, steps - warm_up, warmup_target=learning_rate, warmup_steps=warm_up
    )
    model({name: each[:2] for name, each in inputs.items()})
    optimizer = keras.optimizers.Adam(schedule, beta_2=0.98, clipnorm=1.0)
    model.compile(optimizer, loss, jit_compile=False)
    model.fit(inputs, targets, batch_size=batch_size, verbose=0, shuffle=False)
    return model


@pytest.fixture(scope="module")
def transducer():
    """A Transformer that has seen lengths from 1 to its limit, but two of them."""
    keras.utils.set_random_seed(1)
    seen = [length for length in range(1, LIMIT + 1) if length not in UNSEEN_LENGTHS]
    inputs, targets = tasks.transductions(450 * 128, seen, np.random.default_rng(1))
    model = Transformer(
        tasks.VOCAB_SIZE,
        tasks.VOCAB_SIZE,
        hidden_dim=48,
        num_layers=2,
        num_heads=4,
        feed_forward_dim=96,
        shared_embeddings="all",
        max_length=LIMIT + 1,
        never_generated=(tasks.PAD, tasks.BOS),
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=tasks.PAD)
    return trained(model, inputs, targets, loss, learning_rate=0.005, batch_size=128)


@pytest.mark.parametrize("length", [1, *UNSEEN_LENGTHS, LIMIT])
@pytest.mark.parametrize("name", tasks.TASKS)
def test_a_transformer_transduces_unseen_sequences_and_lengths(name, length, transducer):
    inputs, targets = tasks.transductions(200, [length], np.random.default_rng(2), [name])
    state = transducer.encode(inputs["token_ids"], inputs["lengths"], max_length=length + 1)
    found, _, _ = greedy(
        transducer.step, state, start_id=tasks.BOS, end_id=tasks.EOS, max_length=length + 1
    )
    right = np.all(numbers(found) == targets[:, : length + 1], axis=1)
    assert right.mean() > 0.95


def test_gpt_memorises_a_page():
    keras.utils.set_random_seed(1)
    page = (Path(__file__).parents[2] / "LICENSE").read_text(encoding="utf-8")[:2000]
    tokenizer = learn_byte_pairs([page], 500)
    token_ids = np.array([tokenizer.encode(page)])
    length = token_ids.shape[1] - 1
    model = GPT(len(tokenizer), 64, 2, 4, 256, max_length=length)
    inputs, targets = {"token_ids": token_ids[:, :-1]}, token_ids[:, 1:]
    compiled(model, inputs, CROSS_ENTROPY, 0.005)
    for _ in range(70):
        model.train_on_batch(inputs, targets)

    @tf.function(autograph=False)
    def generate():
        state = model.initial_state(1, length)
        end_id = tokenizer.id_of("<|endoftext|>")
        start_id = int(token_ids[0, 0])
        return greedy(model.step, state, start_id=start_id, end_id=end_id, max_length=length)[0]

    found = [token_ids[0, 0], *numbers(generate())[0]]
    assert length > 400
    assert tokenizer.decode(found) == page


def test_masked_lm_and_next_sentence_reach_the_ceiling_of_their_language():
    keras.utils.set_random_seed(1)
    inputs, targets, _ = tasks.pretraining_rows(320 * 64, seed=1)
    bert = Bert(
        len(tasks.LANGUAGE),
        hidden_dim=32,
        num_layers=2,
        num_heads=4,
        feed_forward_dim=64,
        max_length=11,
    )
    heads = {"masked": MaskedLMHead(len(tasks.LANGUAGE)), "next": NextSentenceHead()}
    losses = dict.fromkeys(heads, CROSS_ENTROPY)
    model = trained(WithHeads(bert, heads), inputs, targets, losses, 0.004, batch_size=64)
    inputs, targets, known = tasks.pretraining_rows(4000, seed=2)
    logits = model.predict(inputs, batch_size=500, verbose=0)
    for name, each in logits.items():
        by_model = -np.take_along_axis(
            each - np.log(np.exp(each).sum(axis=-1, keepdims=True)), targets[name][..., None], -1
        )
        ceiling = -np.log(known[name]).mean()  # in nats: 0.321 for masked LM, 0.313 for the other
        assert -0.01 < by_model.mean() - ceiling < 0.04, name
