"""The features of a bidirectional language model beside a task's own embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras

from seqkeras.models import BiLM, BiLMFeatures
from seqkeras.runs import MODEL, RunError, RunRecord
from seqkeras.serving.pipelines.embed import WordSettings
from seqkeras.tokenizers import CharacterTable, read_tokenizer, spelled_pieces

if TYPE_CHECKING:
    from seqkeras.serving.text import Tokenizer
    from seqkeras.training.options.encoders import EncoderOptions


def require_features(options: EncoderOptions, frames: Any) -> None:
    """Raise a `RunError` unless --features, if it is given, is a run whose words the task reads.

    Args:
        options: an `EncoderOptions` with `lowercase`.
        frames: not None where inputs are no texts.
    """
    if options.features is None:
        return
    if frames is not None:
        raise RunError("--features: only words have features; sequences of numbers have none.")
    _, characters = _read(options.features)
    capitals = [character for character in characters.entries if character != character.lower()]
    if options.lowercase is not False and capitals:
        raise RunError(
            f"--features {options.features}: reads capitals, which this task would read as small "
            "letters; choose --lowercase false."
        )


def features_of(options: EncoderOptions, tokenizer: Tokenizer) -> BiLMFeatures:
    """Return the `BiLMFeatures` of --features for a WordPiece tokenizer.

    Raises:
        RunError: if the run holds no `BiLM`.
    """
    folder = Path(str(options.features))
    record, characters = _read(folder)
    try:
        bilm = keras.models.load_model(folder / MODEL, compile=False)
    except (OSError, ValueError) as error:
        raise RunError(f"{folder}: damaged: {error}") from error
    if not isinstance(bilm, BiLM):
        raise RunError(f"{folder}: expected a BiLM; found a {type(bilm).__name__}.")
    spelled = spelled_pieces(tokenizer, characters)
    word_length = WordSettings(**record.settings).word_length
    return BiLMFeatures(bilm, *spelled, word_length, options.train_features, name="features")


def _read(folder):
    """Return the record of a run, and its table of characters."""
    record = RunRecord.read(folder)
    if "characters" not in record.tokenizers or record.pipeline != "Embed":
        raise RunError(
            f"--features {folder}: expected a run of bilm; it is one of {record.task}, which "
            f"{record.pipeline} serves."
        )
    try:
        characters = read_tokenizer(Path(folder) / record.tokenizers["characters"])
    except (OSError, ValueError) as error:
        raise RunError(f"{folder}: damaged: {error}") from error
    if not isinstance(characters, CharacterTable):
        raise RunError(f"--features {folder}: its characters are no table of characters.")
    return record, characters
