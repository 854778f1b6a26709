"""One text into another, from a user's files: sentences, or letters to phonemes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqkeras.data.batches import Batches, Sequences
from seqkeras.data.mixing import MixedBatches
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
from seqkeras.tokenizers import BOS, EOS, PAD, encode_all, learn_tokenizer
from seqkeras.training.answering.translate import source_ids
from seqkeras.training.console import console
from seqkeras.training.parts.translation_data import examples_to_answer, training_examples
from seqkeras.training.parts.translation_maps import draw_attention
from seqkeras.training.parts.translation_models import model_of
from seqkeras.training.parts.vocabularies import learned_from
from seqkeras.training.task import Modelling, Reading, Scoring

if TYPE_CHECKING:
    import keras

    from seqkeras.runs import RunFiles
    from seqkeras.serving.text import Tokenizer

PASSES, LEAST_STEPS = 20, 1000  # of a training, unless options say so


class TranslationReading(Reading):
    """A sequence of tokens to another, by attention or a recurrent state."""

    def read(self) -> tuple[list[Any], list[Any]]:
        options = self.options
        train, validation = training_examples(options)
        console.print(
            f"{options.task}: {len(train):,} training and {len(validation):,} validation examples"
        )
        self._say_words_of_bleu(validation)
        return train, validation

    def _say_words_of_bleu(self, examples):
        """Say so where BLEU counts whole sentences for words."""
        if self.options.scores_phonemes or self.options.bleu_tokenizer not in ("13a", "intl"):
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

    def examples_of(self, paths: Sequence[Path | str], settings: Mapping[str, Any]) -> list[Any]:
        if len(paths) > 2:
            raise RunError(f"{paths[2]}: one file of pairs, or two of sources and of targets.")
        return examples_to_answer(self.options, *paths)

    def tokenizers(self, examples: list[Any]) -> dict[str, Tokenizer]:
        options = self.options
        sources = [example.text for example in examples]
        targets = [example.target for example in examples]
        if options.joint:
            joint = self._learned(options.tokens, sources + targets, options.vocab_size)
            tokenizers = {"source": joint, "target": joint}
        else:
            kind, size = options.target_tokens or options.tokens, options.target_vocab_size
            of_targets = {} if size is None else {"option": "--target-vocab-size"}
            tokenizers = {
                "source": self._learned(options.tokens, sources, options.vocab_size),
                "target": self._learned(kind, targets, size or options.vocab_size, **of_targets),
            }
        sizes = " and ".join(f"{len(tokenizer):,} {role}" for role, tokenizer in tokenizers.items())
        console.print(f"  {sizes} tokens")
        return tokenizers

    def _learned(self, kind, texts, size, **named):
        with learned_from(self.options.file, **named):
            return learn_tokenizer(kind, texts, size, self.options.lowercase)

    def texts_read(
        self, examples: list[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        yield "inputs", "source", [example.text for example in examples]
        yield "targets", "target", [text for example in examples for text in example.targets]

    @property
    def way_out_of_unknown(self) -> str:
        options = self.options
        size = "--target-vocab-size" if options.target_vocab_size else "--vocab-size"
        kind = "--target-tokens" if options.target_tokens else "--tokens"
        return (
            f"Choose a larger {size} than {options.target_vocab_size or options.vocab_size:,}, or "
            f"{kind} unigram, bpe or byte-pairs."
        )

    def record(self, examples: list[Any], tokenizers: Mapping[str, Tokenizer]) -> dict[str, Any]:
        options = self.options
        limit = options.max_length
        return {
            "pipeline": "Translate",
            "limits": {"source_length": limit, "target_length": limit},
            "decoding": {
                "num_beams": options.num_beams,
                "length_penalty": options.length_penalty,
            },
        }


class TranslationModelling(Modelling):
    """Pairs of texts to an encoder with a decoder."""

    validation_loss = True

    def batches(self, examples: list[Any], run: RunFiles) -> Batches:
        options = self.options
        corpora = [
            [example for example in examples if example.corpus == number]
            for number in range(1 + len(options.also))
        ]
        files, offset, orders, offsets = (options.file, *options.also), 0, [], []
        kept_pairs = [self._kept(corpus, run) for corpus in corpora]
        for file, pairs in zip(files, kept_pairs, strict=True):
            try:
                orders.append(self.order(_arrays(pairs)[2]))
            except ValueError as error:
                raise RunError(f"{file}: {error} Choose a smaller --batch-size.") from error
            offsets.append(offset)
            offset += len(pairs)
        inputs, targets, _ = _arrays([pair for pairs in kept_pairs for pair in pairs])
        order = orders[0]
        if options.also:
            order = MixedBatches(orders, offsets, options.corpora.mixture(), options.seed)
        return Batches(inputs, targets, order)

    def num_steps(self, batches: Batches) -> int:
        if self.options.passes is not None:
            return super().num_steps(batches)
        least = LEAST_STEPS * self.options.gradient_accumulation
        return max(PASSES * batches.order.batches_per_pass, least)

    def arrays(self, examples: list[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        return _arrays(self._kept(examples, run))

    def _kept(self, examples, run):
        """Return the token ids of the pairs that are not too long."""
        source, target = run.tokenizers["source"], run.tokenizers["target"]
        limit = self.options.max_length
        sources = source_ids(source, [example.text for example in examples])
        targets = encode_all(target, [example.target for example in examples])
        pairs = [*zip(sources, targets, strict=True)]
        short = [pair for pair in pairs if len(pair[0]) <= limit and len(pair[1]) < limit]
        if cut := len(pairs) - len(short):
            console.print(
                f"  {cut:,} of {len(pairs):,} pairs have more than --max-length {limit} tokens, "
                "and are left out"
            )
        return short

    def model(self, run: RunFiles) -> keras.Model:
        sizes = (len(run.tokenizers[role]) for role in ("source", "target"))
        return model_of(self.options, *sizes)

    def loss(self) -> Any:
        return SmoothedCrossEntropy(self.options.label_smoothing, ignore_class=PAD)

    def metrics(self) -> Any:
        return [TokenAccuracy(ignore_class=PAD)]


class TranslationScoring(Scoring):
    """BLEU and chrF, or error rates of phonemes."""

    lower_is_better = ("phoneme error",)
    score_formats = {"BLEU": ".2f", "chrF": ".2f"}

    def validation_scores(self, examples: list[Any], answers: Sequence[Any]) -> dict[str, float]:
        texts, targets = _texts_of(examples, answers)
        if self.options.scores_phonemes:
            return {
                "words right": 1 - sequence_error_rate(texts, targets),
                "phoneme error": token_error_rate(texts, targets),
            }
        return {
            "BLEU": 100 * signed_bleu(texts, targets, self.options.bleu_tokenizer)[0],
            "chrF": 100 * signed_chrf(texts, targets)[0],
        }

    def scores(self, answered: Mapping[str, tuple[list[Any], Sequence[Any]]]) -> dict[str, Any]:
        """Return the scores in percent, as they are published, with sacrebleu's signatures."""
        [(examples, answers)] = answered.values()
        texts, targets = _texts_of(examples, answers)
        if self.options.scores_phonemes:
            return {
                "examples": len(examples),
                "word_error_rate": 100 * sequence_error_rate(texts, targets),
                "phoneme_error_rate": 100 * token_error_rate(texts, targets),
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

    def draw(self, model: keras.Model, run: RunFiles, path: Path | str) -> None:
        if model.attends:
            draw_attention(model, run, path)

    def summary(self, scores: Mapping[str, Any]) -> str:
        if self.options.scores_phonemes:
            return (
                f"wrong are {scores['word_error_rate']:.2f} % of the words and "
                f"{scores['phoneme_error_rate']:.2f} % of their phonemes"
            )
        return f"BLEU is {scores['bleu']:.2f}, chrF {scores['chrf']:.2f}"


def _arrays(pairs):
    sources = Sequences([source for source, _ in pairs])
    target_ids = Sequences([[BOS, *target] for _, target in pairs])
    inputs = {"token_ids": sources, "lengths": sources.lengths, "target_ids": target_ids}
    wanted = Sequences([[*target, EOS] for _, target in pairs])
    return inputs, wanted, np.maximum(sources.lengths, wanted.lengths)


def _texts_of(examples, answers):
    return [answer.text for answer in answers], [example.targets for example in examples]
