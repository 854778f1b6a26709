"""The words of sentences, or frames of numbers, and their tags, from a file of the user's."""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy as np
from rich.table import Table

from seqkeras.data.batches import Batches, Sequences
from seqkeras.data.conll import continued, scheme_of
from seqkeras.data.left_out import usable
from seqkeras.data.stored import Stored, joined, taken
from seqkeras.data.texts import DataError
from seqkeras.losses import ChainLoss, SmoothedCrossEntropy
from seqkeras.metrics import TokenAccuracy, class_scores, entity_f1, entity_scores, tag_accuracy
from seqkeras.models import ChainTaggingHead, LinearChain, TaggingHead
from seqkeras.runs import RunError, RunFiles
from seqkeras.serving.entities import entities
from seqkeras.serving.text import Tokenizer
from seqkeras.terminal import one_line
from seqkeras.training.baselines import Measure, Method, ratio
from seqkeras.training.calibration import Chains, Chances, Evidence, Softmaxes
from seqkeras.training.console import add_rows, console, say_left_out, say_single
from seqkeras.training.options.frames import TAG
from seqkeras.training.options.held_out import share_held_out
from seqkeras.training.parts.baselines.tags import tags_of_frames, tags_of_words
from seqkeras.training.parts.carried_windows import in_training
from seqkeras.training.parts.delays import Delays
from seqkeras.training.parts.encoded_texts import EncodedTexts
from seqkeras.training.parts.encoders import encoded
from seqkeras.training.parts.features import require_features
from seqkeras.training.parts.frames import FrameModelling, Frames
from seqkeras.training.parts.pretrained import inputs_of_ids
from seqkeras.training.parts.splitting import split
from seqkeras.training.parts.tagged_rows import NO_TAG, TaggedRows, gives_parts_tags
from seqkeras.training.parts.tagged_sentences import TaggedSentences, in_documents
from seqkeras.training.parts.text_logits import logits_of_texts
from seqkeras.training.parts.varied_subwords import varied_inputs
from seqkeras.training.parts.vocabularies import Texts
from seqkeras.training.task import Calibrating, Scoring
from seqkeras.training.wording import counted, listed

OUTSIDE = "O"
SHARES = ("precision", "recall", "f1")  # of a tag, or of entities
MOST_TOKENS = 256  # of a sentence, by default
EMISSIONS = "emissions"  # the layer of logits below a chain


