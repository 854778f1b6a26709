"""The encoder of --pretrained: a folder to a tokenizer, a `Bert`, and its inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import keras

from seqkeras.data.batches import Sequences
from seqkeras.models import Bert, WithHeads
from seqkeras.models.positions import most_positions
from seqkeras.pretrained import load_google_bert, load_hugging_face, load_keras_nlp
from seqkeras.pretrained.folders import read_json
from seqkeras.runs import MODEL, RECORD, RunError, RunRecord
from seqkeras.tokenizers import (
    Subwords,
    from_keras_nlp,
    read_tokenizer,
    read_vocabulary,
    word_piece,
)
from seqkeras.training.options.pretrained import GOOGLE, HUGGING_FACE
from seqkeras.training.starting import BYTE_PAIRS, tokenizer_of

if TYPE_CHECKING:
    from seqkeras.serving.text import Tokenizer

ROUNDED_UP_TO = (64, 128)  # multiples of which a table may have rows behind its vocabulary
MOST_SHOWN = 3  # tensors in a line that a folder lacks, or has in another shape
VOCABULARY, TOKENIZER_CONFIG = "vocab.txt", "tokenizer_config.json"
PADDING = "[PAD]"
OF_KERAS_NLP = "registered_name"  # a key of its config.json


@dataclasses.dataclass(frozen=True)
class Pretrained:
    """An encoder that was trained before, without its heads.

    Attributes:
        folder: where it was read, for errors.
        config: the arguments of `Bert`.
        weights: a list of arrays, in the form that `set_weights` takes.
        tokenizer: a tokenizer of `seqkeras.tokenizers`.
    """

    folder: str
    config: dict
    weights: list
    tokenizer: Subwords

    @classmethod
    def read(cls, folder: Path | str) -> Self:
        """Return the encoder of a folder.

        Raises:
            RunError: if there is none, or no tokenizer with its vocabulary.
        """
        path = Path(folder)
        try:
            encoder, tokenizer = _reader_of(path)(path)
        except RunError:
            raise
        except (OSError, ValueError, TypeError) as error:
            raise RunError(f"--pretrained {folder}: {_shortened(error)}") from error
        encoder = encoder.encoder if isinstance(encoder, WithHeads) else encoder
        if not isinstance(encoder, Bert):
            raise RunError(
                f"--pretrained {folder}: expected a BERT, RoBERTa or DistilBERT; found a "
                f"{type(encoder).__name__}."
            )
        size, vocab_size = len(tokenizer), encoder.config["vocab_size"]
        if vocab_size not in (
            size,
            *(-(-size // multiple) * multiple for multiple in ROUNDED_UP_TO),
        ):
            raise RunError(
                f"--pretrained {folder}: the tokenizer has {size:,} tokens and the encoder "
                f"{vocab_size:,}: this vocabulary is not the checkpoint's."
            )
        _require_padding(path, tokenizer)
        return cls(str(folder), dict(encoder.config), encoder.get_weights(), tokenizer)

    def limit(self, max_length: int | None, default: int) -> int:
        """Return the most tokens of an input: what the option says, or the default.

        Raises:
            RunError: if the encoder has fewer positions.
        """
        positions = most_positions(self.config)
        if positions is None:
            return max_length or default
        if max_length is not None and max_length > positions:
            raise RunError(
                f"--max-length {max_length}: {self.folder} has {positions} positions; choose at "
                "most as many."
            )
        return min(max_length or default, positions)

    @property
    def has_segments(self) -> bool:
        """Whether the encoder tells two texts apart."""
        return self.config["num_segments"] > 0

    def with_layers(self, num_layers: int) -> Self:
        """Return the encoder with so many of its blocks, evenly spread, the top one among them.

        Raises:
            RunError: if the encoder has fewer blocks.
        """
        if num_layers > self.config["num_layers"]:
            raise RunError(
                f"--keep-layers {num_layers}: {self.folder} has {self.config['num_layers']}; "
                "choose at most as many."
            )
        whole, part = Bert(**self.config), Bert(**{**self.config, "num_layers": num_layers})
        for encoder in (whole, part):
            encoder.build(None)
        whole.set_weights(self.weights)
        blocks = whole.encoder.blocks
        layers = [blocks[layer - 1] for layer in spread(num_layers, len(blocks))]
        parts = ("embedding", "segment_embedding", "positions", "embedding_norm", "pooler")
        pairs = [(getattr(part, name), getattr(whole, name)) for name in parts]
        pairs.append((part.encoder.distance_bias, whole.encoder.distance_bias))
        for target, other in (*pairs, *zip(part.encoder.blocks, layers, strict=True)):
            if target is not None:
                target.set_weights(other.get_weights())
        return dataclasses.replace(self, config=dict(part.config), weights=part.get_weights())

    def encoder(self, pooler: str | None = None) -> Bert:
        """Return a new `Bert` of the folder's weights, built.

        Args:
            pooler: activation of its pooler, which is new if the folder has none; None for no
                pooler.
        """
        encoder = Bert(**{**self.config, "pooler": pooler}, name="encoder")
        encoder.build(None)
        weights = self.weights + encoder.get_weights()[len(self.weights) :]
        encoder.set_weights(weights[: len(encoder.weights)])  # the pooler's are the last
        return encoder

    def with_heads(
        self, heads: Mapping[str, keras.Layer], frozen: bool = False, pooling: str = "pooler"
    ) -> WithHeads:
        """Return a new `WithHeads` on the encoder, built.

        The encoder has a pooler where a head takes what it gives: the folder's, or, if it has none,
        a new one. Heads without it leave it out.

        Args:
            heads: name -> head, in the form that `WithHeads` takes.
            frozen: whether the heads alone learn.
            pooling: pooling of `WithHeads`.
        """
        pools = pooling == "pooler" and any("pooled" in head.takes for head in heads.values())
        new = "tanh" if self.has_segments else "relu"  # DistilBERT's
        encoder = self.encoder((self.config["pooler"] or new) if pools else None)
        model = WithHeads(encoder, heads, frozen, pooling)
        model.build(None)
        return model

    def give_heads(self, model: WithHeads) -> None:
        """Give each head of a model the weights of the folder's head with its name and class; a run
        and a folder of Hugging Face may have heads."""
        folder = Path(self.folder)
        if (folder / RECORD).is_file():
            source, _ = _of_run(folder)
        elif _reader_of(folder) is _of_hugging_face:
            source = load_hugging_face(folder)
        else:
            return
        for name, head in getattr(source, "heads", {}).items():
            if type(model.heads.get(name)) is type(head):
                model.heads[name].set_weights(head.get_weights())


def known_tokenizer(reading: Any) -> Tokenizer | None:
    """Return the tokenizer of a task's texts that is known before one is learned: that of
    --pretrained, or of the run or bundle that is evaluated; else None."""
    if reading.pretrained is not None:
        return reading.pretrained.tokenizer
    return reading.known_tokenizers.get("text")


def spread(few: int, many: int) -> list[int]:
    """Return a list of `few` of the layers 1..many, evenly spread, the last one among them."""
    return [max(1, round(layer * many / few)) for layer in range(1, few + 1)]


def inputs_of(
    encodings: Sequence[Any], pairs: bool = False, pretrained: Pretrained | None = None
) -> dict[str, Any]:
    """Return the inputs of a model of texts, in the form that `seqkeras.data.batches.Batches`
    takes.

    Args:
        encodings: list of `seqkeras.tokenizers.Encoding`, or of what else has token_ids.
        pairs: whether there are two texts in each.
        pretrained: the `Pretrained` whose model `with_heads` reads them, or None.
    """
    inputs = inputs_of_ids(Sequences([encoding.token_ids for encoding in encodings]), pretrained)
    if pairs and (pretrained is None or pretrained.has_segments):
        inputs["segment_ids"] = Sequences([encoding.segment_ids for encoding in encodings])
    return inputs


def inputs_of_ids(token_ids: Sequences, pretrained: Pretrained | None = None) -> dict[str, Any]:
    """Return the inputs of `inputs_of` for single texts, from their token ids."""
    inputs: dict[str, Any] = {"token_ids": token_ids}
    if pretrained is not None:
        inputs["lengths"] = token_ids.lengths
    return inputs


def _reader_of(folder):
    if (folder / RECORD).is_file():
        return _of_run
    if (folder / GOOGLE).is_file():
        return _of_google
    if (folder / HUGGING_FACE).is_file() and OF_KERAS_NLP in read_json(folder / HUGGING_FACE):
        return _of_keras_nlp
    return _of_hugging_face


def _of_run(folder):
    record = RunRecord.read(folder)
    if "text" not in record.tokenizers:
        raise RunError(f"--pretrained {folder}: a run of {record.task} holds no BERT.")
    model = keras.models.load_model(folder / MODEL, compile=False)
    return model, read_tokenizer(folder / record.tokenizers["text"])


def _of_google(folder):
    names = [path.name.removesuffix(".index") for path in sorted(folder.glob("*.ckpt*.index"))]
    if len(names) != 1:
        raise RunError(
            f"--pretrained {folder}: expected one checkpoint, bert_model.ckpt.index; found "
            f"{', '.join(names) or 'none'}."
        )
    return load_google_bert(folder, names[0], heads=False), _tokenizer(folder)


def _of_keras_nlp(folder):
    import keras_nlp  # only for its own folders

    backbone = keras_nlp.models.Backbone.from_preset(str(folder))
    tokenizer = keras_nlp.models.Tokenizer.from_preset(str(folder))
    return load_keras_nlp(backbone), from_keras_nlp(tokenizer)


def _of_hugging_face(folder):
    return load_hugging_face(folder, heads=False), _tokenizer(folder)


def _tokenizer(folder):
    """Return the tokenizer beside the weights: tokenizer.json, or BERT's vocabulary."""
    if (folder / VOCABULARY).is_file() and not (folder / "tokenizer.json").is_file():
        vocabulary = read_vocabulary(folder / VOCABULARY)
        return word_piece(vocabulary, lowercase=_is_uncased(folder, vocabulary))
    if (
        any((folder / name).is_file() for names in BYTE_PAIRS for name in names)
        and not (folder / "tokenizer.json").is_file()
    ):
        raise RunError(
            f"--pretrained {folder}: vocabulary and merges do not say what stands around a text; "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(folder) writes tokenizer.json."
        )
    if not (folder / "tokenizer.json").is_file():
        raise RunError(
            f"--pretrained {folder}: no tokenizer; expected tokenizer.json, or BERT's {VOCABULARY}."
        )
    tokenizer = tokenizer_of(folder)
    if (folder / VOCABULARY).is_file():
        _require_same(folder, tokenizer)
    return tokenizer


