"""Translate a text, frames, or a row of a table into a text."""

import dataclasses
import functools
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from ..checks import require_flag, shown
from ..decoding import (
    FromLogits,
    MostProbableAllowed,
    Prefix,
    Prompts,
    Search,
    Size,
    most_probable,
    results_of,
)
from ..manifest import MANIFEST, BundleError, Manifest
from ..opening import Runtime
from ..results import Translation
from ..rows import Rows
from ..session import EncoderDecoder
from ..text import CharacterTable, Encoding, pad
from .arrays import FRAMES, FrameReader, padded, takes_frames
from .batching import TOKEN_BUDGET
from .constraints import Constraints, constraint_of, require_constraint
from .inputs import (
    encoded,
    named_inputs,
    one_or_all,
    open_tokenizer,
    require_length,
    require_token,
    require_words,
    too_long,
)
from .jobs import Ahead, Job, answered, require_memory
from .options import require_beams, require_early_stopping, require_penalty
from .pieces import Detokenizer, Pieces
from .pipeline import Pipeline
from .settings import row_problems

SHORTEST = 16  # tokens that a shorter source counts in the token budget, because of its target


@dataclass(frozen=True)
class Settings:
    """See `serving.pipelines`."""

    rows: Rows | None = None


@dataclass(frozen=True)
class _Asked:
    """The options of a call that its searches have."""

    num_beams: int
    n_best: int
    length_penalty: float
    early_stopping: bool | str
    automaton: Any


