"""Plain text of the user's to features of words, by a language model in both directions."""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
from keras import ops

from seqkeras.data.batches import Batches
from seqkeras.data.batching import InOrder
from seqkeras.data.nested import NestedSequences
from seqkeras.data.texts import each_line, parts_of, read_text
from seqkeras.losses import SmoothedCrossEntropy
from seqkeras.models import BiLM
from seqkeras.runs import RunError, RunFiles
from seqkeras.serving.pipelines.model import softmax
from seqkeras.serving.pipelines.spelled_words import spelled
from seqkeras.serving.text import Tokenizer
from seqkeras.tokenizers import BOS, EOS, PAD, UNK, CharacterTable, learn_words, word_places
from seqkeras.training.compiling import OncePerModel
from seqkeras.training.parts.plain_texts import MeasuredScoring, perplexity, read_texts
from seqkeras.training.task import Modelling, Reading

KEPT = 200  # validation sentences that stay with the run
SHOWN = 5  # of them in samples.txt
GUESSES = 3  # words there that a direction expects
LOGITS = "forward_logits", "backward_logits"
NAME = "bilm"  # of the model in the one that is trained


class Sentence(NamedTuple):
    """A line of a text, or a part of a long one; it has no target but its words."""

    text: str
    target: None = None


class BiLMReading(Reading):
    """Plain text to a language model in both directions, whose layers are features of words."""

    not_in_bundle = "a bundle gives features of words, and does not tell the next ones"

    def read(self) -> tuple[Sequence[Any], Sequence[Any]]:
        parts = read_texts(self.options, self.options.task, at_lines=True)
        train, validation = ([*map(Sentence, self._sentences(texts))] for texts in parts)
        for part, kind in ((train, "training"), (validation, "validation")):
            if not part:
                raise RunError(f"{' and '.join(self.options.files)}: no word is left for {kind}.")
        return train, validation

    def _sentences(self, texts):
        """Yield the lines that have words; of a line with too many, its parts."""
        most = self.options.max_length
        for text in texts:
            for line in itertools.chain.from_iterable(map(each_line, parts_of(text))):
                places = word_places(line)
                for first in range(0, len(places), most):
                    last = places[min(first + most, len(places)) - 1]
                    yield line[places[first][0] : last[1]]

    def examples_of(
        self, paths: Sequence[Path | str], settings: Mapping[str, Any]
    ) -> Sequence[Any]:
        return [*map(Sentence, self._sentences(map(read_text, paths)))]

    def tokenizers(self, examples: Sequence[Any]) -> dict[str, Tokenizer]:
        texts = [example.text for example in examples]
        words = learn_words(texts, self.options.vocab_size)
        return {"words": words, "characters": CharacterTable.learn(texts)}

    def texts_read(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> Iterator[tuple[str, str, Iterable[str]]]:
        texts = [example.text for example in examples]
        yield "inputs", "characters", texts
        yield "targets", "words", texts

    def record(
        self, examples: Sequence[Any], tokenizers: Mapping[str, Tokenizer]
    ) -> dict[str, Any]:
        return {
            "pipeline": "Embed",
            "limits": {"source_length": self.options.max_length},
            "settings": {"word_length": self.options.word_length},
        }

    def kept(self, validation: Sequence[Any]) -> Sequence[Any]:
        return validation[:KEPT]


class BiLMModelling(Modelling):
    """Sentences to a language model in both directions."""

    validation_losses = None

    def arrays(self, examples: Sequence[Any], run: RunFiles) -> tuple[Any, Any, np.ndarray]:
        """Return the characters of `begin word(1) ... word(T) end`; at each place the next word and
        the word before it are the targets."""
        words, characters = run.tokenizers["words"], run.tokenizers["characters"]
        read, targets = [], []
        for example in examples:
            places = word_places(example.text)
            of_words = spelled(characters, example.text, places, self.options.word_length)
            read.append([[BOS], *of_words, [EOS]])
            ids = [BOS, *words.encode(example.text), EOS]
            targets.append([*map(list, zip([*ids[1:], PAD], [PAD, *ids[:-1]], strict=True))])
        characters = NestedSequences(read)
        inputs = {"character_ids": characters, "lengths": characters.lengths}
        return inputs, NestedSequences(targets, width=2, padding=PAD), characters.lengths

    def model(self, run: RunFiles) -> keras.Model:
        options = self.options
        widths = range(1, options.character_widths + 1)
        model = BiLM(
            len(run.tokenizers["words"]),
            len(run.tokenizers["characters"]),
            options.character_dim,
            [*widths],
            [width * options.character_filters for width in widths],
            options.units,
            options.projection_dim,
            options.num_layers,
            options.num_highways,
            dropout=options.dropout,
            boundary_ids=[BOS, EOS],
            name=NAME,
        )
        model.build(None)
        inputs = {
            "character_ids": keras.Input((None, None), dtype="int64", name="character_ids"),
            "lengths": keras.Input((), dtype="int64", name="lengths"),
        }
        logits = model(inputs)
        return keras.Model(inputs, ops.stack([logits[name] for name in LOGITS], axis=2))

    def trained(self, model: keras.Model) -> keras.Model:
        return model if isinstance(model, BiLM) else model.get_layer(NAME)

    def loss(self) -> Any:
        return SmoothedCrossEntropy(0.0, ignore_class=PAD)

    def measure(
        self, model: keras.Model, examples: Sequence[Any], run: RunFiles
    ) -> dict[str, float]:
        """Return the scores of the words of sentences, with their ends (forward) or beginnings
        (backward)."""
        if self.validation_losses is None or self.validation_losses.examples is not examples:
            self.validation_losses = _Losses(self, examples, run)
        forward, backward = losses = self.validation_losses(model)
        return {
            "validation_loss": float(losses.mean()),
            "forward_perplexity": perplexity(forward),
            "backward_perplexity": perplexity(backward),
            "unknown_words": self.validation_losses.unknown_words,
        }


class BiLMScoring(MeasuredScoring):
    """Perplexities, and what each direction expects."""

    measured = "of the validation sentences"
    lower_is_better = ("forward_perplexity", "backward_perplexity")

    def looked_at(self, validation: Sequence[Any]) -> Sequence[Any]:
        return validation[:: math.ceil(len(validation) / SHOWN)]

    def samples(
        self, model: keras.Model, run: RunFiles, examples: Sequence[Any], answers: Sequence[Any]
    ) -> list[dict[str, str]]:
        """Return what each direction expects instead of the word in the middle."""
        inputs, _, lengths = self.modelling.arrays(examples, run)
        characters = inputs["character_ids"].padded(np.arange(len(examples)))
        logits = model({"character_ids": characters, "lengths": lengths})
        return [
            _sample(
                example.text,
                run.tokenizers["words"],
                *(ops.convert_to_numpy(logits[name][row]) for name in LOGITS),
            )
            for row, example in enumerate(examples)
        ]

    def summary(self, scores: Mapping[str, Any]) -> str:
        forward, backward = scores["forward_perplexity"], scores["backward_perplexity"]
        return f"perplexity is {forward:,.2f} forward and {backward:,.2f} backward"


class _Losses:
    """Model -> mean of -log p of each direction, over the targets of examples.

    Attributes:
        unknown_words: the share of words that are not in the table.
    """

    def __init__(self, task: Any, examples: Sequence[Any], run: RunFiles):
        inputs, targets, lengths = task.arrays(examples, run)
        self.examples = examples
        self.batches = Batches(inputs, targets, InOrder(lengths, task.options.batch_size))
        self.count = int((lengths - 1).sum())
        words = [word for row in targets.rows for word, _ in row[:-2]]
        self.unknown_words = words.count(UNK) / len(words)
        self.costs = OncePerModel(_costs_of)

    def __call__(self, model: keras.Model) -> Any:
        """Return (2,) float64."""
        costs, total = self.costs(model), np.zeros(2)
        for inputs, targets in self.batches.from_step(0):
            total += np.asarray(costs(inputs, targets), "float64")
        return total / self.count


def _costs_of(model):
    def costs(inputs, targets):
        logits = model(inputs, training=False)
        by_direction = []
        for index, name in enumerate(LOGITS):
            wanted = targets[:, :, index]
            log_probs = ops.log_softmax(logits[name])
            chosen = ops.take_along_axis(log_probs, wanted[..., None], axis=-1)[..., 0]
            by_direction.append(-ops.sum(ops.where(wanted == PAD, 0.0, chosen)))
        return ops.stack(by_direction)

    return costs


def _sample(text, words, forward, backward):
    places = word_places(text)
    middle = len(places) // 2
    start, end = places[middle]
    # Logits stand where the words that they may see end, and one word begins the sentence.
    before, behind = (
        _expected(words, logits) for logits in (forward[middle], backward[middle + 2])
    )
    return {
        "input": text,
        "forward": f"{text[:start]}[{before}]",
        "back": f"[{behind}]{text[end:]}",
    }


def _expected(words, logits):
    """Return the words with the highest probabilities."""
    best = np.argsort(-logits, kind="stable")[:GUESSES].tolist()
    shares = softmax(logits)
    return ", ".join(f"{words.token_of(word)} {shares[word]:.0%}" for word in best)
