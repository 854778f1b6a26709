"""Prompts of a language model: their token ids, their samples, and what these take."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..decoding import Size
from ..manifest import Manifest, OverLimit
from ..text import CharacterTable
from .inputs import require_length, require_text


@dataclass(frozen=True)
class Prompt:
    """A prompt, encoded for generation.

    Attributes:
        text: the text that is continued: the given text, or with turns the conversation.
        token_ids: its ids.
        room: how many tokens may follow.
        is_first: whether the prompt has no text, so that the generated text is the first.
        samples: indices of the samples to draw; one index without sampling.
    """

    text: str
    token_ids: list
    room: int
    is_first: bool
    samples: range = range(1)

    def shares(self, token_budget: int) -> "list[Prompt]":
        """Return it several times, each with as many of its samples as fit in one batch."""
        most = max(token_budget // (len(self.token_ids) + self.room), 1)
        return [
            dataclasses.replace(self, samples=self.samples[first : first + most])
            for first in self.samples[::most]
        ]

    def work(self, num_beams: int) -> int:
        """Return the most tokens of all beams or samples."""
        return num_beams * len(self.samples) * (len(self.token_ids) + self.room)

    def size(self, num_beams: int) -> Size:
        """Return the `Size` of its state."""
        count = len(self.samples)
        return Size(num_beams * count, len(self.token_ids) + self.room, count)

    def uniform(self, seed: int | None) -> Iterator[np.ndarray]:
        """Yield for each sample a number between 0 and 1 for each new token, by a random generator
        of its own."""
        for number in self.samples:
            key = None
            if seed is not None:  # depends on the prompt, not on other prompts
                key = [seed, number, len(self.token_ids), *self.token_ids]
            yield np.random.default_rng(key).random(self.room)


class PromptReader:
    """Texts to prompts, which leave room for what follows.

    Args:
        manifest: the `Manifest` of the bundle.
        tokenizer: the tokenizer "text".
        settings: what says whether each prompt begins with the start token (`start`), and how a
            conversation is written (`turns`; None: texts are continued as they are).
    """

    def __init__(self, manifest: Manifest, tokenizer: Any, settings: Any):
        self._limits, self._decoding = manifest.limits, manifest.decoding
        self._tokenizer, self._settings = tokenizer, settings

    def text(self, prompt: Any, name: str) -> Any:
        """Return the text that is continued: with turns, the conversation."""
        turns = self._settings.turns
        return prompt if turns is None else turns.prompt(prompt, name)

    def read(self, text: Any, name: str, max_new_tokens: int, truncate: bool) -> list[int]:
        """Return the ids of a text that is continued.

        Raises:
            ValueError: beginning with `name`, if the text leaves no room for `max_new_tokens`.
        """
        require_text(text, name, surrogates=isinstance(self._tokenizer, CharacterTable))
        if not truncate:
            require_length(text, self._limits.target_length, name)
        token_ids = self._token_ids(text)
        room = min(self._limits.target_length - max_new_tokens, self._limits.source_length)
        if room < 1:
            raise ValueError(
                "Generate: max_new_tokens and min_new_tokens must be under "
                f"{self._limits.target_length}, the limit of a prompt and what follows; "
                f"received {max_new_tokens}."
            )
        if len(token_ids) <= room:
            return token_ids
        if truncate:
            start = token_ids[:1]
            if room == 1 or start != [self._decoding.start_id]:
                return token_ids[-room:]
            return start + token_ids[1 - room :]
        raise OverLimit(
            f"{name} has {len(token_ids)} tokens; with {max_new_tokens} new ones the limit is "
            f"{room}",
            ways="shorten it, or ask for fewer, or for",
        )

    def _token_ids(self, text):
        """Return the ids of a text to continue: without the <eos> of its template."""
        start_id, end_id = self._decoding.start_id, self._decoding.end_id
        if isinstance(self._tokenizer, CharacterTable):
            token_ids = self._tokenizer.encode(text)
        else:
            encoding = self._tokenizer.analyze(text)
            token_ids = encoding.token_ids
            if token_ids[-1:] == [end_id] and encoding.offsets[-1] is None:
                token_ids = token_ids[:-1]
        if not token_ids or (self._settings.start and token_ids[0] != start_id):
            token_ids = [start_id, *token_ids]
        return token_ids
