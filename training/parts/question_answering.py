"""Questions about contexts, answered by a span: windows, targets, and the threshold of none."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seqkeras.data.squad import Answer, read_questions
from seqkeras.losses import SmoothedCrossEntropy
from seqkeras.metrics import best_no_answer_threshold, squad_exact_match, squad_scores
from seqkeras.models import BiDAF, SpanHead
from seqkeras.runs import RunError
from seqkeras.serving.pipelines.answer import Settings
from seqkeras.serving.pipelines.questions import SubwordQuestions, WordQuestions
from seqkeras.serving.results import Span
from seqkeras.tokenizers import CharacterTable, WordTable, word_places
from seqkeras.training.answering.single_pass import SinglePass
from seqkeras.training.calibration import Chances
from seqkeras.training.console import console, say_left_out
from seqkeras.training.parts.answer_windows import inputs_of_words, places_in_windows, tokens_of
from seqkeras.training.parts.encoded_texts import EncodedTexts
from seqkeras.training.parts.pretrained import inputs_of, known_tokenizer
from seqkeras.training.parts.span_chances import NULL, RIGHT, span_chances
from seqkeras.training.parts.splitting import split
from seqkeras.training.task import Calibrating, Modelling, Scoring
from seqkeras.training.wording import counted

if TYPE_CHECKING:
    import keras

    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer

NAME = "Answer: input"
NONE = ""  # the target of a question that has no answer


class Example(NamedTuple):
    """A question with its context, all right answers, and the one to learn, or None."""

    text: dict
    target: list | str
    answer: Answer | None
    where: str


class QuestionAnsweringReading(EncodedTexts):
    """Questions about contexts, and the spans that answer them."""

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        options = self.options
        self.read_pretrained()
        train = self._examples(options.file)
        if options.validation is None:
            train, validation = self._held_out(train)
        else:
            validation = self._examples(options.validation)
        if options.model == "bidaf":
            for example in (*train, *validation):
                if example.answer is None:
                    raise RunError(
                        f"{example.where}: --model bidaf always answers, and this question has no "
                        "answer; choose --pretrained, or leave such questions out."
                    )
        if not any(example.answer for example in train):
            raise RunError(f"{options.file}: no question has an answer, so none can be learned.")
        without = sum(example.answer is None for example in train)
        console.print(
            f"{options.task}: {len(train):,} training and {len(validation):,} validation questions"
            + (f", {without:,} of the first without an answer" if without else "")
        )
        return train, validation

    def _examples(self, path):
        questions, left_out = read_questions(
            path, self.options.offsets, self.options.skip_bad, functools.cache(self._has_token)
        )
        say_left_out(left_out, "question")
        return [
            Example(
                {"question": question.question, "context": question.context},
                [answer.text for answer in question.answers] or NONE,
                question.answers[0] if question.answers else None,
                question.where,
            )
            for question in questions
        ]

    def _has_token(self, text):
        tokenizer = known_tokenizer(self)
        return bool(tokenizer.encode(text) if tokenizer else word_places(text))

    def _held_out(self, examples):
        """Return the examples without those about held out contexts, and those."""
        contexts = [*dict.fromkeys(example.text["context"] for example in examples)]
        if len(contexts) < 2:
            raise RunError(
                f"{self.options.file}: there is one context only, and nothing to hold out; name a "
                "file by --validation."
            )
        train_contexts = {*split(contexts, self.options)[0]}
        parts = [], []
        for example in examples:
            parts[example.text["context"] not in train_contexts].append(example)
        return parts

    def examples_of(
        self, paths: Sequence[Path | str], settings: Mapping[str, Any]
    ) -> Sequence[Any]:
        return [example for path in paths for example in self._examples(path)]

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        if self.pretrained:
            return {"text": self.pretrained.tokenizer}
        options, texts = self.options, _texts_read(examples)
        words = (text[start:end] for text in texts for start, end in word_places(text))
        table = WordTable.learn(words, options.lowercase, options.min_count)
        return {
            "words": WordTable(table.words[: options.vocab_size], options.lowercase),
            "characters": CharacterTable.learn(texts),
        }

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        for role in tokenizers:
            yield "inputs", role, _texts_read(examples)

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        options = self.options
        settings = {
            "question_length": options.question_length,
            "answer_length": options.answer_length,
        }
        if options.model == "bidaf":
            settings |= {"start": "start_logits", "end": "end_logits"}
            settings["word_length"] = options.word_length
            limit = options.window
        else:
            limit = self.pretrained.limit(options.max_length, options.window)
            settings |= {"start": "span_start_logits", "end": "span_end_logits"}
            settings |= {"window": limit, "stride": options.stride}
            settings["no_answer"] = any(example.answer is None for example in examples)
        return {"pipeline": "Answer", "limits": {"source_length": limit}, "settings": settings}

    def why_none_fits(self, run: RunFiles, folder: Path) -> str:
        options = self.options
        limit = f"from 1 to --question-length {options.question_length}"
        if options.model == "bidaf":
            limit += f" words, and a context of at most --max-length {options.window}"
        else:
            limit += " tokens"
        return (
            f"{options.validation or options.file}: no validation question has {limit}, so an "
            "export could check nothing; choose a larger one, or hold shorter questions out."
        )


class QuestionAnsweringModelling(Modelling):
    """Questions and contexts, in windows, to a model of spans."""

    validation_loss = True

    def arrays(self, examples: Sequence[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        read, windows, starts, ends, lost = questions_of(run).read, [], [], [], 0
        for example in examples:
            try:
                row = read(**example.text, name=NAME, truncate=True)
            except ValueError as error:
                raise RunError(f"{example.where}: {error}") from error
            span = None if example.answer is None else tokens_of(row, example.answer)
            if span is None and example.answer is not None:
                lost += 1
                continue
            for start, end in places_in_windows(row, span):
                starts.append(start)
                ends.append(end)
            windows += row.windows.rows
        if lost:
            answers = counted(
                lost,
                "answers have no token, or stand behind --max-length, and are",
                "answer has no token, or stands behind --max-length, and is",
            )
            console.print(f"  {answers} left out")
        if not windows:
            raise RunError(f"{self.options.file}: no answer is within the limits.")
        if self.reading.pretrained:
            inputs = inputs_of(windows, True, self.reading.pretrained)
            lengths = inputs["token_ids"].lengths
        else:
            inputs, lengths = inputs_of_words(windows)
        targets = {"start_logits": np.array(starts), "end_logits": np.array(ends)}
        return inputs, {"span": targets} if self.reading.pretrained else targets, lengths

    def model(self, run: RunFiles) -> keras.Model:
        options = self.options
        if self.reading.pretrained:
            return self.reading.pretrained.with_heads(
                {"span": SpanHead(options.dropout)}, options.frozen
            )
        model = BiDAF(
            len(run.tokenizers["words"]),
            options.embedding_dim,
            len(run.tokenizers["characters"]),
            options.character_dim,
            options.character_filters,
            options.units,
            dropout=options.dropout,
        )
        model.build(None)
        return model

    def loss(self) -> Any:
        losses = {name: SmoothedCrossEntropy(0.0) for name in ("start_logits", "end_logits")}
        return losses if self.options.model == "bidaf" else {"span": losses}


class QuestionAnsweringScoring(Scoring):
    """F1 and exact match of spans, and the threshold of no answer."""

    asked = {"n_best": 2}  # as `seqkeras.training.answering.answer` answers

    def validation_scores(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, float]:
        scores = squad_scores(*_texts_of(examples, _at_best_threshold(examples, answers)[1]))
        return {"F1": scores["f1"], "exact match": scores["exact_match"]}

    def tuned(
        self, run: RunFiles, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]
    ) -> tuple[RunFiles, Mapping[str, Any]]:
        if not run.record.settings.get("no_answer"):
            return run, answered
        [(name, (examples, answers))] = answered.items()
        threshold, answers = _at_best_threshold(examples, answers)
        return _with_threshold(run, threshold), {name: (examples, answers)}

    def sample(self, example: Any, answer: Any) -> dict[str, str]:
        target = example.target if isinstance(example.target, str) else example.target[0]
        return {
            "input": example.text["question"],
            "context": example.text["context"],
            "target": target or "(none)",
            "answer": answer.text or "(none)",
        }

    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        [(examples, answers)] = answered.values()
        scores = squad_scores(*_texts_of(examples, answers))
        if "with_answer" in scores and answers[0].margin is not None:
            threshold, best = _at_best_threshold(examples, answers)
            scores["best_f1"] = squad_scores(*_texts_of(examples, best))["f1"]
            scores["best_threshold"] = round(threshold, 3)  # as good as anything close to it
        return scores

    def summary(self, scores: Mapping[str, Any]) -> str:
        words = f"F1 is {scores['f1']:.2%}, {scores['exact_match']:.2%} of the answers are exact"
        if "with_answer" in scores:
            has, none = scores["with_answer"], scores["without_answer"]
            words += f"; F1 is {has['f1']:.2%} where there is an answer, {none['f1']:.2%} where not"
        return words


class QuestionAnsweringCalibrating(Calibrating):
    """Probabilities of spans, and the threshold of no answer."""

    linear = "span"

    def chances(
        self, model: keras.Model, examples: Sequence[Any], answers: Sequence[Any], run: RunFiles
    ) -> list[Chances]:
        pipeline, settings = SinglePass(run, {}).pipeline(model), Settings(**run.record.settings)
        rows = [pipeline.encode(example.text, truncate=True) for example in examples]
        chances = []
        for number, (example, row, windows, answer) in enumerate(
            zip(examples, rows, pipeline.windows(rows), answers, strict=True)
        ):
            target = RIGHT
            if squad_exact_match([answer.text], [example.target]) < 1:
                target = NULL if example.answer is None else tokens_of(row, example.answer)
            if np.isfinite(answer.score):
                chances.append(span_chances(row, windows, answer, target, settings, number))
        return [row for row in chances if row]

    def certainty(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> list[tuple[float, bool]]:
        return [
            (answer.score, squad_exact_match([answer.text], [example.target]) == 1)
            for example, answer in zip(examples, answers, strict=True)
        ]

    def last_layers(self, model: keras.Model) -> list[keras.Layer]:
        if isinstance(model, BiDAF):
            return [model.start_layer, model.end_layer]
        return super().last_layers(model)

    def behind(
        self, calibration: Mapping[str, Any], run: RunFiles, scores: dict[str, Any]
    ) -> tuple[RunFiles, dict[str, Any]]:
        run, scores = super().behind(calibration, run, scores)
        temperature = calibration["temperature"]
        threshold = run.record.settings.get("no_answer_threshold")
        if threshold is None:
            return run, scores
        if "best_threshold" in scores:
            scores |= {"best_threshold": round(scores["best_threshold"] / temperature, 3)}
        return _with_threshold(run, threshold / temperature), scores


def _with_threshold(run, threshold):
    settings = run.record.settings | {"no_answer_threshold": threshold}
    return dataclasses.replace(run, record=dataclasses.replace(run.record, settings=settings))


def questions_of(run: RunFiles) -> Any:
    """Return what reads the questions of a run, as the pipeline reads them.

    Raises:
        RunError: if the limits leave no room for a context.
    """
    settings, limit = Settings(**run.record.settings), run.record.limits["source_length"]
    if "words" in run.tokenizers:
        return WordQuestions(run.tokenizers["words"], run.tokenizers["characters"], limit, settings)
    questions = SubwordQuestions(run.tokenizers["text"], limit, settings)
    for problem in questions.problems():
        raise RunError(f"--question-length: {problem}; choose a smaller one.")
    return questions


def _texts_read(examples):
    """Return the questions, and each context once."""
    questions = [example.text["question"] for example in examples]
    return questions + [*dict.fromkeys(example.text["context"] for example in examples)]


def _texts_of(examples, answers):
    """Return the texts of the answers, and the targets."""
    return [answer.text for answer in answers], [example.target for example in examples]


def _at_best_threshold(examples, answers):
    """Return the threshold of no answer with the best F1, and the answers by it; None for a model
    that always answers."""
    if answers[0].margin is None:
        return None, answers
    spans = [answer if answer.text else answer.alternatives[0] for answer in answers]
    texts, targets = _texts_of(examples, spans)
    threshold, _ = best_no_answer_threshold(texts, targets, [span.margin for span in spans])
    return threshold, [span if span.margin > threshold else _none(span) for span in spans]


def _none(span):
    """Return no answer, before a span that would be one."""
    score = span.score * math.exp(-span.margin)
    return Span(NONE, None, None, score, span.margin, (span,))
