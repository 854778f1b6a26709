"""Keras = SavedModel = ONNX on the same real inputs, or the export is refused.

Compared are log-probabilities of the real targets (teacher forcing) and the strings that greedy
decoding gives, ONNX through `serving` itself. A string that differs is forgiven only if Keras's own
two best tokens were less than `MARGIN` apart where the strings part: such ties are counted.
"""

import os

import numpy as np
import tensorflow as tf
from keras import ops

import serving
from seqkeras.tokenizers import BOS, pad
from seqkeras.values import NEVER
from serving.manifest import read_manifest
from serving.session import EncoderDecoder

TOLERANCE = 1e-4  # the largest difference allowed between float32 log-probabilities
MARGIN = 1e-4
EXAMPLES = 512  # compared, at most


class ParityError(ValueError):
    """What was exported does not answer as the Keras model does."""


def verify_seq2seq(model, generate, folder, source, target, examples):
    """Compare what lies in an unfinished bundle with its Keras model.

    Args:
        model: the Keras model.
        generate: its function (token_ids, lengths) -> generated_ids and more.
        folder: the bundle, with a manifest.
        source, target: the `CharacterTable` of each side.
        examples: list of {"text", "target"}, real inputs.

    Returns:
        The figures for the manifest.

    Raises:
        ParityError: with every difference over the tolerance.
    """
    examples = examples[:EXAMPLES]
    texts = [example["text"] for example in examples]
    token_ids, lengths = pad([source.encode(text) for text in texts])
    target_ids, _ = pad([[BOS, *target.encode(each["target"])] for each in examples])
    saved_model = tf.saved_model.load(str(folder / "saved_model" / "1")).signatures
    text_model = tf.saved_model.load(str(folder / "saved_model_text" / "1")).signatures
    problems, figures = [], {"examples": len(examples), "tolerance": TOLERANCE}

    expected = _log_probs(model, token_ids, lengths, target_ids)
    inputs = {"token_ids": token_ids, "lengths": lengths, "target_ids": target_ids}
    scored = saved_model["serving_default"](**_tensors(inputs))
    for name, actual in {
        "saved_model": scored["log_probs"].numpy(),
        "onnx": _onnx_log_probs(folder, token_ids, lengths, target_ids),
    }.items():
        difference = float(np.max(np.abs(actual - expected), where=expected > NEVER / 2, initial=0))
        figures[f"{name}_log_prob_difference"] = difference
        if not difference <= TOLERANCE:
            problems.append(f"{name} log-probabilities differ by {difference:.2g} from Keras")

    sources = _tensors({"token_ids": token_ids, "lengths": lengths})
    keras_ids = tf.function(generate)(**sources)["generated_ids"].numpy()
    margins = _margins(model, token_ids, lengths, keras_ids)
    keras_texts = [target.decode(ids) for ids in keras_ids]
    for name, answers in {
        "saved_model": map(
            target.decode, saved_model["generate"](**sources)["generated_ids"].numpy()
        ),
        "saved_model_text": (
            each.decode()
            for each in text_model["serving_default"](tf.constant(texts))["text"].numpy()
        ),
        "onnx": (answer.text for answer in serving.load(folder)(texts, beam_size=1)),
    }.items():
        answers = list(answers)
        different = [row for row, text in enumerate(keras_texts) if text != answers[row]]
        tied = [
            row
            for row in different
            if margins[row, _first_difference(keras_texts[row], answers[row])] < MARGIN
        ]
        figures[f"{name}_ties"] = len(tied)
        problems += [
            f"{name} answers {answers[row]!r} to {texts[row]!r}, Keras {keras_texts[row]!r}"
            for row in different
            if row not in tied
        ][:3]
    if problems:
        raise ParityError(
            f"the exported model is not the trained one: {'; '.join(problems)} "
            f"(allowed: {TOLERANCE:g} and the same strings). Nothing was written."
        )
    return figures


def _tensors(arrays):
    return {name: tf.constant(array) for name, array in arrays.items()}


def _log_probs(model, token_ids, lengths, target_ids):
    inputs = {"token_ids": token_ids, "lengths": lengths, "target_ids": target_ids}
    return ops.convert_to_numpy(ops.log_softmax(model(inputs)))  # (N, T, V)


def _onnx_log_probs(folder, token_ids, lengths, target_ids):
    """The decoder-step graph along the real targets: (N, T, V)."""
    manifest = read_manifest(folder)
    graphs = EncoderDecoder(folder, manifest)
    state = graphs.encode(token_ids, lengths)
    rows = np.arange(len(token_ids))[:, None]
    log_probs = np.empty((*target_ids.shape, graphs.vocab_size), np.float32)
    for t in range(target_ids.shape[1]):
        candidates, state = graphs.step(target_ids[:, t : t + 1], rows, graphs.vocab_size, state)
        np.put_along_axis(
            log_probs[:, t],
            candidates.token_ids[:, 0],
            candidates.log_probs[:, 0],
            axis=1,
        )
    return log_probs


def _margins(model, token_ids, lengths, generated_ids):
    """(N, T) by how much Keras's best token led at each step of its greedy decoding."""
    begin = np.full((len(generated_ids), 1), BOS, generated_ids.dtype)
    target_ids = np.concatenate([begin, generated_ids[:, :-1]], axis=1)
    best = np.sort(_log_probs(model, token_ids, lengths, target_ids), axis=-1)
    return best[..., -1] - best[..., -2]


def _first_difference(text, other):
    """The step at which two answers part; a token is a character, and the end is a token too."""
    return len(os.path.commonprefix([text, other]))
