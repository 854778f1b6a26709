"""Encoder-decoders: log-probabilities of real targets (teacher forcing), and generated texts.

A different greedy answer is accepted only if Keras's two best tokens differ by less than `MARGIN`
where the strings diverge.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from keras import ops

from seqkeras.export.exported import ON_ARRAYS
from seqkeras.export.families.decoders import log_probs_along
from seqkeras.export.pipelines.record import MARGIN
from seqkeras.export.verifying import parity
from seqkeras.export.verifying.parity import Comparison, in_keras, rows_of
from seqkeras.export.verifying.searches import KerasResults, compare_searches, generated
from seqkeras.export.verifying.teacher_forcing import (
    along,
    compare_along,
    margins,
    sources_of,
    steps_of,
)
from seqkeras.serving.pipelines import PIPELINES
from seqkeras.serving.session import EncoderDecoder
from seqkeras.tokenizers import pad

if TYPE_CHECKING:
    from seqkeras.export.exported import Exported
    from seqkeras.export.families import ExportPlan
    from seqkeras.export.run import Run


def verify_encoder_decoder(
    run: Run, plan: ExportPlan, exported: Exported
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """See `seqkeras.export.verifying.verify`."""
    folder, manifest = exported.folder, exported.manifest
    inputs = run.inputs[: parity.EXAMPLES]
    pipeline = PIPELINES[manifest.pipeline](folder, manifest)
    rows = [pipeline.encode(value) for value in inputs]
    source, sources, arrays = sources_of(rows)
    target = run.tokenizers["target"]
    targets = [
        target.encode(example["target"])[: run.limits.target_length]
        for example in run.examples[: len(inputs)]
    ]
    start_id, end_id = run.decoding.start_id, run.decoding.end_id
    target_ids, target_lengths = pad([[start_id, *ids] for ids in targets])
    comparison = Comparison(len(inputs))
    by_ids = exported.signatures(ON_ARRAYS)
    for graphs, batch in steps_of(EncoderDecoder, exported, len(inputs)):
        given = rows_of(arrays, batch)
        state = graphs.encode(given[source], given["lengths"])
        given["target_ids"] = target_ids[batch]
        compare_along(
            comparison,
            run,
            by_ids,
            along(graphs, state, given["target_ids"]),
            _log_probs(run.model, given),
            given,
            target_lengths[batch],
            called=batch.start == 0,
        )

    results = generated(in_keras(plan.saved_model["generate"]), arrays)
    keras_ids = results["generated_ids"]

    @functools.cache
    def best():
        return _margins(run.model, arrays, keras_ids, start_id)

    def texts_of(rows):
        return [_text(target, ids, end_id) for ids in rows]

    def is_tie(row, answer, score=None):
        # Compare up to the first token whose text differs.
        places = range(1, 1 + len(keras_ids[row]))
        same = [
            end for end in places if answer.startswith(_text(target, keras_ids[row][:end], end_id))
        ]
        return bool(best()[row, : 1 + max(same, default=0)].min() < MARGIN)

    greedy = KerasResults(inputs, texts_of(keras_ids), results["scores"], is_tie)
    answers = [answer.text for answer in pipeline(inputs, num_beams=1)]
    comparison.compare_texts("onnx", answers, greedy.texts, inputs, is_tie)
    whole = range(len(inputs))
    compare_searches(comparison, plan, pipeline, exported, arrays, greedy, texts_of, whole)
    return comparison.finish(), [
        {source: np.array(row), "target_ids": np.array([*ids, end_id])}
        for row, ids in zip(sources, targets, strict=True)
    ]


def _text(tokenizer, token_ids, end_id):
    """Return the text of the tokens before `end_id`."""
    token_ids = [int(token_id) for token_id in token_ids]
    return tokenizer.decode(
        token_ids[: token_ids.index(end_id)] if end_id in token_ids else token_ids
    )


def _log_probs(model, arrays):
    return ops.convert_to_numpy(log_probs_along(model, arrays))  # (N, T, V)


def _margins(model, arrays, generated_ids, start_id):
    """Return (N, T) the margin of Keras's best token at each step of its greedy decoding."""
    begin = np.full((len(generated_ids), 1), start_id, generated_ids.dtype)
    target_ids = np.concatenate([begin, generated_ids[:, :-1]], axis=1)
    return margins(lambda given: _log_probs(model, given), {**arrays, "target_ids": target_ids})
