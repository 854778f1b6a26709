"""Generate the continuation of a text by a language model."""

import dataclasses
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

import numpy as np

from ..checks import require_count
from ..decoding import (
    CHUNK,
    FromLogits,
    MostProbableAllowed,
    Prefix,
    Prompts,
    Sample,
    Search,
    most_probable,
    results_of,
)
from ..manifest import MANIFEST, BundleError, Manifest
from ..opening import Runtime
from ..results import Generation
from ..session import LanguageModel
from ..text import Turns, pad
from .attention import AttentionGraph
from .batching import TOKEN_BUDGET, in_groups
from .constraints import Constraints, constraint_of, require_constraint
from .inputs import named_inputs, one_or_all, open_tokenizer
from .jobs import Ahead, Job, answered, require_memory
from .model import Packing
from .options import Options, complete, processors_of
from .pieces import Detokenizer, Growing, Pieces, cut
from .pipeline import Pipeline
from .prompts import Prompt, PromptReader
from .translate import require_vocabulary


@dataclass(frozen=True)
class Settings:
    """See `serving.pipelines`."""

    start: bool = False
    prefix: bool = False
    turns: Turns | None = None


@dataclass(frozen=True)
class _FullText:
    """A prompt and its continuation."""

    prompt_ids: list
    generated_ids: list
    tokenizer: Any

    @property
    def token_ids(self):
        return [*self.prompt_ids, *self.generated_ids]

    def __len__(self):
        return len(self.prompt_ids) + len(self.generated_ids)

    def tokens(self):
        return list(map(self.tokenizer.token_of, self.token_ids))


def _arrays(rows):
    token_ids, _ = pad([row.token_ids for row in rows])
    prefix_lengths = np.array([len(row.prompt_ids) for row in rows], dtype=np.int64)
    return {"token_ids": token_ids, "prefix_lengths": prefix_lengths}


WHOLE_TEXTS = Packing(
    _arrays,
    frozenset({"token_ids"}),
    frozenset({"prefix_lengths"}),
    labels=lambda row: {"token_ids": row.tokens()},
)


