"""Strings in, answers out: a SavedModel on strings beside `serving.text` before the one on ids.

    python -m benchmarks.text_signatures [--only NAME] [--bundles FOLDER] [--before FOLDER]
        [--rounds N] [--json FILE] [--quick]

A tokenizer of each kind stands before the same small classifier, so that most of the time is the
tokenizer's. The rival splits the texts in Python, pads the ids, and asks the SavedModel on token
ids. Scores are compared before they are timed. `--bundles FOLDER` keeps the bundles; `--before
FOLDER` names those that an earlier version kept, whose SavedModels on strings are rivals too.

The texts are the reference questions where SEQKERAS_DATA names the folder that has them, else made
ones of as many words.
"""

import gzip
import json
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks import generation_rivals, harness
from benchmarks.training_steps import machine, quiet_tensorflow

TOKENIZERS = ("WordPiece", "unigrams", "merged pieces", "byte pairs")
BATCH_SIZES = (1, 64)
VOCAB_SIZE, QUICK_VOCAB_SIZE = 4000, 400
TEXTS, QUICK_TEXTS = 3000, 100
LIMIT = 128  # tokens of a text
TOLERANCE = 1e-4
CHECKED = 3  # batches
CLASSES = 3
GOAL = 1.0
BY_TEXT, BY_IDS = "saved_model_text/1", "saved_model/1"


def measure(options):
    """Export a classifier of each tokenizer, check and time it; returns the rows."""
    quiet_tensorflow()
    if not options.quick:  # a smoke run may be where TensorFlow has computed something
        generation_rivals.limit_tensorflow()
    texts, told = _texts(QUICK_TEXTS if options.quick else TEXTS)
    rows = []
    for name in TOKENIZERS:
        if options.only in (None, name):
            with tempfile.TemporaryDirectory() as folder:
                rows += _compare(name, texts, Path(folder), options)
    rounds = harness.rounds_told(options)
    print(f"measured on {machine()}, {generation_rivals.THREADS} threads; {told}; {rounds}")
    return rows


def _compare(name, texts, folder, options):
    tokenizer = _tokenizer(name, texts, QUICK_VOCAB_SIZE if options.quick else VOCAB_SIZE)
    bundle = (options.bundles or folder / "bundles") / name
    _export(tokenizer, texts, folder / "run", bundle)
    by_ids = _answers_to_ids(bundle / BY_IDS)
    contenders = {
        "ours": _answers_to_strings(bundle / BY_TEXT),
        "serving.text and ids": lambda given: by_ids(_padded(tokenizer, given)),
    }
    if options.before:
        contenders["before"] = _answers_to_strings(options.before / name / BY_TEXT)
    rows = []
    for batch_size in BATCH_SIZES:
        rounds = harness.rounds_of(options, short=batch_size == 1)
        batches = _batches(texts, batch_size, rounds)
        for batch in batches[:CHECKED]:
            expected, *others = (answer(batch) for answer in contenders.values())
            if not all(np.allclose(expected, other, atol=TOLERANCE) for other in others):
                raise ValueError(f"{name}: strings and ids do not have the same scores.")
        timed = {
            who: lambda number, answer=answer, batches=batches: answer(batches[number])
            for who, answer in contenders.items()
        }
        times = harness.times_in_turn(timed, rounds)
        own = times.pop("ours")
        for who, other in times.items():
            goal = None if who == "before" else GOAL
            label = f"{name} b{batch_size} vs {who}"
            rows.append(harness.compare_times(label, own, other, "ms", 1000, goal))
    return rows


def _batches(texts, batch_size, rounds):
    """Return a batch for each round, and for those of the warm-up, which stand last."""
    count = rounds + harness.WARM_UP
    rows = np.random.default_rng(batch_size).integers(len(texts), size=(count, batch_size))
    return [[texts[row] for row in batch] for batch in rows]


