"""Learning curves: which numbers share a panel."""

from seqkeras.training.curves import _figure


def test_training_and_validation_of_a_number_share_a_panel():
    names = "accuracy", "loss", "masked_loss", "validation_loss", "validation_masked_loss", "F1"
    rows = [{"step": step, "seconds": 3.0, **dict.fromkeys(names, step)} for step in (1, 2)]
    del rows[0]["validation_loss"]
    figure = _figure(rows)
    panels = {
        axes.get_title(loc="left"): {line.get_label(): [*line.get_xdata()] for line in axes.lines}
        for axes in figure.axes
        if axes.axison
    }
    both = {"training": [1, 2], "validation": [1, 2]}
    assert [*panels] == ["loss", "accuracy", "masked loss", "F1"]
    assert panels["loss"] == {"training": [1, 2], "validation": [2]}
    assert panels["masked loss"] == both
    assert [axes.get_legend() is not None for axes in figure.axes if axes.axison] == [
        True,
        False,
        True,
        False,
    ]
