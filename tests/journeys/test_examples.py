"""Each folder of examples/ runs by its one command."""

import os
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
