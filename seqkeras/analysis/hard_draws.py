"""Hard attention's draws beside soft attention: each row of a draw attends to one position.

    s ~ Categorical(softmax(score(query, key))); the mean of many draws is soft attention

Reference: Xu et al. 2015, section 4, https://arxiv.org/abs/1502.03044
"""

import numpy as np

from seqkeras.analysis.decoder_steps import TEXT, decoder_steps
from seqkeras.analysis.figure_style import INK, QUIET, RULE, new_figure, write_png
from seqkeras.analysis.labels import readable


def draws_of(weights, draws, seed=0):
    """Return (draws, T, S) draws of `HardAttention`, and its (T, S) choice in inference.

    Args:
        weights: (T, S) probabilities of the positions: their logarithms are the scores.
        draws: number of draws.
        seed: of the draws.
    """
    from keras import ops

    from seqkeras.attention import DotScore, HardAttention

    layer = HardAttention(DotScore(), seed=seed)
    target_length, source_length = weights.shape
    scores = np.log(np.maximum(weights, np.finfo("float32").tiny)).astype("float32")
    query = np.broadcast_to(scores, (draws, target_length, source_length))
    key = np.broadcast_to(np.eye(source_length, dtype="float32"), (draws, *[source_length] * 2))
    _, drawn = layer(query, key, key, training=True)
    _, chosen = layer(query[:1], key[:1], key[:1])
    return ops.convert_to_numpy(drawn), ops.convert_to_numpy(chosen)[0]


def draws_figure(source, target, weights, drawn, chosen):
    """Return the matplotlib Figure of soft weights, two draws, the mean of all, and the choice.

    Args:
        source, target: lists of S and T words.
        weights, drawn, chosen: see `draws_of`.
    """
    panels = {
        "soft attention": weights,
        "a draw": drawn[0],
        "another draw": drawn[1],
        f"mean of {len(drawn)} draws": drawn.mean(axis=0),
        "in inference": chosen,
    }
    figure = new_figure(13.5, 1.2 + 0.3 * len(target))
    for axes, (title, values) in zip(figure.subplots(1, len(panels), sharey=True), panels.items()):
        axes.pcolormesh(values, cmap="Blues", vmin=0, vmax=1, edgecolors=RULE, linewidth=0.8)
        axes.set_title(title, loc="left", fontsize=12, color=INK)
        words = [readable(word) for word in source]
        axes.set_xticks(np.arange(len(source)) + 0.5, words, rotation=90, color=INK)
        words = [readable(word) for word in target]
        axes.set_yticks(np.arange(len(target)) + 0.5, words, color=INK, parse_math=False)
        axes.set_ylim(len(target), 0)
        axes.tick_params(length=0, labelsize=10)
        axes.spines[:].set_color(QUIET)
    return figure


def plot_hard_draws(path, text=TEXT, draws=500, steps=300, seed=0):
    """Train the small translator, draw positions from its attention, and draw a PNG file.

    Args:
        path: the file, replaced if it exists.
        text: English words of the translator.
        draws: number of draws.
        steps: steps of the training.
        seed: seed of the training, and of the draws.

    Raises:
        ValueError: if the translator does not know a word, or there are fewer than two draws.
    """
    from seqkeras.analysis import small_translator as small

    if draws < 2:
        raise ValueError(f"plot_hard_draws: draws must be at least 2; received {draws}.")
    source, token_ids, lengths = small.read(text)
    _, chinese = small.vocabularies()
    model = small.train(steps, seed)
    ends = small.BOS, small.EOS, small.LONGEST
    taken = decoder_steps(model, token_ids, lengths, chinese, *ends)
    weights = np.stack([step.weights for step in taken])
    target = [step.candidates[0][0] for step in taken]
    drawn, chosen = draws_of(weights, draws, seed)
    write_png(lambda: draws_figure(source, target, weights, drawn, chosen), path)
