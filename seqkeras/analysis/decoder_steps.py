"""A decoder step by step: what enters, what it attends to, its candidates, and its cache.

    step(y(t-1), state) -> (logits, attention), state

Reference: Bahdanau et al. 2015, figure 3, https://arxiv.org/abs/1409.0473; Vaswani et al. 2017,
https://arxiv.org/abs/1706.03762
"""

from dataclasses import dataclass

import numpy as np
from matplotlib.colors import ListedColormap

from seqkeras.analysis.figure_style import INK, QUIET, RULE, new_figure, write_png
from seqkeras.analysis.labels import readable

TEXT = "the black cat sees two small horses"
CANDIDATES = 3
DARK = 0.55  # shades from here on bear white letters


@dataclass(frozen=True, eq=False)
class Step:
    """One step of a greedy search.

    Attributes:
        token: what enters, the word chosen before.
        weights: (S,) attention to the source.
        candidates: list of (word, probability), the best first, which is chosen.
        cached: number of tokens whose keys and values are in the cache after the step.
    """

    token: str
    weights: np.ndarray
    candidates: list
    cached: int


def decoder_steps(model, token_ids, lengths, words, start_id, end_id, max_length):
    """Return a list of `Step`: greedy search until `end_id`, or `max_length` tokens.

    Args:
        model: a `Transformer`, or another model with its `encode` and `step`.
        token_ids: (1, S) integers, a source.
        lengths: (1,) integers, S.
        words: list of the words of the target's ids.
        start_id, end_id, max_length: see `seqkeras.decoding.decode`.
    """
    from keras import ops

    state = model.encode(token_ids, lengths, max_length)
    steps, token = [], start_id
    while len(steps) < max_length and (not steps or token != end_id):
        (logits, weights), state = model.step(np.array([[token]], "int32"), state)
        probabilities = ops.convert_to_numpy(ops.softmax(logits))[0, 0]
        best = np.argsort(-probabilities, kind="stable")[:CANDIDATES]
        candidates = [(words[index], float(probabilities[index])) for index in best]
        cached = int(ops.convert_to_numpy(state["position"])[0, 0])
        attention = ops.convert_to_numpy(weights)[0, 0]
        steps.append(Step(words[token], attention, candidates, cached))
        token = int(best[0])
    return steps


def steps_figure(source, steps, room):
    """Return the matplotlib Figure of a list of `Step`.

    Args:
        source: list of the source's words.
        steps: the list.
        room: number of tokens that the cache has room for.
    """
    count = len(steps)
    figure = new_figure(12, 1.2 + 0.42 * count)
    panels = figure.subplots(
        1, 3, sharey=True, width_ratios=(len(source), 1.9 * CANDIDATES, room / 2)
    )
    attention, candidates, cache = panels
    grid = {"edgecolors": RULE, "linewidth": 0.8, "vmin": 0, "vmax": 1}
    weights = np.stack([step.weights for step in steps])
    attention.pcolormesh(weights, cmap="Blues", **grid)
    probabilities = np.array([[p for _, p in step.candidates] for step in steps])
    candidates.pcolormesh(probabilities, cmap="Blues", **grid)
    filled = np.array([[position < step.cached for position in range(room)] for step in steps])
    cache.pcolormesh(filled, cmap=ListedColormap(["white", QUIET]), **grid)
    for row, step in enumerate(steps):
        for column, (word, p) in enumerate(step.candidates):
            candidates.text(
                column + 0.5, row + 0.5, f"{readable(word)}  {p:.2f}", parse_math=False,
                ha="center", va="center", fontsize=10, color="white" if p > DARK else INK,
            )  # fmt: skip
    for axes, title in zip(panels, ("attention", "candidates, the best first", "cache")):
        axes.set_title(title, loc="left", fontsize=12, color=INK, pad=10)
        axes.xaxis.tick_top()
        axes.tick_params(colors=QUIET, length=0, labelsize=10)
        axes.spines[:].set_color(QUIET)
    attention.set_xticks(np.arange(len(source)) + 0.5, map(readable, source), color=INK)
    candidates.set_xticks([])
    cache.set_xticks(np.arange(room) + 0.5, range(1, room + 1))
    tokens = [readable(step.token) for step in steps]
    attention.set_yticks(np.arange(count) + 0.5, tokens, color=INK, parse_math=False)
    attention.set_ylim(count, 0)
    attention.set_ylabel("word that enters", color=INK)
    return figure


def plot_decoder_steps(path, text=TEXT, steps=300, seed=0):
    """Train the small translator, translate a sentence, and draw the steps into a PNG file.

    Args:
        path: the file, replaced if it exists.
        text: English words of the translator.
        steps, seed: of the training.

    Raises:
        ValueError: if the translator does not know a word.
    """
    from seqkeras.analysis import small_translator as small

    source, token_ids, lengths = small.read(text)
    _, chinese = small.vocabularies()
    model = small.train(steps, seed)
    ends = small.BOS, small.EOS, small.LONGEST
    taken = decoder_steps(model, token_ids, lengths, chinese, *ends)
    write_png(lambda: steps_figure(source, taken, small.LONGEST), path)