def _tokenizer(name, texts, vocab_size):
    from seqkeras.tokenizers import learn_byte_pairs, learn_sentence_pieces, learn_word_piece

    if name == "WordPiece":
        return learn_word_piece(texts, vocab_size)
    if name == "byte pairs":
        return learn_byte_pairs(texts, vocab_size)
    model = {"unigrams": "unigram", "merged pieces": "bpe"}[name]
    return learn_sentence_pieces(texts, vocab_size, model, hard_vocab_limit=False)


def _export(tokenizer, texts, run, bundle):
    """Write the bundle of a classifier with random weights, the same every time."""
    import keras

    from seqkeras.export import save_run
    from seqkeras.export.bundle import export

    keras.utils.set_random_seed(1)
    token_ids = keras.Input((None,), dtype="int64", name="token_ids")
    vectors = keras.layers.Embedding(len(tokenizer), 32, mask_zero=True)(token_ids)
    pooled = keras.layers.GlobalAveragePooling1D()(vectors)
    model = keras.Model(token_ids, keras.layers.Dense(CLASSES)(pooled))
    save_run(
        run,
        model,
        "Classify",
        [{"input": text} for text in texts[:CHECKED]],
        {"source_length": LIMIT},
        {"text": tokenizer},
        settings={"labels": [*map(str, range(CLASSES))], "pairs": False},
    )
    export(run, bundle, overwrite=True)


def _answers_to_strings(path):
    """Return the function of texts to scores that a SavedModel has."""
    import tensorflow as tf

    loaded = tf.saved_model.load(str(path))  # whose variables live as long as it does
    function = loaded.signatures["serving_default"]
    return lambda texts, loaded=loaded: function(text=tf.constant(texts))["scores"].numpy()


def _answers_to_ids(path):
    """Return the same of token ids."""
    import tensorflow as tf

    loaded = tf.saved_model.load(str(path))
    function = loaded.signatures["serving_default"]
    [output] = function.structured_outputs

    def answer(token_ids, loaded=loaded):
        logits = function(token_ids=tf.constant(token_ids))[output].numpy()
        weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True)

    return answer


def _padded(tokenizer, texts):
    from seqkeras.serving.text import pad

    token_ids, _ = pad([tokenizer.analyze(text).token_ids for text in texts])
    return token_ids


def _texts(count):
    """Return so many texts, and what they are."""
    path = Path(os.environ.get("SEQKERAS_DATA", ""), "reference-tokenization")
    path /= "bert_uncased_questions.jsonl.gz"
    if "SEQKERAS_DATA" in os.environ and path.is_file():
        with gzip.open(path) as lines:
            return [json.loads(line)["text"] for line, _ in zip(lines, range(count))], "questions"
    draw = np.random.default_rng(0)
    syllables = [first + last for first in "bdfgklmnprst" for last in ("a", "en", "i", "or", "u")]
    words = ["".join(draw.choice(syllables, draw.integers(1, 5))) for _ in range(count)]
    shares = 1 / np.arange(1, count + 1)  # Zipf's law
    shares /= shares.sum()
    made = [" ".join(draw.choice(words, draw.integers(6, 15), p=shares)) for _ in range(count)]
    return [f"{text}?" for text in made], "made texts"


def main(arguments=None):
    """Run the benchmark; returns the exit status."""
    parser = harness.make_parser("text_signatures", __doc__.splitlines()[0])
    parser.add_argument("--only", choices=TOKENIZERS, help="Kind of tokenizer to measure alone.")
    parser.add_argument("--bundles", type=Path, metavar="FOLDER", help="Folder of kept bundles.")
    parser.add_argument(
        "--before", type=Path, metavar="FOLDER", help="Folder of bundles of an earlier version."
    )
    parser.add_argument(
        "--rounds", type=harness.count, default=40, help=harness.ROUNDS_HELP.format(40)
    )
    return harness.run(parser, measure, arguments)


if __name__ == "__main__":
    sys.exit(main())