def _require_same(folder, tokenizer):
    """Raise a RunError unless the tokens of vocab.txt are the first ones of tokenizer.json."""
    for number, token in enumerate(read_vocabulary(folder / VOCABULARY)):
        other = tokenizer.token_of(number) if number < len(tokenizer) else None
        if token != other:
            raise RunError(
                f"--pretrained {folder}: line {number + 1:,} of {VOCABULARY} is {token!r}, and "
                f"tokenizer.json has {other!r} there: one of the two is not the checkpoint's; "
                "remove it."
            )


def _require_padding(folder, tokenizer):
    """Raise a RunError unless BERT's token of padding is where config.json has it: a vocabulary in
    another order would give each word the vector of another one."""
    config = folder / HUGGING_FACE
    said = read_json(config).get("pad_token_id") if config.is_file() else None
    try:
        padding = tokenizer.id_of(PADDING)
    except ValueError:
        return
    if type(said) is int and padding != said:
        raise RunError(
            f"--pretrained {folder}: the tokenizer has {PADDING} in place {padding:,}, and "
            f"{HUGGING_FACE} in place {said:,}: this vocabulary is not the checkpoint's."
        )


def _is_uncased(folder, vocabulary):
    """Return what tokenizer_config.json says, or else whether the vocabulary has no capitals; [UNK]
    and <S>, which the vocabulary of the Chinese BERT has, are none."""
    path = folder / TOKENIZER_CONFIG
    said = read_json(path).get("do_lower_case") if path.is_file() else None
    capitals = any(token != token.lower() and token[:1] not in "[<" for token in vocabulary)
    return not capitals if said is None else bool(said)


def _shortened(error):
    """Return an error in a line: of the problems in lines of their own, the first few."""
    first, *problems = map(str.strip, str(error).splitlines())
    more = len(problems) - MOST_SHOWN
    listed = [*problems[:MOST_SHOWN], *([f"and {more:,} more"] if more > 0 else [])]
    return " ".join([first, "; ".join(listed)]) if listed else first
