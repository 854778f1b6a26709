"""seqkeras figure NAME --out FILE.png [--option value ...]: the figures of docs/gallery.md."""

import argparse
import importlib
import inspect
import sys
from dataclasses import dataclass
from pathlib import Path

from seqkeras.analysis.figure_style import require_png
from seqkeras.quiet import import_keras
from seqkeras.terminal import one_line

PROG = "seqkeras figure"


@dataclass(frozen=True)
class Figure:
    """A figure, written by a function of a path and of keywords with defaults.

    Args:
        function: "module.function" in this package.
        summary: what the figure shows.
        options: a dictionary: keyword -> help. An option has the type of its default.
    """

    function: str
    summary: str
    options: dict[str, str]


FIGURES = {
    "tanh": Figure(
        "tanh_composition.plot_composition",
        "A recurrent network composed with itself: 100 dimensions projected to one line.",
        {
            "units": "Size of the state.",
            "gain": "Spectral radius of the recurrent matrix, about.",
            "seed": "Seed of the matrix and the directions.",
        },
    ),
    "power": Figure(
        "power_iteration.plot_power_iteration",
        "Power iteration: what of h(0) lies off the largest eigenvector is lost.",
        {
            "units": "Size of the state.",
            "steps": "Number of steps.",
            "seed": "Seed of the eigenvectors.",
        },
    ),
    "gradients": Figure(
        "gradient_reach.plot_gradient_reach",
        "Gradient norms against distance: tanh, LSTM, GRU, QRNN, Transformer, as trained.",
        {
            "length": "Number of symbols, the first of which is to be named.",
            "steps": "Training steps of each network.",
            "seed": "Seed of the weights and symbols.",
        },
    ),
    "gradient-flow": Figure(
        "gradient_flow.draw_gradient_flow",
        "How far a gradient flows back in new cells, where numbers overflow, what clipping does.",
        {
            "units": "Size of each state.",
            "steps": "Steps back in time.",
            "seed": "Seed of the weights and inputs.",
            "radii": "Spectral radii of the recurrent matrix, with commas between.",
        },
    ),
    "positions": Figure(
        "position_waves.plot_positions",
        "Sinusoidal positions as heat maps, and products of positions against distance.",
        {"length": "Number of positions.", "dim": "Number of dimensions of the heat maps."},
    ),
    "heads": Figure(
        "attention_heads.plot_heads",
        'Attention of "it" between two columns of words, each head a colour and a bar.',
        {
            "english": "English sentence, in words of the grammar.",
            "chinese": "Chinese sentence, in words of the grammar.",
            "steps": "Training steps of the encoder.",
            "seed": "Seed of the training.",
        },
    ),
    "dialogue": Figure(
        "dialogue_heads.plot_dialogue",
        "Attention of several heads over a dialogue: the speaker's own words and the other's.",
        {
            "topic": "Topic of the last speaker's question: drink or visit.",
            "steps": "Training steps of the encoder.",
            "seed": "Seed of the training.",
        },
    ),
    "hard-attention": Figure(
        "hard_draws.plot_hard_draws",
        "Draws of hard attention beside soft attention.",
        {
            "text": "Sentence to translate, in words of the small translator.",
            "draws": "Number of draws.",
            "steps": "Training steps of the translator.",
            "seed": "Seed of the training and the draws.",
        },
    ),
    "decoder": Figure(
        "decoder_steps.plot_decoder_steps",
        "A decoder step by step: attention, candidates and cache.",
        {
            "text": "Sentence to translate, in words of the small translator.",
            "steps": "Training steps of the translator.",
            "seed": "Seed of the training.",
        },
    ),
    "beam": Figure(
        "beam_tree.plot_beam_tree",
        "Beam search as a tree with scores.",
        {
            "text": "Sentence to translate, in words of the small translator.",
            "beams": "Number of beams.",
            "length_penalty": "Exponent of the length in a score; 0 for none.",
            "steps": "Training steps of the translator.",
            "seed": "Seed of the training.",
        },
    ),
    "masks": Figure(
        "mask_squares.plot_masks",
        "Masks of attention as squares: padding, causal, prefix, restricted, permutation.",
        {"length": "Number of positions.", "seed": "Seed of the permutation."},
    ),
    "layers": Figure(
        "layer_complexity.plot_layer_complexity",
        "Complexity, sequential operations and path length of layers, counted over their graphs.",
        {"longest": "Longest sequence: each other one has half the length of the next, from 8 on."},
    ),
    "sizes": Figure(
        "model_size_bars.plot_sizes",
        "Parameters of BERT, GPT and the Transformer by part, bytes, and operations.",
        {"length": "Tokens of the text whose operations are counted."},
    ),
}


def main(arguments=None):
    """Draw a figure into a PNG file; returns the exit status."""
    name, *others = (sys.argv[1:] if arguments is None else arguments) or [""]
    if name in ("-h", "--help"):
        print(f"usage: {PROG} NAME --out FILE.png [options]\n")
        print(*(f"{name:16}{figure.summary}" for name, figure in FIGURES.items()), sep="\n")
        return 0
    if name not in FIGURES:
        names = ", ".join(FIGURES)
        print(f"{PROG}: the figure must be one of {names}; received {name!r}", file=sys.stderr)
        return 2
    import_keras()
    module, function = FIGURES[name].function.split(".")
    draw = getattr(importlib.import_module(f"seqkeras.analysis.{module}"), function)
    parser = _parser(name, FIGURES[name], inspect.signature(draw).parameters)
    options = vars(parser.parse_args(others))
    path = options.pop("out")
    try:
        require_png(parser.prog, path)
        draw(path, **options)
    except (OSError, ValueError) as error:
        parser.error(one_line(error))
    print(f"{path}: drawn")
    return 0


def _parser(name, figure, parameters):
    parser = argparse.ArgumentParser(prog=f"{PROG} {name}", description=figure.summary)
    parser.add_argument(
        "--out", type=Path, required=True, metavar="FILE.png", help="Figure to draw."
    )
    for option, text in figure.options.items():
        default = parameters[option].default
        several = isinstance(default, tuple)
        shown = ",".join(f"{number:g}" for number in default) if several else default
        parser.add_argument(
            f"--{option.replace('_', '-')}",
            type=numbers if several else type(default),
            default=default,
            help=f"{text} Default: {shown}.",
        )
    return parser


def numbers(text):
    """Return the numbers of an option that takes several, with commas between."""
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"expected numbers with commas between; received {text!r}"
        ) from None


if __name__ == "__main__":
    sys.exit(main())