class Translate(Pipeline):
    """One text into another, or frames or a row of a table into a text.

        text -> tokens -> encoder -> beam search over decoder steps -> tokens -> text

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`, how its graphs are run.

    Attributes:
        rows: the `serving.rows.Rows` of the settings, or None; each row is then an input.

    Raises:
        BundleError: if the graphs or tokenizers are not what the pipeline needs.

    Reference: beams: Sutskever et al. 2014, section 3.2, https://arxiv.org/abs/1409.3215; length
    penalty: Wu et al. 2016, section 7, equation 14, https://arxiv.org/abs/1609.08144; regex:
    Willard and Louf 2023, section 3, https://arxiv.org/abs/2307.09702

    Example:
        >>> from seqkeras.serving import load
        >>> translate = load("bundles/dates", threads=1)
        >>> translate("de|Samstag, 3. Mai 2014", regex="[a-z]{3}").text.isalpha()
        True
        >>> translate("de|1.5.", attention=True).attention.shape[1]  # its source tokens
        7
    """

    roles = EncoderDecoder.roles
    each_row = True  # of a table is an input

    def __init__(self, folder: Path, manifest: Manifest, runtime: Runtime | None = None):
        self.manifest = manifest
        self._graphs = EncoderDecoder(folder, manifest, runtime)
        settings, problems = manifest.parse_settings(Settings)
        self.rows = settings.rows if settings else None
        if problems := problems or [*row_problems(self.rows)]:
            raise BundleError(*problems, where=folder, subject=MANIFEST)
        self._source: Any  # a FrameReader or a tokenizer
        self.reads_json = takes_frames(manifest, "encoder")
        if self.reads_json:
            self._source = FrameReader.of_graph(folder, manifest, "encoder", self.rows)
        else:
            self._source = open_tokenizer(folder, manifest, "source")
        self._target = open_tokenizer(folder, manifest, "target")
        self.shares_steps, self.memory = self._graphs.shares_steps, self._graphs.memory
        require_vocabulary(folder, manifest, self._target, "target", self._graphs.vocab_size)
        self._detokenizer = Detokenizer(self._target)
        decoding, size = manifest.decoding, self._graphs.vocab_size
        self._constraints = Constraints(self._target, decoding.end_id, size)
        require_constraint(folder, manifest, self._constraints)

    @overload
    def __call__(self, texts: str, *args: Any, **options: Any) -> Translation: ...

    @overload
    def __call__(self, texts: list, *args: Any, **options: Any) -> list[Translation]: ...

    def __call__(
        self,
        texts: str | list[str],
        num_beams: int | None = None,
        n_best: int = 1,
        length_penalty: float | None = None,
        attention: bool | str = False,
        early_stopping: bool | str = "never",
        regex: str | None = None,
        choices: Sequence[str] | None = None,
        truncate: bool = False,
        token_budget: int = TOKEN_BUDGET,
    ) -> Translation | list[Translation]:
        """Answer a text, or each text of a list.

        Args:
            texts: a string; to a model of frames an array (length, features), or a tuple of its
                rows; with `settings.rows` a row, a dictionary of values by column; or a list of
                such.
            num_beams: the number of beams; 1: greedy; None: the manifest's default.
            n_best: number of answers to return for each text, at most `num_beams`.
            length_penalty: alpha of GNMT's length penalty; None: the manifest's default.
            attention: whether to also return attention weights and the tokens of their axes;
                "heads": weights of each head of each layer, if the bundle was exported with
                --attention-heads.
            early_stopping: "never", False or True, see `serving.decoding.search`.
            regex: a regular expression that the whole answer matches (syntax:
                `serving.text.patterns`); None: the manifest's default. "(?s:.*)" is any text.
            choices: a list of allowed answers.
            truncate: cut texts over the limit.
            token_budget: the most tokens of a batch, with padding, counted for every beam.

        Returns:
            A `Translation` for a string; for a list, a list of them, in its order.

        Raises:
            ValueError: if a text or an option is refused; nothing is answered then.
            NoFiniteNumber: a BundleError, if the model gives NaN or infinity for an input.
        """
        asked = self._asked(num_beams, n_best, length_penalty, early_stopping, regex, choices)
        self._require_attention(attention)
        rows = encoded(texts, self._name, self.encode, truncate, token_budget)
        step, shares_steps = self.step, self.shares_steps
        if attention:  # whose weights are as long as the source
            step, shares_steps = functools.partial(step, attention=attention), False
        ahead = self._ahead(rows, named_inputs(texts, self._name)[1], asked)
        answers = answered(
            ahead,
            lambda places, size: self._job([rows[index] for index in places], places, size, asked),
            step,
            token_budget,
            self.memory,
            shares_steps,
        )
        return one_or_all(texts, answers, self._name)

    @property
    def step(self) -> Callable:
        """The step of `jobs`; see `serving.decoding`."""
        return self._graphs.step

    def jobs(
        self,
        texts: list,
        truncate: bool = False,
        attention: bool | str = False,
        streams: bool = False,
        **options: Any,
    ) -> list[Job]:
        """Return `Job`s that answer texts, of which each encodes a batch.

        Args:
            texts: a list of texts, as a call takes them.
            truncate: cut texts over the limit.
            attention: False: a job has no attention weights.
            streams: whether the answers are streams, which are greedy.
            options: the other options of a call.

        Raises:
            ValueError: as a call; an input has no number in the message.
        """
        asked = self._asked(**({"num_beams": 1} if streams else {}), **options)
        self._require_attention(attention)
        require_flag("Translate: truncate", truncate)
        rows = [self.encode(text, self._name, truncate) for text in texts]
        ahead, jobs = self._ahead(rows, [self._name] * len(rows), asked), []
        while ahead:
            places, size = ahead.take(TOKEN_BUDGET)
            jobs.append(self._job([rows[index] for index in places], places, size, asked, streams))
        return jobs

    def _ahead(self, rows, names, asked):
        """Return rows as `Ahead`.

        Raises:
            ValueError: by its name, if a row needs too much memory.
        """
        limit = self.manifest.limits.target_length
        sizes = [Size(asked.num_beams, limit, 1, len(row)) for row in rows]
        for size, name in zip(sizes, names):
            require_memory(size, self.memory, name)
        works = [asked.num_beams * max(len(row), SHORTEST) for row in rows]
        return Ahead(works, [*map(len, rows)], sizes, self.memory)

    def _job(self, rows, places, size, asked, streams=False):
        """Return the `Job` that answers rows."""
        search = self._search(rows, asked)

        def begin(inputs):
            yield self._encoded(rows[inputs])

        def answers(numbers):
            hypotheses = search.results.finished()
            return [self._answer(hypotheses[number], rows[number]) for number in numbers]

        job = Job(
            places,
            search,
            begin,
            answers,
            self._name,
            size,
            size.source_length,
            asked.num_beams * max(size.source_length, SHORTEST),
        )
        if not streams:
            return job
        pieces = [Pieces(self._detokenizer) for _ in rows]
        return dataclasses.replace(job, pieces=pieces, before=[""] * len(rows))

    @property
    def _name(self):
        return f"Translate: {FRAMES if self.reads_json else 'text'}"

    def stream(self, text: str, truncate: bool = False) -> Iterator[str]:
        """Return an iterator over the pieces of the greedy answer, each as soon as it is final.

        Joined, they are the text of the answer with `num_beams=1`.

        Raises:
            ValueError: if the text is refused.
            BundleError: during iteration, if the graphs give no finite log-probability.
        """
        [job] = self.jobs([text], truncate, streams=True)
        return job.streamed(self.step)

    def encode(self, text: Any, name: str = "Translate: text", truncate: bool = False) -> Any:
        """Return the `Encoding` of a text, or an array of frames.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        if self.reads_json:
            return self._source.read(text, name, truncate)
        characters = isinstance(self._source, CharacterTable)
        require_words(text, name, surrogates=characters)
        if self.manifest.text_prefix:
            self._check_prefix(text, name)
        limit = self.manifest.limits.source_length
        if not truncate:
            require_length(text, limit, name)
        encoding = _characters(self._source, text) if characters else self._source.analyze(text)
        require_token(characters or any(encoding.offsets), name)
        if len(encoding) <= limit:
            return encoding
        if not truncate:
            unit = "characters" if characters else "tokens"
            raise too_long(name, len(encoding), limit, unit)
        if characters:
            return _characters(self._source, unicodedata.normalize("NFC", text)[:limit])
        return self._source.analyze(text, max_length=limit, truncate=True)

    def _check_prefix(self, text, name):
        prefix = self.manifest.text_prefix
        value, separator, rest = text.partition(prefix.separator)
        if not separator:
            raise ValueError(
                f"{name} must begin with a {prefix.name} and {prefix.separator!r}"
                f"{self._example()}; received {shown(text)}."
            )
        if value not in prefix.values:
            raise ValueError(
                f"{name} has an unknown {prefix.name} {shown(value)}; "
                f"known: {', '.join(prefix.values)}{self._example()}."
            )
        if not rest.strip():
            raise ValueError(f"{name} has nothing after {value + separator!r}{self._example()}.")

    def _example(self):
        return f"; write e.g. {self.manifest.examples[0]!r}" if self.manifest.examples else ""

    def _asked(
        self,
        num_beams=None,
        n_best=1,
        length_penalty=None,
        early_stopping="never",
        regex=None,
        choices=None,
    ):
        """Return the `_Asked` of a call's options, checked."""
        defaults = self.manifest.decoding
        num_beams = defaults.num_beams if num_beams is None else num_beams
        alpha = defaults.length_penalty if length_penalty is None else length_penalty
        num_beams, n_best = require_beams("Translate", num_beams, n_best, self._graphs.vocab_size)
        require_early_stopping("Translate", early_stopping)
        alpha = require_penalty("Translate", alpha)
        if regex is None and choices is None:
            regex = defaults.regex
        automaton = self._constraints.automaton("Translate", regex, choices)
        asked = _Asked(num_beams, n_best, alpha, early_stopping, automaton)
        self._constraint(asked, 1)  # refuses before any answer
        return asked

    def _constraint(self, asked, num_sources):
        """Return the constraint of so many answers, None if any text is allowed."""
        rooms = num_sources * [self.manifest.limits.target_length]
        return constraint_of("Translate", asked.automaton, num_sources * [True], rooms)

    def _require_attention(self, attention: bool | str) -> None:
        """Raise a ValueError unless the graphs give the requested attention."""
        if attention == "heads":
            if not self._graphs.attends_by_heads:
                raise ValueError(
                    'Translate: attention must be False or True, not "heads"; this bundle was '
                    "exported without --attention-heads."
                )
        elif require_flag("Translate: attention", attention) and not self._graphs.attends:
            raise ValueError("Translate: attention must be False; this model does not attend.")

    def _search(self, rows, asked):
        """Return the `Search` for the answers to rows."""
        defaults, count = self.manifest.decoding, len(rows)
        start = np.full((count, 1), defaults.start_id)
        prompts = Prompts(count * [()])
        limits = np.full(count, self.manifest.limits.target_length)
        results = results_of(
            defaults.end_id,
            limits,
            prompts,
            num_beams=asked.num_beams,
            n_best=asked.n_best,
            length_penalty=asked.length_penalty,
            early_stopping=asked.early_stopping,
        )
        choose, constraint = None, self._constraint(asked, count)
        if constraint and asked.num_beams == 1:
            choose = MostProbableAllowed(constraint, prompts)
        elif constraint:
            prefix = Prefix(start[:, np.newaxis], np.arange(count), np.zeros(count, np.int64))
            choose = FromLogits(prefix, (), most_probable, constraint)
        return Search(results, start, choose)

    def _encoded(self, rows):
        """Return how many tokens rows have, with padding, and the state before the first step."""
        if self.reads_json:
            arrays = padded(FRAMES, rows)
            source, lengths = arrays[FRAMES], arrays["lengths"]
        else:
            source, lengths = pad([row.token_ids for row in rows])
        return lengths.size * source.shape[1], self._graphs.encode(source, lengths)

    def _answer(self, hypotheses, row):
        if not hypotheses:
            return None
        best, *others = (self._translation(hypothesis, row) for hypothesis in hypotheses)
        return Translation(**vars(best) | {"alternatives": tuple(others)})

    def _translation(self, hypothesis, row):
        text = self._detokenizer.text(hypothesis.token_ids)
        if hypothesis.attention_weights is None:
            return Translation(text, hypothesis.score)
        weights = hypothesis.attention_weights[..., : len(row)]  # without padding
        if weights.ndim > 2:  # (T, L, N, S) of each head
            weights = weights.transpose(1, 2, 0, 3)
        return Translation(
            text,
            hypothesis.score,
            attention=weights.copy(),
            source_tokens=() if self.reads_json else tuple(row.tokens),
            target_tokens=tuple(map(self._target.token_of, hypothesis.token_ids)),
        )


