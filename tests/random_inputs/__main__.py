"""Draw new random inputs for a time, and count what each host has answered.

python -m tests.random_inputs --minutes 60 --folder bundles/random
"""

import argparse
import itertools
import sys
import time

import hypothesis
from hypothesis import strategies as st

from tests.random_inputs.cases import CASES
from tests.random_inputs.checking import TRIED, check

HOSTS = ["serving", "refused", "HTTP", "Keras", "SavedModel"]
EXAMPLES = 40  # lists of inputs of one case, before the next case


def draw(case, seed, folder):
    """Check inputs that this seed draws; the fault, or None."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        suppress_health_check=[*hypothesis.HealthCheck],
    )
    @hypothesis.given(st.lists(case.inputs, min_size=1, max_size=5))
    def hosts_agree(values):
        check(case, values, folder)

    try:
        hosts_agree()
    except Exception as error:
        return error
    return None


def main():
    """Print each fault as it is found, then the table; the exit status is 1 after a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_inputs")
    parser.add_argument("--minutes", type=float, default=1.0, help="How long. Default: 1.")
    parser.add_argument("--folder", default="bundles/random", help="Folder of runs and bundles.")
    parser.add_argument("--case", action="append", help="Name of a case; default: each one.")
    parser.add_argument("--seed", type=int, default=0, help="First seed. Default: 0.")
    options = parser.parse_args()
    cases = [case for case in CASES if not options.case or case.name in options.case]
    faults, end = {}, time.monotonic() + 60 * options.minutes
    for number, case in enumerate(itertools.cycle(cases)):
        if time.monotonic() > end and number >= len(cases):
            break
        if case.name in faults:
            continue
        seed = options.seed + number // len(cases)
        if (fault := draw(case, seed, options.folder)) is not None:
            faults[case.name] = fault
            notes = "\n".join(getattr(fault, "__notes__", ()))
            print(
                f"{case.name}, seed {seed}: {type(fault).__name__}: {fault}\n{notes}\n", flush=True
            )
        if len(faults) == len(cases):
            break
    print(f"{'inputs':28}" + "".join(f"{host:>12}" for host in HOSTS))
    for case in cases:
        counts = "".join(f"{TRIED[case.name, host]:12,}" for host in HOSTS)
        print(f"{case.name:28}{counts}")
    print(f"faults: {', '.join(faults) or 'none'}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
