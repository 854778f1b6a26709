import json
import math

import pytest
from PIL import Image

from benchmarks import scaling
from benchmarks.scaling import Point

CASES = {"simplernn", "lstm", "qrnn", "full attention", "restricted attention"}


def made(case, power, lengths=(64, 512, 4096)):
    """Points on a straight line, but for the shortest length."""
    return [
        Point(case, length, 1e-3 + (length / 512) ** power * (length > 64), 2.0 * length**power)
        for length in lengths
    ]


def test_every_layer_is_measured_at_every_length(capsys, tmp_path):
    files = {"--json": tmp_path / "rows.json", "--png": tmp_path / "scaling.png"}
    arguments = [str(each) for pair in files.items() for each in pair]
    assert scaling.main(["--quick", *arguments]) == 0
    printed = capsys.readouterr().out
    for case in CASES:
        assert all(f"{case} t{length}: " in printed for length in (8, 16, 32))
    rows = {row["case"]: row for row in json.loads(files["--json"].read_text())}
    assert {
        f"{case} t{length} {kind} vs full attention"
        for case in CASES - {"full attention"}
        for length in (8, 16, 32)
        for kind in ("time", "memory")
    } <= set(rows)
    with Image.open(files["--png"]) as image:
        assert image.size == (1320, 576)


def test_a_point_is_measured_in_a_process_of_its_own(capsys):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scaling, "measure_point", None)  # which this process does not call
        point = scaling._point_in_a_process("full attention", 600, rounds=1)
    assert (point.case, point.length) == ("full attention", 600)
    # The scores alone: 4 heads of 600 x 600 floats are 5.8 MB.
    assert point.seconds > 0 and point.megabytes > 5


def test_a_process_that_fails_is_told():
    with pytest.raises(ValueError, match="^qrnn t8: (.|\n)*expected a whole number from 1"):
        scaling._point_in_a_process("qrnn", 8, rounds=0)


def test_slopes_are_those_of_the_longer_lengths():
    points = [*made("full attention", 2), *made("restricted attention", 1)]
    slopes = scaling.slopes_of(points, 512)
    assert slopes["full attention"] == pytest.approx((2, 2), abs=1e-3)
    assert slopes["restricted attention"] == pytest.approx((1, 1), abs=1e-3)


def test_a_slope_without_figures_is_left_out():
    nothing = [Point("qrnn", length, 1.0, 0.0) for length in (512, 1024)]
    points = [*made("full attention", 2, (512, 1024)), *nothing]
    slopes = scaling.slopes_of(points, 512)
    assert math.isnan(slopes["qrnn"][1])
    names = [row.case for row in scaling.rows_of(points, slopes)]
    assert "qrnn time, slope vs 1" in names and "qrnn memory, slope vs 1" not in names


@pytest.mark.parametrize("power, verdict", [(1.0, "met"), (1.1, "met"), (1.2, "MISSED")])
def test_the_goal_is_a_slope_of_one(power, verdict):
    points = [*made("full attention", 2), *made("restricted attention", power)]
    rows = scaling.rows_of(points, scaling.slopes_of(points, 512))
    goals = {row.case: row.verdict for row in rows if row.goal is not None}
    assert goals == {
        f"restricted attention {kind}, slope vs 1": verdict for kind in ("time", "memory")
    }
    row = next(
        row for row in rows if row.case == "restricted attention t4096 memory vs full attention"
    )
    assert row.ratio == pytest.approx(4096 ** (2 - power))
