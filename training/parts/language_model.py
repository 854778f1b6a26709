"""Plain text to a model of what follows, from files of the user's."""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import numpy as np

from seqkeras.analysis.text_likelihood import TextLikelihood
from seqkeras.data.stored import joined_arrays
from seqkeras.data.texts import TextFile, parts_of, read_text
from seqkeras.data.token_streams import chunks, pieces_read, token_stream
from seqkeras.data.windows import (
    NO_TARGET,
    consecutive_windows,
    mixed_windows,
    random_windows,
    with_orders,
    with_prefixes,
)
from seqkeras.models import GPT, PermutedGPT, RNNLanguageModel
from seqkeras.models.limits import most_tokens
from seqkeras.runs import RunError
from seqkeras.tokenizers import UNK, CharacterTable, WordTable, special_ids
from seqkeras.tokenizers.of_stream import STREAM_TOKENIZERS
from seqkeras.training.carried import CarriedTokens
from seqkeras.training.console import console
from seqkeras.training.first_weights import places_in_both, take_rows, vocabularies
from seqkeras.training.options.positions import POSITION_KINDS
from seqkeras.training.parts.plain_texts import (
    MOST_LEARNED,
    MeasuredScoring,
    perplexity,
    read_texts,
)
from seqkeras.training.parts.vocabularies import learned_from
from seqkeras.training.starting import read_start, tokenizer_of
from seqkeras.training.task import Modelling, Reading

if TYPE_CHECKING:
    from seqkeras.data.batches import Batches
    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer
    from seqkeras.training.starting import Start

PASSAGES = 8  # of the validation text, each with a prompt
MOST_OF_PROMPT = 32  # characters
LINE = re.compile("\n+(?=[^\n])")
SPACE = re.compile(r"\s+(?=\S)")
MORE = 64  # characters behind a prompt that tell where its last token ends
MOST_GENERATED = 512  # tokens of a prompt and what follows, of a model without positions


class Passage(NamedTuple):
    """A part of a validation text: a prompt, and what follows it there.

    Attributes:
        text: the prompt.
        rest: the text up to the next passage.
        is_first: of its file.
        before: the end of a line that was cut, before the prompt of the first passage.
        target: None: many continuations are right.
    """

    text: str
    rest: str
    is_first: bool
    before: str = ""
    target: None = None


