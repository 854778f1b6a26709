"""Generation with a key/value cache in Keras: flat in length, and beside a sampler of keras_nlp.

    python -m benchmarks.cached_generation [--rounds N] [--json FILE] [--quick]

A GPT-2 of random weights. First our step alone, one token at a time: its time after 256 tokens
beside that after 16, as a ratio of at least 1 / 1.5. Then greedy generation of 64 tokens after a
prompt of 32, in one `tf.function` each: our loop, and `GPT2CausalLM` of keras_nlp with the same
weights. Both read the prompt in one pass; their tokens are compared before they are timed.
"""

import statistics
import sys
import time

import numpy as np

from benchmarks import harness, training_steps

SIZES = {
    "vocabulary_size": 50257,
    "num_layers": 12,
    "num_heads": 12,
    "hidden_dim": 768,
    "intermediate_dim": 3072,
    "max_sequence_length": 1024,
}
QUICK = {
    "vocabulary_size": 11,
    "num_layers": 2,
    "num_heads": 2,
    "hidden_dim": 6,
    "intermediate_dim": 7,
    "max_sequence_length": 300,
}
PROMPT, TOKENS = 32, 64
EARLY, LATE, AROUND = 16, 256, 8  # the median of so many steps around each
FLAT = 1 / 1.5
BATCH_SIZES = (1, 8)


def measure(options):
    """Check and time both; returns the rows."""
    training_steps.quiet_tensorflow()
    from seqkeras.pretrained import load_keras_nlp

    keras_nlp = training_steps.import_keras_nlp()
    rounds = harness.rounds_of(options)
    backbone = keras_nlp.models.GPT2Backbone(**(QUICK if options.quick else SIZES), dropout=0.0)
    _randomize(backbone)
    model = load_keras_nlp(backbone)
    rows = [_flatness(model, rounds)]
    rival = keras_nlp.models.GPT2CausalLM(backbone, preprocessor=None)
    rival.compile(sampler="greedy", jit_compile=False)
    for batch_size in BATCH_SIZES:
        rows.append(_compare(model, rival, batch_size, rounds))
    print(f"measured on {training_steps.machine()}; medians of {rounds} rounds")
    return rows


def _randomize(backbone):
    """Set weights that make every token depend on earlier ones, so that generation does not
    repeat."""
    draw = np.random.default_rng(0)
    backbone.set_weights(
        [draw.normal(scale=0.05, size=weight.shape) for weight in backbone.weights]
    )


def _flatness(model, rounds):
    """Return our step's time late in a text, beside that early in it."""
    import tensorflow as tf

    step = tf.function(model.step, autograph=False, reduce_retracing=True)
    early, late = [], []
    for _ in range(rounds):
        state, seconds = model.initial_state(1, LATE + AROUND), []
        for token in range(LATE + AROUND):
            begin = time.perf_counter()
            (logits,), state = step(tf.constant([[token % 7]]), state)
            logits.numpy()
            seconds.append(time.perf_counter() - begin)
        early.append(statistics.median(seconds[EARLY - AROUND : EARLY + AROUND]))
        late.append(statistics.median(seconds[LATE - AROUND : LATE + AROUND]))
    return harness.compare_times(f"gpt2 step {LATE} vs step {EARLY}", late, early, "ms", 1000, FLAT)


def _compare(model, rival, batch_size, rounds):
    """Return greedy generation of a batch, ours and the rival's."""
    vocab_size = model.get_config()["vocab_size"]
    prompt = np.random.default_rng(batch_size).integers(0, vocab_size, (batch_size, PROMPT))
    token_ids = np.pad(prompt, [(0, 0), (0, TOKENS)])
    mask = np.arange(PROMPT + TOKENS) < np.full((batch_size, 1), PROMPT)
    generate = _generate(model)
    contenders = {
        "ours": lambda _: generate(prompt).numpy(),
        "keras_nlp": lambda _: np.asarray(
            rival.generate({"token_ids": token_ids, "padding_mask": mask}, stop_token_ids=None)[
                "token_ids"
            ]
        )[:, PROMPT:],
    }
    label = f"gpt2 greedy b{batch_size} t{PROMPT}+{TOKENS}"
    ours, theirs = (np.asarray(run(0)) for run in contenders.values())
    same = np.mean(np.all(ours == theirs, axis=1))
    if not same:
        raise ValueError(f"{label}: no row has the same tokens as keras_nlp's.")
    print(f"{label}: {same:.0%} of the rows have the same tokens as keras_nlp's")
    times = harness.times_in_turn(contenders, rounds, warm_up=1)
    per_token = 1000 / (batch_size * TOKENS)
    return harness.compare_times(
        f"{label} vs keras_nlp", times["ours"], times["keras_nlp"], "ms/token", per_token, 1.0
    )


def _generate(model):
    """Return a function: (B, P) prompts -> (B, T) tokens after them."""
    import tensorflow as tf

    from seqkeras.decoding import greedy

    @tf.function(autograph=False)
    def generate(prompt):
        state = model.initial_state(tf.shape(prompt)[0], PROMPT + TOKENS)
        _, state = model.read(prompt[:, :-1], state=state)
        token_ids, _, _ = greedy(
            model.step, state, start_id=prompt[:, -1], end_id=-1, max_length=TOKENS
        )
        return token_ids

    return generate


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("cached_generation", __doc__.splitlines()[0])
    parser.add_argument("--rounds", type=harness.count, default=5, help="Timed rounds. Default: 5.")
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
