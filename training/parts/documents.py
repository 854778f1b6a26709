"""Documents of plain text, or records of them, that a Transformer is pre-trained on."""

from __future__ import annotations

import abc
import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seqkeras.data.batching import fitting_size
from seqkeras.data.documents import Corpus, read_documents
from seqkeras.data.pretraining import ShardOrder
from seqkeras.data.token_records import VALIDATION, ShardTokens, TokenRecords, begin_records
from seqkeras.runs import RunError
from seqkeras.terminal import one_line
from seqkeras.tokenizers import Subwords
from seqkeras.training.console import console
from seqkeras.training.parts.plain_texts import MOST_LEARNED
from seqkeras.training.preparing import prepare
from seqkeras.training.task import Modelling, Reading
from seqkeras.training.wording import counted


class DocumentReading(Reading):
    """Base of what reads documents: of files, with a new tokenizer, or of records.

    Attributes:
        corpus: the `Corpus` of the files; None where there are records.
        tokenizer: a `Subwords`.
        source: name of the validation examples' files, for errors.
        least: documents that training and validation need, each.
        way_to_train: what the user may do beside setting empty lines, where they are too few.
    """

    corpus: Any = None
    tokenizer: Any = None
    source: str | None = None
    way_to_train: str = ""

    @property
    def least(self) -> int:
        return 1

    def given_vocabulary(self) -> tuple[str, Subwords] | None:
        """Return the option that brings a model, as the user gave it, with the model's tokenizer;
        None without one."""
        return None

    @abc.abstractmethod
    def new_tokenizer(self) -> Subwords:
        """Return the tokenizer that the options name, or one that is learned of `sample`.

        Raises:
            RunError: if it is none that the task needs.
        """

    def of_records(self, tokenizer: Any) -> Subwords:
        """Return the tokenizer of records, with what the task adds; known tokens keep their ids."""
        return tokenizer

    @abc.abstractmethod
    def examples_in(self, documents: list[Any]) -> list[Any]:
        """Return the validation examples of documents, lists of sentences, by `tokenizer`.

        Raises:
            RunError: that names `source`, if there is none.
        """

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        options = self.options
        records = options.documents.given_records()
        if records is not None:
            self.tokenizer = self.of_records(TokenRecords(records).tokenizer)
            given = self.given_vocabulary()
            if given is not None and self.tokenizer != given[1]:
                raise RunError(
                    f"{records}: these records have another vocabulary than {given[0]}; give the "
                    "files of text."
                )
            if unread := options.documents.without_effect(options):
                names = f"{', '.join(unread)} {'has' if len(unread) == 1 else 'have'} no effect"
                console.print(one_line(f"{options.task}: {records} brings its own; {names}"))
            if options.validation is None:  # as records have them
                held_out = read_documents(Path(records) / VALIDATION, "lines")
            else:
                held_out = read_documents(options.validation, options.form)
        else:
            self.corpus, held_out = self._corpus()
            self.tokenizer = self.new_tokenizer()
        self._require_documents(
            len(held_out),
            "validation",
            "Name a file by --validation, or set empty lines between documents.",
        )
        self.source = " and ".join(options.files)
        return self.corpus, self.examples_in(held_out)

    def examples_of(
        self, paths: Sequence[Path | str], settings: Mapping[str, Any]
    ) -> Sequence[Any]:
        self.source = " and ".join(map(str, paths))
        self.tokenizer = next(iter(self.known_tokenizers.values()))
        form = self.options.form
        return self.examples_in([text for path in paths for text in read_documents(path, form)])

    def _corpus(self):
        """Return the corpus of the files, and the documents of validation."""
        options = self.options
        share = options.held_out if options.validation is None else 0.0
        size = options.shard_megabytes * 2**20
        corpus = Corpus.of_files(options.files, options.form, share, size)
        if options.validation is not None:
            held_out = read_documents(options.validation, options.form)
            corpus = dataclasses.replace(corpus, validation=held_out)
        left = corpus.documents - (len(corpus.validation) if share else 0)
        self._require_documents(
            left,
            "training",
            "Set empty lines between documents, or choose a smaller --held-out"
            f"{self.way_to_train}.",
            f" of {corpus.documents}",
        )
        console.print(
            f"{options.task}: {counted(left, 'documents')} of training and "
            f"{len(corpus.validation):,} of validation"
        )
        return corpus, corpus.validation

    def _require_documents(self, count, use, advice, of_all=""):
        """Raise a RunError where a use of the documents has too few of them."""
        if count < self.least:
            least = "two documents" if self.least == 2 else "one document"
            raise RunError(
                f"{' and '.join(self.options.files)}: {least} at least must be for {use}; there "
                f"{'is' if count == 1 else 'are'} {count}{of_all}. {advice}"
            )

    def sample(self) -> list[str]:
        """Return documents of which a tokenizer is learned, of every shard alike."""
        most, texts = MOST_LEARNED // len(self.corpus.shards), []
        for shard in self.corpus.shards:
            count = 0
            for document in self.corpus.read(shard):
                texts.append("\n".join(document))
                count += len(texts[-1])
                if count >= most:
                    break
        return texts


class DocumentModelling(Modelling):
    """Base of what trains on rows of documents."""

    @abc.abstractmethod
    def rows(self, shards: Sequence[ShardTokens], tokenizer: Subwords) -> Any:
        """Return the rows of shards, with their `counts`.

        Raises:
            ValueError: if the shards make none.
        """

    def ordered(self, tokenizer: Subwords) -> tuple[TokenRecords, Any, ShardOrder]:
        """Return the records of the training documents, their `rows`, and the order of these.
        Records of files are made; a line says how many rows there are.

        Raises:
            RunError: if there is no row.
        """
        options = self.options
        if self.reading.corpus is None:
            folder = Path(options.files[0])
        else:
            folder = Path(options.records or self.folder.with_name(f"{self.folder.name}.records"))
            missing = begin_records(folder, self.reading.corpus, tokenizer)
            prepare(folder, missing, options.processes)
        records, size = TokenRecords(folder), options.batch_size
        if options.batch_tokens is not None:
            size = max(1, options.batch_tokens // options.max_length)
        try:
            rows = self.rows(records.shards, tokenizer)
            count = int(sum(rows.counts))
            order = ShardOrder(rows.counts, fitting_size(size, count), options.seed)
        except ValueError as error:
            raise RunError(f"{folder}: {error}") from error
        console.print(
            f"  {records.num_tokens:,} tokens in {folder}; {counted(count, 'rows')} of "
            f"{options.max_length}, {order.batch_size:,} in a batch"
        )
        return records, rows, order


def evenly(examples: Sequence[Any], most: int) -> Sequence[Any]:
    """Return at most so many examples, evenly spread."""
    return examples[:: math.ceil(len(examples) / most) or 1]
