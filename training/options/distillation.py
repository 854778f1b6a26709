"""Options of the tasks whose model may learn from the answers of another."""

from collections.abc import Iterable

import click

from seqkeras.training.options import (
    NOT_NEGATIVE,
    POSITIVE,
    Number,
    Options,
    RunFolder,
    at_least,
    option,
    options_of,
    part,
    shown,
)
from seqkeras.training.options.encoders import ENCODERS, EncoderOptions

BERT = "bert"  # the encoder of a student that reads its teacher's tokens
OWN_TOKENS = ("vocab_size", "lowercase", "character_filters", "features")


class DistillationOptions(Options):
    """The encoder of a model that may have a teacher, which run teaches, and by what.

    The options of the command have a `PretrainedOptions`, too.
    """

    encoding: EncoderOptions = part(EncoderOptions)
    encoder: str = option(
        EncoderOptions.encoder,
        click.Choice((*ENCODERS, BERT)),
        "Layers that read the input: a recurrent cell in both directions, convolutions, a "
        "Transformer; bert is a small BERT over the tokens of --teacher.",
    )
    teacher: str | None = option(
        None, RunFolder(), "Run of the same task whose answers the model learns beside the labels."
    )
    distil_weight: float = option(
        0.9,
        Number(0, 1),
        "Weight of the teacher's answers in the loss; the labels have the rest.",
    )
    distil_temperature: float = option(
        2.0,
        POSITIVE,
        "Temperature that divides the logits of teacher and student; raise it to show the "
        "teacher's small probabilities.",
    )
    distil_loss: str = option(
        "kl",
        click.Choice(("kl", "mse")),
        "Distance from the teacher's answers: KL divergence of probabilities, or squared error of "
        "logits.",
    )
    distil_hidden: float = option(
        0.0,
        NOT_NEGATIVE,
        "Weight of the distance from the teacher's hidden states, between two BERTs.",
    )
    distil_attention: float = option(
        0.0, NOT_NEGATIVE, "Weight of the distance from the teacher's attention, between two BERTs."
    )
    keep_layers: int | None = option(
        None,
        at_least(1),
        "Layers of --pretrained that a student begins with, evenly spread. Default: all layers.",
    )

    def problems(self, command: Options) -> Iterable[str]:
        names = [
            name
            for name in options_of(DistillationOptions)
            if name.startswith("distil_") or name == "keep_layers"
        ]
        if self.teacher is None:
            for name in names:
                if command.is_given(name):
                    yield f"{shown(name)} needs --teacher, the run to learn from."
            if self.encoder == BERT:
                yield "--encoder bert: reads the tokens of --teacher; choose transformer."
            return
        small = self.encoder == BERT and command.pretrained is None
        compared = [name for name in ("distil_hidden", "distil_attention") if getattr(self, name)]
        if compared and command.pretrained is None and not small:
            yield (
                f"{shown(compared[0])}: compares the layers of two BERTs, and --encoder "
                f"{self.encoder} has no such layers; choose --encoder bert, or --pretrained."
            )
        if compared and command.frozen:
            yield f"{shown(compared[0])}: the layers of a --frozen encoder do not learn."
        if self.keep_layers is not None and command.pretrained is None:
            yield "--keep-layers needs --pretrained, whose layers are kept; it may be the teacher."
        if not getattr(command, "LEARNS_CLASSES", True):
            for name in ("distil_loss", "distil_temperature"):
                if command.is_given(name):
                    yield f"{shown(name)}: is of probabilities; numbers are compared squared."
        if self.distil_loss == "mse" and command.is_given("distil_temperature"):
            yield "--distil-temperature: is of --distil-loss kl; mse compares logits as they are."
        if small:
            for name in OWN_TOKENS:
                if command.is_given(name):
                    yield f"{shown(name)}: --encoder bert reads the teacher's tokens; omit it."
            if self.embedding_dim % self.num_heads:
                yield (
                    f"--num-heads must divide --embedding-dim; received {self.num_heads} and "
                    f"{self.embedding_dim}."
                )
