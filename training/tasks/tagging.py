"""The words of sentences and their tags, from a file of the user's."""

from typing import NamedTuple

import keras
from rich.table import Table

from seqkeras.data.batches import Sequences
from seqkeras.data.conll import read_sentences, scheme_of, to_iob2
from seqkeras.losses import SmoothedCrossEntropy
from seqkeras.metrics import TokenAccuracy, entity_f1, tag_accuracy
from seqkeras.runs import RunError
from seqkeras.terminal import one_line
from seqkeras.tokenizers import learn_word_piece
from training.answering.tag import read_words
from training.console import console
from training.task import Task
from training.tasks.encoders import encoded
from training.tasks.options.tagging import TaggingOptions
from training.tasks.splitting import split

NO_TAG = -1  # the target of a token that is not the first of its word
OUTSIDE = "O"


class Example(NamedTuple):
    """The words of a sentence, and their tags."""

    text: tuple[str, ...]
    target: list[str]


class Tagging(Task):
    """The words of sentences and their tags."""

    name = "tagging"
    options_class = TaggingOptions

    def read(self):
        options = self.options
        train = self._examples([options.file])
        if options.validation is not None:
            validation = self._examples([options.validation])
        else:
            train, validation = split(train, options)
        if len(train) < options.batch_size:
            raise RunError(
                f"{options.file}: {len(train):,} sentences are left for training, fewer than the "
                f"{options.batch_size} of a batch; choose a smaller --batch-size."
            )
        self._require_known_tags(train, validation)
        labels = _labels(train)
        if len(labels) < 2:
            raise RunError(f"{options.file}: all words have the tag {labels[0]!r:.40}.")
        console.print(
            f"{self.name}: {len(train):,} training and {len(validation):,} validation sentences, "
            f"{len(labels):,} tags, {_scheme_in_words(scheme_of(labels))}"
        )
        return train, validation

    def examples_of(self, paths, settings):
        examples = self._examples(paths)
        self._require_known_tags([Example((), settings["labels"])], examples)
        return examples

    def _examples(self, paths):
        options = self.options
        examples = []
        for path in paths:
            sentences = read_sentences(path, options.word_column, options.tag_column)
            scheme = scheme_of(tag for sentence in sentences for tag in sentence.tags)
            for sentence in sentences:
                tags = to_iob2(sentence.tags) if scheme == "IOB2" else sentence.tags
                examples.append(Example(sentence.words, [*tags]))
        return examples

    def _require_known_tags(self, train, validation):
        labels = _labels(train)
        unknown = sorted({*_labels(validation)} - {*labels})
        if unknown:
            raise RunError(
                f"the tags {', '.join(map(repr, unknown))} of the validation are not among those "
                f"that are trained, {', '.join(labels)}; choose other files, or another --seed."
            )

    def tokenizers(self, examples):
        texts = [" ".join(example.text) for example in examples]
        try:
            tokenizer = learn_word_piece(texts, self.options.vocab_size, self.options.lowercase)
        except ValueError as error:
            raise RunError(f"{self.options.file}: {error} Choose a larger --vocab-size.") from error
        return {"text": tokenizer}

    def record(self, examples):
        labels = _labels(examples)
        return {
            "pipeline": "Tag",
            "limits": {"source_length": self.options.max_length},
            "settings": {"labels": labels, "scheme": scheme_of(labels)},
        }

    def arrays(self, examples, run):
        place = {label: index for index, label in enumerate(run.record.settings["labels"])}
        token_ids, targets, cut = [], [], 0
        for example in examples:
            read = read_words(run, example.text)
            row = [NO_TAG] * len(read)
            for number, token in zip(read.numbers, read.first_tokens, strict=True):
                row[token] = place[example.target[number]]
            token_ids.append(read.token_ids)
            targets.append(row)
            cut += len(read) == self.options.max_length and len(read.numbers) < len(example.text)
        if cut:
            console.print(
                f"  {cut:,} sentences of more than --max-length {self.options.max_length} tokens "
                "are cut"
            )
        token_ids = Sequences(token_ids)
        return {"token_ids": token_ids}, Sequences(targets, padding=NO_TAG), token_ids.lengths

    def model(self, run):
        options, labels = self.options, run.record.settings["labels"]
        inputs, hidden, _ = encoded(options, len(run.tokenizers["text"]))
        hidden = keras.layers.Dropout(options.dropout)(hidden)
        return keras.Model(inputs, keras.layers.Dense(len(labels), name="tag")(hidden))

    def loss(self):
        return SmoothedCrossEntropy(0.0, ignore_class=NO_TAG)

    def metrics(self):
        return [TokenAccuracy(ignore_class=NO_TAG, name="accuracy")]

    def validation_scores(self, examples, answers):
        found, targets = _tags_of(examples, answers)
        scores = {"words right": tag_accuracy(found, targets)}
        if scheme_of(tag for tags in targets for tag in tags):
            scores["F1 of entities"] = entity_f1(found, targets)
        return scores

    def scores(self, answered):
        [(examples, answers)] = answered.values()
        found, targets = _tags_of(examples, answers)
        scores = {
            "sentences": len(examples),
            "words": sum(map(len, targets)),
            "accuracy": tag_accuracy(found, targets),
        }
        if scheme_of(tag for tags in targets for tag in tags):
            kinds = sorted({tag[2:] for tags in targets for tag in tags if tag != OUTSIDE})
            scores["entity_f1"] = entity_f1(found, targets)
            scores["by_label"] = {
                kind: entity_f1(_of_kind(found, kind), _of_kind(targets, kind)) for kind in kinds
            }
        return scores

    def table(self, scores):
        if "by_label" not in scores:
            return None
        table = Table(title=f"entities of {scores['sentences']:,} validation sentences")
        table.add_column("label")
        table.add_column("F1", justify="right")
        for label, f1 in scores["by_label"].items():
            table.add_row(one_line(label), f"{f1:.2%}")
        table.add_section()
        table.add_row("all", f"{scores['entity_f1']:.2%}")
        return table

    def summary(self, scores):
        f1 = f"F1 of entities is {scores['entity_f1']:.2%}, " if "entity_f1" in scores else ""
        return f"{f1}{scores['accuracy']:.2%} of the words have the right tag"


def _labels(examples):
    return sorted({tag for example in examples for tag in example.target})


def _scheme_in_words(scheme):
    return "which spell no entities" if scheme is None else f"entities in {scheme}"


def _of_kind(sentences, kind):
    """Tags with those of other entities taken for none."""
    return [[tag if tag[2:] == kind else OUTSIDE for tag in tags] for tags in sentences]


def _tags_of(examples, answers):
    """The tags of the answers, and the targets; a word that was cut off has the tag O."""
    found = []
    for example, answer in zip(examples, answers, strict=True):
        starts, start = {}, 0
        for number, word in enumerate(example.text):
            starts[start] = number
            start += len(word) + 1
        tags = [OUTSIDE] * len(example.text)
        for word in answer.words:
            tags[starts[word.start]] = word.tag
        found.append(tags)
    return found, [example.target for example in examples]
