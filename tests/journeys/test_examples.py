"""Each folder of examples/ runs by its one command."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


def run(name, folder):
    """The lines that an example prints."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", f"examples/{name}/run.sh", str(folder)],
        cwd=CHECKOUT,
        env=os.environ | {"PATH": path, "PYTHONPATH": str(CHECKOUT)},
        check=True,
        capture_output=True,
        text=True,
    ).stdout.splitlines()


def test_a_fault_of_a_machine_is_tagged_soon_after_it_begins(tmp_path):
    counts = [line.split() for line in run("vibration", tmp_path)[-3:]]
    assert [tag for _, tag in counts[-2:]] == ["none", "bearing"]
    frames, after = (int(count) for count, _ in counts[-2:])
    assert 195 <= frames <= 230 and after >= 170  # the bearing breaks after 200 frames


def test_a_share_and_the_air_of_a_town_are_forecast_beside_naive_forecasts(tmp_path):
    run("forecasts", tmp_path)
    share, air = (
        json.loads((tmp_path / name / "scores.json").read_text())["forecasts"]
        for name in ("share", "air")
    )
    assert air["model"]["mae"] < 0.9 * air["persistence"]["mae"]
    assert share["model"]["mae"] < 1.05 * share["persistence"]["mae"]
    for name, horizon in (("share", 10), ("air", 24)):
        assert (tmp_path / name / "forecast.png").read_bytes().startswith(b"\x89PNG")
        values = (tmp_path / f"{name}-next.txt").read_text().split()
        assert len(values) == horizon and all(float(value) > 0 for value in values)


def test_a_users_file_with_other_columns_is_trained_by_the_options_of_the_example(tmp_path):
    page = (CHECKOUT / "examples/forecasts/README.md").read_text(encoding="utf-8")
    [command] = re.findall(r"^(seqkeras train forecasting prices.csv .*?)\n```", page, re.M | re.S)
    make = [sys.executable, "examples/forecasts/make_series.py", "share", "--seed", "2"]
    made = subprocess.run(make, cwd=CHECKOUT, check=True, capture_output=True, text=True).stdout
    header, *rows = made.splitlines()
    assert header == "date,close,high,low,volume"
    named = ["日期,收盘,最高,最低,成交量"]
    for row in rows[:400]:
        *prices, volume = row.split(",")
        named.append(",".join([*prices, f"{float(volume) / 1e4:.2f}万"]))
    (tmp_path / "prices.csv").write_text("\n".join(named) + "\n", encoding="utf-8")
    words = command.replace("\\\n", "").replace("examples/", f"{CHECKOUT}/examples/")
    command = [sys.executable, "-m", *words.split(), "--passes", "1"]
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    subprocess.run(command, cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "runs/prices/forecast.png").exists()
