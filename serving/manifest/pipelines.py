"""The names of all pipelines.

For each name, `serving.pipelines` has a class, and `export.pipelines` a file with a record.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Texts:
    """The texts that a pipeline reads and writes.

    Attributes:
        generated: role of the tokenizer of generated texts; None if the pipeline generates none.
        only: whether an input is a text and nothing else.
        pairs: whether an input may also be a pair of texts.
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
"""Which inputs of a pipeline are texts, and what it generates: name -> `Texts`."""
