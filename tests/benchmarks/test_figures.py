"""What benchmarks make of times and sizes."""

import math
import types

import pytest

from benchmarks import encoder_bundles, encoders, harness, limit, roofline, scaling
from benchmarks.scaling import Point

FAST, SLOW = [0.002, 0.001, 0.004], [0.008, 0.002, 0.004]
SIZES = {"hidden_dim": 5, "num_layers": 3, "feed_forward_dim": 7}


def test_a_ratio_is_the_median_of_the_rounds_and_over_one_if_we_are_ahead():
    row = harness.compare_times("case", FAST, SLOW, "ms", 1000, goal=3)
    assert (row.ours, row.rival, row.ratio) == (2.0, 4.0, 2.0)  # of the ratios 4, 2, 1
    assert row.verdict == "MISSED"
    assert harness.compare_times("case", FAST, SLOW, "ms", 1000, goal=2).verdict == "met"
    assert harness.compare_times("case", FAST, SLOW, "ms", 1000).verdict == ""


def test_contenders_take_turns_and_warm_up_rounds_do_not_count():
    calls = []
    contenders = {name: lambda number, name=name: calls.append((name, number)) for name in "ab"}
    times = harness.times_in_turn(contenders, rounds=3, warm_up=1)
    assert {name: len(each) for name, each in times.items()} == {"a": 3, "b": 3}
    assert "".join(name for name, _ in calls) == "baabbaab"
    assert [number for name, number in calls if name == "a"] == [-1, 0, 1, 2]


def test_the_last_line_counts_the_goals(capsys):
    rows = [harness.Row("case", 1, 2, "ms", 2.0, goal=goal) for goal in (1, 3, None)]
    assert harness.run(harness.make_parser("name", "words"), lambda options: rows, []) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "1 of 2 goals met"


def test_limit_counts_no_padding_as_work(monkeypatch, tmp_path):
    given = []
    session = types.SimpleNamespace(run=lambda names, inputs: given.append(inputs))
    monkeypatch.setattr(encoders, "open_graph", lambda bundle, runtime: session)
    monkeypatch.setattr(encoders, "QUICK_SHAPES", ((5, 11),))
    for case in limit._cases("minilm", tmp_path, quick=True):
        assert case.passes == [roofline.encoder(encoder_bundles.QUICK, 5, 11, case.precision)]
        case.open(None)(0)
    assert len(given) == 2
    for inputs in given:
        assert inputs["lengths"].tolist() == [11] * 5
        assert inputs["token_ids"].shape == (5, 11) and inputs["token_ids"].all()


def test_the_work_of_an_encoder_is_that_of_its_products():
    works = roofline.encoder(SIZES, batch_size=2, length=11, dtype="int8")
    products = [5 * 15, 5 * 5, 5 * 7, 7 * 5]
    scores_and_contexts = 2 * 2 * 11 * 11 * 5 * 2  # additions too, for two rows
    assert sum(each.count * each.operations for each in works) == 3 * (
        2 * 22 * sum(products) + scores_and_contexts
    )
    keys_and_values = 2 * 2 * 11 * 5 * 4  # in float32
    assert roofline.working_set([works]) == 3 * (sum(products) + keys_and_values)


def test_generation_reads_the_weights_in_every_step():
    passes = roofline.generation(
        SIZES, vocab_size=13, batch_size=2, num_beams=4, source=3, target=2, dtype="float32"
    )
    assert len(passes) == 3  # the encoder's, then two steps
    weights = 3 * (25 * (3 + 1 + 1 + 1) + 35 + 35) + 5 * 13
    for works, rows, past in zip(passes[1:], (2, 8), (1, 2)):
        caches = 3 * 2 * 5 * (rows * past + 2 * 3)
        assert sum(each.count * each.size for each in works) == 4 * (weights + caches)
        products, attended = 2 * rows * weights, 3 * 4 * rows * 5 * (past + 3)
        assert sum(each.count * each.operations for each in works) == products + attended


def test_each_operation_waits_for_the_slower_of_its_two_limits():
    multiplied = roofline.Work(count=3, operations=100, size=10, dtype="int8")
    read = roofline.Work(count=2, operations=10, size=60)
    rates = {"float32": 10.0, "int8": 50.0}
    assert roofline.limit([[multiplied], [read]], rates, read_rate=20.0) == 3 * 2 + 2 * 3


def made(case, power, lengths=(64, 512, 4096)):
    """Points on a straight line, but for the shortest length."""
    return [
        Point(case, length, 1e-3 + (length / 512) ** power * (length > 64), 2.0 * length**power)
        for length in lengths
    ]


def test_a_slope_without_figures_is_left_out():
    nothing = [Point("qrnn", length, 1.0, 0.0) for length in (512, 1024)]
    points = [*made("full attention", 2, (512, 1024)), *nothing]
    slopes = scaling.slopes_of(points, 512)
    assert math.isnan(slopes["qrnn"][1])
    names = [row.case for row in scaling.rows_of(points, slopes)]
    assert "qrnn time, slope vs 1" in names and "qrnn memory, slope vs 1" not in names


@pytest.mark.parametrize("power, verdict", [(1.1, "met"), (1.2, "MISSED")])
def test_the_goal_is_a_slope_of_one_of_the_longer_lengths(power, verdict):
    points = [*made("full attention", 2), *made("restricted attention", power)]
    slopes = scaling.slopes_of(points, 512)
    assert slopes["full attention"] == pytest.approx((2, 2), abs=1e-3)
    assert slopes["restricted attention"] == pytest.approx((power, power), abs=1e-3)
    rows = scaling.rows_of(points, slopes)
    goals = {row.case: row.verdict for row in rows if row.goal is not None}
    assert goals == {
        f"restricted attention {kind}, slope vs 1": verdict for kind in ("time", "memory")
    }
    name = "restricted attention t4096 memory vs full attention"
    [row] = [row for row in rows if row.case == name]
    assert row.ratio == pytest.approx(4096 ** (2 - power))
