"""What a Keras model answers while it trains, as the pipeline that will serve it answers.

One file a pipeline, each with a class of the pipeline's name: made of a `seqkeras.runs.RunFiles`,
called with (model, texts, advance), and `fits` says whether it takes a text whole.
"""

from seqkeras.training.answering.answer import Answer
from seqkeras.training.answering.choose import Choose
from seqkeras.training.answering.classify import Classify
from seqkeras.training.answering.classify_trees import ClassifyTrees
from seqkeras.training.answering.embed import Embed
from seqkeras.training.answering.fill_mask import FillMask
from seqkeras.training.answering.forecast import Forecast
from seqkeras.training.answering.frames import ClassifyFrames, TagFrames
from seqkeras.training.answering.generate import Generate
from seqkeras.training.answering.tag import Tag
from seqkeras.training.answering.translate import Translate

ANSWERERS = {  # by the pipelines of `serving`
    "Answer": Answer,
    "Choose": Choose,
    "Classify": Classify,
    "Embed": Embed,
    "FillMask": FillMask,
    "Forecast": Forecast,
    "Generate": Generate,
    "Tag": Tag,
    "Translate": Translate,
}
OF_FRAMES = {"Classify": ClassifyFrames, "Tag": TagFrames}  # without a tokenizer


def answerer(run):
    """Return a function: (model, texts, advance) -> answers, for the pipeline of a
    `seqkeras.runs.RunFiles`.

    Raises:
        ValueError: if training knows no answers of that pipeline.
    """
    pipeline = run.record.pipeline
    if pipeline not in ANSWERERS:
        raise ValueError(
            f"answerer: the pipeline must be {', '.join(ANSWERERS)}; received {pipeline!r}."
        )
    if pipeline == "Classify" and "words" in run.tokenizers:
        return ClassifyTrees(run)
    kinds = ANSWERERS if run.tokenizers else ANSWERERS | OF_FRAMES
    return kinds[pipeline](run)
