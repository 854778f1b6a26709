"""A task holds what reads, what models and what scores; `seqkeras.training.train` does the rest.

    read -> tokenizers -> record -> arrays -> model, loss, metrics -> tuned -> scores -> table

The hooks are called in this order. An example is an object with a `text`, as the pipeline takes it,
and a `target`, which a validation example may have as None. A `run` is a `seqkeras.runs.RunFiles`:
its `record` and `tokenizers` are all that training and serving share.

The module imports Keras in its methods alone, so that the command line reads a task of one file
without Keras.
"""

from __future__ import annotations

import abc
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from seqkeras.runs import ATTENTION_MAP, RunError
from seqkeras.training.commands import evaluation_options
from seqkeras.training.console import console
from seqkeras.training.wording import counted

if TYPE_CHECKING:
    import keras
    import numpy as np

    from seqkeras.data.batches import Batches
    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer
    from seqkeras.training.baselines import Measure, Method
    from seqkeras.training.calibration import Chances, Evidence
    from seqkeras.training.options import FitOptions

__all__ = ["Modelling", "Reading", "Scoring", "Task"]


class Task:
    """A task of `seqkeras train`.

    Args:
        options: a `seqkeras.training.options.FitOptions`, which names the task.
        reading: a `Reading`, files to examples.
        modelling: a `Modelling`, examples to a model and its loss.
        scoring: a `Scoring`, answers to scores.
        calibrating: a `Calibrating`, scores to probabilities. Default: a `Calibrating` that leaves
            the model as it is.

    Example:
        >>> import pathlib
        >>> from seqkeras.training.tasks import TASKS
        >>> lines = ["text,label", *["nice,good", "dull,bad"] * 20]
        >>> _ = pathlib.Path("reviews.csv").write_text("\\n".join(lines))
        >>> task = TASKS["classification"](file="reviews.csv", batch_size=4).make()
        >>> train, validation = task.reading.read()
        classification: 36 training and 4 validation examples of 2 labels
        >>> task.name, len(train) + len(validation), sorted({example.target for example in train})
        ('classification', 40, ['bad', 'good'])
    """

    def __init__(
        self,
        options: FitOptions,
        reading: Reading,
        modelling: Modelling,
        scoring: Scoring,
        calibrating: Calibrating | None = None,
    ):
        self.name, self.options = options.task, options
        self.reading: Any = reading
        self.modelling: Any = modelling
        self.scoring: Any = scoring
        self.calibrating: Any = calibrating or Calibrating(options, reading, modelling)

    @classmethod
    def of(
        cls,
        options: FitOptions,
        reading: type[Reading],
        modelling: type[Modelling],
        scoring: type[Scoring],
        calibrating: type[Calibrating] | None = None,
    ) -> Self:
        """Return a task of the classes of its parts, each of which is made of the options and of
        the parts that it needs."""
        read = reading(options)
        model = modelling(options, read)
        parts = options, read, model
        return cls(*parts, scoring(*parts), (calibrating or Calibrating)(*parts))

    def member(self, number: int) -> Task:
        """Return the task of one of `--members`: another seed, the same examples.

        Args:
            number: number of the member, from 0.
        """
        values = {"seed": (self.options.seed + number) % 2**32, "members": 1}
        values |= {"baselines": False, "calibrate": False}
        values = {name: value for name, value in values.items() if hasattr(self.options, name)}
        options, read = self.options.changed(**values), self.reading
        model = type(self.modelling)(options, read)
        parts = options, read, model
        return Task(*parts, type(self.scoring)(*parts), type(self.calibrating)(*parts))

    def prepared(
        self,
        folder: Path,
        examples: Sequence[Any],
        kept: Sequence[Any],
        tokenizers: Mapping[str, Tokenizer],
    ) -> tuple[Any, Any]:
        """Return the `seqkeras.runs.RunFiles` that is trained, and what answers while it is, of
        `seqkeras.training.answering`.

        Args:
            folder: a `Path`, the run's; nothing is written.
            examples: training examples.
            kept: validation examples that stay with the run.
            tokenizers: role -> tokenizer.

        Raises:
            RunError: if no run can hold the content.
            ValueError: if the record names a pipeline that there is not.
        """
        from seqkeras.training.answering import answerer
        from seqkeras.training.run_of_task import run_files

        run = run_files(self, folder, examples, kept, tokenizers)
        return run, answerer(run, self.scoring.asked)

    def fitting(
        self, run: RunFiles, folder: Path, kept: Sequence[Any], answer: Any, model: keras.Model
    ) -> RunFiles:
        """Return the run with only the validation examples that a model takes whole.

        Args:
            run, answer: what `prepared` returned.
            folder, kept: see `prepared`.
            model: what is served of the model that is trained.

        Raises:
            RunError: if there is no such example.
        """
        fit = [answer.fits(model, example.text) for example in kept]
        if not any(fit):
            raise RunError(self.reading.why_none_fits(run, folder))
        return dataclasses.replace(run, validation=[*itertools.compress(run.validation, fit)])

    def runs(self, folder: Path) -> list[Path]:
        """Return the folders that export takes, of a run's folder."""
        return [folder]


