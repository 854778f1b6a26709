"""Parameters of published models by part, as bars."""

from seqkeras.analysis.figure_style import INK, STYLES, frame, new_figure, write_png
from seqkeras.analysis.model_sizes import MODELS, OTHER, PARTS, operations_of, parts_of, published

HATCHES = ("", "///", "...", "\\\\\\", "xxx")
SHADE = 0.75  # of a bar, so that hatches are read
LEAST_WRITTEN = 5  # percent of a bar in which a number fits
FIELDS = ("parameters", "float32_bytes", "int8_bytes")
COLUMNS = {
    "parameters": 122,
    "MB": 136,
    "MB in int8": 149,
    "million a token": 168,
}  # where they end


def measured_sizes(length):
    """Return a dictionary: name of a model -> its `Part`s, and multiply-adds for each token."""
    sizes = {}
    for name in MODELS:
        model = published(name)
        operations, steps = operations_of(model, length)
        sizes[name] = parts_of(model), operations.multiply_adds / steps
    return sizes


def sizes_figure(sizes, length):
    """Return the matplotlib Figure of a dictionary of `measured_sizes`."""
    figure = new_figure(12, 5)
    axes = figure.subplots()
    starts = [0.0] * len(sizes)
    for part, style, hatch in zip(_held(sizes), STYLES, HATCHES):
        widths = [_share(parts, part) for parts, _ in sizes.values()]
        look = {"color": style["color"], "hatch": hatch, "edgecolor": "white", "linewidth": 0}
        axes.barh([*sizes], widths, left=starts, label=part, alpha=SHADE, **look)
        for row, (start, width) in enumerate(zip(starts, widths)):
            if width >= LEAST_WRITTEN:
                box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
                _write(axes, start + width / 2, row, f"{width:.0f} %", ha="center", bbox=box)
        starts = [start + width for start, width in zip(starts, widths)]
    for row, (parts, operations) in enumerate(sizes.values()):
        numbers, float32, int8 = (sum(getattr(part, field) for part in parts) for field in FIELDS)
        texts = f"{numbers:,}", *(f"{n / 1e6:,.0f}" for n in (float32, int8, operations))
        for x, text in zip(COLUMNS.values(), texts):
            _write(axes, x, row, text, ha="right")
    for title, x in COLUMNS.items():
        _write(axes, x, -1, title, ha="right")
    axes.set(xlim=(0, max(COLUMNS.values()) + 2), ylim=(len(sizes) - 0.5, -1.5))
    axes.set_xticks(range(0, 101, 20))
    title = f"Parameters by part, their bytes, and multiply-adds for each of {length} tokens"
    held = len(_held(sizes))
    frame(axes, title, "", "", loc="upper left", bbox_to_anchor=(0, -0.13), ncols=held)
    axes.set_xlabel("percent of the parameters", loc="left", color=INK)
    return figure


def _held(sizes):
    """Return the names of the parts that some model has, in their order."""
    held = {part.name for parts, _ in sizes.values() for part in parts}
    return [name for name in (*PARTS, OTHER) if name in held]


def _share(parts, name):
    """Return how many percent of all parameters a part holds."""
    count = sum(part.parameters for part in parts if part.name == name)
    return 100 * count / sum(part.parameters for part in parts)


def _write(axes, x, y, text, **look):
    axes.text(x, y, text, va="center", fontsize=9, color=INK, **look)


def plot_sizes(path, length=512):
    """Draw the parts of each published model into one PNG file.

    Args:
        path: path of the file, replaced if it exists.
        length: tokens of the text whose operations are counted.

    Raises:
        ValueError: if the models do not read texts of that length.
    """
    if not 1 <= length <= 512:
        raise ValueError(f"plot_sizes: length must be from 1 to 512; received {length}.")
    sizes = measured_sizes(length)
    write_png(lambda: sizes_figure(sizes, length), path)
