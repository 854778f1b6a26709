"""`seqkeras train translation`: its options, and what it is made of."""

from collections.abc import Iterable
from pathlib import Path

import click

from seqkeras.data.recordings import files_of_table
from seqkeras.tokenizers.of_kind import KEEP_CASE, TOKENIZERS
from seqkeras.training.options import (
    FRACTION,
    POSITIVE,
    DataFile,
    FitOptions,
    Names,
    Number,
    Options,
    argument,
    at_least,
    option,
    part,
    shown,
)
from seqkeras.training.options.corpora import CorporaOptions, DataFiles
from seqkeras.training.options.decimals import DecimalOptions
from seqkeras.training.options.held_out import OF_SOURCES, held_out_option
from seqkeras.training.options.positions import position_kind_option, problems_of_transformers
from seqkeras.training.options.pretrained import SourceEncoderOptions, TranslatorFolder
from seqkeras.training.options.sizes import SizeOptions
from seqkeras.training.options.spaces import (
    CHOICE,
    DROPOUT,
    LAYERS,
    OTHER_CHOICE,
    OTHER_DROPOUT,
    OTHER_SIZE,
    SIZE,
    SMOOTHING,
)
from seqkeras.training.options.subwords import SubwordOptions
from seqkeras.training.task import Task

RECURRENT = (  # the presets of `RNNSeq2Seq`
    "bahdanau",
    "luong",
    "cho",
    "sutskever",
    "classical-first-state",
    "classical-context",
    "classical-context-and-output",
)
BLIND = ("classical-first-state", "classical-context")  # no token enters their decoders
UNMAPPED = ("luong", "sutskever")  # states enter as they are, and logits are made of them
LAYERS_OF = {"transformer": 3, "luong": 4, "sutskever": 4}  # a side; other models have one
CELLS = ("gru", "lstm", "simple_rnn")
ATTENTIONS = ("additive", "concat", "dot", "general", "scaled_dot", "local_monotonic")
ATTENTIONS += ("local_predictive", "hard")
OF_RECURRENT = (  # None: the preset's
    "cell",
    "attention",
    "embedding_dim",
    "decoder_units",
    "tie_weights",
    "reverse_source",
    "readout",
)
READOUTS = ("tanh", "none")
ERROR_RATES = {"words": ("sentence", "word"), "phonemes": ("word", "phoneme")}
ERROR_RATES |= {"cmudict": ERROR_RATES["phonemes"]}
OF_DECODER = (  # what --pretrained-decoder brings
    "target_tokens",
    "target_vocab_size",
    "vocab_size",
    "lowercase",
    "hidden_dim",
    "num_layers",
    "num_heads",
    "feed_forward_dim",
    "pre_norm",
    "position_kind",
)
OF_START = (  # what a folder of --start-from brings
    *OF_DECODER,
    "tokens",
    "joint",
    "model",
    "attention_window",
    "dropout",
    "attention_dropout",
    "activation_dropout",
)
OF_TEXTS = ("targets", "also", "source_column", "joint", "lowercase", "format")
NOT_TEXTS = ("numbers", "categories", "frames_column")
BLEU_TOKENIZERS = ("13a", "none", "intl", "char", "zh")
CUT_IN_WAYS = ("word-piece", "unigram", "bpe")  # kinds of tokens that cut a word in several ways
SHARE = Number(0, 1, max_open=True)