class TaggingReading(EncodedTexts):
    """The words of sentences, or frames, and their tags."""

    frames = None  # `Frames`, where inputs are no texts
    scheme = None  # the scheme of the training tags, from `scheme_of`

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        options = self.options
        if options.recordings.reads_frames(options.file):
            self.frames = self._frames()
        require_features(options, self.frames)
        self.read_pretrained()
        train = self._examples(options.file)
        counts = Counter(itertools.chain.from_iterable(example.target for example in train))
        labels = sorted(counts)
        self._say_single_tags(counts)
        pieces = ", or a --max-length to cut recordings into pieces" if self.frames else ""
        if options.validation is not None:
            validation = self._examples(options.validation, labels, options.file)
            if self.frames:
                self.frames.require_size(train, validation)
        else:
            whole = self._parted(train[0]) if len(train) == 1 else train
            train, validation = self._held_out(whole, pieces)
        train, validation = self._in_pieces(train), self._validated(validation)
        if len(labels) < 2:
            words = "frames" if self.frames else "words"
            raise RunError(f"{options.file}: all {words} have the tag {labels[0]!r:.40}.")
        self.scheme = scheme_of(labels)
        console.print(
            f"{self.options.task}: {len(train):,} training and {len(validation):,} validation "
            f"{self.unit}s, {len(labels):,} tags, "
            + ("which spell no entities" if self.scheme is None else f"entities in {self.scheme}")
        )
        return train, validation

    def _say_single_tags(self, counts):
        """Say which tags, or names of entities, a single word has; counts: tag -> words."""
        if scheme_of(counts) is not None:
            names = Counter()
            for tag, count in counts.items():
                names[tag.partition("-")[2] or tag] += count
            counts = names
        say_single(self.options.file, counts, "tag", "frame" if self.frames else "word")

    def _held_out(self, examples, pieces):
        """Return the examples without those that are held out, and those: whole documents, or
        blocks of neighbours.

        Args:
            examples: examples of the file.
            pieces: what else the user of recordings may do where none can be held out.
        """
        noun, groups = self.unit, [range(row, row + 1) for row in range(len(examples))]
        if not self.frames and self.options.split == "documents":
            noun, groups = in_documents(examples, share_held_out(self.options, len(examples)))
        way_out = pieces if noun == self.unit else ", or choose --split sentences"

        def tags_of(rows):
            return {tag for row in rows for tag in examples[row].target}

        parts = split(groups, self.options, tags_of, noun, "tag", way_out, len(examples))
        if noun != self.unit:
            held_out = counted(len(parts[1]), f"{noun}s are", f"{noun} is")
            console.print(f"  {held_out} held out of {len(groups):,}")
        return tuple(taken(examples, np.array([*itertools.chain(*part)], int)) for part in parts)

    @property
    def unit(self) -> str:
        return "recording" if self.frames else "sentence"

    def _frames(self):
        return Frames(self.options, self.options.tag_column or TAG, for_each_frame=True)

    def _in_pieces(self, examples):
        """Return recordings in pieces of as many frames as the model reads; sentences as they
        are."""
        length = self.source_length or self.options.max_length
        if not self.frames or length is None:
            return examples
        return [piece for example in examples for piece in example.pieces(length)]

    def _parted(self, example):
        """Return the only recording, or sentence, in parts of which some are held out."""
        if self.options.carry_every is None or self.options.max_length is not None:
            return self._in_pieces([example])
        return example.pieces(math.ceil(len(example) * (share_held_out(self.options, 1) or 1)))

    def _validated(self, examples):
        """Return recordings as they are validated: whole, where training carries the state through
        them."""
        return examples if self.options.carry_every else self._in_pieces(examples)

    def examples_of(
        self, paths: Sequence[Path | str], settings: Mapping[str, Any]
    ) -> Sequence[Any]:
        if self.options.recordings.reads_frames(paths[0]) or settings.get("rows"):
            self.frames = self._frames().of_settings(settings)
        labels = settings["labels"]
        self.scheme = scheme_of(labels)
        parts = (self._examples(path, labels, "what was trained") for path in paths)
        return self._validated(joined(parts))

    def _examples(self, path, labels=None, source=None):
        """Return the examples of a file.

        Args:
            path: path of the file.
            labels: the tags that may occur, all of them in `source`; None: any.
        """
        options, before = self.options, []
        if self.frames:
            rows, read = self.frames.read(path), lambda recording: recording
        else:
            tagged = TaggedSentences(path, options, self.has_token)
            rows, read, before = tagged.sentences, tagged.example, tagged.left_out

        def known(row):
            example = read(row)
            tags = () if labels is None else enumerate(example.target)
            unknown = next((where for where, tag in tags if tag not in labels), None)
            if unknown is not None:
                if self.frames:
                    named = f"{example.where}: the recording"
                else:
                    named = (
                        f"{path}, line {row.lines[unknown]}: the word {row.words[unknown]!r:.40}"
                    )
                raise DataError(
                    f"{named} has the tag {example.target[unknown]!r:.40}, which is not in "
                    f"{source}; that has {listed(labels)}."
                )
            return example

        keep = list if self.frames else Stored
        examples, left_out = usable(path, zip(rows), known, self.unit, options.skip_bad, keep)
        say_left_out([*before, *left_out], self.unit)
        return examples

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        if self.frames:
            return {}
        return self.tokenizer_of(examples, _texts_of)

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        if not self.frames:
            yield "inputs", "text", Texts(examples, _texts_of)

    def kept(self, validation: Sequence[Any]) -> Sequence[Any]:
        return self.frames.kept(validation) if self.frames else validation

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        labels, settings = _labels(examples), {}
        scheme = scheme_of(labels)
        if not self.frames and gives_parts_tags(scheme):
            labels = sorted({*labels, *(continued(label, scheme) for label in labels)})
        limits = {"source_length": self.options.max_length or MOST_TOKENS}
        if self.pretrained:
            limits["source_length"] = self.pretrained.limit(self.options.max_length, MOST_TOKENS)
        if self.frames:
            limits, settings = self.frames.record(examples)
        return {
            "pipeline": "Tag",
            "limits": limits,
            "settings": {"labels": labels, "scheme": scheme} | settings,
        }


