"""The linear part of a classifier of texts: a support vector machine on n-grams.

    x(b) = idf(b) (how often bucket b is hit by the n-grams G of a text) / sqrt(|G|)
    idf(b) = ln((1 + texts) / (1 + texts that hit b)) + 1
    y = s (W^T x + b)

W and b separate each class from the others by the squared hinge loss. A tenth of the training rows,
held out, decides their penalty, and the scale s by which y are logits. Unless there are many rows,
W and b are then found anew on all of them.

Reference: Fan et al. 2008, https://jmlr.org/papers/v9/fan08a.html (LIBLINEAR); Wang and Manning
2012, https://aclanthology.org/P12-2018 (linear classifiers of n-grams as strong baselines)
"""

from __future__ import annotations

import operator
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from keras import ops

from seqkeras.decoding import compiled
from seqkeras.metrics.calibration import fitted_temperature, log_softmax
from seqkeras.models import LinearNgrams
from seqkeras.models.linear_ngrams import MOST_BUCKETS
from seqkeras.spreading import evenly_spread
from seqkeras.tokenizers import CharacterTable, spelled_pieces
from seqkeras.training.parts.baselines.texts import most_characters

if TYPE_CHECKING:
    from seqkeras.data.batches import Sequences
    from seqkeras.serving.text import Tokenizer

FEWEST_TEXTS = 50  # of training, of which a linear part is found
MOST_LABELS = 512
MOST_WEIGHTS = 2**21
PENALTIES = (1.0, 0.1)  # C
TOLERANCE = 1e-2
MOST_PASSES = 50  # where no n-gram tells the label, a machine would need a thousand
HELD_OUT = 0.1
MANY_TEXTS = 20_000  # beyond which a tenth more teaches little
CHARACTERS_OF_TOKEN = 4
BATCH, STEP = 256, 16  # texts whose n-grams are found at once, and tokens that a batch grows by


def num_buckets(num_labels: int) -> int:
    """Return a number of buckets whose weights are not too many, one less than a power of two."""
    return min(MOST_BUCKETS, 2 ** int(np.log2(MOST_WEIGHTS / num_labels))) - 1


def fitted_ngrams(
    tokenizer: Tokenizer,
    rows: Sequences,
    targets: np.ndarray,
    num_labels: int,
    seed: int,
) -> LinearNgrams | None:
    """Return a `seqkeras.models.LinearNgrams` with the weights of a linear classifier; None where
    the texts are too few, or all of one class, or the labels too many.

    Args:
        tokenizer: a WordPiece tokenizer.
        rows: token ids of the training texts.
        targets: (texts,) places of labels.
        num_labels: K, the number of labels.
        seed: of the texts that are held out.
    """
    from threadpoolctl import threadpool_limits

    most = most_characters(range(num_labels)) / CHARACTERS_OF_TOKEN
    count = max(1, int(len(targets) * most / max(rows.lengths.sum(), 1)))
    texts = np.array(evenly_spread(count, len(targets)))
    texts = np.random.default_rng(seed).permutation(texts)
    targets, count = targets[texts], len(texts)
    rest = count - round(HELD_OUT * count)
    too_few = count < FEWEST_TEXTS or len({*targets[:rest].tolist()}) < 2
    if too_few or num_labels > MOST_LABELS:
        return None
    table = CharacterTable.learn(map(tokenizer.token_of, range(len(tokenizer))))
    layer = LinearNgrams(
        num_labels, num_buckets(num_labels), *spelled_pieces(tokenizer, table), name="ngrams"
    )
    layer.build((None, None))
    features = counted_ngrams(layer, rows, texts)
    weights = weigh(features)
    judged = []
    with threadpool_limits(1, user_api="blas"):
        given, held = _first(features, rest), features[rest:]
        for penalty in PENALTIES:
            kernel, bias = _separated(given, targets[:rest], num_labels, penalty)
            logits = held @ kernel + bias
            scale = 1 / fitted_temperature(logits, targets[rest:])
            losses = -log_softmax(scale * logits)[np.arange(count - rest), targets[rest:]]
            judged.append((float(np.mean(losses)), penalty, scale, kernel, bias))
        _, penalty, scale, kernel, bias = min(judged, key=operator.itemgetter(0))
        if count <= MANY_TEXTS:
            order = np.argsort(texts)
            kernel, bias = _separated(features[order], targets[order], num_labels, penalty)
    layer.set_weights([scale * weights[:, None] * kernel, scale * bias])
    return layer


