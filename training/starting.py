"""The start of a training from a folder that holds weights and a tokenizer."""

import dataclasses
from pathlib import Path
from typing import Any

import keras

from seqkeras.models import GPT, PermutedGPT, RNNLanguageModel, Transformer
from seqkeras.pretrained import load_hugging_face, read_config
from seqkeras.runs import MODEL, RECORD, RunError, RunRecord
from seqkeras.serving.text import Tokenizer
from seqkeras.tokenizers import (
    PAD,
    SentencePieces,
    Subwords,
    byte_pairs,
    read_byte_pairs,
    read_tokenizer,
    special_ids,
)

SIDES = ("source", "target")
SOURCE_PIECES, T5_PIECES = "source.spm", "spiece.model"  # of Marian, of T5
BYTE_PAIRS = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))  # Hugging Face, OpenAI


@dataclasses.dataclass(frozen=True)
class Start:
    """A language model of a folder.

    Attributes:
        model: a `GPT` or an `RNNLanguageModel`, built.
        tokenizer: a tokenizer of `seqkeras.tokenizers`.
        decoding: `start_id` and `end_id`, where the folder's run says so.
        settings: settings of the folder's run.
    """

    model: Any
    tokenizer: Any
    decoding: dict
    settings: dict

    def new_model(self) -> keras.Model:
        """Return a model of the same weights, in the precision and on the devices of where it is
        made."""
        return _copied(self.model)

    def like(self, vocab_size: int) -> keras.Model:
        """Return a new model of the same sizes, for another vocabulary."""
        return _rebuilt(self.model, vocab_size=vocab_size)


def read_start(folder: Path | str, dropout: float | None = None, mask: str | None = None) -> Start:
    """Return the `Start` of a run, or of a GPT-2 folder of Hugging Face.

    Args:
        folder: a path.
        dropout: dropout rate of the model; None leaves it as it is.
        mask: mask of a `GPT`, or "permutation" of a `PermutedGPT`; None leaves it as it is.

    Raises:
        RunError: if there is no language model in the folder, or no tokenizer, or a model that the
            mask is not for.
    """
    start = _read(Path(folder))
    if mask is not None:
        _require_mask(start.model, mask, folder)
    changes = {} if mask in (None, "permutation") else {"mask": mask}
    if dropout is not None:
        names = ("dropout", "attention_dropout")
        changes |= {name: dropout for name in names if name in start.model.get_config()}
    return dataclasses.replace(start, model=_copied(start.model, **changes)) if changes else start


def _require_mask(model, mask, folder):
    """Raise a RunError unless a model of a folder can be trained with a mask."""
    if not isinstance(model, GPT):
        raise RunError(
            f"--mask {mask}: {folder} has a recurrent model, which reads from left to right; leave "
            "--mask out, or start from a GPT."
        )
    is_permuted = isinstance(model, PermutedGPT)
    if is_permuted != (mask == "permutation"):
        trained = "with --mask permutation" if is_permuted else "without it: it has no query stream"
        raise RunError(
            f"--mask {mask}: {folder} was trained {trained}; leave --mask out, or --start-from."
        )


def _read(folder):
    """Return the `Start` of a folder, as it is."""
    if not folder.is_dir():
        raise RunError(f"{folder}: no such folder; expected a run, or a GPT-2 folder.")
    if (folder / "config.json").is_file() and not (folder / RECORD).is_file():
        return Start(_of_hugging_face(folder), tokenizer_of(folder), {}, {})
    record = RunRecord.read(folder)
    if record.pipeline != "Generate":
        raise RunError(
            f"{folder}: expected the run of a language model; {record.pipeline} serves this one."
        )
    try:
        model = keras.models.load_model(folder / MODEL)
        tokenizer = read_tokenizer(folder / record.tokenizers["text"])
    except (OSError, ValueError) as error:
        raise RunError(f"{folder}: damaged: {error}") from error
    if not isinstance(model, GPT | RNNLanguageModel):
        raise RunError(
            f"{folder}: expected a GPT or an RNNLanguageModel; found a {type(model).__name__}."
        )
    ids = {name: record.decoding[name] for name in ("start_id", "end_id")}
    return Start(model, tokenizer, ids, record.settings)


@dataclasses.dataclass(frozen=True)
class StartOfTranslator:
    """An encoder-decoder of a folder.

    Attributes:
        model: a `Transformer`, built.
        tokenizers: "source" and "target" -> tokenizer of `seqkeras.tokenizers`.
        decoding: `start_id` and `end_id`.
        padding_id: the id that stands behind a text.
    """

    model: Transformer
    tokenizers: dict[str, Any]
    decoding: dict[str, int]
    padding_id: int

    def new_model(self, max_length: int) -> keras.Model:
        """Return a model of the same weights, with room for max_length target tokens at least, in
        the precision and on the devices of where it is made."""
        room = self.model.sizes["max_length"]
        return _copied(self.model, max_length=max(room, max_length))

    def require_positions(self, folder: str, max_length: int) -> None:
        """Raise a RunError unless the model can read max_length tokens."""
        room = self.model.sizes["max_length"]
        if self.model.options["positions"] == "learned" and max_length > room:
            raise RunError(
                f"{folder}: has {room} learned positions, fewer than --max-length {max_length}; "
                "choose at most as many."
            )


