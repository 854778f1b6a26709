"""Options of the encoders that tasks of texts and of frames choose from."""

from collections.abc import Iterable

import click

from seqkeras.training.options import Number, Options, RunFolder, at_least, option
from seqkeras.training.options.positions import (
    OF_DISTANCES,
    position_kind_option,
    problems_of_transformers,
)
from seqkeras.training.options.spaces import CHOICE, DROPOUT, LAYERS, OTHER_SIZE, SIZE

CELLS = ("lstm", "gru", "simple_rnn", "qrnn")
ENCODERS = (*CELLS, "convolution", "transformer")
OF_ENCODER = (  # the options that make one
    "encoder",
    "embedding_dim",
    "units",
    "num_layers",
    "width",
    "num_heads",
    "causal",
    "attention_window",
    "position_kind",
    "character_filters",
    "features",
    "train_features",
)


class EncoderOptions(Options):
    """Options of the encoder of a text or of frames: vectors, and layers over them."""

    encoder: str = option(
        "lstm",
        click.Choice(ENCODERS),
        "Layers that read the input: a recurrent cell in both directions, convolutions, a "
        "Transformer.",
        search=CHOICE,
    )
    embedding_dim: int = option(
        128, at_least(1), "Size of the vector of a token or frame.", search=OTHER_SIZE
    )
    units: int = option(
        128,
        at_least(1),
        "Size of the state in each direction, or number of convolution filters; a Transformer has "
        "--embedding-dim.",
        search=SIZE,
    )
    num_layers: int = option(1, at_least(1), "Layers of the encoder.", search=LAYERS)
    width: int = option(3, at_least(1), "Tokens or frames that a convolution sees.")
    num_heads: int = option(4, at_least(1), "Attention heads of a Transformer.")
    causal: bool = option(
        False,
        bool,
        "Read no later tokens or frames: recurrent cells in one direction, causal convolutions and "
        "attention. A model of frames can then stream: export it with --stream.",
    )
    attention_window: int | None = option(
        None,
        at_least(1),
        "Positions on each side that a Transformer attends to; with --causal, past positions. "
        "Default: all.",
    )
    position_kind: str | None = position_kind_option(
        "a Transformer", "sinusoid; with --causal a convolution tells the order"
    )
    dropout: float = option(
        0.3,
        Number(0, 1, max_open=True),
        "Dropout rate of embeddings, between layers, and before the logits.",
        search=DROPOUT,
    )
    character_filters: int = option(
        0,
        click.IntRange(min=0),
        "Convolution filters over the characters of each word, beside the embeddings; 0: none.",
    )
    features: str | None = option(
        None, RunFolder(), "Run of bilm whose word features stand beside the embeddings."
    )
    train_features: bool = option(
        False, bool, "Train the model of --features too, and not only the mix of its layers."
    )

    def problems(self, command: Options) -> Iterable[str]:
        if self.train_features and self.features is None:
            yield "--train-features is for the model of --features; name its run."
        yield from problems_of_transformers(self, "encoder")
        if self.causal and self.position_kind not in (None, *OF_DISTANCES):
            yield (
                f"--position-kind {self.position_kind}: --causal reads frames without an end; "
                "choose relative or bias, or leave it out."
            )
        if self.causal and self.encoder == "transformer" and self.attention_window is None:
            yield "--causal with --encoder transformer needs --attention-window: the past frames."
        if self.causal and self.features is not None:
            yield "--causal: the features of --features read later words; leave one of them out."
        if self.encoder == "transformer" and self.embedding_dim % self.num_heads:
            yield (
                f"--num-heads must divide --embedding-dim; received {self.num_heads} and "
                f"{self.embedding_dim}."
            )