class Reading(abc.ABC):
    """Files to examples, and what serving must know of them.

    Args:
        options: options of the task.

    Attributes:
        known_tokenizers: role -> tokenizer of a run or bundle that is evaluated.
        source_length: the limit of a run or bundle that is evaluated; None while one is trained.
        not_in_bundle: the reason why a bundle can not be scored; "" if it can.
        way_out_of_unknown: what the user may do where too many tokens of targets are unknown.

    Example:
        >>> import pathlib
        >>> from seqkeras.training.tasks import TASKS
        >>> lines = ["text,label", *["nice,good", "dull,bad"] * 20]
        >>> _ = pathlib.Path("reviews.csv").write_text("\\n".join(lines))
        >>> reading = TASKS["classification"](file="reviews.csv", batch_size=4).make().reading
        >>> train, validation = reading.read()
        classification: 36 training and 4 validation examples of 2 labels
        >>> record = reading.record(train, reading.tokenizers(train))
        >>> record["pipeline"], record["limits"], record["settings"]["labels"]
        ('Classify', {'source_length': 128}, ['bad', 'good'])
    """

    known_tokenizers: dict = {}
    source_length: int | None = None
    not_in_bundle: str = ""
    way_out_of_unknown: str = ""

    def __init__(self, options: FitOptions):
        self.options: Any = options

    @abc.abstractmethod
    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return two lists of examples: of training, and of validation.

        Nothing is written yet: what can not be read is a `RunError` here.
        """

    def examples_of(
        self, paths: Sequence[Path | str], settings: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Return the examples of files in the form of the training's, for `evaluate`.

        Args:
            paths: paths of the files, one at least.
            settings: settings of the run's record, or of the bundle's manifest.

        Raises:
            RunError: if the task reads no files, or other ones.
        """
        raise RunError(f"{paths[0]}: the task {self.options.task} reads no files.")

    def evaluation(self) -> dict[str, Any]:
        """Return a dictionary: name -> value of the options by which files are read and answers
        scored, for bundles."""
        return evaluation_options(self.options)

    @abc.abstractmethod
    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        """Return a dictionary: role -> tokenizer, learned on training examples."""

    def with_tokenizers(
        self, validation: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Sequence[Any]:
        """Return the validation examples, once the tokenizers are known: as they are, unless what a
        text is depends on its tokens.

        Args:
            validation: validation examples that `read` returned.
            tokenizers: role -> tokenizer.
        """
        return validation

    @abc.abstractmethod
    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        """Return what run.json says: a dictionary of `save_run`'s pipeline, limits, decoding,
        settings, text_prefix and inputs, as far as the pipeline needs them."""

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterable[tuple[str, str, Iterable[str]]]:
        """Yield (use, role, texts): what vocabularies read of examples; unknown tokens are told.

        Args:
            examples: training or validation examples, or examples of `examples_of`.
            tokenizers: role -> tokenizer.

        Yields:
            "inputs", or "targets" of which answers are made; the role of a tokenizer; strings, or
            tuples of words.
        """
        return ()

    def kept(self, validation: Sequence[Any]) -> Sequence[Any]:
        """Return the validation examples that stay with the run, on which export proves itself:
        all, unless they are too many or too large."""
        return validation

    def why_none_fits(self, run: RunFiles, folder: Path) -> str:
        """Return the error where the pipeline takes no validation example whole: where, why, a way
        out."""
        limit = run.record.limits["source_length"]
        return (
            f"{folder}: no validation text has from 1 to {limit} tokens, so an export could "
            "check nothing; choose a larger --max-length, or hold shorter texts out."
        )


class Modelling(abc.ABC):
    """Examples to the inputs of a model, the model, and its loss.

    Args:
        options: options of the task.
        reading: the task's `Reading`.

    Attributes:
        validation_loss: whether `arrays` takes validation examples too, for their loss.
        streams: whether the model answers frame by frame, from a state.
        looks_first: whether the model is looked at before its first step, as it may be the best.
        folder: folder of the run that is trained, a `Path`; None while one is evaluated.

    Example:
        >>> import pathlib
        >>> from seqkeras.training.tasks import TASKS
        >>> lines = ["text,label", *["nice,good", "dull,bad"] * 20]
        >>> _ = pathlib.Path("reviews.csv").write_text("\\n".join(lines))
        >>> task = TASKS["classification"](file="reviews.csv", batch_size=4).make()
        >>> train, validation = task.reading.read()
        classification: 36 training and 4 validation examples of 2 labels
        >>> tokenizers, folder = task.reading.tokenizers(train), pathlib.Path("runs/reviews")
        >>> run, answer = task.prepared(folder, train, validation, tokenizers)
        >>> batches = task.modelling.batches(train, run)
        >>> task.modelling.num_steps(batches)  # 5 passes over 9 batches of 4 examples
        45
        >>> task.modelling.model(run).output_shape  # logits of "bad" and "good"
        (None, 2)
    """

    validation_loss: bool = False
    looks_first: bool = False
    streams: bool = False
    folder: Path | None = None

    def __init__(self, options: FitOptions, reading: Reading):
        self.options: Any = options
        self.reading: Any = reading  # with what `read` found

    def arrays(self, examples: Sequence[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        """Return the inputs and targets of examples, in the form that
        `seqkeras.data.batches.Batches` takes, and (examples,) lengths: rows of about one length
        share a batch. For `batches` and the validation loss alone.

        Raises:
            NotImplementedError: unless the task writes it; one that writes `batches` need not.
        """
        raise NotImplementedError

    def batches(self, examples: Sequence[Any], run: RunFiles) -> Batches:
        """Return the `seqkeras.data.batches.Batches` of training examples.

        Raises:
            RunError: if there is no example, or one is longer than a batch.
        """
        from seqkeras.data.batches import Batches

        inputs, targets, lengths = self.arrays(examples, run)
        vary = self.varied(inputs, targets, run)
        return Batches(inputs, targets, self.order(lengths), vary=vary)

    def varied(self, inputs: Any, targets: Any, run: RunFiles) -> Any:
        """Return what `seqkeras.data.batches.Batches` takes as `vary`: how each pass alters the
        inputs and targets; None where passes are alike."""
        return None

    def order(self, lengths: np.ndarray) -> Any:
        """Return which rows make the batches, of rows of (rows,) lengths: as many, or as many
        tokens, as the options say; smaller ones where there are fewer rows, which a line says.

        Raises:
            RunError: if there is no row, or one is longer than a batch.
        """
        from seqkeras.data.batching import BucketedBatches, TokenBatches, fitting_size

        options, count = self.options, len(lengths)
        if not count:
            raise RunError("no example is left for training; give more, or hold fewer out.")
        if options.batch_tokens is None:
            size = fitting_size(options.batch_size, count)
            if size < options.batch_size:
                rows = counted(size, "examples")
                console.print(f"  a batch has {rows}, since {count:,} are left for training")
            return BucketedBatches(lengths, size, options.seed)
        try:
            return TokenBatches(lengths, options.batch_tokens, options.seed)
        except ValueError as error:
            raise RunError(f"--batch-tokens: {error}") from error

    def carries_state(self) -> tuple[str, str] | None:
        """Return the option by which the state of a row goes on to the next batch, so that rows can
        not be shared, and what may be chosen in its place; None where no state does."""
        return None

    def num_steps(self, batches: Batches) -> int:
        """Return the number of steps to train."""
        return self.options.passes * batches.order.batches_per_pass

    @abc.abstractmethod
    def model(self, run: RunFiles) -> keras.Model:
        """Return a new Keras model that is built."""

    def mean_of(self, members: Sequence[keras.Model]) -> keras.Model:
        """Return the model of the mean of members' answers."""
        from seqkeras.training.members import mean_of

        return mean_of(members)

    @abc.abstractmethod
    def loss(self) -> Any:
        """Return the loss of `compile`: one, or a dictionary of them by the name of an output."""

    def loss_weights(self) -> Any:
        """Return weights of the losses by the name of an output; None: each counts once."""
        return None

    def metrics(self) -> Any:
        """Return a list of Keras metrics, measured on the training batches; or such lists by the
        name of an output."""
        return []

    def begun(self, folder: Path) -> None:
        """Take note that the run's folder is there, for what a training that goes on shall find."""
        return None

    def measure(
        self, model: keras.Model, examples: Sequence[Any], run: RunFiles
    ) -> dict[str, float]:
        """Return a dictionary: name -> number, of a model on validation examples without answers,
        as a loss: while it trains, and of the trained one for scores.json."""
        return {}

    def trained(self, model: keras.Model) -> keras.Model:
        """Return what is served of the model that was trained, where it is only a part."""
        from seqkeras.training.carried import CarriedState

        return model.model if isinstance(model, CarriedState) else model


class Scoring(abc.ABC):
    """Answers to scores, and what is shown of them.

    Args:
        options: options of the task.
        reading, modelling: the task's `Reading` and `Modelling`.

    Attributes:
        picture: the file that `draw` makes, one of `seqkeras.training.run.FILES`.
        best_by: name of the score that selects the best model where the options name none; None:
            the first of `validation_scores`, or, without such scores, the first of
            `Modelling.measure`.
        lower_is_better: names of scores that are better when lower, beside "validation_loss".
        score_formats: name of a validation score -> format of its number; other scores are shares,
            written as "93.10%".
        asked: options of the pipeline with which a bundle is scored, beside `truncate`.

    Example:
        >>> import pathlib
        >>> from seqkeras.serving.results import Classification
        >>> from seqkeras.training.tasks import TASKS
        >>> lines = ["text,label", *["nice,good", "dull,bad"] * 20]
        >>> _ = pathlib.Path("reviews.csv").write_text("\\n".join(lines))
        >>> task = TASKS["classification"](file="reviews.csv", batch_size=4).make()
        >>> _, validation = task.reading.read()
        classification: 36 training and 4 validation examples of 2 labels
        >>> answers = [Classification(("good",), 0.9, {}) for _ in validation]  # half of them right
        >>> scores = task.scoring.scores({"validation": (validation, answers)})
        >>> scores["accuracy"], task.scoring.summary(scores)
        (0.5, "right are 50.00%, macro F1 is 33.33%, Matthews' correlation 0.000")
    """

    picture = ATTENTION_MAP
    best_by: str | None = None
    lower_is_better: tuple = ()
    score_formats: dict = {}
    asked: dict = {}

    def __init__(self, options: FitOptions, reading: Reading, modelling: Modelling):
        self.options: Any = options
        self.reading: Any = reading
        self.modelling: Any = modelling

    def looked_at(self, validation: Sequence[Any]) -> Sequence[Any]:
        """Return the validation examples that are answered while it trains: all, unless they are
        many."""
        return validation

    @abc.abstractmethod
    def validation_scores(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, float]:
        """Return a dictionary: name -> number, of validation examples and their answers while it
        trains.

        By the first one, or `best_by`, the best model is told, unless the user asks for another.

        Args:
            answers: as the pipeline gives them, of `seqkeras.serving.results`.
        """

    def sample(self, example: Any, answer: Any) -> dict[str, str]:
        """Return a dictionary: name -> text, what samples.txt shows of a validation example. A task
        whose answers have neither a text nor labels writes its own."""
        text = example.text
        return {
            "input": " | ".join(text) if isinstance(text, tuple) else text,
            "target": example.target,
            "answer": answer.text if hasattr(answer, "text") else ", ".join(answer.labels),
        }

    def samples(
        self, model: keras.Model, run: RunFiles, examples: Sequence[Any], answers: Sequence[Any]
    ) -> list[dict[str, str]]:
        """Return what samples.txt shows of some validation examples and their answers, a `sample`
        each."""
        return [self.sample(*pair) for pair in zip(examples, answers, strict=True)]

    def tests(self, validation: Sequence[Any]) -> Iterable[tuple[str, list[Any]]]:
        """Yield (name, list of examples), what the trained model is scored on: the validation
        examples, unless a task has others."""
        yield "validation", validation

    def tuned(
        self, run: RunFiles, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]
    ) -> tuple[RunFiles, Mapping[str, Any]]:
        """Return the run with settings that are chosen by the trained model's answers, as a
        threshold, and the answers by these.

        Args:
            run: a `seqkeras.runs.RunFiles`.
            answered: name -> (examples, answers) of every test.
        """
        return run, answered

    @abc.abstractmethod
    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        """Return the content of scores.json, after what `Modelling.measure` gives.

        Args:
            answered: name -> (examples, answers) of every test.
        """

    def methods(self, train: Sequence[Any], run: RunFiles) -> Sequence[Method]:
        """Return plain methods that stand beside the model, if the task has some.

        Args:
            train: training examples.
            run: a `seqkeras.runs.RunFiles`.
        """
        return ()

    def compared_by(self) -> Measure:
        """Return the score by which the model and the best of `methods` are compared.

        Raises:
            NotImplementedError: unless the task writes it; a task with `methods` does.
        """
        raise NotImplementedError

    def scores_beside(self, examples: Sequence[Any], answers: Sequence[Any]) -> dict[str, float]:
        """Return a dictionary: name -> number, the scores that stand in the table of the model and
        of `methods`: `validation_scores`, unless a task has more."""
        return self.validation_scores(examples, answers)

    def sums(self, examples: Sequence[Any], answers: Sequence[Any]) -> np.ndarray:
        """Return (rows, k) numbers of each example, whose sums `compared_by` makes its score of.

        Raises:
            NotImplementedError: unless the task writes it; a task with `methods` does.
        """
        raise NotImplementedError

    def beside(
        self,
        scores: dict[str, Any],
        train: Sequence[Any],
        answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]],
        run: RunFiles,
    ) -> dict[str, Any]:
        """Return the content of scores.json with "baselines", what `methods` reach on the same
        examples.

        Args:
            scores: from `scores`.
            train, run: see `methods`.
            answered: name -> (examples, answers) of every test.
        """
        from seqkeras.training.baselines import beside

        if not getattr(self.options, "baselines", False) or not (
            methods := self.methods(train, run)
        ):
            return scores
        [(examples, answers)] = answered.values()
        comparison = beside(self, methods, examples, answers)
        return scores | ({"baselines": comparison} if comparison else {})

    def draw(self, model: keras.Model, run: RunFiles, path: Path | str) -> None:
        """Draw the model's attention, or its answers, into a PNG, if the task has some to show."""
        return None

    def table(self, scores: Mapping[str, Any]) -> Any:
        """Return the scores as a `rich.table.Table`, or None."""
        return None

    def shown(self, scores: Mapping[str, Any]) -> Iterator[Any]:
        """Yield what is printed of scores: the table, if there is one; and the model beside plain
        methods, with a last line that says which is ahead."""
        from seqkeras.training import none_of_these
        from seqkeras.training.baselines import table_of
        from seqkeras.training.calibration import in_words

        if (table := self.table(scores)) is not None:
            yield table
        if comparison := scores.get("baselines"):
            plain = table_of(comparison)
            if "none_of_these" in scores:
                plain.title = f"{plain.title}, before null is an answer"
            yield plain
            yield f"  {comparison['summary']}"
        if calibration := scores.get("calibration"):
            yield f"  {in_words(calibration)}"
        if none := scores.get("none_of_these"):
            yield f"  {none_of_these.in_words(none)}"

    @abc.abstractmethod
    def summary(self, scores: Mapping[str, Any]) -> str:
        """Return the scores in a few words, for the last line."""


