"""`seqkeras train language-model`: its options, and what it is made of."""

from collections.abc import Iterable

import click

from seqkeras.training.options import (
    FRACTION,
    POSITIVE,
    DataFile,
    FitOptions,
    Number,
    Options,
    argument,
    at_least,
    option,
    part,
    shown,
)
from seqkeras.training.options.corpora import CorporaOptions
from seqkeras.training.options.held_out import MOST_CHARACTERS, held_out_option
from seqkeras.training.options.positions import position_kind_option
from seqkeras.training.options.pretrained import LanguageModelFolder
from seqkeras.training.options.spaces import CHOICE, DROPOUT, LAYERS, LENGTH, OTHER_SIZE, SIZE
from seqkeras.training.task import Task

TOKENS = ("characters", "words", "byte-pairs", "unigram", "bpe")
OF_START = (  # what --start-from brings
    "model",
    "num_layers",
    "hidden_dim",
    "num_heads",
    "embedding_dim",
    "tie_weights",
    "attention",
    "attention_window",
    "position_kind",
)
ATTENTIONS = {"key-value": 2, "key-value-predict": 3}  # and the parts that a state falls into
MASKS = ("causal", "prefix")
MODELS = ("gpt", "gru", "lstm", "qrnn", "simple_rnn")


class LanguageModelOptions(FitOptions, task="language-model"):
    """Train a language model on plain text: characters, words or subwords.

    Your file looks like this: text in UTF-8, plain or .gz, and nothing else. Several files are read
    one behind the other.

        First Citizen:
        Before we proceed any further, hear me speak.

    The last tenth of the text, at most a million characters, is held out for validation. The model
    is a GPT, or a recurrent network that carries the state of each row from batch to batch;
    --tokens names what it reads.
    """

    files: tuple = argument(DataFile(), "Training files: plain text or .gz.", several=True)
    validation: str | None = option(None, DataFile(), "Validation file. Default: the text's end.")
    held_out: float | None = held_out_option(
        "the text, from its end,", most=f"{MOST_CHARACTERS:,} characters"
    )
    corpora: CorporaOptions = part(CorporaOptions)
    tokens: str = option(
        "characters",
        click.Choice(TOKENS),
        "Kind of tokens: words stand between spaces; unigram and bpe are SentencePiece's.",
    )
    vocab_size: int = option(
        8000, at_least(1), "Words or subwords to learn, at most.", search=OTHER_SIZE
    )
    tokenizer: str | None = option(
        None,
        click.Path(),
        "File tokenizer.json, or GPT-2's folder of vocabulary and merges. Default: tokens are "
        "learned from the text.",
    )
    start_from: str | None = option(
        None,
        LanguageModelFolder(),
        "Run of this task, or a GPT-2 folder of Hugging Face, whose tokenizer, sizes and weights "
        "training begins with.",
    )
    new_tokens: bool = option(
        False,
        bool,
        "Learn tokens anew, by --tokens and --vocab-size; tokens that the model of --start-from "
        "knows keep their weights.",
    )
    unknown_targets: float = option(
        0.01,
        FRACTION,
        "Largest share of unknown tokens that the targets may hold; above it nothing is trained, "
        "because no answer can hold an unknown token.",
    )
    model: str = option(
        "gpt",
        click.Choice(MODELS),
        "Architecture: GPT, or the cell of a recurrent model.",
        search=CHOICE,
    )
    num_layers: int = option(4, at_least(1), "Layers of the model.", search=LAYERS)
    hidden_dim: int = option(
        128, at_least(1), "Size of a GPT's vectors, or of a cell's state.", search=SIZE
    )
    num_heads: int = option(4, at_least(1), "Attention heads of a GPT.")
    embedding_dim: int | None = option(
        None, at_least(1), "Size of a recurrent model's embeddings. Default: --hidden-dim."
    )
    tie_weights: bool = option(
        False, bool, "Share the weights of embeddings and output layer, as a GPT always does."
    )
    mask: str | None = option(
        None,
        click.Choice([*MASKS, "permutation"]),
        "Tokens that a GPT's token sees: the past (causal), a whole prompt, too (prefix), or those "
        "before it in a random order (permutation). Default: causal, or the value in --start-from.",
    )
    attention: str | None = option(
        None,
        click.Choice([*ATTENTIONS]),
        "Attention of a recurrent model to its last states, whose parts are keys, values and what "
        "predicts.",
    )
    attention_window: int | None = option(
        None,
        at_least(1),
        "Past tokens that a GPT's self-attention sees, or past states that --attention sees. "
        "Default: all of a GPT; 5 states.",
    )
    position_kind: str | None = position_kind_option("a GPT", "learned")
    dropout: float | None = option(
        None,
        Number(0, 1, max_open=True),
        "Dropout rate. Default: 0, or the rate of --start-from.",
        search=DROPOUT.where_unset(lambda command: None if command.start_from else 0.0),
    )
    context: int = option(64, at_least(1), "Tokens of a window.", search=LENGTH)
    stride: int | None = option(
        None,
        at_least(1),
        "Tokens between the starts of two validation windows of a GPT. Default: --context.",
    )
    windows: str | None = option(
        None,
        click.Choice(["random", "consecutive"]),
        "Order of the windows. Default: random for a GPT, consecutive for a recurrent model.",
    )
    batch_size: int = option(32, at_least(1), "Windows in a batch.")
    learning_rate: float = option(1e-3, POSITIVE, "Learning rate at the end of warm-up.")

    USUAL = ("start_from", "tokens", "num_layers", "hidden_dim", "context")

    def make(self) -> Task:
        from seqkeras.training.parts import language_model as parts

        return Task.of(
            self,
            parts.LanguageModelReading,
            parts.LanguageModelModelling,
            parts.LanguageModelScoring,
        )

    def problems(self, command: Options) -> Iterable[str]:
        yield from self._problems_of_start()
        if self.also and (self.windows or "") != "random" and self.model != "gpt":
            yield (
                "--also: a recurrent model goes on from batch to batch within one text; choose "
                "--windows random."
            )
        if self.windows == "consecutive" and self.model == "gpt" and self.start_from is None:
            yield (
                "--windows consecutive carries a state on, which a GPT has none of; leave it out, "
                "or choose a recurrent --model."
            )
        if self.model == "gpt" and self.hidden_dim % self.num_heads:
            yield (
                f"--hidden-dim must be a multiple of --num-heads; received {self.hidden_dim} and "
                f"{self.num_heads}."
            )
        yield from self._problems_of_attention()
        if self.stride is not None and self.stride > self.context:
            yield (
                f"--stride must be at most --context; received {self.stride} and {self.context}."
            )

    def _problems_of_attention(self):
        """Yield a sentence for each option of attention that does not go with the model."""
        if self.mask is not None and self.model != "gpt":
            yield f"--mask is for --model gpt; leave it out with --model {self.model}."
        if self.position_kind is not None and self.model != "gpt":
            yield f"--position-kind is for --model gpt; leave it out with --model {self.model}."
        if self.mask == "permutation" and self.attention_window is not None:
            yield (
                "--attention-window: --mask permutation sees what is earlier in the order, however "
                "far; leave one of them out."
            )
        if self.attention is None:
            if self.attention_window is not None and self.model != "gpt":
                yield (
                    "--attention-window is for --model gpt; leave it out with --model "
                    f"{self.model}, or add --attention key-value."
                )
            return
        if self.model == "gpt" and self.start_from is None:
            yield (
                f"--attention {self.attention} is for recurrent models; leave it out with --model "
                "gpt, or choose --model lstm."
            )
        if self.hidden_dim % ATTENTIONS[self.attention]:
            yield (
                f"--hidden-dim must be a multiple of {ATTENTIONS[self.attention]} with --attention "
                f"{self.attention}; received {self.hidden_dim}."
            )

    def _problems_of_start(self):
        """Yield a sentence for each option that does not go with a model to start from, or needs
        one."""
        if self.start_from is None:
            if self.new_tokens:
                yield "--new-tokens needs --start-from, the run of other tokens."
            return
        for name in OF_START:
            if self.is_given(name):
                yield f"{shown(name)}: --start-from brings its own; leave it out."
        if self.tokenizer is not None:
            yield "--start-from brings its tokenizer; leave --tokenizer out."
        for name in ("tokens", "vocab_size"):
            if self.is_given(name) and not self.new_tokens:
                yield (
                    f"{shown(name)}: --start-from brings its tokens; add --new-tokens true to "
                    "learn others, or leave it out."
                )