class TaggingModelling(FrameModelling):
    """Sentences or frames to a model that gives each tag a logit."""

    def arrays(self, examples: Sequence[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        index_of = {label: index for index, label in enumerate(run.record.settings["labels"])}
        limit = run.record.limits["source_length"]
        if self.reading.frames:
            targets = [[index_of[tag] for tag in example.target[:limit]] for example in examples]
            inputs, lengths = self.reading.frames.inputs(examples, limit)
            return inputs, Sequences(targets, padding=NO_TAG), lengths
        tagged = TaggedRows(run)
        token_ids, targets = tagged(examples)
        if tagged.cut:
            more = f"of more than --max-length {limit} tokens"
            cut = counted(tagged.cut, f"sentences {more} are", f"sentence {more} is")
            console.print(f"  {cut} cut")
        inputs = inputs_of_ids(token_ids, self.reading.pretrained)
        return inputs, targets, token_ids.lengths

    def varied(self, inputs: Any, targets: Any, run: RunFiles) -> Any:
        return varied_inputs(self.options, inputs, targets, run)

    def batches(self, examples: Sequence[Any], run: RunFiles) -> Batches:
        if not self.carries_state():
            return super().batches(examples, run)
        index_of = {label: index for index, label in enumerate(run.record.settings["labels"])}
        targets = [np.array([index_of[tag] for tag in example.target]) for example in examples]
        return self.reading.frames.carried(examples, targets, NO_TAG)

    delays: Delays | None = None  # of a causal model of frames

    def measure(
        self, model: keras.Model, examples: Sequence[Any], run: RunFiles
    ) -> dict[str, float]:
        self.delays = self.delays or Delays()
        return self.delays(self, model, examples, run)

    def model(self, run: RunFiles) -> keras.Model:
        options, labels = self.options, run.record.settings["labels"]
        limit = run.record.limits["source_length"]
        if self.reading.pretrained:
            return self.reading.pretrained.with_heads(self.heads(run), options.frozen)
        if self.reading.frames:
            inputs, hidden, _ = self.reading.frames.encoded(limit)
        else:
            inputs, hidden, _ = encoded(options, run.tokenizers["text"], limit)
        hidden = keras.layers.Dropout(options.dropout)(hidden)
        if options.crf:
            logits = keras.layers.Dense(len(labels), name=EMISSIONS)(hidden)
            return keras.Model(inputs, LinearChain(name="tag")(logits))
        model = keras.Model(inputs, keras.layers.Dense(len(labels), name="tag")(hidden))
        return in_training(model, self.options)

    def heads(self, run: RunFiles) -> dict[str, keras.Layer]:
        """Return a dictionary: name -> head, of a pre-trained encoder."""
        labels = run.record.settings["labels"]
        head = ChainTaggingHead if self.options.crf else TaggingHead
        return {"tag": head(len(labels), self.options.dropout)}

    def loss(self) -> Any:
        if self.options.crf:
            return ChainLoss(NO_TAG)
        return SmoothedCrossEntropy(0.0, ignore_class=NO_TAG)

    def metrics(self) -> Any:
        if self.options.crf:
            return []
        return [TokenAccuracy(ignore_class=NO_TAG, name="accuracy")]


class TaggingScoring(Scoring):
    """Tags that are right, F1 of entities or of frames."""

    def sample(self, example: Any, answer: Any) -> dict[str, str]:
        tags = [word.tag for word in answer.words]
        if self.reading.frames:
            written = {"target": " ".join(example.target), "answer": " ".join(tags)}
            return self.reading.frames.sample(example) | written
        return {
            "input": " ".join(example.text),
            "target": " ".join(map("/".join, zip(example.text, example.target, strict=True))),
            "answer": answer.line(),
        }

    def validation_scores(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, float]:
        tags, targets = self._tags_of(examples, answers)
        words = "frames" if self.reading.frames else "words"
        scores = {f"{words} right": tag_accuracy(tags, targets)}
        if self.reading.scheme:
            return {"F1 of entities": entity_f1(tags, targets)} | scores
        return scores

    def scores_beside(self, examples: Sequence[Any], answers: Sequence[Any]) -> dict[str, float]:
        scores = self.validation_scores(examples, answers)
        if not self.reading.scheme:
            return scores
        of_entities = entity_scores(*self._tags_of(examples, answers))
        return {name: of_entities[name] for name in ("precision", "recall")} | scores

    def methods(self, train: Sequence[Any], run: RunFiles) -> list[Method]:
        if self.reading.frames:
            return tags_of_frames(train, self.options.seed)
        return tags_of_words(train, lambda example: _starts(example.text))

    def compared_by(self) -> Measure:
        words = "frames" if self.reading.frames else "words"
        return Measure("F1 of entities" if self.reading.scheme else f"{words} right", ratio)

    def sums(self, examples: Sequence[Any], answers: Sequence[Any]) -> np.ndarray:
        tags, targets = self._tags_of(examples, answers)
        count = _common_entities if self.reading.scheme else _right_tags
        return np.array([*map(count, tags, targets)], "float64")

    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        [(examples, answers)] = answered.values()
        tags, targets = self._tags_of(examples, answers)
        words = "frames" if self.reading.frames else "words"
        scores: dict[str, Any] = {
            f"{self.reading.unit}s": len(examples),
            words: sum(map(len, targets)),
            "accuracy": tag_accuracy(tags, targets),
        }
        if self.reading.scheme:
            of_entities = entity_scores(tags, targets)
            by_label = of_entities.pop("by_label")
            scores["entities"] = of_entities.pop("entities")
            scores |= {f"entity_{name}": value for name, value in of_entities.items()}
            scores["by_label"] = by_label
        elif self.reading.frames:
            by_label = class_scores([*itertools.chain(*tags)], [*itertools.chain(*targets)])
            scores |= {
                f"macro_{name}": float(np.mean([of_label[name] for of_label in by_label.values()]))
                for name in SHARES
            }
            scores["by_label"] = by_label
        return scores

    def table(self, scores: Mapping[str, Any]) -> Any:
        if "by_label" not in scores:
            return None
        kind = "entities" if "entity_f1" in scores else "frames"
        units = f"{self.reading.unit}s"
        table = Table(title=f"{kind} of {counted(scores[units], units)}")
        table.add_column("label")
        names = ("precision", "recall", "F1")
        for name in ("entities", *names) if "entity_f1" in scores else names:
            table.add_column(name, justify="right")
        by_label = scores["by_label"].items()
        by_label = sorted(by_label, key=lambda item: -item[1].get("entities", 0))
        add_rows(table, [(one_line(label), *_cells(of_label)) for label, of_label in by_label])
        table.add_section()
        if "entity_f1" in scores:
            shares = {name: scores[f"entity_{name}"] for name in SHARES}
            table.add_row("all", *_cells({"entities": scores["entities"]} | shares))
        else:
            shares = {name: scores[f"macro_{name}"] for name in SHARES}
            table.add_row("all, macro", *_cells(shares))
        return table

    def summary(self, scores: Mapping[str, Any]) -> str:
        f1 = ""
        if "entity_f1" in scores:
            shares = ", as there are none"
            if scores["by_label"]:
                names = ("precision", "recall")
                both = ", ".join(f"{name} {scores[f'entity_{name}']:.2%}" for name in names)
                shares = f" ({both})"
            f1 = f"F1 of entities is {scores['entity_f1']:.2%}{shares}, "
        words = "frames" if self.reading.frames else "words"
        return f"{f1}{scores['accuracy']:.2%} of the {words} have the right tag"

    def _tags_of(self, examples, answers):
        """Return tags of the answers, and the targets; a word that was cut off has the tag O."""
        rows = []
        for example, answer in zip(examples, answers, strict=True):
            starts = range(len(example.text)) if self.reading.frames else _starts(example.text)
            tags = dict.fromkeys(starts, OUTSIDE)
            rows.append([*(tags | {word.start: word.tag for word in answer.words}).values()])
        return rows, [example.target for example in examples]


class TaggingCalibrating(Calibrating):
    """Probabilities of tags."""

    @property
    def linear(self) -> str | None:
        """The layer of tags; none of frames."""
        return None if self.reading.frames else "tag"

    def evidence(
        self, model: keras.Model, examples: Sequence[Any], answers: Sequence[Any], run: RunFiles
    ) -> Evidence:
        labels, texts = run.record.settings["labels"], [example.text for example in examples]
        place_of = {label: index for index, label in enumerate(labels)}
        sentences = []
        for example, logits in zip(
            examples, logits_of_texts(model, run, texts, "calibrating"), strict=True
        ):
            places = np.array([place_of.get(tag, -1) for tag in example.target])
            read = np.isfinite(logits).reshape(len(places), -1).all(axis=1)
            sentences.append((logits[read], places[read]))
        if self.options.crf:
            return Chains(sentences)
        return Softmaxes(
            [
                Chances(row, index, number)
                for number, pair in enumerate(sentences)
                for row, index in zip(*pair, strict=True)
                if index >= 0
            ]
        )

    def last_layers(self, model: keras.Model) -> list[keras.Layer]:
        layers = super().last_layers(model)
        if not self.options.crf:
            return layers
        heads = getattr(model, "heads", None)
        return [*layers, model.get_layer(EMISSIONS) if heads is None else heads["tag"].chain]

    def certainty(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> list[tuple[float, bool]]:
        pairs = []
        for example, answer in zip(examples, answers, strict=True):
            starts = range(len(example.text)) if self.reading.frames else _starts(example.text)
            target_of = dict(zip(starts, example.target, strict=True))
            pairs += [(word.score, word.tag == target_of.get(word.start)) for word in answer.words]
        return pairs


def _common_entities(tags, targets):
    """Return 2 common, and predicted + true entities of a sentence, whose ratio is F1."""
    predicted, true = {*entities(tags)}, {*entities(targets)}
    return 2 * len(predicted & true), len(predicted) + len(true)


def _right_tags(tags, targets):
    return sum(map(str.__eq__, tags, targets)), len(targets)


def _labels(examples):
    return sorted({*itertools.chain.from_iterable(example.target for example in examples)})


def _texts_of(example):
    return (" ".join(example.text),)


def _cells(scores):
    """Return counts and shares as they stand in a table."""
    return [f"{value:,}" if isinstance(value, int) else f"{value:.2%}" for value in scores.values()]


def _starts(words):
    """Return where words begin in their text."""
    return [0, *itertools.accumulate(len(word) + 1 for word in words[:-1])]
