"""The section of the model card on the precisions beside float32."""

from collections.abc import Mapping
from typing import Any

from seqkeras.export.tolerances import Tolerances, agreement, shortfalls, telling_scores
from seqkeras.serving.manifest import Manifest

AGREEMENT, LOG_PROBS = "agreement with float32", "log-probabilities off: mean, largest"
PRECISIONS = """
| against float32 | bytes | speed, batch 1 | speed, batch 16 | {names} |
|---|---|---|---|{line}|
{rows}

{notes}
"""


def about_precisions(manifest: Manifest) -> str:
    """Return the table of the precisions beside float32, "" if there is none."""
    if not manifest.precisions:
        return ""
    figures = {name: precision.figures for name, precision in manifest.precisions.items()}
    [first, *_] = figures.values()
    names = [*first.get("scores", ()), AGREEMENT]
    if "mean_log_prob_difference" in first:
        names.append(LOG_PROBS)
    return PRECISIONS.format(
        names=" | ".join(names),
        line="|".join(["---"] * len(names)),
        rows="\n".join(f"| {' | '.join(_cells(*item))} |" for item in figures.items()),
        notes="\n".join(_notes(figures)),
    )


def about_answers(figures: Mapping[str, Any]) -> str:
    """Return a precision's answers beside float32's, for a line of the command."""
    if "scores" not in figures:
        return f"{agreement(figures):.2%} agreement"
    return ", ".join(
        f"{name} {value:.2%} beside {figures['float32_scores'][name]:.2%}"
        for name, value in figures["scores"].items()
    )


def _cells(precision, figures):
    yield precision
    yield f"{figures['bytes']:,}"
    for size in (1, 16):
        yield f"{figures[f'speed_batch_{size}']:.2f}"
    for value in (*figures.get("scores", {}).values(), agreement(figures)):
        yield f"{value:.2%}"
    if "mean_log_prob_difference" in figures:
        off = (figures[f"{name}_log_prob_difference"] for name in ("mean", "largest"))
        yield ", ".join(f"{number:.2g}" for number in off)


def _notes(figures):
    """Yield float32's scores, when a precision is refused, and which precisions carry a mark."""
    [first, *_] = figures.values()
    if "scores" in first:
        scores = " and ".join(f"{n} {v:.2%}" for n, v in first["float32_scores"].items())
        yield f"Scores of float32, on {first['scored_examples']} examples: {scores}."
    allowed = Tolerances(**first["tolerances"])
    if names := telling_scores(first):
        lower = f"{' or '.join(names)} fell by over {allowed.score:g}"
        yield f"A precision was refused where its {lower}."
    else:
        yield (
            "No score says how good the answers are: a precision was refused where its agreement "
            f"was under {100 * allowed.agreement:g}%, or its log-probabilities were off by over "
            f"{allowed.log_prob:g} on average."
        )
    for name, precision_figures in figures.items():
        if mark := mark_of(precision_figures):
            yield f"**{name} is {mark}.**"


def mark_of(figures: Mapping[str, Any]) -> str:
    """Return where a precision exceeds the default tolerances, in words; "" if it does not."""
    reasons = shortfalls(figures, Tolerances())
    return f"worse than the defaults allow: {'; '.join(reasons)}" if reasons else ""
