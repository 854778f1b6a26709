"""Choose the best of several continuations of a text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, overload

from ..checks import shown
from ..manifest import Manifest
from ..opening import Runtime
from ..results import Choice
from ..text.encoding import Encoding
from .attention import AttentionGraph
from .batching import TOKEN_BUDGET
from .inputs import TextReader, encoded, one_or_all, parts_of
from .model import Model, softmax
from .pipeline import Pipeline
from .settings import read_settings, wrong_output


@dataclass(frozen=True)
class Settings:
    """See `serving.pipelines`."""

    output: str | None = None

    def problems(self, outputs):
        """Yield what is wrong."""
        yield from wrong_output(outputs, self.output, ("batch", "choices"))


@dataclass(frozen=True)
class _Row:
    """The choices, and the `Encoding` of the text with each choice."""

    choices: tuple
    encodings: list[Encoding]


class Choose(Pipeline):
    """The choice that fits a text best.

        scores = softmax over the choices of logit(text, choice)

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        runtime: a `Runtime`, how its graph is run.

    Raises:
        BundleError: if the graph, the tokenizer or the settings are not what the pipeline needs.

    Reference: Devlin et al. 2019, section 4.4, https://arxiv.org/abs/1810.04805

    Example:
        >>> from seqkeras.serving import load
        >>> choose, choices = load("bundles/choices", threads=1), ["small", "words", "said"]
        >>> choice = choose(("A model may be", choices))
        >>> choice.text in choices, len(choice.scores)
        (True, 3)
    """

    fields = ("text", "choices")

    def __init__(self, folder: Path, manifest: Manifest, runtime: Runtime | None = None):
        self.manifest = manifest
        settings = read_settings(folder, manifest, Settings)
        self._reader = TextReader(folder, manifest)
        self._model = Model(folder, manifest, runtime, [settings.output])
        self._attention = AttentionGraph(folder, manifest, runtime)

    @overload
    def __call__(
        self, inputs: tuple[str, Sequence[str]] | Mapping[str, Any], *args: Any, **options: Any
    ) -> Choice: ...

    @overload
    def __call__(self, inputs: list, *args: Any, **options: Any) -> list[Choice]: ...

    def __call__(
        self,
        inputs: tuple[str, Sequence[str]] | Mapping[str, Any] | list,
        truncate: bool = False,
        token_budget: int = TOKEN_BUDGET,
        attention: bool | str = False,
    ) -> Choice | list[Choice]:
        """Answer a text with its choices, or each one of a list.

        Args:
            inputs: a text with a list of choices, as a tuple or as a dictionary of "text" and
                "choices"; or a list of these.
            truncate: cut inputs over the limit, the longer one of text and choice.
            token_budget: the most tokens of a batch, padding among them. All choices of an input
                share a batch, since a model may compare them, even if they exceed the budget.
            attention: how much each token attends to each other in the text with the choice that
                fits best, of a bundle that was exported with --attention-heads: True for the mean
                of the last layer's heads, "heads" for each head of each layer, "words" for the same
                of whole words.

        Returns:
            A `Choice`; for a list, a list of them, in its order.

        Raises:
            ValueError: if an input is refused; nothing is answered then.
            NoFiniteNumber: a BundleError, if the model gives NaN or infinity for an input.
        """
        self._attention.require("Choose", attention)
        rows = encoded(inputs, "Choose: input", self.encode, truncate, token_budget)
        answers = self._model.answer_groups(
            [row.encodings for row in rows],
            lambda index, logits: choice_of(rows[index].choices, logits),
            token_budget,
        )
        read = (row.encodings[answer.index] for row, answer in zip(rows, answers))
        answers = self._attention.attach(answers, read, attention, token_budget)
        return one_or_all(inputs, answers, "Choose: input")

    def encode(self, value: Any, name: str = "Choose: input", truncate: bool = False) -> Any:
        """Return what the model reads of a text and its choices.

        Raises:
            ValueError: beginning with `name`, if it can not be answered.
        """
        text, choices = parts_of(value, self.fields, name)
        if not isinstance(choices, (list, tuple)) or len(choices) < 2:
            raise ValueError(
                f"{name}, choices must be a list of two texts or more; received {shown(choices)}."
            )
        encodings = [
            self._reader.read_pair(
                text, choice, (f"{name}, text", f"{name}, choices[{index}]"), truncate
            )
            for index, choice in enumerate(choices)
        ]
        return _Row(tuple(choices), encodings)


def choice_of(choices, logits):
    """Return the `Choice` of a text by the logits of its choices."""
    scores = softmax(logits)
    index = int(scores.argmax())
    return Choice(choices[index], index, float(scores[index]), tuple(scores.tolist()))
