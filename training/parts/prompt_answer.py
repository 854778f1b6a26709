"""A language model that is tuned to answer, on prompts and answers of the user's."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import numpy as np
from rich.table import Table

from seqkeras.data.batches import Sequences
from seqkeras.data.dialogues import MESSAGES, read_dialogues
from seqkeras.metrics import chrf, exact_match, rouge
from seqkeras.models.limits import most_tokens
from seqkeras.runs import RunError
from seqkeras.serving.text import Turns
from seqkeras.tokenizers import special_ids
from seqkeras.training.answering.generate import Generate
from seqkeras.training.console import console
from seqkeras.training.parts.splitting import split
from seqkeras.training.starting import read_start
from seqkeras.training.task import Modelling, Reading, Scoring
from seqkeras.training.wording import counted

if TYPE_CHECKING:
    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer
    from seqkeras.training.starting import Start

NO_TARGET = -1
MOST_TOKENS = 512  # of a prompt and its answer, for a model without positions


class Example(NamedTuple):
    """A prompt as the pipeline takes it, a text or {"messages": [...]}, and its answer."""

    text: str | dict
    target: str


class PromptAnswerReading(Reading):
    """A language model is tuned to answer prompts."""

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        options = self.options
        train = self._examples(options.file)
        if options.validation is not None:
            validation = self._examples(options.validation)
        else:
            train, validation = split(train, options)
        train, validation = self._fitting(train), self._fitting(validation)
        if not (train and validation):
            raise RunError(
                f"{options.file}: {counted(len(train), 'examples are', 'example is')} left for "
                f"training and {len(validation):,} for validation; each needs one at least."
            )
        console.print(
            f"{options.task}: {len(train):,} training and {len(validation):,} validation examples"
        )
        return train, validation

    def _examples(self, path):
        names = self.options.prompt_column, self.options.answer_column
        return [
            Example(_as_input(turns), answer) for _, turns, answer in read_dialogues(path, names)
        ]

    def examples_of(
        self, paths: Sequence[Path | str], settings: Mapping[str, Any]
    ) -> Sequence[Any]:
        return [example for path in paths for example in self._examples(path)]

    def _fitting(self, examples):
        """Return the examples within the limit; a line says how many are left out."""
        most = self._max_length()
        fitting = [example for example in examples if len(self._prompt_and_answer(example)) <= most]
        if len(fitting) < len(examples):
            limit = "--max-length"
            if self.options.max_length is None and most == self._positions():
                limit = f"all that {self.options.start_from} reads"
            console.print(
                f"  {len(examples) - len(fitting):,} of {len(examples):,} examples have more than "
                f"{most} tokens, {limit}, and are left out"
            )
        return fitting

    def _prompt_and_answer(self, example):
        tokenizer = self.start.tokenizer
        prompt = self._turns().prompt(example.text, "prompt")
        return [*tokenizer.encode(prompt), *tokenizer.encode(example.target), self._end_id()]

    @functools.cached_property
    def start(self) -> Start:
        """The `Start` that training begins from."""
        return read_start(self.options.start_from, self.options.dropout, self.options.mask)

    def _turns(self):
        options = self.options
        turns = Turns(**self.start.settings.get("turns", {}))
        texts = {
            "user": options.user,
            "assistant": options.assistant,
            "system": options.system,
            "end": options.turn_end,
        }
        present = {name: text for name, text in texts.items() if text is not None}
        return dataclasses.replace(turns, **present)

    def _positions(self):
        """Return the most tokens that the start model reads; None: as many as there are."""
        return most_tokens(self.start.model)

    def _max_length(self):
        has = self._positions()
        max_length = self.options.max_length
        if max_length is not None and has is not None and max_length > has:
            raise RunError(
                f"{self.options.start_from}: has {has} positions, fewer than --max-length "
                f"{max_length}."
            )
        return max_length or has or MOST_TOKENS

    def _end_id(self):
        start = self.start
        return start.decoding.get("end_id", special_ids(start.tokenizer).end_id)

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        return {"text": self.start.tokenizer}

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        yield "inputs", "text", [text for example in examples for text in _contents(example.text)]
        yield "targets", "text", [example.target for example in examples]

    @property
    def way_out_of_unknown(self) -> str:
        return (
            f"Leave such answers out, or name by --start-from another model than "
            f"{self.options.start_from}: one of byte pairs knows every text, one of characters "
            "those of its own texts (language-model, --tokens)."
        )

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        length = self._max_length()
        return {
            "pipeline": "Generate",
            "limits": {"source_length": length, "target_length": length},
            "decoding": self.start.decoding,
            "settings": {"turns": dataclasses.asdict(self._turns())},
        }


class PromptAnswerModelling(Modelling):
    """Prompts with answers to a language model, by the loss of the answers alone."""

    def arrays(self, examples: Sequence[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        answerer, tokenizer = Generate(run), run.tokenizers["text"]
        rows, targets, prefix_lengths = [], [], []
        for example in examples:
            prompt = answerer.token_ids(example.text)
            answer = [*tokenizer.encode(example.target), answerer.end_id]
            rows.append([*prompt, *answer[:-1]])
            prefix_lengths.append(len(prompt))
            targets.append([NO_TARGET] * (len(prompt) - 1) + answer)
        token_ids = Sequences(rows)
        inputs = {"token_ids": token_ids}
        if getattr(self.reading.start.model, "reads_prefix", False):
            inputs["prefix_lengths"] = np.array(prefix_lengths)
        return inputs, Sequences(targets, padding=NO_TARGET), token_ids.lengths

    def model(self, run: RunFiles) -> keras.Model:
        return self.reading.start.new_model()

    def loss(self) -> Any:
        return keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=NO_TARGET, reduction="mean_with_sample_weight"
        )


class PromptAnswerScoring(Scoring):
    """ROUGE, chrF and exact match of answers."""

    def sample(self, example: Any, answer: Any) -> dict[str, str]:
        sample = super().sample(example, answer)
        if isinstance(example.text, dict):
            turns = example.text[MESSAGES]
            sample["input"] = " | ".join(f"{turn['role']}: {turn['content']}" for turn in turns)
        return sample

    def validation_scores(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, float]:
        texts, targets = _both(examples, answers)
        scores = rouge(texts, targets)
        return {
            "ROUGE-L": scores["rougeL"],
            "ROUGE-1": scores["rouge1"],
            "ROUGE-2": scores["rouge2"],
            "chrF": chrf(texts, targets),
            "exact match": exact_match(texts, targets),
        }

    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        [(examples, answers)] = answered.values()
        texts, targets = _both(examples, answers)
        return {
            "examples": len(examples),
            "exact_match": exact_match(texts, targets),
            "chrf": chrf(texts, targets),
            **rouge(texts, targets),
        }

    def table(self, scores: Mapping[str, Any]) -> Any:
        table = Table(title=f"of {counted(scores['examples'], 'examples')}")
        table.add_column("")
        table.add_column("", justify="right")
        for name, value in scores.items():
            if isinstance(value, float):
                table.add_row(name.replace("_", " "), f"{value:.2%}")
        return table

    def summary(self, scores: Mapping[str, Any]) -> str:
        return f"ROUGE-L is {scores['rougeL']:.2%}, exact match {scores['exact_match']:.2%}"


def _as_input(turns):
    """Return turns as the pipeline takes them: one of the user as its text."""
    if len(turns) == 1:
        return turns[0][1]
    return {MESSAGES: [{"role": role, "content": content} for role, content in turns]}


def _contents(text):
    """Return what is said in the turns of an input."""
    return [text] if isinstance(text, str) else [turn["content"] for turn in text[MESSAGES]]


def _both(examples, answers):
    """Return the answers' texts and the targets, without white space around them."""
    return [a.text.strip() for a in answers], [e.target.strip() for e in examples]
