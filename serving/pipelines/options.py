"""The options of pipelines that generate."""

import inspect
import numbers
import operator
from dataclasses import dataclass, field, replace

from ..checks import require_count, require_flag, require_number, shown
from ..decoding import (
    BannedTokens,
    ForcedToken,
    MinLength,
    RepetitionPenalty,
    Temperature,
    TopK,
    TopP,
)
from ..manifest.format import MOST_PENALTY

SMALLEST, LARGEST = 1e-15, 1e15  # of a divisor; logits divided by two of these fit float32
MOST_SAMPLES = 10_000  # of a prompt in one call, whose answers are all kept in memory


def require_beams(who, num_beams, n_best, vocab_size):
    """Return the two numbers, checked.

    Raises:
        ValueError: unless they are from 1 to the vocabulary's size, and n_best at most num_beams.
    """
    num_beams = require_count(f"{who}: num_beams", num_beams, most=vocab_size)
    n_best = require_count(f"{who}: n_best", n_best)
    if n_best > num_beams:
        raise ValueError(
            f"{who}: n_best must be at most num_beams; received {n_best} and {num_beams}."
        )
    return num_beams, n_best


def require_penalty(who, alpha):
    """Return alpha of the length penalty as a float.

    Raises:
        ValueError: unless it is a number from -10 to 10.
    """
    return require_number(f"{who}: length_penalty", alpha, -MOST_PENALTY, MOST_PENALTY)


def require_early_stopping(who, value):
    """Raise a ValueError unless `value` is "never", False or True."""
    if not isinstance(value, bool) and not (isinstance(value, str) and value == "never"):
        raise ValueError(
            f'{who}: early_stopping must be "never", False or True; received {shown(value)}.'
        )


@dataclass(frozen=True)
class Options:
    """Options of generation.

    Attributes:
        max_new_tokens: the most generated tokens, with <eos>; None: as many as the bundle's limit
            allows.
        min_new_tokens: the fewest generated tokens, with <eos>.
        num_beams: the number of beams; 1: no beam search; None: the manifest's default.
        n_best: how many answers to return; with `sample`, how many to draw, at most 10,000.
        length_penalty: alpha of GNMT's length penalty; None: the manifest's default.
        early_stopping: early stopping of beam search: "never", False or True, see
            `serving.decoding.search`.
        sample: draw each token, instead of taking the most probable one.
        temperature, top_k, top_p: of the sampled distribution, see `serving.decoding`; a top_k of
            None and a top_p of 1 keep all tokens.
        seed: a whole number: a prompt then has the same answers in each call, alone or among
            others, and equal prompts have equal answers; None: each call draws anew.
        repetition_penalty: above 1: tokens that the text already has become less probable.
        banned_tokens: ids or tokens that are never chosen.
        forced_tokens: position after the prompt, from 0 -> its id or token, which may not be
            banned.
        stop: a string, or strings, that end a text and are not part of it.
        regex: a regular expression that the whole continuation matches, with a space at its start
            if there is one (syntax: `serving.text.patterns`); None: the manifest's default.
            "(?s:.*)" is any text.
        choices: a list of allowed continuations; not together with `regex`.
        echo: answer with the prompt before its continuation.
        truncate: drop the start of a prompt that is too long; needs `max_new_tokens`, the room to
            leave for the answer.
        attention: how much each token, of the prompt and of what follows, attends to each, of a
            bundle that was exported with --attention-heads: True for the mean of the last layer's
            heads, "heads" for each head of each layer.

    Raises:
        ValueError: if a value is refused.
    """

    max_new_tokens: int | None = None
    min_new_tokens: int = 0
    num_beams: int | None = None
    n_best: int = 1
    length_penalty: float | None = None
    early_stopping: object = "never"
    sample: bool = False
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float = 1.0
    seed: int | None = None
    repetition_penalty: float = 1.0
    banned_tokens: tuple = ()
    forced_tokens: dict = field(default_factory=dict)
    stop: tuple = ()
    regex: str | None = None
    choices: tuple | None = None
    echo: bool = False
    truncate: bool = False
    attention: bool | str = False

    def __post_init__(self):
        self._set("stop", (self.stop,) if isinstance(self.stop, str) else self.stop)
        for name, kinds in _CONTAINERS.items():
            if not isinstance(getattr(self, name), kinds):
                expected = " or ".join(kind.__name__ for kind in kinds)
                expected = f"string or {expected}" if name == "stop" else expected
                received = shown(getattr(self, name))
                raise ValueError(f"Generate: {name} must be a {expected}; received {received}.")
        for name in ("max_new_tokens", "top_k"):
            if getattr(self, name) is not None:
                self._set(name, require_count(f"Generate: {name}", getattr(self, name)))
        self._set("min_new_tokens", _at_least_0("min_new_tokens", self.min_new_tokens))
        places = (_at_least_0("a place of forced_tokens", index) for index in self.forced_tokens)
        self._set("forced_tokens", dict(zip(places, self.forced_tokens.values())))
        if self.seed is not None:
            self._set("seed", _at_least_0("seed", self.seed))
        for name in ("temperature", "repetition_penalty"):
            value = require_number(f"Generate: {name}", getattr(self, name), SMALLEST, LARGEST)
            self._set(name, value)
        self._set("top_p", require_number("Generate: top_p", self.top_p, SMALLEST, 1))
        for name in ("sample", "echo", "truncate"):
            require_flag(f"Generate: {name}", getattr(self, name))
        if not all(isinstance(string, str) and string for string in self.stop):
            raise ValueError(
                f"Generate: stop must be strings, none of them empty; received {shown(self.stop)}."
            )
        require_early_stopping("Generate", self.early_stopping)
        self._require_sense()

    def _require_sense(self):
        """Refuse contradictions between options."""
        drawn = {"temperature": 1.0, "top_k": None, "top_p": 1.0, "seed": None}
        for name, default in drawn.items():
            if not self.sample and getattr(self, name) != default:
                raise ValueError(f"Generate: {name} needs sample=True.")
        if self.truncate and self.max_new_tokens is None:
            raise ValueError(
                "Generate: truncate needs max_new_tokens, or a prompt would leave room for one."
            )
        if self.max_new_tokens is not None and self.min_new_tokens > self.max_new_tokens:
            raise ValueError(
                "Generate: min_new_tokens must be at most max_new_tokens; received "
                f"{self.min_new_tokens} and {self.max_new_tokens}."
            )

    def require_no_other_rule(self):
        """Refuse options that can ban all tokens that a constraint allows.

        Raises:
            ValueError: if one of these options is given.
        """
        for name in ("banned_tokens", "forced_tokens", "min_new_tokens", "stop"):
            if getattr(self, name):
                raise ValueError(
                    f"Generate: {name} can not be combined with regex, choices or the manifest's "
                    "regex; express it in the regular expression."
                )

    def _set(self, name, value):
        object.__setattr__(self, name, value)


