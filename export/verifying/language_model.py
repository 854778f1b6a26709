"""Language models: log-probabilities along real texts, and their continuations."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from keras import ops

from seqkeras.export.exported import ON_ARRAYS
from seqkeras.export.families.decoders import left_to_right, reads_prefix
from seqkeras.export.pipelines.record import MARGIN
from seqkeras.export.verifying import parity
from seqkeras.export.verifying.searches import KerasResults, compare_searches, generated
from seqkeras.export.verifying.teacher_forcing import along, compare_along, margins, steps_of
from seqkeras.serving.pipelines import PIPELINES
from seqkeras.serving.pipelines.pieces import Detokenizer
from seqkeras.serving.session import LanguageModel
from seqkeras.tokenizers import pad

if TYPE_CHECKING:
    from seqkeras.export.exported import Exported
    from seqkeras.export.families import ExportPlan
    from seqkeras.export.run import Run

NEW_TOKENS = 16  # generated after each text, at most


def verify_language_model(
    run: Run, plan: ExportPlan, exported: Exported
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """See `seqkeras.export.verifying.verify`.

    A text as long as the limit is shortened, to leave room for a continuation.
    """
    folder, manifest = exported.folder, exported.manifest
    inputs = run.inputs[: parity.EXAMPLES]
    pipeline = PIPELINES[manifest.pipeline](folder, manifest)
    new_tokens = max(1, min(NEW_TOKENS, manifest.limits.target_length // 2))
    rows: Any = [pipeline.encode(text, max_new_tokens=new_tokens, truncate=True) for text in inputs]
    token_ids, lengths = pad(rows)
    comparison = parity.Comparison(len(inputs))
    model = run.model

    # The tokens read before the first step: a prefix, or one token.
    first = int(lengths.min()) if reads_prefix(model) else 1
    text = {"token_ids": token_ids}
    text |= {"prefix_lengths": np.full(len(rows), first)} if reads_prefix(model) else {}
    logits_of = left_to_right(model, model)
    by_ids = exported.signatures(ON_ARRAYS)
    for graph, batch in steps_of(LanguageModel, exported, len(rows)):
        given = parity.rows_of(text, batch)
        compare_along(
            comparison,
            run,
            by_ids,
            along(graph, graph.begin(len(lengths[batch])), given["token_ids"], first),
            ops.convert_to_numpy(ops.log_softmax(logits_of(given))),
            given,
            lengths[batch],
            begin=first - 1,
            # The caller chooses how long a prefix is.
            called=batch.start == 0 and not reads_prefix(model),
        )

    feeds = {"token_ids": token_ids, "lengths": lengths}
    results = generated(parity.in_keras(plan.saved_model["generate"]), feeds)
    whole = {"token_ids": results["generated_ids"]}
    whole |= {"prefix_lengths": lengths} if reads_prefix(model) else {}

    @functools.cache
    def best():
        return margins(lambda given: ops.convert_to_numpy(logits_of(given)), whole)

    def texts_of(generated_ids, new_tokens=None):
        return _behind(generated_ids, rows, new_tokens, run)

    def is_tie(row, answer, score=None):
        return bool(best()[row].min() < MARGIN)

    answers = pipeline(inputs, num_beams=1, max_new_tokens=new_tokens, truncate=True)
    expected = texts_of(results["generated_ids"], new_tokens)
    comparison.compare_texts("onnx", [answer.text for answer in answers], expected, inputs, is_tie)
    # The pipeline with its defaults, and the signature on strings, read whole the texts that are
    # shortened here.
    whole_rows = [
        row for row, text in enumerate(inputs) if rows[row] == pipeline.encode(text, truncate=True)
    ]
    greedy = KerasResults(inputs, texts_of(results["generated_ids"]), results["scores"], is_tie)
    compare_searches(comparison, plan, pipeline, exported, feeds, greedy, texts_of, whole_rows)
    parity.compare_attention(
        comparison,
        plan,
        exported,
        inputs,
        num_beams=1,
        max_new_tokens=new_tokens,
        truncate=True,
    )
    return comparison.finish(), [{"token_ids": np.array(row)} for row in rows]


def _behind(generated_ids, prompts, new_tokens, run):
    """Return the continuations of the prompts, of at most `new_tokens` tokens; None for all."""
    [tokenizer], end_id = run.tokenizers.values(), run.decoding.end_id
    texts = []
    for row, prompt in zip(generated_ids.tolist(), prompts, strict=False):
        ids = row[len(prompt) :][:new_tokens]
        ids = ids[: ids.index(end_id)] if end_id in ids else ids
        texts.append(Detokenizer(tokenizer, prompt).text(ids))
    return texts
