"""One text into another, from a user's files: sentences, or letters to phonemes."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from seqkeras.data.batches import Batches, FrameSequences, Sequences
from seqkeras.data.mixing import MixedBatches
from seqkeras.data.stored import taken
from seqkeras.losses import SmoothedCrossEntropy
from seqkeras.metrics import (
    TokenAccuracy,
    sequence_error_rate,
    signed_bleu,
    signed_chrf,
    token_error_rate,
)
from seqkeras.runs import RunError
from seqkeras.serving.text.characters import WITHOUT_SPACES
from seqkeras.tokenizers import PAD, learn_tokenizer, special_ids
from seqkeras.tokenizers.encode_all import Encoder
from seqkeras.training.answering.translate import frames_of, marks_sources, rows_of
from seqkeras.training.console import console
from seqkeras.training.options.sizes import SMALL
from seqkeras.training.parts.encoded_texts import encoded_in_parts
from seqkeras.training.parts.frames import KEPT
from seqkeras.training.parts.pretrained import Pretrained
from seqkeras.training.parts.scaling import learned_scaling
from seqkeras.training.parts.translation_data import examples_to_answer, training_examples
from seqkeras.training.parts.translation_maps import draw_attention
from seqkeras.training.parts.translation_models import model_of, tuned_model_of
from seqkeras.training.parts.translation_rows import learned_rows, require_known
from seqkeras.training.parts.varied_subwords import seed_of, varied_texts
from seqkeras.training.parts.vocabularies import Texts, learned_from, learned_on
from seqkeras.training.starting import StartOfTranslator, read_translator
from seqkeras.training.task import Modelling, Reading, Scoring

if TYPE_CHECKING:
    import keras

    from seqkeras.runs import RunFiles
    from seqkeras.serving.rows import Rows
    from seqkeras.serving.text import Tokenizer

PASSES, PASSES_OF_SMALL, LEAST_STEPS = 20, 10, 1000  # of a training, unless options say so


class Pairs(NamedTuple):
    """Examples as a model takes them, a row for each.

    Attributes:
        sources: `Sequences` of token ids, or `FrameSequences`.
        targets: `Sequences` of token ids, with the start and the end.
        examples: texts, frames or rows with their targets.
    """

    sources: Sequences
    targets: Sequences
    examples: Sequence[Any]


class TranslationReading(Reading):
    """A sequence of tokens, frames, or a row to a sequence of tokens, by attention or a recurrent
    state.

    Attributes:
        pretrained: a `Pretrained`, where an encoder is fine-tuned; else None.
        start: a `StartOfTranslator`, where a folder of Hugging Face is tuned; else None.
        rows: the `Rows` of sources that are rows; else None.
    """

    pretrained: Pretrained | None = None
    start: StartOfTranslator | None = None
    rows: Rows | None = None

    @property
    def padding_id(self) -> int:
        """The id behind a target, which is not learned."""
        return PAD if self.start is None else self.start.padding_id

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        options = self.options
        if options.pretrained is not None:
            self.pretrained = self._encoder()
        elif options.tunes_folder:
            self.start = read_translator(options.start_from)
            self.start.require_positions(options.start_from, options.max_length)
        train, validation = training_examples(options)
        console.print(
            f"{options.task}: {len(train):,} training and {len(validation):,} validation examples"
        )
        self._say_words_of_bleu(validation)
        if options.reads_rows:
            self.rows = learned_rows(options, [example.text for example in train])
            require_known(self.rows, validation)
            self.of_frames = {"source_features": self.rows.num_features}
        elif options.frames_column is not None:
            self.of_frames = self._frames_of(train)
            self._require_size(validation)
        return train, validation

    def _encoder(self):
        options = self.options
        pretrained = Pretrained.read(options.pretrained)
        pretrained.limit(options.max_length, options.max_length)
        kind = pretrained.config["positions"]
        if options.pretrained_decoder and kind != "learned":
            raise RunError(
                f"--pretrained-decoder: {options.pretrained} has positions of the kind {kind}; a "
                "decoder begins with learned ones. Leave the option out."
            )
        if options.pretrained_decoder and special_ids(pretrained.tokenizer).padding_id != PAD:
            raise RunError(
                f"--pretrained-decoder: the padding of {options.pretrained} must have the id {PAD} "
                "of BERT's; leave the option out, so that targets have tokens of their own."
            )
        return pretrained

    def _frames_of(self, train):
        """Return the arguments of a model of frames."""
        scales = learned_scaling(self.options.file, [example.text for example in train])
        return {"source_features": train[0].text.shape[1], "source_scaling": scales}

    def _require_size(self, validation):
        size = self.of_frames["source_features"]
        for example in validation:
            if example.text.shape[1] != size:
                raise RunError(
                    f"{self.options.validation}: its frames have {example.text.shape[1]} numbers, "
                    f"those of training {size}."
                )

    def _say_words_of_bleu(self, examples):
        """Say so where BLEU counts whole sentences for words."""
        if self.options.error_rates or self.options.bleu_tokenizer not in ("13a", "intl"):
            return
        targets = [example.target for example in examples]
        in_one = sum(
            WITHOUT_SPACES.search(target) is not None and len(target.split()) == 1
            for target in targets
        )
        if 2 * in_one > len(targets):
            console.print(
                "  most targets have no spaces between words, so BLEU takes a sentence for a word; "
                "--bleu-tokenizer zh, or char, counts characters"
            )

    def examples_of(
        self, paths: Sequence[Path | str], settings: Mapping[str, Any]
    ) -> Sequence[Any]:
        if len(paths) > 2:
            raise RunError(f"{paths[2]}: one file of pairs, or two of sources and of targets.")
        examples = examples_to_answer(self.options, *paths)
        if (rows := rows_of(settings)) is not None:
            require_known(rows, examples)
        return examples

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        options = self.options
        if self.start is not None:
            return self.start.tokenizers
        few = examples if options.sources_are_numbers else learned_on(examples)
        sources, targets = Texts(few, _source), Texts(few, _target)
        kind, size = options.target_tokens or options.tokens, options.target_vocab_size
        of_targets = {} if size is None else {"option": "--target-vocab-size"}
        learned = (kind, targets, size or options.vocab_size)
        if self.options.sources_are_numbers:
            tokenizers = {"target": self._learned(*learned, **of_targets)}
        elif self.pretrained is not None:
            source = self.pretrained.tokenizer
            target = source if options.pretrained_decoder else self._learned(*learned, **of_targets)
            tokenizers = {"source": source, "target": target}
        elif options.joint:
            joint = self._learned(options.tokens, Texts(few, _source, _target), options.vocab_size)
            tokenizers = {"source": joint, "target": joint}
        else:
            tokenizers = {
                "source": self._learned(options.tokens, sources, options.vocab_size),
                "target": self._learned(*learned, **of_targets),
            }
        sizes = " and ".join(f"{len(tokenizer):,} {role}" for role, tokenizer in tokenizers.items())
        console.print(f"  {sizes} tokens")
        return tokenizers

    def _learned(self, kind, texts, size, **named):
        with learned_from(self.options.file, **named):
            return learn_tokenizer(kind, texts, size, self.options.lowercase)

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        if "source" in tokenizers:
            yield "inputs", "source", Texts(examples, _source)
        yield "targets", "target", Texts(examples, operator.attrgetter("targets"))

    @property
    def way_out_of_unknown(self) -> str:
        options = self.options
        if self.start is not None:
            return (
                f"The tokens are those of --start-from {options.start_from}; write the targets in "
                "its characters, or leave it out."
            )
        size = "--target-vocab-size" if options.target_vocab_size else "--vocab-size"
        kind = "--target-tokens" if options.target_tokens else "--tokens"
        return (
            f"Choose a larger {size} than {options.target_vocab_size or options.vocab_size:,}, or "
            f"{kind} unigram, bpe or byte-pairs."
        )

    def kept(self, validation: Sequence[Any]) -> Sequence[Any]:
        if not self.options.sources_are_numbers:
            return validation
        places = np.linspace(0, len(validation) - 1, min(KEPT, len(validation))).astype(int)
        return [validation[index] for index in places]

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        options = self.options
        limit = options.max_length
        longest = limit
        if self.rows is not None:
            longest = 1
        elif "source" not in tokenizers:
            longest = max(len(example.text) for example in examples)
        settings = {} if self.rows is None else {"rows": dataclasses.asdict(self.rows)}
        return {
            "pipeline": "Translate",
            "limits": {"source_length": longest, "target_length": limit},
            "decoding": {
                "num_beams": options.num_beams,
                "length_penalty": options.length_penalty,
                **({} if self.start is None else self.start.decoding),
            },
            "settings": settings,
        }


class TranslationModelling(Modelling):
    """Pairs of texts to an encoder with a decoder."""

    validation_loss = True

    def batches(self, examples: Sequence[Any], run: RunFiles) -> Batches:
        options = self.options
        pairs = self._kept(examples, run)
        inputs, targets, lengths = self._arrays(pairs)
        corpora = np.fromiter((example.corpus for example in pairs.examples), "int64")
        orders, offsets = [], []
        for number, file in enumerate((options.file, *options.also)):
            of_corpus = lengths[corpora == number]
            if not len(of_corpus):
                raise RunError(
                    f"{file}: no pair has at most {options.max_length} tokens on each side; choose "
                    "a larger --max-length."
                )
            orders.append(self.order(of_corpus))
            offsets.append(int(np.sum(corpora < number)))
        order = orders[0]
        if options.also:
            order = MixedBatches(orders, offsets, options.corpora.mixture(), options.seed)
        return Batches(inputs, targets, order, vary=self._varied(pairs, run))

    def _varied(self, pairs, run):
        """Return a function: (number of a batch, its rows) -> inputs and targets of pairs whose
        words are cut anew; None without --subword-dropout."""
        rate, seed, limit = self.options.subword_dropout, self.options.seed, self.options.max_length
        if not rate:
            return None
        inner = pairs.targets.without_ends(1, 1)
        sources, targets = (
            varied_texts(role, run.tokenizers[role], texts, encoded, rate, role == "source")
            for role, texts, encoded in (
                ("source", (example.text for example in pairs.examples), pairs.sources),
                ("target", (example.target for example in pairs.examples), inner),
            )
        )

        def of_batch(number, rows):
            old = zip(pairs.sources.chosen(rows).each_row(), inner.chosen(rows).each_row())
            new = zip(
                sources(rows, seed_of(seed, number, 0)), targets(rows, seed_of(seed, number, 1))
            )
            kept = [
                varied if len(varied[0]) <= limit and len(varied[1]) < limit else whole
                for varied, whole in zip(new, old, strict=True)
            ]
            new_sources, new_targets = zip(*kept)
            framed = Sequences(_framed(new_targets, run))
            return self._arrays(Pairs(Sequences(new_sources), framed, ()))[:2]

        return of_batch

    def num_steps(self, batches: Batches) -> int:
        if self.options.passes is not None:
            return super().num_steps(batches)
        passes = PASSES_OF_SMALL if self.options.size == SMALL else PASSES
        least = LEAST_STEPS * self.options.gradient_accumulation
        return max(passes * batches.order.batches_per_pass, least)

    def arrays(self, examples: Sequence[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        return self._arrays(self._kept(examples, run))

    def _arrays(self, pairs):
        sources, targets = pairs.sources, pairs.targets
        name = "frames" if isinstance(sources, FrameSequences) else "token_ids"
        target_ids = targets.without_ends(last=1)
        inputs = {name: sources, "lengths": sources.lengths, "target_ids": target_ids}
        wanted = targets.without_ends(first=1, padding=self.reading.padding_id)
        return inputs, wanted, np.maximum(sources.lengths, wanted.lengths)

    def _kept(self, examples, run):
        """Return the `Pairs` that are not too long."""
        limit = self.options.max_length
        texts, longest = (example.text for example in examples), limit
        if "source" in run.tokenizers:
            tokenizer = run.tokenizers["source"]
            encode = Encoder(tokenizer, special_tokens=marks_sources(tokenizer))
            sources = encoded_in_parts(encode, texts)
        else:
            sources = FrameSequences(frames_of(rows_of(run.record.settings), [*texts]))
            longest = run.record.limits["source_length"]
        encode = Encoder(run.tokenizers["target"])
        targets = encoded_in_parts(
            lambda some: _framed(encode(some), run),
            (example.target for example in examples),
        )
        fit = (sources.lengths <= longest) & (targets.lengths <= limit + 1)
        if cut := len(fit) - int(fit.sum()):
            console.print(
                f"  {cut:,} of {len(fit):,} pairs have more than --max-length {limit} tokens, "
                "and are left out"
            )
        if not fit.any():
            least = int(np.maximum(sources.lengths, targets.lengths - 1).min())
            raise RunError(
                f"--max-length {limit}: each of {len(fit):,} pairs has more tokens, the shortest "
                f"{least}. Choose a larger one."
            )
        kept = taken(examples, np.flatnonzero(fit))
        return Pairs(sources.chosen(fit), targets.chosen(fit), kept)

    def model(self, run: RunFiles) -> keras.Model:
        if self.reading.pretrained is not None:
            return tuned_model_of(self.options, self.reading.pretrained, run.tokenizers["target"])
        if self.reading.start is not None:
            return self.reading.start.new_model(self.options.max_length)
        target_size = len(run.tokenizers["target"])
        if "source" in run.tokenizers:
            return model_of(self.options, len(run.tokenizers["source"]), target_size)
        return model_of(self.options, None, target_size, **self.reading.of_frames)

    def loss(self) -> Any:
        ignored = self.reading.padding_id
        return SmoothedCrossEntropy(self.options.label_smoothing, ignore_class=ignored)

    def metrics(self) -> Any:
        return [TokenAccuracy(ignore_class=self.reading.padding_id)]


class TranslationScoring(Scoring):
    """BLEU and chrF, or error rates."""

    lower_is_better = ("phoneme error", "word error")
    score_formats = {"BLEU": ".2f", "chrF": ".2f"}

    def validation_scores(
        self, examples: Sequence[Any], answers: Sequence[Any]
    ) -> dict[str, float]:
        texts, targets = _texts_of(examples, answers)
        if self.options.error_rates:
            whole, token = self.options.error_rates
            return {
                f"{whole}s right": 1 - sequence_error_rate(texts, targets),
                f"{token} error": token_error_rate(texts, targets),
            }
        return {
            "BLEU": 100 * signed_bleu(texts, targets, self.options.bleu_tokenizer)[0],
            "chrF": 100 * signed_chrf(texts, targets)[0],
        }

    def scores(self, answered: Mapping[str, tuple[Sequence[Any], Sequence[Any]]]) -> dict[str, Any]:
        """Return the scores in percent, as they are published, with sacrebleu's signatures."""
        [(examples, answers)] = answered.values()
        texts, targets = _texts_of(examples, answers)
        if self.options.error_rates:
            whole, token = self.options.error_rates
            return {
                "examples": len(examples),
                f"{whole}_error_rate": 100 * sequence_error_rate(texts, targets),
                f"{token}_error_rate": 100 * token_error_rate(texts, targets),
            }
        bleu, bleu_signature = signed_bleu(texts, targets, self.options.bleu_tokenizer)
        chrf, chrf_signature = signed_chrf(texts, targets)
        return {
            "examples": len(examples),
            "bleu": 100 * bleu,
            "bleu_signature": bleu_signature,
            "chrf": 100 * chrf,
            "chrf_signature": chrf_signature,
        }

    def sample(self, example: Any, answer: Any) -> dict[str, str]:
        if isinstance(example.text, str):
            return super().sample(example, answer)
        given = f"{len(example.text):,} frames"
        if isinstance(example.text, dict):
            given = ", ".join(f"{name} {value}" for name, value in example.text.items())
        return {"input": given, "target": example.target, "answer": answer.text}

    def draw(self, model: keras.Model, run: RunFiles, path: Path | str) -> None:
        if model.attends and "source" in run.tokenizers:
            draw_attention(model, run, path)

    def summary(self, scores: Mapping[str, Any]) -> str:
        if self.options.error_rates:
            whole, token = self.options.error_rates
            return (
                f"wrong are {scores[f'{whole}_error_rate']:.2f} % of the {whole}s and "
                f"{scores[f'{token}_error_rate']:.2f} % of their {token}s"
            )
        return f"BLEU is {scores['bleu']:.2f}, chrF {scores['chrf']:.2f}"


def _source(example):
    return (example.text,)


def _target(example):
    return (example.target,)


def _framed(rows, run):
    """Return the token ids of targets with the start and the end around each."""
    start_id, end_id = run.record.decoding["start_id"], run.record.decoding["end_id"]
    return [[start_id, *row, end_id] for row in rows]


def _texts_of(examples, answers):
    return [answer.text for answer in answers], [example.targets for example in examples]
