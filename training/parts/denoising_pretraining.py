"""Plain text of the user's to an encoder-decoder that restores it, and that translation begins
with."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import keras
import numpy as np

from seqkeras.data.batches import Batches
from seqkeras.data.denoising import span_corruption, text_infilling
from seqkeras.data.denoising_batches import DenoisingBatches, Frame
from seqkeras.data.documents import Corpus
from seqkeras.data.masking import IGNORED, mask_token_of
from seqkeras.data.pretraining import EveryRow
from seqkeras.data.sentence_pairs import DocumentSentences
from seqkeras.data.token_records import ShardTokens, encoder_of_sentences
from seqkeras.metrics import TokenAccuracy
from seqkeras.runs import RunError
from seqkeras.tokenizers import (
    Subwords,
    learn_t5_pieces,
    read_tokenizer,
    sentinel_ids,
    special_ids,
    with_sentinels,
)
from seqkeras.training.parts.documents import DocumentModelling, DocumentReading, evenly
from seqkeras.training.parts.masked_sentences import SEED
from seqkeras.training.parts.masked_validation import MaskedValidation
from seqkeras.training.parts.plain_texts import MeasuredScoring, perplexity
from seqkeras.training.parts.translation_models import restoring_model_of
from seqkeras.training.parts.vocabularies import learned_from
from seqkeras.training.starting import StartOfTranslator, read_translator

if TYPE_CHECKING:
    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer

DRAWN = 32  # rows of validation that are damaged at once, whatever a batch is
MOST_ROWS = 2000  # of validation, whose damage stays the same
KEPT = 200  # of them stay with the run
MOST_ANSWERED = 500  # are restored in the end
SHOWN = 5  # rows in samples.txt
SENTINEL = re.compile(r"<extra_id_\d+>")


class DamagedText(NamedTuple):
    """A row of a validation document.

    Attributes:
        text: the damaged text.
        target: what restores it.
        source_ids, target_ids: their token ids, of the source with what stands around it.
    """

    text: str
    target: str
    source_ids: list
    target_ids: list


class DenoisingPretrainingReading(DocumentReading):
    """Plain text to an encoder-decoder that restores it."""

    start: StartOfTranslator | None = None

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        if self.options.start_from is not None:
            self.start = self._start(self.options.start_from)
        return super().read()

    def _start(self, folder):
        start = read_translator(folder)
        start.require_positions(folder, self.options.max_length)
        source, target = (start.tokenizers[side] for side in ("source", "target"))
        if source != target or not isinstance(source, Subwords):
            raise RunError(
                f"{folder}: expected one tokenizer.json for sources and targets, which can have "
                "sentinels; start from a T5 folder, or from a run of denoising-pretraining."
            )
        tokenizer = with_sentinels(source)
        if len(tokenizer) > start.model.sizes["target_vocab_size"]:
            raise RunError(
                f"{folder}: its model has no embeddings for sentinels; start from a T5 folder, or "
                "from a run of denoising-pretraining."
            )
        return dataclasses.replace(start, tokenizers=dict.fromkeys(start.tokenizers, tokenizer))

    def given_vocabulary(self) -> tuple[str, Subwords] | None:
        if self.start is None:
            return None
        return f"--start-from {self.options.start_from}", self.start.tokenizers["source"]

    def new_tokenizer(self) -> Subwords:
        options = self.options
        if self.start is not None:
            return self.start.tokenizers["source"]
        if options.vocabulary is None:
            with learned_from(" and ".join(options.files)):
                return learn_t5_pieces(self.sample(), options.vocab_size, options.lowercase)
        try:
            tokenizer = read_tokenizer(options.vocabulary)
            if not isinstance(tokenizer, Subwords):
                raise ValueError(f"expected a tokenizer.json; it is a {type(tokenizer).__name__}")
        except (OSError, ValueError) as error:
            named = options.vocabulary
            raise RunError(f"{named}: {str(error).removeprefix(f'{named}: ')}") from error
        return with_sentinels(tokenizer)

    def of_records(self, tokenizer: Any) -> Subwords:
        return with_sentinels(tokenizer)

    def ids(self, tokenizer: Any) -> dict[str, int]:
        """Return `start_id` and `end_id` of targets; as in T5, padding begins a target where no
        other token does.

        Raises:
            RunError: if there is none.
        """
        if self.start is not None:
            return self.start.decoding
        ids = special_ids(tokenizer)
        start_id = ids.padding_id if ids.start_id is None else ids.start_id
        if start_id is None or ids.end_id is None:
            raise RunError(
                f"{self.options.vocabulary}: a token that begins a text and one that ends it must "
                "be there, such as <s> and </s>."
            )
        return {"start_id": start_id, "end_id": ids.end_id}

    def rows(self, shards: Sequence[ShardTokens], tokenizer: Subwords) -> DocumentSentences:
        """Return the rows of shards."""
        frame = Frame.of(tokenizer, **self.ids(tokenizer))
        return DocumentSentences(shards, frame.room(self.options.max_length))

    def batches(self, rows: DocumentSentences, order: Any, frame: Frame) -> DenoisingBatches:
        """Return the batches of an order of rows, damaged as the options say."""
        options = self.options
        limit, shuffled = options.max_length, options.shuffle_sentences
        return DenoisingBatches(rows, self._noise(), frame, order, limit, shuffled=shuffled)

    def _noise(self):
        options, tokenizer = self.options, self.tokenizer
        drawn = {"share": options.share, "span_length": options.span_length}
        if options.noise == "spans":
            return functools.partial(
                span_corruption, sentinel_ids=np.array(sentinel_ids(tokenizer)), **drawn
            )
        mask_id = tokenizer.id_of(mask_token_of(tokenizer))
        return functools.partial(text_infilling, mask_id=mask_id, **drawn)

    def examples_in(self, documents: list[Any]) -> list[Any]:
        """Return the `DamagedText`s of documents; the damage is the same each time."""
        rows = [*map(encoder_of_sentences(self.tokenizer), documents)]
        rows = [*filter(None, rows)]
        examples = [text for text in self._damaged(rows) if text.target] if rows else []
        if not examples:
            raise RunError(
                f"{self.source}: no row of two tokens is left for validation; hold longer texts "
                "out."
            )
        return examples

    def _damaged(self, documents):
        """Return the `DamagedText`s of documents, lists of sentences, lists of token ids."""
        tokenizer = self.tokenizer
        frame = Frame.of(tokenizer, **self.ids(tokenizer))
        rows = self.rows([ShardTokens.of_documents(documents)], tokenizer)
        order = EveryRow(rows.counts, DRAWN, SEED, MOST_ROWS)
        batches = self.batches(rows, order, frame)
        return [
            DamagedText(
                tokenizer.decode(_within(source, frame), special_tokens=True),
                tokenizer.decode(target),
                source,
                target,
            )
            for drawn in order.from_step(0)
            for source, target in zip(*batches.damaged(drawn), strict=True)
        ]

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        return dict.fromkeys(("source", "target"), self.tokenizer)

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        if isinstance(examples, Corpus):
            yield "inputs", "source", self.sample()
        elif examples is not None:
            yield "inputs", "source", [example.text for example in examples]

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        limit = self.options.max_length
        return {
            "pipeline": "Translate",
            "limits": {"source_length": limit, "target_length": limit},
            "decoding": {
                "num_beams": 1,
                "length_penalty": 0.0,
                **self.ids(tokenizers["source"]),
            },
        }

    def kept(self, validation: Sequence[Any]) -> Sequence[Any]:
        return evenly(validation, KEPT)


class DenoisingPretrainingModelling(DocumentModelling):
    """Rows of documents to an encoder-decoder that restores them."""

    validation: Any = None  # a `MaskedValidation`

    def rows(self, shards: Sequence[ShardTokens], tokenizer: Subwords) -> DocumentSentences:
        return self.reading.rows(shards, tokenizer)

    def batches(self, examples: Sequence[Any], run: RunFiles) -> Batches:
        _, rows, order = self.ordered(run.tokenizers["source"])
        return self.reading.batches(rows, order, _frame(run))

    def model(self, run: RunFiles) -> keras.Model:
        options, tokenizer = self.options, run.tokenizers["source"]
        if self.reading.start is not None:
            return self.reading.start.new_model(options.max_length)
        never_generated = special_ids(tokenizer).never_generated
        return restoring_model_of(options, len(tokenizer), never_generated)

    def loss(self) -> Any:
        return keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, ignore_class=IGNORED, reduction="mean_with_sample_weight"
        )

    def metrics(self) -> Any:
        return [TokenAccuracy(IGNORED, "accuracy")]

    def measure(
        self, model: keras.Model, examples: Sequence[Any], run: RunFiles
    ) -> dict[str, float]:
        """Return loss, perplexity and accuracy of the tokens that restore validation texts."""
        if self.validation is None or self.validation.examples is not examples:
            self.validation = self._validation(examples, run)
        scores = self.validation(model)
        return {
            "validation_loss": scores["validation_loss"],
            "validation_perplexity": perplexity(scores["validation_loss"]),
            "validation_accuracy": scores["validation_token_accuracy"],
        }

    def _validation(self, examples, run):
        frame, size = _frame(run), self.options.batch_size
        rows = sorted(examples, key=lambda example: len(example.source_ids))
        batches = []
        for start in range(0, len(rows), size):
            parts = [
                [getattr(row, name) for row in rows[start : start + size]]
                for name in ("source_ids", "target_ids")
            ]
            inputs, wanted = frame.arrays(*parts, lambda length: length)
            batches.append((inputs, {"token": wanted}))
        return MaskedValidation(examples, batches)


class DenoisingPretrainingScoring(MeasuredScoring):
    """Tokens that are restored, and whole answers."""

    measured = "of the held-out documents"
    lower_is_better = ("validation_perplexity",)

    def looked_at(self, validation: Sequence[Any]) -> Sequence[Any]:
        return evenly(validation, SHOWN)

    def tests(self, validation: Sequence[Any]) -> Iterable[tuple[str, list[Any]]]:
        yield "validation", evenly(validation, MOST_ANSWERED)

    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        """Return scores beside those of `measure`: the share of spans, or of infilled texts, that
        are restored to the last token."""
        [(examples, answers)] = answered.values()
        restored = [
            answer.get(sentinel) == span
            for example, answer in zip(
                examples, (_spans(answer.text) for answer in answers), strict=True
            )
            for sentinel, span in _spans(example.target).items()
        ]
        validation = self.modelling.validation
        return {
            **({} if validation is None else validation.baselines),
            "restored": float(np.mean(restored)),
        }

    def summary(self, scores: Mapping[str, Any]) -> str:
        what = "spans" if self.options.noise == "spans" else "texts"
        whole = f"{scores['restored']:.2%} of the {what} are restored"
        if "validation_accuracy" not in scores:
            return whole
        return f"tokens right are {scores['validation_accuracy']:.2%}, {whole}"


def _frame(run):
    ids = (run.record.decoding[name] for name in ("start_id", "end_id"))
    return Frame.of(run.tokenizers["source"], *ids)


def _spans(text):
    """Return sentinel -> the text behind it; a text without sentinels is one span."""
    first, *spans = SENTINEL.split(text)
    if not spans:
        return {"": text}
    return dict(zip(SENTINEL.findall(text), map(str.strip, spans), strict=True))


def _within(source, frame):
    """Return the token ids of a source without what stands around it."""
    return source[len(frame.prefix) : len(source) - len(frame.suffix)]
