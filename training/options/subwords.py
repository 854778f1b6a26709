"""The option of subword regularisation."""

from collections.abc import Iterable

from seqkeras.training.options import Number, Options, option, shown

NOT_WITH = ("teacher", "numbers", "categories", "frames_column")


class SubwordOptions(Options):
    """How training texts are cut into tokens."""

    subword_dropout: float = option(
        0.0,
        Number(0, 1, max_open=True),
        "Rate at which each pass cuts training texts into other tokens than the most likely ones, "
        "such as 0.1; 0: no other tokens.",
    )

    def problems(self, of: Options) -> Iterable[str]:
        for name in NOT_WITH if self.subword_dropout else ():
            if of.is_given(name):
                yield f"--subword-dropout: not with {shown(name)}; leave one of them out."