def read_translator(folder: Path | str) -> StartOfTranslator:
    """Return the `StartOfTranslator` of a run, or of a Marian or T5 folder.

    Raises:
        RunError: if there is none in the folder, or no tokenizer of it.
    """
    folder = Path(folder)
    if (folder / RECORD).is_file():
        return _translator_of_run(folder)
    try:
        model, config = load_hugging_face(folder), read_config(folder)
        if not isinstance(model, Transformer):
            raise RunError(f"{folder}: expected a Marian or a T5; found a {type(model).__name__}.")
        if (folder / SOURCE_PIECES).is_file():
            sides: dict[str, Any] = {
                side: SentencePieces.from_marian(folder, side) for side in SIDES
            }
        elif (folder / T5_PIECES).is_file() and not (folder / "tokenizer.json").is_file():
            pieces = SentencePieces((folder / T5_PIECES).read_bytes(), suffix=["</s>"])
            sides = dict.fromkeys(SIDES, pieces)
        else:
            sides = dict.fromkeys(SIDES, tokenizer_of(folder))
    except (OSError, ValueError) as error:
        raise RunError(f"{folder}: {error}") from error
    for side, size in zip(SIDES, ("source_vocab_size", "target_vocab_size"), strict=True):
        if len(sides[side]) > model.sizes[size]:
            raise RunError(
                f"{folder}: the {side} tokenizer has {len(sides[side]):,} tokens and the model "
                f"{model.sizes[size]:,}: this vocabulary is not the checkpoint's."
            )
    try:
        ids = [config[f"{name}_token_id"] for name in ("decoder_start", "eos", "pad")]
    except KeyError as error:
        raise RunError(f"{folder / 'config.json'}: {error.args[0]} is missing.") from error
    return StartOfTranslator(model, sides, {"start_id": ids[0], "end_id": ids[1]}, ids[2])


def _translator_of_run(folder):
    record = RunRecord.read(folder)
    if record.pipeline != "Translate" or {*record.tokenizers} != {*SIDES}:
        raise RunError(
            f"{folder}: expected a run of one text into another; {record.task} left this one."
        )
    tokenizers = record.read_tokenizers(folder)
    try:
        model = keras.models.load_model(folder / MODEL, compile=False)
    except (OSError, ValueError) as error:
        raise RunError(f"{folder}: damaged: {error}") from error
    if not isinstance(model, Transformer):
        raise RunError(f"{folder}: expected a Transformer; found a {type(model).__name__}.")
    ids = {name: record.decoding[name] for name in ("start_id", "end_id")}
    padding_id = special_ids(tokenizers["target"]).padding_id
    return StartOfTranslator(model, tokenizers, ids, PAD if padding_id is None else padding_id)


def tokenizer_of(path: Path | str) -> Tokenizer:
    """Return the tokenizer of a file, or of a folder as GPT-2's.

    Raises:
        RunError: if there is none.
    """
    path = Path(path)
    try:
        if path.is_file():
            return read_tokenizer(path)
        if (path / "tokenizer.json").is_file():
            return Subwords.from_file(path / "tokenizer.json")
        for names in BYTE_PAIRS:
            if all((path / name).is_file() for name in names):
                return byte_pairs(*read_byte_pairs(*(path / name for name in names)))
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: no tokenizer that can be read: {error}") from error
    expected = ", or ".join(" and ".join(names) for names in BYTE_PAIRS)
    raise RunError(f"{path}: no tokenizer; expected tokenizer.json, or {expected}.")


def _of_hugging_face(folder):
    try:
        model = load_hugging_face(folder)
    except ValueError as error:
        raise RunError(str(error)) from error
    if not isinstance(model, GPT):
        raise RunError(f"{folder}: expected a GPT-2; found a {type(model).__name__}.")
    return model


def _copied(model, **changes):
    """Return a new model of the same weights, but for the changes of its options."""
    other = _rebuilt(model, **changes)
    other.set_weights(model.get_weights())
    return other


def _rebuilt(model, **changes):
    """Return a new model of the same sizes, but for the changes, in the precision of where it is
    made."""
    config = model.get_config()
    del config["dtype"]
    other = type(model).from_config({**config, **changes})
    other.build(None)
    return other