class TranslationOptions(FitOptions, task="translation"):
    """Translate sentences, or words to phonemes.

    Your file looks like this (.txt or .tsv, without a header; text behind a second tab is
    not read):

        Go.<TAB>Va !
        Run!<TAB>Cours !

    Or two files, whose lines belong together: train.en --targets train.de. Or a .csv or .jsonl with
    the columns source and target (--source-column, --target-column). Or a dictionary of
    pronunciations, as CMUdict's "GO G OW1": --format cmudict. Files may be packed, as train.en.gz.
    Or frames of sound or video instead of a text: --frames-column file names .npy files. Or
    numbers and categories of a row: --numbers age,price --categories color.

    The tokens are learned from the files: --tokens, --vocab-size, --joint. The model is a
    Transformer, or a recurrent one: --model bahdanau. With --pretrained FOLDER a fine-tuned BERT
    with its tokens reads the sources.
    """

    file: str = argument(DataFile(), "Training file: sources, or sources with targets.")
    targets: str | None = option(None, DataFile(), "File of targets, a line for each line of FILE.")
    corpora: CorporaOptions = part(CorporaOptions)
    tuning: SourceEncoderOptions = part(SourceEncoderOptions)
    also_targets: tuple = option((), DataFiles(), "Files of targets, one for each file of --also.")
    validation: str | None = option(None, DataFile(), "Validation file. Default: sources of FILE.")
    validation_targets: str | None = option(
        None, DataFile(), "File of targets, a line for each line of --validation."
    )
    held_out: float | None = held_out_option("the sources", OF_SOURCES)
    format: str = option(
        "auto",
        click.Choice(["auto", "cmudict"]),
        "Format of the files; auto tells it by the file suffix.",
    )
    source_column: str | None = option(None, str, "Column of sources (.csv, .jsonl: source).")
    target_column: str | None = option(None, str, "Column of targets (.csv, .jsonl: target).")
    frames_column: str | None = option(
        None,
        str,
        "Column that names .npy files of (frames, numbers), the sources: sound, video, the "
        "features of an image. The file has a row for each recording.",
    )
    numbers: tuple = option(
        (), Names(), "Columns of numbers, the source where it is a row; a field may be empty."
    )
    categories: tuple = option(
        (), Names(), "Columns of categories, the source where it is a row; a field may be empty."
    )
    decimals: DecimalOptions = part(DecimalOptions)
    sizing: SizeOptions = part(SizeOptions)
    cutting: SubwordOptions = part(SubwordOptions)
    stress: bool = option(True, bool, "Read the stress digits behind CMUdict's vowels.")
    unknown_targets: float = option(
        0.01,
        FRACTION,
        "Largest share of unknown tokens that the targets may hold; above it nothing is trained, "
        "because no answer can hold an unknown token.",
    )
    several_targets: bool = option(
        False,
        bool,
        "Score validation lines with the same source as one example with several targets.",
    )
    start_from: str | None = option(
        None,
        TranslatorFolder(),
        "Run of this task whose weights training begins with; or a run of denoising-pretraining, "
        "or a Marian or T5 folder of Hugging Face, whose tokens, sizes and weights it begins with.",
    )
    batch_size: int = option(64, at_least(1), "Pairs in a batch.")
    learning_rate: float = option(1e-3, POSITIVE, "Learning rate at the end of warm-up.")
    warmup_steps: int = option(400, at_least(0), "Steps up to the full learning rate.")
    passes: int | None = option(
        None,
        at_least(1),
        "Passes over the training pairs (epochs). Default: 20, or 10 with --size small, and 1,000 "
        "steps at least.",
    )
    lowercase: bool = option(False, bool, "Lower-case sources and targets, and so answers.")
    tokens: str = option("unigram", click.Choice([*TOKENIZERS]), "Kind of tokens of the sources.")
    target_tokens: str | None = option(
        None, click.Choice([*TOKENIZERS]), "Kind of tokens of the targets. Default: --tokens."
    )
    vocab_size: int = option(8000, at_least(5), "Tokens to learn, at most.", search=OTHER_SIZE)
    target_vocab_size: int | None = option(
        None, at_least(5), "Tokens of the targets to learn, at most. Default: --vocab-size."
    )
    joint: bool = option(
        False,
        bool,
        "Learn one vocabulary for both sides; a Transformer then shares its embeddings.",
    )
    max_length: int = option(
        128,
        at_least(2),
        "Tokens of a source and of a target; longer pairs are left out of training.",
    )
    model: str = option(
        "transformer",
        click.Choice(["transformer", *RECURRENT]),
        "Architecture: a Transformer, or a recurrent model by its paper.",
        search=CHOICE,
    )
    hidden_dim: int = option(
        256,
        at_least(1),
        "Size of a Transformer's vectors, or of a recurrent encoder's state in each direction.",
        search=SIZE,
    )
    num_layers: int | None = option(
        None,
        at_least(1),
        "Layers on each side. Default: 3 for a Transformer, the paper's number otherwise.",
        search=LAYERS.where_unset(lambda command: command.depth),
    )
    num_heads: int = option(4, at_least(1), "Attention heads of a Transformer.")
    feed_forward_dim: int | None = option(
        None,
        at_least(1),
        "Inner size of a Transformer's feed-forward layers. Default: four times --hidden-dim.",
    )
    pre_norm: bool = option(False, bool, "Normalise inputs of Transformer sublayers, not outputs.")
    attention_window: int | None = option(
        None,
        at_least(1),
        "Positions on each side that self-attention of a Transformer's encoder sees, and past "
        "positions of its decoder. Default: all.",
    )
    position_kind: str | None = position_kind_option("a Transformer", "sinusoid")
    cell: str | None = option(
        None, click.Choice(CELLS), "Recurrent cell. Default: the paper's.", search=OTHER_CHOICE
    )
    attention: str | None = option(
        None,
        click.Choice(ATTENTIONS),
        "Attention of bahdanau and luong: a score; local, by Luong et al. 2015; or hard, one "
        "position a step, trained by REINFORCE (Xu et al. 2015). Default: the paper's score.",
    )
    embedding_dim: int | None = option(
        None, at_least(1), "Size of a recurrent model's embeddings. Default: --hidden-dim."
    )
    decoder_units: int | None = option(
        None, at_least(1), "Size of a recurrent decoder's state. Default: the encoder's."
    )
    tie_weights: bool | None = option(
        None, bool, "Share the weights of target embeddings and output layer of a recurrent model."
    )
    reverse_source: bool | None = option(
        None,
        bool,
        "Read sources from the last token to the first in the encoder of a recurrent model, as "
        "Sutskever et al. 2014 do. Default: false.",
    )
    readout: str | None = option(
        None,
        click.Choice(READOUTS),
        "Hidden layer of a recurrent decoder before its logits; none: logits of the state alone. "
        "Default: none for sutskever, otherwise tanh.",
    )
    dropout: float = option(
        0.1, SHARE, "Dropout rate of embeddings and of each layer's output.", search=DROPOUT
    )
    attention_dropout: float = option(
        0.0, SHARE, "Dropout rate of Transformer attention weights.", search=OTHER_DROPOUT
    )
    activation_dropout: float = option(
        0.0, SHARE, "Dropout rate in Transformer feed-forward layers."
    )
    teacher_forcing: float = option(
        1.0,
        FRACTION,
        "Share of target tokens, instead of its predictions, that a recurrent decoder reads in "
        "the end.",
    )
    teacher_forcing_steps: int = option(
        0,
        at_least(0),
        "Steps over which the share falls from 1 to --teacher-forcing; 0: the share is constant.",
    )
    label_smoothing: float = option(
        0.1,
        SHARE,
        "Share of the target probability that is spread evenly over all tokens.",
        search=SMOOTHING,
    )
    num_beams: int = option(4, at_least(1), "Beams of the search; 1 is greedy.")
    length_penalty: float = option(
        0.6, Number(-10, 10), "Alpha of GNMT's length penalty; 0: no penalty."
    )
    metrics: str | None = option(
        None,
        click.Choice(["translation", "phonemes", "words"]),
        "Scores: BLEU and chrF (translation), or error rates of words and phonemes, or of "
        "sentences and words. Default: phonemes with --format cmudict, otherwise translation.",
    )
    bleu_tokenizer: str = option(
        "13a",
        click.Choice(BLEU_TOKENIZERS),
        "Tokenizer of sacrebleu for BLEU; choose none for text that is tokenized already.",
    )

    OF_SCRATCH = ("tokens", "joint", "attention_window")
    SIZES = {
        "small": {"hidden_dim": 128, "vocab_size": 4_000, "learning_rate": 2e-3},
        "base": {},
    }
    SMALL_UP_TO = 50_000
    USUAL = ("targets", "validation", "validation_targets", "tokens", "vocab_size", "hidden_dim")

    def make(self) -> Task:
        from seqkeras.training.parts import translation as parts

        return Task.of(
            self,
            parts.TranslationReading,
            parts.TranslationModelling,
            parts.TranslationScoring,
        )

    def text_files(self) -> list[str]:
        return [] if self.sources_are_numbers else [self.file, *self.also]

    def files_within(self) -> dict[str, list[Path | str]]:
        if self.frames_column is None:
            return {}
        paths = [path for path in (self.file, self.validation) if path is not None]
        return {path: files_of_table(path, [self.frames_column]) for path in paths}

    @property
    def tunes_folder(self) -> bool:
        """Whether training begins with an encoder-decoder that brings its tokens and sizes: one of
        Hugging Face, or of another task."""
        return self.start_from is not None and not TranslatorFolder().is_run(self.start_from)

    @property
    def depth(self) -> int:
        """The layers on each side."""
        return self.num_layers or LAYERS_OF.get(self.model, 1)

    @property
    def reads_rows(self) -> bool:
        """Whether sources are rows of numbers and categories."""
        return bool(self.numbers or self.categories)

    @property
    def sources_are_numbers(self) -> bool:
        """Whether sources are frames, or rows, and no texts."""
        return any(map(self.is_given, NOT_TEXTS))

    @property
    def error_rates(self) -> tuple[str, str] | None:
        """What error rates are of, a whole and its part; None where BLEU is the score."""
        return ERROR_RATES.get(self.metrics or self.format)

    def problems(self, command: Options) -> Iterable[str]:
        if self.pretrained is not None and self.model != "transformer":
            yield "--pretrained is for --model transformer, whose decoder attends to a BERT."
        if self.pretrained_decoder:
            for name in OF_DECODER:
                if command.is_given(name):
                    yield f"{shown(name)}: --pretrained-decoder brings its own; leave it out."
        if self.tunes_folder:
            for name in (*OF_START, *OF_RECURRENT):
                if command.is_given(name):
                    yield f"{shown(name)}: the folder of --start-from brings its own; leave it out."
        if len(self.also_targets) != (len(self.also) if self.targets else 0):
            yield (
                "--also-targets: expected a file for each of --also where FILE has --targets, and "
                f"none where not; received {len(self.also_targets)} for {len(self.also)}."
            )
        yield from self.decimals.problems_of_columns(self.numbers, "--numbers")
        given = [name for name in NOT_TEXTS if self.is_given(name)]
        if given and given[0] != NOT_TEXTS[-1] and given[-1] == NOT_TEXTS[-1]:
            yield f"{shown(given[0])} and --frames-column are two forms of a source; choose one."
        folder = (
            "--pretrained" if self.pretrained else "--start-from" if self.tunes_folder else None
        )
        if given and folder:
            yield f"{shown(given[0])}: the model of {folder} reads texts; leave one of the two out."
        for name in OF_TEXTS if given else ():
            if self.is_given(name):
                yield f"{shown(name)}: sources of {shown(given[0])} are no texts; leave it out."
        kinds = self.tokens, self.target_tokens or self.tokens
        if self.lowercase and set(kinds) & set(KEEP_CASE):
            model_kind = next(kind for kind in kinds if kind in KEEP_CASE)
            yield f"--lowercase: {model_kind} keep their case; write the files in lower case."
        if self.subword_dropout and not set(kinds) <= set(CUT_IN_WAYS):
            yield (
                f"--subword-dropout: cuts tokens of the kinds {', '.join(CUT_IN_WAYS)}; choose one "
                "with --tokens, or leave it out."
            )
        if self.joint and len(set(kinds)) > 1:
            yield "--joint: one vocabulary has one kind of --tokens; leave --target-tokens out."
        if self.joint and self.target_vocab_size is not None:
            yield "--joint: one vocabulary has one --vocab-size; leave --target-vocab-size out."
        if self.validation_targets is not None and self.validation is None:
            yield "--validation-targets needs --validation, the file of their sources."
        if self.validation is not None and bool(self.targets) != bool(self.validation_targets):
            yield (
                "--validation must be in the form of FILE: with --validation-targets where that "
                "has --targets, and without where not."
            )
        if self.model == "transformer":
            recurrent = [name for name in OF_RECURRENT if getattr(self, name) is not None]
            recurrent += ["teacher_forcing"] * (self.teacher_forcing != 1)
            if recurrent:
                yield (
                    f"{shown(recurrent[0])} is for recurrent models; choose a --model of "
                    f"{', '.join(RECURRENT)}."
                )
            if self.hidden_dim % self.num_heads:
                yield (
                    f"--num-heads must divide --hidden-dim; received {self.num_heads} and "
                    f"{self.hidden_dim}."
                )
        else:
            yield from self._problems_of_recurrent()

    def _problems_of_recurrent(self):
        name = self.model
        yield from problems_of_transformers(self, "model")
        if name in BLIND and (self.teacher_forcing != 1 or self.tie_weights):
            flag = "--tie-weights" if self.teacher_forcing == 1 else "--teacher-forcing"
            yield f"{flag}: {name} reads none of its own tokens; leave it out."
        if self.attention and name not in ("bahdanau", "luong"):
            yield f"--attention: {name} does not attend; choose bahdanau or luong."
        if self.attention == "hard" and self.teacher_forcing != 1:
            yield "--teacher-forcing: hard attention is trained on the tokens given; leave it out."
        if self.readout and name == "luong":
            yield "--readout: luong has a hidden layer of its own; leave it out."
        unmapped = name in UNMAPPED if self.readout is None else self.readout == "none"
        two_ways = 2 if name == "bahdanau" else 1
        state = self.decoder_units or two_ways * self.hidden_dim
        other = "" if name == "luong" else ", or --readout tanh"
        if self.tie_weights and unmapped and (self.embedding_dim or self.hidden_dim) != state:
            yield (
                f"--tie-weights: {name} computes logits of its state, so embeddings must be as "
                f"wide; choose --embedding-dim {state}{other}."
            )
        if self.decoder_units and name in (*UNMAPPED, "classical-first-state"):
            yield (
                f"--decoder-units: the decoder of {name} begins with the encoder's states, "
                "so it is as wide; leave it out."
            )
