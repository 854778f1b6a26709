"""The option of subword regularisation."""

from collections.abc import Iterable

from seqkeras.training.options import Number, Options, option


class SubwordOptions(Options):
    """How training texts are cut into tokens. The options of the command have `text_files`, too."""

    subword_dropout: float = option(
        0.0,
        Number(0, 1, max_open=True),
        "Share of longer tokens (bpe: of merges) that each pass leaves out as it cuts training "
        "texts, such as 0.1; 0: texts are always cut alike.",
    )

    def problems(self, command: Options) -> Iterable[str]:
        if not self.subword_dropout:
            return
        if getattr(command, "teacher", None) is not None:
            yield "--subword-dropout: a teacher answers whole texts; leave one of the two out."
        if not command.text_files():
            yield "--subword-dropout: cuts words; the inputs are numbers. Leave it out."
