"""The pipelines, by name: the one list of them.

`serving.pipelines` has a class of each name, `export.pipelines` a record in a file of each name.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Texts:
    """What a pipeline reads and writes that is text.

    Attributes:
        generated: role of the tokenizer of the text that the pipeline generates; None where it
            generates none.
        only: whether a text is all that an input holds.
        pairs: whether an input may be a pair of texts too.
    """

    generated: str | None = None
    only: bool = False
    pairs: bool = False


PIPELINE_TEXTS = {
    "Translate": Texts(generated="target"),
    "Generate": Texts(generated="text"),
    "Classify": Texts(only=True, pairs=True),
    "Tag": Texts(only=True),
    "Answer": Texts(),
    "Choose": Texts(),
    "Embed": Texts(only=True),
    "FillMask": Texts(only=True),
    "Forecast": Texts(),
}