def counted_ngrams(layer: LinearNgrams, rows: Sequences, texts: np.ndarray) -> Any:
    """Return the (texts, buckets) sparse matrix of counts of n-grams, divided by the square root
    of a text's number of them.

    Args:
        layer: which n-grams there are, and their buckets.
        rows: token ids.
        texts: (texts,) numbers of rows.
    """
    from scipy import sparse

    parts, order = [], []
    grams = compiled(lambda token_ids: [*layer.grams(token_ids)])
    for chosen, token_ids in _in_batches(rows, texts):
        pairs = []
        for buckets, real in grams(token_ids):
            row, column = np.nonzero(ops.convert_to_numpy(real))
            pairs.append((row, ops.convert_to_numpy(buckets)[row, column]))
        places, hit = map(np.concatenate, zip(*pairs, strict=True))
        sizes = np.maximum(np.bincount(places, minlength=len(chosen)), 1)
        values = 1 / np.sqrt(sizes[places])
        parts.append(sparse.csr_matrix((values, (places, hit)), (len(chosen), layer.buckets)))
        order.append(chosen)
    return sparse.vstack(parts, "csr")[np.argsort(np.concatenate(order))]


def logits_of_ngrams(layer: LinearNgrams, rows: Sequences) -> np.ndarray:
    """Return the (texts, K) logits of rows of token ids."""
    logits, logits_of = np.empty((len(rows.lengths), layer.units)), compiled(layer)
    for chosen, token_ids in _in_batches(rows, np.arange(len(logits))):
        logits[chosen] = ops.convert_to_numpy(logits_of(token_ids))
    return logits


def _in_batches(rows, texts):
    """Yield places of texts of about the same length, and their padded token ids."""
    order = np.argsort(rows.lengths[texts], kind="stable")
    for start in range(0, len(order), BATCH):
        chosen = order[start : start + BATCH]
        token_ids = rows[texts[chosen]]
        more = [(0, 0), (0, -token_ids.shape[1] % STEP)]
        yield chosen, ops.convert_to_tensor(np.pad(token_ids, more))


def weigh(counts: Any) -> np.ndarray:
    """Multiply each column of a sparse matrix by its weight, the rarer, the higher; return the
    weights."""
    hit_by = np.bincount(counts.indices, minlength=counts.shape[1])
    weights = np.log((1 + counts.shape[0]) / (1 + hit_by)) + 1
    counts.data *= weights[counts.indices]
    return weights


def balance(logits: np.ndarray, linear: np.ndarray, targets: np.ndarray) -> float:
    """Return the factor of a linear part's logits that serves examples best.

        w = argmin over w of min over T of -sum log softmax((network + w linear) / T) + (ln w)^2 / 2

    The last term, of a normal distribution about 1, keeps the factor of few examples near 1.

    Args:
        logits: (n, K) logits, or log-probabilities, of network + linear.
        linear: (n, K) logits of the linear part.
        targets: (n,) places of the right classes.
    """
    from scipy.optimize import minimize

    network, rows = logits - linear, np.arange(len(targets))

    def loss(logarithms):
        weight, temperature = np.exp(logarithms)
        log_probs = log_softmax(network + weight * linear, temperature)
        return -log_probs[rows, targets].sum() + logarithms[0] ** 2 / 2

    return float(np.exp(minimize(loss, np.zeros(2), method="Nelder-Mead").x[0]))


def _first(matrix, rows):
    """Return the first rows of a sparse matrix, without a copy of their numbers."""
    end = matrix.indptr[rows]
    parts = matrix.data[:end], matrix.indices[:end], matrix.indptr[: rows + 1]
    return type(matrix)(parts, (rows, matrix.shape[1]), copy=False)


def _separated(features, targets, num_labels, penalty):
    """Return (buckets, K) and (K,) weights; a class without a text has the bias -1."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    machine = LinearSVC(C=penalty, tol=TOLERANCE, max_iter=MOST_PASSES, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # held-out texts judge the weights
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        machine.fit(features, targets)
    coefficients, intercepts = machine.coef_, machine.intercept_
    if len(coefficients) == 1:  # of two classes
        halves = np.array([[-0.5], [0.5]])
        coefficients, intercepts = halves * coefficients, halves[:, 0] * intercepts
    kernel, bias = np.zeros((features.shape[1], num_labels)), np.full(num_labels, -1.0)
    kernel[:, machine.classes_], bias[machine.classes_] = coefficients.T, intercepts
    return kernel, bias