class LanguageModelReading(Reading):
    """Plain text to a model of what follows."""

    further: list = []  # the files of --also, the last ones of training

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        texts, held_out = read_texts(self.options, self.options.task)
        prompt = self._most_of_prompt()
        self.further = [*map(TextFile, self.options.also)]
        is_cut = self.options.validation is None
        return texts + self.further, [
            passage
            for index, text in enumerate(held_out)
            for passage in _passages(text, prompt, is_cut and index == 0)
        ]

    def examples_of(
        self, paths: Sequence[Path | str], settings: Mapping[str, Any]
    ) -> Sequence[Any]:
        prompt = self._most_of_prompt()
        passages = [passage for path in paths for passage in _passages(read_text(path), prompt)]
        return self.with_tokenizers(passages, self.known_tokenizers)

    def with_tokenizers(
        self, validation: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Sequence[Any]:
        most = self._most_of_prompt()
        return [_with_whole_tokens(passage, most, tokenizers["text"]) for passage in validation]

    def _most_of_prompt(self):
        """Return how many characters a prompt has, of which many tokens may follow."""
        return min(MOST_OF_PROMPT, max(self.options.context // 2, 1))

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        return {"text": self._tokenizer(examples)}

    def _tokenizer(self, examples):
        options = self.options
        if options.start_from is not None and not options.new_tokens:
            return self.start.tokenizer
        if options.tokenizer is not None:
            return tokenizer_of(options.tokenizer)
        with learned_from(" and ".join(options.files)):
            return STREAM_TOKENIZERS[options.tokens](self._sample(examples), options.vocab_size)

    def _sample(self, texts):
        """Return parts of training texts, of which tokens are learned: all of them; for subwords,
        whose learning takes long, evenly spread ones of a long text."""
        cut = chunks if self.options.tokens == "byte-pairs" else parts_of
        parts = itertools.chain.from_iterable(map(cut, texts))
        every = math.ceil(sum(map(len, texts)) / MOST_LEARNED)
        if every == 1 or self.options.tokens in ("characters", "words"):
            return parts
        console.print(f"  the vocabulary is learned on {1 / every:.1%} of the text")
        return itertools.islice(parts, 0, None, every)

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        texts = examples if examples and isinstance(examples[0], TextFile) else _texts(examples)
        use = "inputs and targets" if self._learns_words() else "targets"
        for text in texts:
            yield use, "text", pieces_read(text, tokenizers["text"])

    def _learns_words(self):
        """Return whether the unknown word is a word of the model, as in WikiText: words are
        learned, the most frequent ones."""
        options = self.options
        is_new = options.start_from is None or options.new_tokens
        return options.tokens == "words" and options.tokenizer is None and is_new

    @property
    def way_out_of_unknown(self) -> str:
        if self.options.tokenizer is not None:
            return "Choose another --tokenizer, or leave it out, and tokens are learned."
        return "Add --new-tokens true to learn tokens anew; the weights of known ones are taken."

    @functools.cached_property
    def start(self) -> Start:
        """The `Start` that training begins from."""
        start = read_start(self.options.start_from, self.options.dropout, self.options.mask)
        if self.options.windows == "consecutive" and isinstance(start.model, GPT):
            raise RunError(
                f"{self.options.start_from}: a GPT carries no state on; leave --windows "
                "consecutive out."
            )
        return start

    def known_places(self, tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray]:
        """Return where the tokens stand that the start model knows, here and there."""
        both = ({"text": tokenizer}, {"text": self.start.tokenizer})
        return places_in_both(*(vocabularies(known, {})["text"] for known in both))

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        tokenizer, length = tokenizers["text"], self.length()
        if self.options.new_tokens:
            known, _ = self.known_places(tokenizer)
            console.print(
                f"  {len(known):,} of {len(tokenizer):,} tokens are known in "
                f"{self.options.start_from}"
            )
        return {
            "pipeline": "Generate",
            "limits": {"source_length": length, "target_length": length},
            "decoding": self._ids(tokenizer),
        }

    def length(self) -> int:
        """Return the most tokens of a prompt and what follows."""
        if self.options.start_from is not None:
            return most_tokens(self.start.model) or MOST_GENERATED
        is_limited = self.options.model == "gpt" and self.positions() == "learned"
        return max(self.options.context, 2) if is_limited else MOST_GENERATED

    def positions(self) -> str:
        """Return the kind of positions of a new GPT."""
        return POSITION_KINDS[self.options.position_kind or "learned"]

    def _ids(self, tokenizer):
        """Return what begins a text and what ends it: a text of characters begins behind a line's
        end."""
        goes_on = self.options.start_from is not None and not self.options.new_tokens
        if goes_on and self.start.decoding:
            return self.start.decoding
        end_id = special_ids(tokenizer).end_id
        if end_id is None:
            raise RunError(f"{self.options.tokenizer}: has no token that ends a text.")
        is_line = isinstance(tokenizer, CharacterTable) and "\n" in tokenizer.characters
        return {"start_id": tokenizer.id_of("\n") if is_line else end_id, "end_id": end_id}


class LanguageModelModelling(Modelling):
    """Streams of tokens to a model of the next one."""

    likelihood = None  # of the validation text

    def batches(self, examples: Sequence[Any], run: RunFiles) -> Batches:
        options = self.options
        count = len(examples) - len(self.reading.further)
        corpora = [examples[:count], *([text] for text in self.reading.further)]
        streams = [self._stream(texts, run) for texts in corpora]
        size = options.context, options.batch_size
        try:
            if self.carries_state():
                windows = consecutive_windows(joined_arrays(streams), *size)
            elif self.reading.further:
                windows = mixed_windows(streams, *size, options.corpora.mixture(), options.seed)
            else:
                windows = random_windows(streams[0], *size, options.seed)
        except ValueError as error:
            sizes = " and ".join(f"{len(stream):,}" for stream in streams)
            raise RunError(
                f"{' and '.join((*options.files, *options.also))}: {sizes} tokens are left for "
                f"training, too few for {options.batch_size} windows of --context "
                f"{options.context}; choose a smaller --context or --batch-size."
            ) from error
        mask = self._mask()
        if mask == "prefix":
            windows = with_prefixes(windows, options.seed)
        elif mask == "permutation":
            windows = with_orders(windows, options.seed)
        kind = "rows that go on from batch to batch" if self.carries_state() else "random windows"
        console.print(
            f"  {sum(map(len, streams)):,} tokens of {len(run.tokenizers['text']):,}; {kind} of "
            f"{options.context}{', in random orders' if mask == 'permutation' else ''}"
        )
        return windows

    def _mask(self):
        """Return what the tokens of a window see, an option of --mask."""
        if self.options.start_from is None:
            return self.options.mask or "causal"
        model = self.reading.start.model
        if isinstance(model, PermutedGPT):
            return "permutation"
        return "prefix" if getattr(model, "reads_prefix", False) else "causal"

    def carries_state(self) -> tuple[str, str] | None:
        if self.options.start_from is not None:
            recurrent = isinstance(self.reading.start.model, RNNLanguageModel)
        else:
            recurrent = self.options.model != "gpt"
        carries = recurrent and self.options.windows != "random"
        return ("--windows consecutive", "--windows random") if carries else None

    def _stream(self, texts, run):
        return token_stream(texts, run.tokenizers["text"], run.record.decoding["end_id"])

    def model(self, run: RunFiles) -> keras.Model:
        if self.options.start_from is None:
            model = self._new_model(len(run.tokenizers["text"]))
        else:
            model = self._started_model(run)
        most = most_tokens(model)
        if most is not None and self.options.context > most:
            raise RunError(
                f"{self.options.start_from}: has {most} positions, fewer than --context "
                f"{self.options.context}."
            )
        if not self.carries_state():
            return model
        carried = CarriedTokens(model, self.options.batch_size)
        carried.build()
        return carried

    def _started_model(self, run):
        start = self.reading.start
        if not self.options.new_tokens:
            return start.new_model()

        def build(run):
            return start.like(len(run.tokenizers["text"]))

        model, known = build(run), {"text": self.reading.known_places(run.tokenizers["text"])}
        take_rows(model, build, run, start.model, known, self.options.start_from)
        return model

    def _new_model(self, vocab_size):
        options = self.options
        dropout = options.dropout or 0.0
        if options.model == "gpt":
            is_permuted = options.mask == "permutation"
            model = (PermutedGPT if is_permuted else GPT)(
                vocab_size,
                options.hidden_dim,
                options.num_layers,
                options.num_heads,
                4 * options.hidden_dim,
                max_length=self.reading.length(),
                dropout=dropout,
                attention_dropout=dropout,
                attention_window=options.attention_window,
                positions=self.reading.positions(),
                mask="causal" if is_permuted else self._mask(),
            )
        else:
            model = RNNLanguageModel(
                vocab_size,
                options.embedding_dim or options.hidden_dim,
                options.hidden_dim,
                options.num_layers,
                cell=options.model,
                dropout=dropout,
                tie_weights=options.tie_weights,
                **_attention(options),
            )
        model.build(None)
        return model

    def loss(self) -> Any:
        if self._mask() != "prefix":
            return keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        return keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=NO_TARGET, reduction="mean_with_sample_weight"
        )

    def _likelihood(self, examples, run):
        """Return the likelihood of the validation text; it is compiled once."""
        if self.likelihood is None or self.likelihood[0] is not examples:
            start_id = run.record.decoding["start_id"]
            tokens = np.append([start_id], self._stream(_texts(examples), run))
            likelihood = TextLikelihood(tokens, self.options.context, self.options.stride)
            self.likelihood = examples, likelihood
        return self.likelihood[1]

    def measure(
        self, model: keras.Model, examples: Sequence[Any], run: RunFiles
    ) -> dict[str, float]:
        """Return the scores of the whole validation text, behind the token that begins a text."""
        likelihood, texts = self._likelihood(examples, run), _texts(examples)
        tokens, loss = likelihood.tokens[1:], likelihood(model)
        characters = sum(map(len, texts))
        words = sum(len(text.split()) + text.count("\n") for text in texts)
        total = loss * len(tokens)
        scores = {
            "validation_loss": loss,
            "perplexity": perplexity(loss),
            "perplexity_per_word": perplexity(total / words),
            "bits_per_character": total / math.log(2) / characters,
        }
        if isinstance(run.tokenizers["text"], CharacterTable | WordTable):
            scores["unknown_tokens"] = float((tokens == UNK).mean())
        return scores


class LanguageModelScoring(MeasuredScoring):
    """Measures of the whole text, and what goes on from prompts."""

    measured = "of the whole text"
    lower_is_better = ("perplexity", "perplexity_per_word", "bits_per_character")

    def sample(self, passage: Any, answer: Any) -> dict[str, str]:
        return {"prompt": passage.text, "goes on": answer.text}

    def summary(self, scores: Mapping[str, Any]) -> str:
        return (
            f"validation loss is {scores['validation_loss']:.4f}, perplexity "
            f"{scores['perplexity']:,.2f}, {scores['bits_per_character']:.3f} bits per character"
        )


def _attention(options):
    """Return the options of a recurrent model's attention to its last states."""
    if options.attention is None:
        return {}
    attention = {"attention": options.attention.replace("-", "_")}
    window = options.attention_window
    return attention if window is None else {**attention, "attention_window": window}


def _passages(text, most, is_cut=False):
    """Yield the text as passages, their prompts of so many characters at most; a line begins each
    where there are lines enough, else a word.

    Args:
        is_cut: whether the text may begin within a line.
    """
    size = math.ceil(len(text) / PASSAGES)
    first = _beginning(text, 0, size + 1) if is_cut else 0
    starts = [first]
    for index in range(size, len(text), size):
        start = _beginning(text, index, index + size + 1)
        if starts[-1] < start < len(text):
            starts.append(start)
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        whole, is_first = text[start:end], start == first
        yield Passage(whole[:most], whole[most:], is_first, text[:first] if is_first else "")


def _beginning(text, start, end):
    """Return where a line begins in a part of a text; else a word; else its start."""
    gap = LINE.search(text, start, end) or SPACE.search(text, start, end)
    return gap.end() if gap else start


def _with_whole_tokens(passage, most, tokenizer):
    """Return the passage with the longest prompt of so many characters that ends with a word and a
    token of the text; else with a token."""
    whole = passage.text + passage.rest
    if len(whole) <= most:
        return passage
    head = whole[: most + MORE]
    token_ids = tokenizer.encode(head)
    words = [match.start() for match in SPACE.finditer(head)]
    nearest = sorted(range(1, len(head)), key=lambda cut: (cut > most, abs(cut - most)))
    for cut in (*(word for word in reversed(words) if 0 < word <= most), *nearest):
        read = tokenizer.encode(head[:cut])
        if read and read == token_ids[: len(read)]:
            return passage._replace(text=whole[:cut], rest=whole[cut:])
    return passage


def _texts(passages):
    """Return the validation texts, which passages are cut from."""
    texts = []
    for passage in passages:
        if passage.is_first:
            texts.append("")
        texts[-1] += passage.before + passage.text + passage.rest
    return texts
