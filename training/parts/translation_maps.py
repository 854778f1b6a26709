"""A picture of where a translator looks, as it writes its answers to a few validation examples."""

import dataclasses
import unicodedata
from pathlib import Path

import keras
import numpy as np
from keras import ops

from seqkeras.analysis.attention_maps import maps_of_heads, plot_attention_maps
from seqkeras.runs import RunFiles
from seqkeras.tokenizers import CharacterTable, Encoding
from seqkeras.training.answering.translate import Translate, source_ids

EXAMPLES = 3
ANSWERED = 32  # the most examples that are answered, to find so many
LENGTH = 24  # the most tokens of a source or an answer that is drawn


def draw_attention(model: keras.Model, run: RunFiles, path: Path | str) -> None:
    """Draw the mean of the last layer's heads for each example, and every head for the last
    example.

    Args:
        model: one that attends.
        run: a `seqkeras.runs.RunFiles`.
        path: path of the PNG; it is not made where no example is short enough.
    """
    answers, panels = _short_answers(model, run)[:EXAMPLES], []
    for number, texts in enumerate(answers, start=1):
        weights, labels = _attention(model, run, *texts), _labels(run, *texts)
        layer = len(weights) - 1
        [mean] = maps_of_heads(weights, *labels, layer=layer, head="mean")
        panels.append(dataclasses.replace(mean, title=None))  # the source is the title
        if number == len(answers) and weights.shape[1] > 1:
            panels += maps_of_heads(weights, *labels, layer=layer)
    if panels:
        plot_attention_maps(panels, path)


def _short_answers(model, run):
    """Return (source, answer) of the first validation examples in which both are short."""
    sources = [example["text"] for example in run.validation]
    sources = [text for text in sources if _is_short(_ids(run, text, "")[0])][:ANSWERED]
    answers = Translate(run)(model, sources) if sources else []
    pairs = [(source, answer.text) for source, answer in zip(sources, answers, strict=True)]
    return [pair for pair in pairs if _is_short(_ids(run, *pair)[1])]


def _is_short(token_ids):
    return 0 < len(token_ids) <= LENGTH


def _ids(run, text, answer):
    """Return what the encoder reads, and what the decoder writes."""
    [read] = source_ids(run.tokenizers["source"], [text])
    return read, run.tokenizers["target"].encode(answer)


def _attention(model, run, text, answer):
    """Return (L, N, T, S), how much each head of each layer attends to each token of the source."""
    read, written = _ids(run, text, answer)
    start_id = run.record.decoding["start_id"]
    before = [start_id, *written[:-1]]  # each token of the answer is made of the one before
    inputs = {"token_ids": [read], "lengths": [len(read)], "target_ids": [before]}
    inputs = {name: np.array(value) for name, value in inputs.items()}
    return ops.convert_to_numpy(model.attention_weights(inputs)["cross"])[0]


def _labels(run, text, answer):
    """Return characters or words of the source, with special tokens, and of the answer, without."""
    source, target = run.tokenizers["source"], run.tokenizers["target"]
    return _read(source, text), _read(target, answer, special_tokens=False)


def _read(tokenizer, text, special_tokens=True):
    """Return a text as `maps_of_heads` takes it."""
    if isinstance(tokenizer, CharacterTable):
        return unicodedata.normalize("NFC", text)
    encoding = tokenizer.analyze(text)
    if special_tokens:
        return encoding
    indices = [index for index, offset in enumerate(encoding.offsets) if offset is not None]
    names = [field.name for field in dataclasses.fields(Encoding) if field.name != "texts"]
    parts = {name: [getattr(encoding, name)[index] for index in indices] for name in names}
    return Encoding(**parts, texts=encoding.texts)
