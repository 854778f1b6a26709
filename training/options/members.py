"""The option of tasks whose models may have several members."""

from collections.abc import Iterable

from seqkeras.training.options import Options, at_least, option, shown

ONE_ALONE = (
    "causal",
    "crf",
    "none_of_these",
    "pretrained",
    "teacher",
    "strategy",
)  # options of one model


class MemberOptions(Options):
    """How many models are trained."""

    members: int = option(
        1,
        at_least(1),
        "Models, each trained from a seed of its own, whose mean is served as one model.",
    )

    def problems(self, command: Options) -> Iterable[str]:
        if self.members == 1:
            return
        for name in ONE_ALONE:
            if command.is_given(name):
                yield f"--members and {shown(name)} exclude each other; leave one out."
        if getattr(command, "encoder", None) == "tree":
            yield "--members and --encoder tree exclude each other; leave one out."