class Calibrating:
    """Scores of a trained model to probabilities, and inputs without a label to the answer None.

    Args:
        options: options of the task.
        reading, modelling: the task's `Reading` and `Modelling`.

    Attributes:
        linear: name of the head, or the layer, that gives the logits of `chances`; None without.

    Example:
        >>> from seqkeras.training.tasks import TASKS
        >>> calibrating = TASKS["classification"](file="reviews.csv").make().calibrating
        >>> calibrating.linear
        'label'
    """

    linear: str | None = None

    def __init__(self, options: FitOptions, reading: Reading, modelling: Modelling):
        self.options: Any = options
        self.reading: Any = reading
        self.modelling: Any = modelling

    def chances(
        self, model: keras.Model, examples: Sequence[Any], answers: Sequence[Any], run: RunFiles
    ) -> list[Chances]:
        """Return the `seqkeras.training.calibration.Chances` of examples, of a task whose head or
        layer `linear` gives logits.

        Args:
            model: the trained model.
            examples: examples of validation; those without a right class are left out.
            answers: answers to them.
            run: a `seqkeras.runs.RunFiles`.

        Raises:
            NotImplementedError: unless the task writes it; a task with `linear` does.
        """
        raise NotImplementedError

    def evidence(
        self, model: keras.Model, examples: Sequence[Any], answers: Sequence[Any], run: RunFiles
    ) -> Evidence:
        """Return the `seqkeras.training.calibration.Evidence` of examples, by default made of their
        `chances`, whose arguments these are.

        Raises:
            NotImplementedError: unless the task writes it or `chances`.
        """
        from seqkeras.training.calibration import Softmaxes

        return Softmaxes(self.chances(model, examples, answers, run))

    def last_layers(self, model: keras.Model) -> list[keras.Layer]:
        """Return the linear layers whose weights a temperature divides."""
        heads = getattr(model, "heads", None)
        return [model.get_layer(self.linear) if heads is None else heads[self.linear].output_layer]

    def balanced(
        self,
        model: keras.Model,
        answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]],
        run: RunFiles,
    ) -> bool:
        """Balance the parts of a trained model, if it has several, and return whether its answers
        are others now; see `calibrated` for the arguments."""
        return False

    def calibrated(
        self,
        model: keras.Model,
        answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]],
        run: RunFiles,
    ) -> dict[str, Any] | None:
        """Make the scores of a trained model probabilities, or its bands, if the task has some; as
        `seqkeras.training.calibration` says.

        Args:
            model: its weights change.
            answered: name -> (examples, answers) of every test, before it.
            run: a `seqkeras.runs.RunFiles`.

        Returns:
            The content of scores.json on the calibration, or None.
        """
        from seqkeras.training.calibration import calibrated, divide_logits, left_in_words
        from seqkeras.training.members import members_of

        if self.linear is None or not getattr(self.options, "calibrate", False):
            return None
        [(name, pair)] = answered.items()
        evidence = self.evidence(model, *pair, run)
        calibration = calibrated(evidence, self.options.seed)
        if calibration:
            last = [layer for part in members_of(model) for layer in self.last_layers(part)]
            divide_logits(last, calibration["temperature"])
        else:
            console.print(f"  {name}: {left_in_words(evidence)}")
        return calibration

    def draw(self, calibration: dict[str, Any], path: Path | str) -> None:
        """Draw what `calibrated` brings into a PNG."""
        from seqkeras.training.calibration import draw_calibration

        draw_calibration(calibration, path)

    def behind(
        self, calibration: Mapping[str, Any], run: RunFiles, scores: dict[str, Any]
    ) -> tuple[RunFiles, dict[str, Any]]:
        """Return the run and the scores of a model that was `calibrated`, with its calibration;
        thresholds of logits are divided, too."""
        return run, scores | {"calibration": calibration}

    def certainty(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> list[tuple[float, bool]]:
        """Return the score of each answer, and whether the answer is right; none for a task whose
        scores are no probabilities of answers."""
        return []

    def answering_none(
        self,
        model: keras.Model,
        run: RunFiles,
        train: Sequence[Any],
        answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]],
    ) -> tuple[keras.Model, RunFiles, dict[str, Any] | None]:
        """Return a trained model and its run so that None answers inputs without a label, and the
        content of scores.json on that. Without such inputs: model and run unchanged, and None.

        Args:
            model: the model, calibrated.
            run: a `seqkeras.runs.RunFiles`.
            train: training examples.
            answered: name -> (examples, answers) of every test, before it.
        """
        return model, run, None
