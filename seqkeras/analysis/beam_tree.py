"""Beam search as a tree: beams that continue, beams that were dropped, hypotheses with scores.

    total(Y) = log P(Y)        s(Y) = log P(Y) / lp(Y),  lp(Y) = ((5 + |Y|) / 6)^alpha

Reference: Wu et al. 2016, section 7, https://arxiv.org/abs/1609.08144
"""

from dataclasses import dataclass

import numpy as np

from seqkeras.analysis.decoder_steps import TEXT
from seqkeras.analysis.figure_style import INK, QUIET, STYLES, new_figure, write_png
from seqkeras.analysis.labels import readable

PROGRESS = "totals", "scores", "lengths", "token_ids"  # of a beam search
MOST_BEAMS = 10  # more make a tree that no page holds
BLUE, DROPPED = STYLES[0]["color"], "#8c959f"


@dataclass(frozen=True)
class Tree:
    """What a beam search looked at; a prefix is a tuple of token ids.

    Attributes:
        totals: prefix -> log-probability, of the beams that continued after each step.
        scores: prefix -> score, of the hypotheses that were set aside.
        best: the best hypothesis.
    """

    totals: dict
    scores: dict
    best: tuple

    def parents(self):
        """Return a dictionary: prefix -> list of its continuations, the more probable first."""
        prefixes = {(), *self.totals, *self.scores}
        children = {prefix: [] for prefix in prefixes}
        for prefix in sorted(prefixes - {()}, key=lambda prefix: -self.value(prefix)):
            children[prefix[:-1]].append(prefix)
        return children

    def value(self, prefix):
        """Return the number that stands beside a node."""
        return self.scores.get(prefix, self.totals.get(prefix, 0.0))


def beam_tree(model, state, num_beams, start_id, end_id, max_length, length_penalty=0.0):
    """Return the `Tree` of the search for the `num_beams` best, by the loop of `decoding.beam`.

    Args:
        model: its `step` and `state_entries`.
        state: the result of its `encode`, of one source.
        num_beams, start_id, end_id, max_length, length_penalty: see `seqkeras.decoding.beam`.
    """
    from keras import ops

    from seqkeras.decoding.beam import beam_search
    from seqkeras.decoding.loop import Loop, begun

    search = beam_search(num_beams, num_beams, max_length, end_id, length_penalty)
    loop = Loop(search, max_length)
    carried, fixed = begun(model.step, state, loop, start_id)
    totals, scores = {}, {}
    while loop.unfinished(*carried):
        length, last, token_ids, state, progress = carried
        (logits, *others), after = model.step(last, state | fixed)
        state = {name: after[name] for name in state}
        carried = loop.advance(logits, others, length, token_ids, state, progress)
        length, _, token_ids, _, progress = carried
        ids, values, ends, lengths, results = (
            ops.convert_to_numpy(tensor)[0]
            for tensor in (token_ids, *(progress[name] for name in PROGRESS))
        )
        prefixes = [tuple(map(int, row[: int(length)])) for row in ids]
        totals |= {prefix: float(v) for prefix, v in zip(prefixes, values) if v > -np.inf}
        ended = [tuple(map(int, row[:count])) for row, count in zip(results, lengths)]
        scores |= {prefix: float(score) for prefix, score in zip(ended, ends) if score > -np.inf}
    return Tree(totals, scores, max(scores, key=scores.get))


def tree_figure(tree, words, title):
    """Return the matplotlib Figure of a `Tree`.

    Args:
        tree: the `Tree`.
        words: list of the words of the ids.
        title: text above the tree.
    """
    children, heights = tree.parents(), {}
    _set_heights(children, (), heights)
    kept = {prefix[:end] for prefix in tree.scores for end in range(len(prefix) + 1)}
    depth, rows = max(map(len, children)), max(heights.values()) + 1
    figure = new_figure(1.5 + 1.05 * depth, 1.1 + 0.5 * rows)
    axes = figure.subplots()
    for prefix, height in heights.items():
        is_best = prefix == tree.best[: len(prefix)]
        colour = BLUE if is_best else INK if prefix in kept else DROPPED
        if prefix:
            axes.plot(
                (len(prefix) - 1, len(prefix)), (heights[prefix[:-1]], height), color=colour,
                linewidth=2.5 if is_best else 1, linestyle="-" if prefix in kept else ":", zorder=1,
            )  # fmt: skip
        ends = prefix in tree.scores
        box = {
            "boxstyle": "round,pad=0.25",
            "facecolor": "white",
            "edgecolor": colour,
            "linewidth": 2 if ends else 0.8,
        }
        word = readable(words[prefix[-1]]) if prefix else "<bos>"
        axes.text(
            len(prefix), height, word, ha="center", va="center", color=colour, fontsize=10.5,
            bbox=box, parse_math=False, zorder=2,
        )  # fmt: skip
        if prefix:
            axes.annotate(
                f"{tree.value(prefix):.2f}", (len(prefix), height), xytext=(0, -13),
                textcoords="offset points", ha="center", va="top", zorder=3,
                color=colour, fontsize=10 if ends else 8,
                bbox={"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none"},
            )  # fmt: skip
    axes.set(xlim=(-0.6, depth + 0.6), ylim=(rows - 0.3, -0.6))
    axes.set_axis_off()
    axes.set_title(readable(title), loc="left", fontsize=12, color=INK, parse_math=False)
    note = "beneath a word: log P so far; bold frame: a hypothesis and its score; dotted: dropped"
    figure.supxlabel(note, x=0.01, ha="left", fontsize=9, color=QUIET)
    return figure


def _set_heights(children, prefix, heights):
    """Set the height of a node, the mean of its children, and of all below it."""
    for child in children[prefix]:
        _set_heights(children, child, heights)
    below = [heights[child] for child in children[prefix]]
    leaves = sum(not children[other] for other in heights)
    heights[prefix] = sum(below) / len(below) if below else leaves


def plot_beam_tree(path, text=TEXT, beams=3, length_penalty=0.0, steps=300, seed=0):
    """Train the small translator, search, and draw the tree into a PNG file.

    Args:
        path: the file, replaced if it exists.
        text: English words of the translator.
        beams, length_penalty: of the search.
        steps, seed: of the training.

    Raises:
        ValueError: if the translator does not know a word, there are too many beams, or an option
            is refused by `seqkeras.decoding.beam`.
    """
    from seqkeras.analysis import small_translator as small

    if beams > MOST_BEAMS:
        raise ValueError(f"plot_beam_tree: beams must be at most {MOST_BEAMS}; received {beams}.")
    _, token_ids, lengths = small.read(text)
    _, chinese = small.vocabularies()
    model = small.train(steps, seed)
    state = model.encode(token_ids, lengths, small.LONGEST)
    ends = small.BOS, small.EOS, small.LONGEST
    tree = beam_tree(model, state, beams, *ends, length_penalty)
    write_png(lambda: tree_figure(tree, chinese, f"{text}: {beams} beams"), path)