_CONTAINERS = {
    "stop": (list, tuple),
    "banned_tokens": (list, tuple, range),
    "forced_tokens": (dict,),
}


def complete(options, decoding, vocab_size, tokenizer):
    """Return options with the manifest's defaults, and with tokens as ids.

    Args:
        options: `Options`.
        decoding: the manifest's `DecodingDefaults`.
        vocab_size: vocabulary size of the decoder.
        tokenizer: has `id_of`.

    Raises:
        ValueError: if they do not fit the model or each other.
    """
    num_beams, alpha = options.num_beams, options.length_penalty
    if num_beams is None:
        num_beams = 1 if options.sample or options.stop else decoding.num_beams
    most = MOST_SAMPLES if options.sample else None
    n_best = require_count("Generate: n_best", options.n_best, most)
    num_beams, _ = require_beams("Generate", num_beams, 1 if options.sample else n_best, vocab_size)
    for name in ("sample", "stop"):
        if getattr(options, name) and num_beams > 1:
            raise ValueError(f"Generate: {name} needs num_beams=1; received {num_beams}.")
    banned = tuple(
        _id("banned_tokens", token, vocab_size, tokenizer) for token in options.banned_tokens
    )
    if len(set(banned)) == vocab_size:
        raise ValueError("Generate: banned_tokens must leave one token; received all of them.")
    forced = {
        index: _id("forced_tokens", token, vocab_size, tokenizer)
        for index, token in options.forced_tokens.items()
    }
    for index, token in forced.items():
        if token in banned:
            raise ValueError(
                "Generate: forced_tokens must be none of banned_tokens; received "
                f"{shown(options.forced_tokens[index])} as both."
            )
    return replace(
        options,
        num_beams=num_beams,
        n_best=n_best,
        length_penalty=require_penalty(
            "Generate", decoding.length_penalty if alpha is None else alpha
        ),
        banned_tokens=banned,
        forced_tokens=forced,
    )


def processors_of(options, end_id):
    """Return the processors of logits, in Hugging Face's order."""
    processors = []
    if options.repetition_penalty != 1:
        processors.append(RepetitionPenalty(options.repetition_penalty))
    if options.banned_tokens:
        processors.append(BannedTokens(options.banned_tokens))
    if options.min_new_tokens > 1:
        processors.append(MinLength(options.min_new_tokens, end_id))
    processors += [ForcedToken(token, index) for index, token in options.forced_tokens.items()]
    if options.temperature != 1:
        processors.append(Temperature(options.temperature))
    if options.top_k is not None:
        processors.append(TopK(options.top_k))
    if options.top_p != 1:
        processors.append(TopP(options.top_p))
    return processors


def _id(name, token, vocab_size, tokenizer):
    """Return the id of a token; an id is returned unchanged."""
    if isinstance(token, str):
        try:
            return tokenizer.id_of(token)
        except ValueError as error:
            raise ValueError(f"Generate: {name}: {error}") from error
    if isinstance(token, bool) or not isinstance(token, numbers.Integral):
        raise ValueError(f"Generate: {name} must be ids or tokens; received {shown(token)}.")
    if not 0 <= token < vocab_size:
        raise ValueError(f"Generate: {name} must be from 0 to {vocab_size - 1}; received {token}.")
    return int(token)


def _at_least_0(name, value):
    try:
        count = -1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        count = -1
    if count < 0:
        raise ValueError(
            f"Generate: {name} must be a whole number of at least 0; received {shown(value)}."
        )
    return count


def option_names(function):
    """Return the names of the options that a pipeline's `__call__` or `stream` takes."""
    parameters = [*inspect.signature(function).parameters.values()][1:]
    names = [
        parameter.name for parameter in parameters if parameter.kind is not parameter.VAR_KEYWORD
    ]
    if len(names) < len(parameters):  # any of these, by name
        names += inspect.signature(Options).parameters
    return names
