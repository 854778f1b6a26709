"""Answers of a model that gives them in a single pass, by the pipeline that will serve it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqkeras.keras_pipeline import keras_pipeline
from seqkeras.serving.manifest import SCHEMA_VERSION
from seqkeras.serving.pipelines.model import ROLE
from seqkeras.training.answering.graphs import FRAME_BUDGET, graph_of

if TYPE_CHECKING:
    import keras

    from seqkeras.runs import RunFiles
    from seqkeras.serving.pipelines.pipeline import Pipeline

AT_ONCE = 4096  # inputs that a pipeline is given
# Tokens of a batch: more make a call cheaper for a token, and rows of other lengths share it. The
# logits of a mask are as many as the vocabulary has tokens.
TOKEN_BUDGET = 2**13
BUDGETS = {"FillMask": 2**10}


class SinglePass:
    """Inputs to answers; what is over a limit is cut off, or read in windows.

    Args:
        run: a `seqkeras.runs.RunFiles`.
        asked: options of the pipeline beside `truncate`.
    """

    def __init__(self, run: RunFiles, asked: Mapping[str, Any]):
        self.run = run
        usual = TOKEN_BUDGET if run.tokenizers else FRAME_BUDGET
        budget = BUDGETS.get(run.record.pipeline, usual)
        self.options = {"truncate": True, "token_budget": budget, **asked}
        self._model: keras.Model | None = None
        self._pipeline: Any = None

    def __call__(
        self,
        model: keras.Model,
        texts: Sequence[str],
        advance: Callable[[int], object] | None = None,
    ) -> Any:
        """Return the answers of a model to texts.

        Args:
            advance: called with the number of answers after each part, for a progress bar.
        """
        pipeline, answers = self.pipeline(model), []
        for start in range(0, len(texts), AT_ONCE):
            answers += pipeline([*texts[start : start + AT_ONCE]], **self.options)
            if advance:
                advance(len(answers) - start)
        return answers

    def fits(self, model: keras.Model, text: Any) -> bool:
        """Return whether the pipeline of a model takes a text, and cuts nothing off."""
        try:
            self.pipeline(model).encode(text)
        except ValueError:
            return False
        return True

    def pipeline(self, model: keras.Model) -> Pipeline:
        """Return the pipeline of a model; it is made anew only for another model."""
        if model is not self._model:
            graphs = {ROLE: graph_of(model, self.run)}
            with tempfile.TemporaryDirectory() as folder:
                self.run.write_tokenizers(Path(folder))
                fields = self._fields()
                self._pipeline = keras_pipeline(Path(folder), graphs, fields, pads_freely=True)
            self._model = model
        return self._pipeline

    def _fields(self):
        record = self.run.record
        parsed = record.parse("run.json")
        return {
            "schema_version": SCHEMA_VERSION,
            "name": record.task,
            "task": record.task,
            "pipeline": record.pipeline,
            "created": "",
            "versions": {},
            "tokenizers": record.tokenizers,
            "text_prefix": parsed.text_prefix,
            "limits": parsed.limits,
            "decoding": parsed.decoding,
            "state": (),
            "examples": (),
            "scores": {},
            "parity": {},
            "settings": record.settings,
        }
