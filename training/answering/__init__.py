"""Answers of a Keras model while it trains, by the pipeline that will serve it.

An answerer is called with (model, texts, advance), and `fits` says whether it takes a text whole. A
model that answers in a single pass is run by the pipeline of `serving` itself; one that generates
has its search compiled, many times as fast as the pipeline's steps.
"""

from collections.abc import Mapping
from typing import Any

from seqkeras.runs import RunFiles
from seqkeras.serving.pipelines import PIPELINES
from seqkeras.training.answering.generate import Generate
from seqkeras.training.answering.single_pass import SinglePass
from seqkeras.training.answering.translate import Translate

__all__ = ["answerer"]

GENERATING = {"Generate": Generate, "Translate": Translate}


def answerer(run: RunFiles, asked: Mapping[str, Any] | None = None) -> Any:
    """Return what answers for the pipeline of a `seqkeras.runs.RunFiles`.

    Args:
        run: the run; it needs no model.
        asked: options of a pipeline that answers in a single pass, beside `truncate`.

    Returns:
        A function: (model, inputs, advance) -> list of answers of the pipeline, `advance` being
        None or called with numbers of answers. Its method `fits(model, input)` says whether the
        pipeline takes an input whole.

    Raises:
        ValueError: if there is no pipeline of that name.

    Example:
        >>> import keras, numpy as np
        >>> from seqkeras.runs import RunFiles
        >>> from seqkeras.training.answering import answerer
        >>> frames = keras.Input((None, 3), name="frames")
        >>> pooled = keras.layers.GlobalAveragePooling1D()(frames)
        >>> model = keras.Model({"frames": frames}, keras.layers.Dense(2)(pooled))
        >>> recordings = [np.ones((5, 3)), np.zeros((7, 3))]
        >>> fields = {"limits": {"source_length": 9}, "settings": {"labels": ["wave", "still"]}}
        >>> examples = [{"input": recording} for recording in recordings]
        >>> run = RunFiles.of("runs/own", examples, pipeline="Classify", **fields)
        >>> sorted(answerer(run)(model, recordings)[0].scores)
        ['still', 'wave']
    """
    pipeline = run.record.pipeline
    if pipeline not in PIPELINES:
        raise ValueError(
            f"answerer: the pipeline must be {', '.join(sorted(PIPELINES))}; received {pipeline!r}."
        )
    return GENERATING[pipeline](run) if pipeline in GENERATING else SinglePass(run, asked or {})