def require_vocabulary(folder, manifest, tokenizer, role, vocab_size):
    """Raise a BundleError unless a decoder's vocabulary matches a tokenizer's.

    A decoder may have more ids than a tokenizer of subwords; the start and end ids, and the number
    of beams, must fit the decoder's vocabulary.
    """
    characters = isinstance(tokenizer, CharacterTable)
    if len(tokenizer) > vocab_size or (characters and len(tokenizer) < vocab_size):
        kind, unit = ("table", "characters") if characters else ("tokenizer", "tokens")
        reason = f"the {role} {kind} has {len(tokenizer)} {unit}, the decoder {vocab_size}"
        raise BundleError(reason, where=folder)
    decoding = manifest.decoding
    for name, most in (
        ("start_id", vocab_size - 1),
        ("end_id", vocab_size - 1),
        ("num_beams", vocab_size),
    ):
        if getattr(decoding, name) > most:
            raise BundleError(
                f"decoding.{name} must be at most {most}, by the decoder's vocabulary; received "
                f"{getattr(decoding, name)}",
                where=folder,
                subject=MANIFEST,
            )


def _characters(table, text):
    """Return the `Encoding` of a text as characters, without offsets."""
    composed = unicodedata.normalize("NFC", text)
    nothing = [None] * len(composed)
    return Encoding(
        table.encode(composed),
        [*composed],
        offsets=nothing,
        segment_ids=[0] * len(composed),
        word_ids=nothing,
    )
