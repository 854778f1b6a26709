"""A machine that turns, and its vibration sensor: recordings for training, or a live sensor.

    python examples/vibration/machine.py --recordings 160 > vibration.csv
    python examples/vibration/machine.py --live --fault bearing --seconds 5

The machine turns about ten times a second; the sensor gives two numbers, x and y, a hundred times a
second. A fault begins somewhere in a recording, and in the middle of a live one:

    none       the turn, and noise
    imbalance  the turn is three times as strong in x
    bearing    a ball passes a crack 3.6 times a turn: a knock that rings off
    looseness  the turn's second and third harmonics
"""

import argparse
import csv
import math
import random
import sys
import time
from collections.abc import Iterator
from typing import TextIO

RATE = 100  # frames a second
FAULTS = ("none", "imbalance", "bearing", "looseness")


def frames(fault: str, count: int, seed: int, begins: int = 0) -> Iterator[tuple[float, float]]:
    """Yield (x, y) of each frame; the fault begins with a frame."""
    draw = random.Random(seed)
    turn = draw.uniform(9, 11)  # a second
    phase, ring = draw.uniform(0, 2 * math.pi), 0.0
    for frame in range(count):
        now = frame / RATE
        angle = 2 * math.pi * turn * now + phase
        x, y = math.sin(angle), math.cos(angle)
        if frame >= begins:
            if fault == "imbalance":
                x *= 3
            elif fault == "looseness":
                x += 0.8 * math.sin(2 * angle)
                y += 0.8 * math.cos(3 * angle)
            elif fault == "bearing":
                ring *= 0.5
                if math.floor(3.6 * turn * now) > math.floor(3.6 * turn * (now - 1 / RATE)):
                    ring = 2.5
                y += ring
        yield x + draw.gauss(0, 0.3), y + draw.gauss(0, 0.3)


def write_recordings(count: int, file: TextIO) -> None:
    """Write a CSV file of recordings of one to three seconds, each of a fault in turn that begins
    somewhere; each frame is tagged."""
    writer, draw = csv.writer(file), random.Random(0)
    writer.writerow(["recording", "x", "y", "tag"])
    for number in range(count):
        fault, length = FAULTS[number % len(FAULTS)], draw.randint(RATE, 3 * RATE)
        begins = draw.randrange(length)
        for frame, (x, y) in enumerate(frames(fault, length, number, begins)):
            tag = fault if frame >= begins else "none"
            writer.writerow([number, f"{x:.3f}", f"{y:.3f}", tag])


def write_live(fault: str, seconds: float, file: TextIO, pause: float = 1 / RATE) -> None:
    """Write the rows of a sensor as they come; the fault begins in the middle."""
    count = round(seconds * RATE)
    print("x,y", file=file, flush=True)
    for x, y in frames(fault, count, seed=-1, begins=count // 2):
        print(f"{x:.3f},{y:.3f}", file=file, flush=True)
        time.sleep(pause)


def main() -> None:
    """Write recordings, or a live sensor, to standard output."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--recordings", type=int, default=160, help="Recordings. Default: 160.")
    parser.add_argument("--live", action="store_true", help="Write the rows of a sensor, live.")
    parser.add_argument("--fault", choices=FAULTS, default="bearing", help="Fault of the live one.")
    parser.add_argument("--seconds", type=float, default=4, help="Seconds of it. Default: 4.")
    options = parser.parse_args()
    if options.live:
        write_live(options.fault, options.seconds, sys.stdout)
    else:
        write_recordings(options.recordings, sys.stdout)


if __name__ == "__main__":
    main()
