"""python -m export runs/NAME bundles/NAME [--overwrite]"""

import argparse
import os
import shlex
import signal
import sys
import time
from pathlib import Path

from seqkeras.quiet import import_tensorflow


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        print(f"export: {message}; see {self.prog} --help", file=sys.stderr)
        sys.exit(2)


def main(arguments=None):
    """Export a run; returns the exit status."""
    parser = _Parser(
        prog="python -m export",
        description="Make a bundle (ONNX graphs and SavedModels, verified) from a finished run.",
    )
    parser.add_argument("run", type=Path, help="folder of the finished run")
    parser.add_argument("bundle", type=Path, help="folder to make")
    parser.add_argument("--overwrite", action="store_true", help="replace the bundle that is there")
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return _export(options)
    except KeyboardInterrupt:
        print(f"export: stopped; {options.bundle} was not made or changed", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever read our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _export(options):
    import_tensorflow()
    from tensorflow.errors import OpError

    from export.bundle import export

    began = time.monotonic()
    try:
        manifest = export(
            options.run, options.bundle, options.overwrite, lambda line: print(f"  {line}")
        )
    except BrokenPipeError:
        raise
    except ValueError as error:
        print(f"export: {_one_line(error)}", file=sys.stderr)
        return 1
    except (OSError, OpError) as error:
        print(
            f"export: {options.bundle} was not made or changed: {_one_line(error)}; "
            "mend that, then run the same command",
            file=sys.stderr,
        )
        return 1
    _report(options.bundle, manifest, time.monotonic() - began)
    return 0


def _one_line(error):
    return " ".join(str(error).split())


def _report(bundle, manifest, seconds):
    sizes = {}
    for path, entry in manifest.files.items():
        part = path.partition("/")[0]
        sizes[part] = sizes.get(part, 0) + entry.bytes
    for part, size in sizes.items():
        print(f"  {part:18}{size / 1e3:9,.1f} kB")
    parity = manifest.parity
    print(
        f"{bundle}: made in {seconds:.0f} s; log-probabilities within "
        f"{max(parity['onnx_log_prob_difference'], parity['saved_model_log_prob_difference']):.1e} "
        f"of Keras, the same strings, on {parity['examples']} real inputs"
    )
    command = shlex.join(["python", "-m", "serving", "predict", str(bundle), manifest.examples[0]])
    print(f"next: {command}")


if __name__ == "__main__":
    sys.exit(main())
