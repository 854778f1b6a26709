"""Plain text of the user's to a BERT that classification, tagging and others begin with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np

from seqkeras.data.documents import Corpus
from seqkeras.data.masking import IGNORED, Masking, mask_token_of
from seqkeras.data.pretraining import EveryRow, PretrainingBatches
from seqkeras.data.sentence_pairs import FullSentences, SentencePairs
from seqkeras.data.token_records import ShardTokens, encoder_of_sentences
from seqkeras.metrics import TokenAccuracy
from seqkeras.models import Bert, MaskedLMHead, NextSentenceHead, WithHeads
from seqkeras.runs import RunError, RunRecord
from seqkeras.terminal import one_line
from seqkeras.tokenizers import (
    Subwords,
    learn_word_piece,
    read_tokenizer,
    read_vocabulary,
    special_ids,
    word_piece,
)
from seqkeras.training.console import console
from seqkeras.training.options.positions import POSITION_KINDS
from seqkeras.training.parts.documents import DocumentModelling, DocumentReading, evenly
from seqkeras.training.parts.masked_samples import masked_samples
from seqkeras.training.parts.masked_sentences import SEED, masked_sentences
from seqkeras.training.parts.masked_validation import MaskedValidation, most_frequent
from seqkeras.training.parts.plain_texts import MeasuredScoring
from seqkeras.training.parts.pretrained import Pretrained
from seqkeras.training.parts.vocabularies import learned_from

if TYPE_CHECKING:
    from seqkeras.data.batches import Batches
    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer

KEPT = 200  # validation sentences that stay with the run
SHOWN = 5  # rows in samples.txt
MOST_ROWS = 2000  # of validation, with fixed masks
MOST_FILLED = 1000  # validation sentences whose masks are filled in the end
LEAST_FOLLOWING = 0.4  # share of pairs whose second text goes on, of which nothing is said


class BertPretrainingReading(DocumentReading):
    """Plain text to a BERT, by masked words and pairs of sentences."""

    pretrained: Any = None

    @property
    def least(self) -> int:
        return 1 + self.options.pairs

    @property
    def way_to_train(self) -> str:
        return ", or --pairs false with --validation FILE" if self.options.pairs else ""

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        options = self.options
        if options.pretrained is not None:
            self.pretrained = Pretrained.read(options.pretrained)
            self.pretrained.limit(options.max_length, options.max_length)
            if options.pairs and self.pretrained.config["num_segments"] < 2:
                raise RunError(
                    f"--pretrained {options.pretrained}: does not tell two texts apart; choose "
                    "--pairs false."
                )
        return super().read()

    def given_vocabulary(self) -> tuple[str, Subwords] | None:
        if self.pretrained is None:
            return None
        return f"--pretrained {self.options.pretrained}", self.pretrained.tokenizer

    def new_tokenizer(self) -> Subwords:
        options = self.options
        try:
            if self.pretrained is not None:
                tokenizer = self.pretrained.tokenizer
            elif options.start_from is not None:
                role = RunRecord.read(options.start_from).tokenizers["text"]
                tokenizer = read_tokenizer(Path(options.start_from) / role)
            elif options.vocabulary is None:
                with learned_from(" and ".join(options.files)):
                    tokenizer = learn_word_piece(
                        self.sample(), options.vocab_size, options.lowercase, masks=True
                    )
            elif options.vocabulary.endswith(".json"):
                tokenizer = read_tokenizer(options.vocabulary)
            else:
                tokenizer = word_piece(read_vocabulary(options.vocabulary), options.lowercase)
            if not isinstance(tokenizer, Subwords):
                raise ValueError(
                    f"expected WordPiece or byte pairs; it is a {type(tokenizer).__name__}"
                )
            mask_token_of(tokenizer)
        except (OSError, ValueError) as error:
            named = options.pretrained or options.start_from or options.vocabulary
            source = named or " and ".join(options.files)
            raise RunError(f"{source}: {str(error).removeprefix(f'{source}: ')}") from error
        return tokenizer

    def examples_in(self, documents: list[Any]) -> list[Any]:
        """Return the `MaskedSentence`s of documents, of which one has a mask at least."""
        limit = self.options.max_length
        sentences = masked_sentences(documents, self.tokenizer, self.options.mask_share, limit)
        if not _with_text(sentences):
            raise RunError(
                f"{self.source}: no word is left for validation: none of its {len(sentences):,} "
                f"sentences holds one that is a single token, within --max-length {limit}."
            )
        return sentences

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        return {"text": self.tokenizer}

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        if isinstance(examples, Corpus):
            yield "inputs", "text", self.sample()
        elif examples is not None:
            yield "inputs", "text", [example.sentence for example in examples]

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        return {
            "pipeline": "FillMask",
            "limits": {"source_length": self.options.max_length},
            "settings": {"output": "masked", "mask_token": mask_token_of(tokenizers["text"])},
        }

    def kept(self, validation: Sequence[Any]) -> Sequence[Any]:
        return evenly(_with_text(validation), KEPT)


class BertPretrainingModelling(DocumentModelling):
    """Documents to a BERT with heads of masked words and next sentences."""

    validation: Any = None  # a `MaskedValidation`

    def batches(self, examples: Sequence[Any], run: RunFiles) -> Batches:
        options, tokenizer = self.options, run.tokenizers["text"]
        records, rows, order = self.ordered(tokenizer)
        if options.pairs:
            _require_following(records.folder, rows)
        masking = Masking(tokenizer, options.masks, options.mask_share)
        return PretrainingBatches(rows, masking, order, options.max_length)

    def rows(self, shards: Sequence[ShardTokens], tokenizer: Subwords) -> Any:
        ids: Any = special_ids(tokenizer)
        if self.options.pairs:
            limits = self.options.max_length, ids.start_id, ids.end_id
            return SentencePairs(shards, *limits, self.options.short)
        return FullSentences(shards, self.options.max_length, ids.start_id, ids.end_id)

    def model(self, run: RunFiles) -> keras.Model:
        options, vocab_size = self.options, len(run.tokenizers["text"])
        if self.reading.pretrained is not None:
            pretrained = self.reading.pretrained
            model = pretrained.with_heads(self._heads(pretrained.config["vocab_size"]))
            pretrained.give_heads(model)
            return model
        encoder = Bert(
            vocab_size,
            options.hidden_dim,
            options.num_layers,
            options.num_heads,
            options.feed_forward_dim or 4 * options.hidden_dim,
            max_length=options.positions,
            dropout=options.dropout,
            attention_dropout=options.attention_dropout,
            pooler="tanh" if options.pairs else None,
            attention_window=options.attention_window,
            positions=POSITION_KINDS[options.position_kind or "learned"],
            name="encoder",
        )
        model = WithHeads(encoder, self._heads(vocab_size))
        model.build(None)
        return model

    def _heads(self, vocab_size):
        heads = {"masked": MaskedLMHead(vocab_size)}
        return heads | ({"next": NextSentenceHead()} if self.options.pairs else {})

    def loss(self) -> Any:
        return {
            name: keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, ignore_class=IGNORED, reduction="mean_with_sample_weight"
            )
            for name in self._names()
        }

    def metrics(self) -> Any:
        return {name: [TokenAccuracy(IGNORED, "accuracy")] for name in self._names()}

    def _names(self):
        return ("masked", "next") if self.options.pairs else ("masked",)

    def measure(
        self, model: keras.Model, examples: Sequence[Any], run: RunFiles
    ) -> dict[str, float]:
        """Return the scores of rows of the validation documents, whose masks are the same at each
        look."""
        if self.validation is None or self.validation.examples is not examples:
            self.validation = self._validation(examples, run)
        return self.validation(model)

    def _validation(self, examples, run):
        tokenizer, options = run.tokenizers["text"], self.options
        documents = {}
        for example in examples:
            documents.setdefault(example.document, []).append(example.sentence)
        documents = [*map(encoder_of_sentences(tokenizer), documents.values())]
        try:
            rows = self.rows([ShardTokens.of_documents([*filter(None, documents)])], tokenizer)
        except ValueError as error:
            raise RunError(f"{self.reading.source}: validation: {error}") from error
        masking = Masking(tokenizer, options.masks, options.mask_share)
        order = EveryRow(rows.counts, options.batch_size, SEED, MOST_ROWS)
        batches = PretrainingBatches(rows, masking, order, options.max_length)
        return MaskedValidation(examples, [*batches.from_step(0)])


class BertPretrainingScoring(MeasuredScoring):
    """Masked words that are told."""

    measured = "of the held-out documents"
    lower_is_better = ("validation_masked_loss", "validation_next_loss")

    def looked_at(self, validation: Sequence[Any]) -> Sequence[Any]:
        return []  # `samples` has rows of its own

    def tests(self, validation: Sequence[Any]) -> Iterable[tuple[str, list[Any]]]:
        yield "validation", evenly(_with_text(validation), MOST_FILLED)

    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        """Return scores beside those of `measure`: the shares of right answers without a model, and
        how many masked words of single sentences are told."""
        [(examples, answers)] = answered.values()
        targets = [token for example in examples for token in example.target]
        tokens = [mask[0].token for answer in answers for mask in answer.masks]
        words = {
            "words_right": float(np.mean([*map(str.__eq__, tokens, targets)])),
            "words_right_by_the_most_frequent": most_frequent(targets),
        }
        validation = self.modelling.validation
        return words if validation is None else {**validation.baselines, **words}

    def samples(
        self, model: keras.Model, run: RunFiles, examples: Sequence[Any], answers: Sequence[Any]
    ) -> list[dict[str, str]]:
        """Return what the model sees and answers of some rows of the validation documents."""
        batches = self.modelling.validation.batches
        return masked_samples(model, run.tokenizers["text"], batches, SHOWN)

    def summary(self, scores: Mapping[str, Any]) -> str:
        words = f"{scores['words_right']:.2%} of masked words are told"
        if "validation_masked_accuracy" not in scores:
            return words
        parts = [f"masked tokens right are {scores['validation_masked_accuracy']:.2%}"]
        if "validation_next_accuracy" in scores:
            parts.append(f"next sentences {scores['validation_next_accuracy']:.2%}")
        return ", ".join([*parts, words])


def _require_following(folder, rows):
    """Raise a RunError if no second text goes on with a first one; say if few do."""
    share = rows.follow
    if share < LEAST_FOLLOWING:
        text = (
            f"{folder}: of {share:.0%} of the pairs the second text goes on with the first, in "
            "place of half of them: documents of one sentence have nothing that goes on; leave "
            "out empty lines within documents, or choose --pairs false"
        )
        if not share:
            raise RunError(f"{text}.")
        console.print(one_line(f"  {text}"))


def _with_text(sentences):
    return [sentence for sentence in sentences if sentence.text]
