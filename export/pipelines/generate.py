"""Generate: a prompt to the text that follows it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import tensorflow as tf

from seqkeras.export.feeds import LANGUAGE_MODEL
from seqkeras.export.pipelines.record import PipelineRecord, TextModel
from seqkeras.export.pipelines.targets import TEXTS
from seqkeras.export.text_graphs.characters import behind, checked
from seqkeras.export.text_graphs.generating import generated, generating
from seqkeras.export.text_graphs.reading import Reader, padded, writer
from seqkeras.export.text_graphs.row_errors import first_of
from seqkeras.serving.text import Turns

if TYPE_CHECKING:
    from seqkeras.export.signatures import Signature

ANY = "(?s).*"  # a text that may be empty


def generate(source: TextModel) -> dict[str, Signature]:
    """Map "text", which may be empty, to the "text" that follows it, and "score"; see `translate`.

    To truncate keeps the last tokens of a prompt, after the first one if that is `start_id`.
    Where prompts are turns, the text is what the user says.
    """
    most = min(source.limits.source_length, source.limits.target_length - 1)
    reader = Reader(source.tokenizers["text"], most, end_id=source.decoding.end_id, empty=True)
    tokenizer = writer(source.tokenizers["text"])
    before, after = "", ""
    if source.settings.get("turns") is not None:
        before, after = Turns(**source.settings["turns"]).prompt("\0", "text").split("\0")

    def answer(model, text, truncate, **drawn):
        text = checked(text, accepted=ANY)
        if before or after:
            said = tf.strings.join([before, text.values, after])
            text = dataclasses.replace(text, values=said)
        ids, errors = reader.prompt_ids(text)
        ids = _begun(ids, source.decoding.start_id, source.settings.get("start"))
        ids = _last(ids, most, source.decoding.start_id, truncate)
        errors = first_of(errors, reader.over(ids.row_lengths()))
        ids, lengths = padded(ids, errors)
        ids = tf.cast(ids, tf.int64)
        results = model.function(token_ids=ids, lengths=lengths, **drawn)
        lengths = tf.repeat(lengths, tf.size(results["scores"]) // tf.size(lengths))
        ids, is_text = generated(results, source.decoding.end_id)
        whole = tokenizer.decode(ids, is_text)
        prompt = tokenizer.decode(ids, is_text & tf.sequence_mask(lengths, tf.shape(ids)[1]))
        return behind(prompt, whole), results["scores"], errors

    return generating(answer, source.signatures)


def _begun(ids, start_id, always):
    """Return ragged ids of prompts, with `start_id` before prompts that lack it.

    An empty prompt lacks it; with `always`, so does a prompt that starts with another token.
    """
    start_id = tf.constant(start_id, ids.dtype)
    missing = ids.row_lengths() == 0
    if always:
        missing |= _firsts(ids) != start_id
    count = tf.cast(missing, tf.int64)
    begins = tf.RaggedTensor.from_row_lengths(tf.fill([tf.reduce_sum(count)], start_id), count)
    return tf.concat([begins, ids], axis=1)


def _last(ids, room, start_id, truncate):
    """Return the last ids of prompts over `room`, after a `start_id` that they begin with."""
    sizes = ids.row_lengths()
    begins = (_firsts(ids) == start_id) & (room > 1)
    least = tf.where(
        truncate & (sizes > room), sizes - room + tf.cast(begins, tf.int64), tf.zeros_like(sizes)
    )
    places = tf.ragged.range(sizes)
    first = (places == 0) & tf.expand_dims(begins, 1)
    return tf.ragged.boolean_mask(ids, (places >= tf.expand_dims(least, 1)) | first)


def _firsts(ids):
    """Return (B,) the first id of each ragged row; 0 for none."""
    return tf.pad(ids.to_tensor(), [[0, 0], [0, 1]])[:, 0]


def _input_limits(manifest, unit):
    limits = manifest.limits
    most = min(limits.source_length, limits.target_length - 1)
    return f"A prompt of at most {most} {unit}; with what follows at most {limits.target_length}."


RECORD = PipelineRecord(
    model_kind=LANGUAGE_MODEL,
    targets=lambda settings: TEXTS,
    strings=generate,
    differences=lambda manifest: ["Why a text ends, `finish` of `serving`, is not said."],
    input_limits=_input_limits,
)
