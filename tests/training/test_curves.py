"""Learning curves: which numbers share a panel."""

from PIL import Image

from seqkeras.training.curves import _figure, draw_curves


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


def test_curves_are_a_picture(tmp_path):
    draw_curves([{"step": 1, "loss": 2.0}, {"step": 3, "loss": 1.0}], tmp_path / "curves.png")
    with Image.open(tmp_path / "curves.png") as picture:
        assert picture.format == "PNG" and len(picture.getcolors()) > 9
