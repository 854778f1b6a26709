"""Whom `benchmarks.generation` compares with: functions of token ids and a beam size.

Each takes lists of source ids, all of one length, and answers with lists of `TARGET` ids. None of
them ever ends a text by itself.
"""

import contextlib
import json
import subprocess
import sys

import numpy as np

from benchmarks import ctranslate2_model, harness, training_steps

SOURCE, TARGET = 24, 32
PADDING, BEGIN, END = 0, 2, 3
THREADS = 2


def ctranslate2(model, folder, precision):
    """Return a `Transformer` as CTranslate2 runs it; "int8" is of every matrix, embeddings too."""
    package = harness.import_rival("ctranslate2")
    if not folder.exists():
        ctranslate2_model.write(model, folder)
    translator = package.Translator(str(folder), compute_type=precision, intra_threads=THREADS)

    def answer(token_ids, num_beams):
        results = translator.translate_batch(
            [list(map(str, row)) for row in token_ids],
            beam_size=num_beams,
            max_decoding_length=TARGET,
            min_decoding_length=TARGET,
            length_penalty=0,
        )
        return [list(map(int, result.hypotheses[0])) for result in results]

    return answer


@contextlib.contextmanager
def hugging_face(model, folder, python=sys.executable):
    """Yield `optimum` and `transformers`, in a process of their own, while the context lasts.

    Args:
        model: a `Transformer` of Marian's form.
        folder: where the model is written for them.
        python: an interpreter that has benchmarks/requirements-optimum.txt.

    Yields:
        name -> function.

    Raises:
        ValueError: if they can not be started; the last line of their error.
    """
    from seqkeras.pretrained import save_hugging_face

    ids = {"pad_token_id": PADDING, "decoder_start_token_id": BEGIN, "eos_token_id": END}
    save_hugging_face(model, folder, ids)
    process = subprocess.Popen(
        [python, "-m", "benchmarks.hugging_face_generation", str(folder)],
        cwd=harness.CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )

    def ask(name, token_ids, num_beams):
        process.stdin.write(json.dumps([name, token_ids, num_beams]) + "\n")
        process.stdin.flush()
        return _read(process)

    with process:
        try:
            names = _read(process)
            yield {
                name: lambda token_ids, num_beams, name=name: ask(name, token_ids, num_beams)
                for name in names
            }
        finally:
            process.kill()


def _read(process):
    line = process.stdout.readline()
    if not line:
        last = harness.last_line(process.stderr.read()) or "they ended"
        raise ValueError(f"optimum and transformers: {last}; --rivals can leave them out")
    return json.loads(line)


def limit_tensorflow():
    """Let TensorFlow have `THREADS` threads too; before it has computed anything.

    An operation may use so many, and so many operations may run at once, as they do by default on
    a machine with so many cores.

    Raises:
        RuntimeError: if TensorFlow has computed something, with other numbers of threads.
    """
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)


def keras(model):
    """Return our own generation in Keras, a `tf.function`."""
    from seqkeras.decoding import beam, greedy

    def generate(token_ids, lengths, num_beams):
        state = model.encode(token_ids, lengths)
        options = {"start_id": BEGIN, "end_id": END, "max_length": TARGET}
        if num_beams == 1:
            return greedy(model.step, state, **options)[0]
        entries = model.state_entries
        found = beam(model.step, state, num_beams=num_beams, state_entries=entries, **options)
        return found[0][:, 0]

    return _as_function(generate)


def keras_nlp(model):
    """Return the samplers of keras_nlp around our model's step, a `tf.function`."""
    samplers = training_steps.import_keras_nlp().samplers
    from keras import ops

    def generate(token_ids, lengths, num_beams):
        def following(prompt, cache, index):
            (logits, *_), cache = model.step(prompt[:, index - 1, None], cache)
            return logits[:, 0], None, cache

        sampler = samplers.BeamSampler(num_beams) if num_beams > 1 else samplers.GreedySampler()
        prompt = ops.full((ops.shape(token_ids)[0], 1 + TARGET), BEGIN, "int32")
        return sampler(following, prompt, model.encode(token_ids, lengths), index=1)[:, 1:]

    return _as_function(generate)


def saved_model(folder):
    """Return the SavedModel of a bundle, as TensorFlow runs it."""
    import tensorflow as tf

    loaded = tf.saved_model.load(folder)

    def answer(token_ids, num_beams):
        generate = loaded.signatures["generate" if num_beams == 1 else "generate_beam"]
        token_ids = tf.constant(token_ids, tf.int64)
        lengths = tf.fill([len(token_ids)], tf.constant(SOURCE, tf.int64))
        return generate(token_ids=token_ids, lengths=lengths)["generated_ids"].numpy().tolist()

    return answer


def _as_function(generate):
    import tensorflow as tf

    compiled = tf.function(generate, autograph=False)

    def answer(token_ids, num_beams):
        lengths = np.full(len(token_ids), SOURCE)
        return compiled(tf.constant(token_ids), tf.constant(lengths), num_beams).numpy().tolist()

    return answer