class Generate(Pipeline):
    """The continuation of a text.

        prompt -> tokens -> decoder steps, each token chosen or drawn -> tokens -> text

    Prompts of a batch are read together up to the length of the shortest; then the longer ones read
    their other tokens while the others generate. So a cache holds no padding, and an answer does
    not depend on other prompts. A model that reads a prompt in both directions, as a prefix, reads
    it whole: then only prompts of one length share a batch.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`, how its graph is run.

    Raises:
        BundleError: if the graph, the tokenizer or the settings are not what the pipeline needs.

    Reference: beams: Sutskever et al. 2014, section 3.2, https://arxiv.org/abs/1409.3215; top-k:
    Fan et al. 2018, section 5.4, https://arxiv.org/abs/1805.04833; top-p: Holtzman et al. 2020,
    section 3.1, https://arxiv.org/abs/1904.09751; regex: Willard and Louf 2023, section 3,
    https://arxiv.org/abs/2307.09702

    Example:
        >>> from seqkeras.serving import load
        >>> generate = load("bundles/stories", threads=1)
        >>> choices = [" may be small", " is said"]
        >>> generate("A model", choices=choices).text in choices
        True
    """

    roles = LanguageModel.roles

    def __init__(self, folder: Path, manifest: Manifest, runtime: Runtime | None = None):
        self.manifest = manifest
        self._graphs = LanguageModel(folder, manifest, runtime)
        self._tokenizer = open_tokenizer(folder, manifest, "text")
        self.shares_steps, self.memory = self._graphs.shares_steps, self._graphs.memory
        require_vocabulary(folder, manifest, self._tokenizer, "text", self._graphs.vocab_size)
        self._settings, problems = manifest.parse_settings(Settings)
        if problems:
            raise BundleError(*problems, where=folder, subject=MANIFEST)
        self._reader = PromptReader(manifest, self._tokenizer, self._settings)
        self._attention = AttentionGraph(folder, manifest, runtime, WHOLE_TEXTS)
        size = self._graphs.vocab_size
        self._constraints = Constraints(self._tokenizer, manifest.decoding.end_id, size)
        require_constraint(folder, manifest, self._constraints)

    @overload
    def __call__(self, prompts: str | dict, *args: Any, **options: Any) -> Generation: ...

    @overload
    def __call__(self, prompts: list, *args: Any, **options: Any) -> list[Generation]: ...

    def __call__(
        self, prompts: str | dict | list, token_budget: int = TOKEN_BUDGET, **options: Any
    ) -> Generation | list[Generation]:
        """Answer a prompt, or each prompt of a list.

        Args:
            prompts: a string, which may be empty, or a list of strings. Where the manifest's
                settings have `turns`, a string is what the user says, and a conversation is
                {"messages": [{"role": "user", "content": ...}, ...]}.
            token_budget: the most tokens of a batch, counted for every beam or sample. Samples of a
                prompt may be in several batches.
            options: the fields of `serving.pipelines.options.Options`: max_new_tokens,
                min_new_tokens, num_beams, n_best, length_penalty, early_stopping, sample,
                temperature, top_k, top_p, seed, repetition_penalty, banned_tokens, forced_tokens,
                stop, regex, choices, echo, truncate, attention.

        Returns:
            A `Generation` for a string; for a list, a list of them, in its order.

        Raises:
            TypeError: if there is no such option.
            ValueError: if a prompt or an option is refused; nothing is answered then.
            NoFiniteNumber: a BundleError, if the model gives NaN or infinity for an input.
        """
        chosen = self._options(options)
        require_count("Generate: token_budget", token_budget)
        texts, names = named_inputs(prompts, "Generate: prompt")
        rows = [self._row(text, name, chosen) for text, name in zip(texts, names)]
        shares = [row.shares(token_budget) for row in rows]
        rows = [row for share in shares for row in share]
        ahead = Ahead(
            [row.work(chosen.num_beams) for row in rows],
            [len(row.token_ids) for row in rows],
            [row.size(chosen.num_beams) for row in rows],
            self.memory,
            lambda first, other: self._may_share(rows[first], rows[other]),
        )
        generations = answered(
            ahead,
            lambda places, size: self._job([rows[index] for index in places], places, size, chosen),
            self.step,
            token_budget,
            self.memory,
            self.shares_steps,
        )
        answers = [_joined(shares_of_text) for shares_of_text in in_groups(generations, shares)]
        return one_or_all(prompts, answers, "Generate: prompt")

    def stream(self, prompt: str | dict, **options: Any) -> Generator[str, None, Generation]:
        """Return an iterator over the pieces of the answer, each as soon as it is final.

        Joined, they are the text of `__call__` with one beam. `yield from` returns its answer.

        Raises:
            TypeError: if there is no such option.
            ValueError: if the prompt or an option is refused, or an option asks for several
                answers.
            BundleError: during iteration, if the graph gives no finite log-probability.
        """
        [job] = self.jobs([prompt], streams=True, **options)
        return job.streamed(self.step)

    def encode(
        self,
        prompt: Any,
        name: str = "Generate: prompt",
        max_new_tokens: int = 1,
        truncate: bool = False,
    ) -> list[int]:
        """Return the ids of a prompt.

        Raises:
            ValueError: beginning with `name`, if the prompt leaves no room for `max_new_tokens`.
        """
        text = self._reader.text(prompt, name)
        return self._reader.read(text, name, max_new_tokens, truncate)

    def _options(self, options):
        """Return `Options`, complete and checked."""
        known = [field.name for field in dataclasses.fields(Options)]
        for name in options:
            if name not in known:
                raise TypeError(f"Generate: unknown option {name}; known: {', '.join(known)}.")
        decoding, size = self.manifest.decoding, self._graphs.vocab_size
        options = complete(Options(**options), decoding, size, self._tokenizer)
        self._attention.require("Generate", options.attention, words=False)
        if self._automaton(options) is not None:
            options.require_no_other_rule()
        return options

    def _automaton(self, options):
        """Return the automaton of the continuation, None if any text is allowed."""
        regex, choices = options.regex, options.choices
        if regex is None and choices is None:
            regex = self.manifest.decoding.regex
        return self._constraints.automaton("Generate", regex, choices)

    def _row(self, prompt, name, options):
        text, new = self._reader.text(prompt, name), options.max_new_tokens
        least = max(new or 1, options.min_new_tokens)
        token_ids = self._reader.read(text, name, least, options.truncate)
        room = new or self.manifest.limits.target_length - len(token_ids)
        last = max(options.forced_tokens, default=0)
        if last >= room:
            raise ValueError(
                f"{name} leaves room for {room} tokens; forced_tokens has one at {last}."
            )
        is_first, automaton = False, self._automaton(options)
        if automaton is not None:
            is_first = not Detokenizer(self._tokenizer).decode(token_ids)
            constraint_of(name, automaton, [is_first], [room])  # refuses texts that do not fit
        count = options.n_best if options.sample else 1
        row = Prompt(text, token_ids, room, is_first, range(count))
        require_memory(row.size(options.num_beams), self.memory, name)
        return row

    @property
    def step(self) -> Callable:
        """The step of `jobs`; see `serving.decoding`."""
        return self._graphs.step

    def jobs(self, prompts: list, streams: bool = False, **options: Any) -> list[Job]:
        """Return `Job`s that answer prompts, those of one length together.

        Args:
            prompts: a list of prompts, as a call takes them.
            streams: whether the answers are streams.
            options: the options of a call; where the answers are streams, those of `stream`.

        Raises:
            TypeError, ValueError: as a call; an input has no number in the message.
        """
        chosen = self._stream_options(options) if streams else self._options(options)
        rows = [self._row(prompt, "Generate: prompt", chosen) for prompt in prompts]
        lengths = [len(row.token_ids) for row in rows]
        ahead = Ahead(
            lengths,
            lengths,
            [row.size(chosen.num_beams) for row in rows],
            self.memory,
            lambda first, other: lengths[first] == lengths[other],
        )
        jobs = []
        while ahead:
            places, size = ahead.take(TOKEN_BUDGET)
            jobs.append(self._job([rows[index] for index in places], places, size, chosen, streams))
        return jobs

    def _may_share(self, first, row):
        """Return whether a job may answer two rows, the first with the shorter prompt.

        They differ in length by fewer tokens than are generated: otherwise the steps that read the
        longer prompt, one for each token, cost more than steps of its own. For a model that reads a
        prefix, they have one length.
        """
        most = 1 if self._settings.prefix else first.room
        longer = abs(len(row.token_ids) - len(first.token_ids))
        return longer < most and len(row.samples) == len(first.samples)

    def _stream_options(self, options):
        """Return `Options` of a stream, complete and checked."""
        if options.get("num_beams") is None:
            options["num_beams"] = 1
        chosen = self._options(options)
        if chosen.attention is not False:
            raise ValueError("Generate: a stream gives no attention; leave the option out.")
        for name in ("num_beams", "n_best"):
            if getattr(chosen, name) > 1:
                raise ValueError(
                    f"Generate: a stream needs {name}=1; received {getattr(chosen, name)}."
                )
        return chosen

    def _job(self, rows, places, size, options, streams=False):
        """Return the `Job` that answers rows with as many samples."""
        search, common, begin = self._search(rows, options)

        def answers(numbers):
            hypotheses = search.results.finished()
            count = len(rows[0].samples)
            return [
                self._answer(
                    [
                        hypothesis
                        for source in range(count * number, count * (number + 1))
                        for hypothesis in hypotheses[source]
                    ],
                    rows[number],
                    len(rows[number].token_ids) - common,
                    options,
                )
                for number in numbers
            ]

        job = Job(
            places,
            search,
            begin,
            answers,
            "Generate: prompt",
            size,
            common,
            max(row.work(options.num_beams) for row in rows) // len(rows[0].samples),
            len(rows[0].samples),
        )
        if not streams:
            return job
        texts = [Detokenizer(self._tokenizer, row.token_ids) for row in rows]
        pieces = [Pieces(text, options.stop) for text in texts]
        before = [row.text if options.echo else "" for row in rows]
        return dataclasses.replace(job, pieces=pieces, before=before)

    def _results(self, rows, options, common):
        """Return the results of a search that begins behind `common` tokens of the prompts."""
        rows = [row for row in rows for _ in row.samples]
        prompts = Prompts([row.token_ids[common:] for row in rows])
        max_lengths = prompts.lengths + np.array([row.room for row in rows])
        return results_of(
            self.manifest.decoding.end_id,
            max_lengths,
            prompts,
            num_beams=options.num_beams,
            n_best=options.n_best,
            length_penalty=options.length_penalty,
            early_stopping=options.early_stopping,
            stops=self._stops(rows, options.stop) if options.stop else None,
        )

    def _stops(self, rows, stop):
        """Return a function that tells whether a source's generated text contains a `stop`."""
        texts = [Growing(Detokenizer(self._tokenizer, row.token_ids)) for row in rows]
        return lambda source, token_ids: cut(texts[source].read(token_ids), stop)[1]

    def _search(self, rows, options):
        """Return the `Search` for rows, how many tokens of each prompt are read by its first step
        and before, and a function that yields the states before it; see `Job`."""
        common = min(len(row.token_ids) for row in rows)
        results = self._results(rows, options, common)
        of_row = np.repeat(np.arange(len(rows)), [len(row.samples) for row in rows])
        start = np.array([row.token_ids[:common] for row in rows])  # (B, T)
        choose = self._choose(rows, options, results.prompts, start[of_row])
        most = common + int(results.max_lengths.max())
        if self._settings.prefix:
            before = 0
        elif len(of_row) > len(rows):
            before = common - 1  # all samples of a prompt continue from the same state
        else:
            before = (common - 1) // CHUNK * CHUNK if self.shares_steps else 0

        def begin(inputs):
            read = start[inputs, :before]
            state = self._graphs.begin(len(read), most)
            yield 0, state
            for first in range(0, before, CHUNK):
                part = read[:, first : first + CHUNK]
                state = self._graphs.read(part, state)
                yield part.size, state

        search = Search(results, start[of_row, np.newaxis, before:], choose, of_row[:, np.newaxis])
        return search, common, begin

    def _choose(self, rows, options, prompts, start):
        """Return what chooses the candidates of a search; None if the graph does."""
        processors = processors_of(options, self.manifest.decoding.end_id)
        constraint = constraint_of(
            "Generate",
            self._automaton(options),
            [row.is_first for row in rows for _ in row.samples],
            [row.room for row in rows for _ in row.samples],
        )
        if constraint and options.num_beams == 1 and not (processors or options.sample):
            return MostProbableAllowed(constraint, prompts)
        if not (processors or options.sample or constraint):
            return None
        prefix = Prefix(
            token_ids=start[:, np.newaxis],
            sources=np.arange(len(start)),
            generated=-prompts.lengths,
        )
        choose = _sample(rows, options) if options.sample else most_probable
        return FromLogits(prefix, processors, choose, constraint)

    def _answer(self, hypotheses, row, forced, options):
        """Return the `Generation` of hypotheses, which begin with `forced` tokens of the prompt;
        None if there are none."""
        detokenizer = Detokenizer(self._tokenizer, row.token_ids)
        answers = []
        for hypothesis in hypotheses:
            text, stopped = cut(detokenizer.text(hypothesis.token_ids[forced:]), options.stop)
            finish = "stop" if stopped else "end" if hypothesis.ended else "length"
            counts = {
                "num_prompt_tokens": len(row.token_ids),
                "num_new_tokens": len(hypothesis.token_ids) - forced + hypothesis.ended,
            }
            text = row.text * options.echo + text
            answers.append(Generation(text, hypothesis.score, finish, **counts))
        whole = (
            _FullText(row.token_ids, hypothesis.token_ids[forced:], self._tokenizer)
            for hypothesis in hypotheses
        )
        return _joined(self._attention.attach(answers, whole, options.attention))


def _joined(shares):
    """Return one `Generation` of all, the best first; None if there are none."""
    answers = [
        dataclasses.replace(answer, alternatives=())
        for share in shares
        if share is not None
        for answer in (share, *share.alternatives)
    ]
    if not answers:
        return None
    best, *others = answers
    return dataclasses.replace(best, alternatives=tuple(others))


def _sample(rows, options):
    """Return the `Sample` of all samples of the rows, each with its own random generator."""
    uniform = np.zeros((sum(len(row.samples) for row in rows), max(row.room for row in rows)))
    drawn = (numbers for row in rows for numbers in row.uniform(options.seed))
    for row, numbers in zip(uniform, drawn, strict=True):
        row[: len(numbers)] = numbers
    return Sample(uniform)
