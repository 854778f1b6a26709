"""Options of the tasks that fine-tune a pre-trained encoder."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from seqkeras.runs import MODEL, RECORD, RunRecord
from seqkeras.training.options import Number, Options, RunFolder, option, shown
from seqkeras.training.options.spaces import OTHER_CHOICE

HUGGING_FACE, GOOGLE = "config.json", "bert_config.json"  # KerasNLP's too, the first
POOLINGS = ("pooler", "mean")  # of seqkeras.models.WithHeads
DESCRIPTIONS = (RECORD, GOOGLE, HUGGING_FACE, "modules.json")
WEIGHTS = (  # of which a training that goes on needs the same content
    "model.safetensors",
    "model.safetensors.index.json",
    MODEL,
    "model.weights.h5",
    "*.ckpt.data-*",
)


class PretrainedFolder(RunFolder):
    """The folder of a pre-trained encoder."""

    name = "folder"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        folder = Path(value)
        if not folder.is_dir():
            self.fail(f"{value}: there is no such folder.", parameter, context)
        if not any((folder / name).is_file() for name in DESCRIPTIONS):
            self.fail(
                f"{value}: no pre-trained encoder: none of {', '.join(DESCRIPTIONS)} is there.",
                parameter,
                context,
            )
        return str(value)

    def read_file(self, path: Path | str) -> str | Path:
        """Return the file that is read where the option is this path."""
        weights = (file for name in WEIGHTS for file in sorted(Path(path).glob(name)))
        return str(next(weights, Path(path) / HUGGING_FACE))

    def is_run(self, path: str | Path) -> bool:
        return False


class StartFolder(PretrainedFolder):
    """Base of the folders that a whole model is read from: a run, or a folder of Hugging Face.

    A subclass has `missing`, what is said of a folder that holds neither.
    """

    missing: str

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        if not any((Path(value) / name).is_file() for name in (RECORD, HUGGING_FACE)):
            self.fail(f"{value}: {self.missing}", parameter, context)
        return str(value)


class LanguageModelFolder(StartFolder):
    """The folder of a language model."""

    missing = "no language model; expected a finished run, or a GPT-2 folder of Hugging Face."


class TranslatorFolder(StartFolder):
    """The folder of an encoder-decoder."""

    missing = "no translator; expected a finished run, or a Marian or T5 folder of Hugging Face."

    def is_run(self, path: str | Path) -> bool:
        return (Path(path) / RECORD).is_file() and RunRecord.read(path).task == "translation"


class PretrainedOptions(Options):
    """Which encoder is fine-tuned, and how."""

    pretrained: str | None = option(
        None,
        PretrainedFolder(),
        "Folder of an encoder to fine-tune: from Hugging Face, Google's BERT or KerasNLP; or a "
        "run of bert-pretraining or of an earlier fine-tuning.",
    )
    frozen: bool = option(False, bool, "Train the head alone, not the encoder of --pretrained.")
    layer_decay: float = option(
        1.0,
        Number(0, 1, min_open=True),
        "Learning rate of a layer of --pretrained, as a share of the rate of the layer above.",
    )
    unfreeze_every: int = option(
        0,
        click.IntRange(min=0),
        "Steps after which one more layer of --pretrained learns, from the top; the head learns "
        "first. 0: all layers learn from the beginning.",
    )

    # Options that belong to --pretrained alone.
    OF_PRETRAINED = ("frozen", "layer_decay", "unfreeze_every")
    DEFAULTS_WITH = {
        "pretrained": {
            "learning_rate": 5e-5,
            "optimizer": "adamw",
            "weight_decay": 0.01,
            "schedule": "linear",
            "warmup_share": 0.1,
            "batch_size": 16,
            "passes": 3,
            "dropout": 0.1,
            "looks": 6,
        }
    }

    def problems(self, command: Options) -> Iterable[str]:
        if self.pretrained is None:
            for name in self.OF_PRETRAINED:
                if command.is_given(name):
                    yield f"{shown(name)} needs --pretrained, the folder of an encoder."
            return
        for name in getattr(command, "OF_SCRATCH", ()):  # what --pretrained brings
            if command.is_given(name):
                yield f"{shown(name)}: --pretrained brings its own; leave it out."
        if command.start_from is not None:
            yield "--start-from and --pretrained: choose one; --pretrained takes a run, too."
        if self.frozen and (self.layer_decay != 1 or self.unfreeze_every):
            yield "--frozen: the encoder learns at no rate; leave the other one out."
        if command.optimizer == "keras-adam" and (self.layer_decay != 1 or self.unfreeze_every):
            yield (
                "--optimizer keras-adam has one rate for all layers; choose adam or adamw, or "
                "leave --layer-decay and --unfreeze-every out."
            )


class SourceEncoderOptions(PretrainedOptions):
    """Which encoder reads the sources of an encoder-decoder."""

    pretrained_decoder: bool = option(
        False,
        bool,
        "Begin the decoder with the weights of --pretrained, too (Rothe et al. 2020): targets have "
        "its tokens.",
    )

    OF_PRETRAINED = (*PretrainedOptions.OF_PRETRAINED, "pretrained_decoder")
    # The decoder, or its attention to the source, learns from scratch.
    DEFAULTS_WITH = {
        "pretrained": {
            "learning_rate": 2e-4,
            "optimizer": "adamw",
            "weight_decay": 0.01,
            "batch_size": 32,
        }
    }


class PooledOptions(PretrainedOptions):
    """Pooling of tokens for the heads of whole texts."""

    pooling: str = option(
        "pooler",
        click.Choice(POOLINGS),
        "Vector of --pretrained that the head reads: the pooler of the first token, or the mean "
        "of all tokens, as sentence encoders are trained.",
        search=OTHER_CHOICE,
    )

    OF_PRETRAINED = (*PretrainedOptions.OF_PRETRAINED, "pooling")
