"""seqkeras export runs/NAME bundles/NAME [--overwrite] [--precision int8] ..."""

import argparse
import importlib
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from seqkeras.export.place import require_free
from seqkeras.export.web import WebFolder
from seqkeras.folders import identity
from seqkeras.interrupts import Interrupts
from seqkeras.quiet import few_collections, import_tensorflow
from seqkeras.runs import RunRecord
from seqkeras.serving.printing import as_typed
from seqkeras.terminal import allow_any_text, drop_output, one_line

TYPED = as_typed(__package__, "export")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {one_line(message)}; see {self.prog} --help", file=sys.stderr)
        sys.exit(2)


def main(arguments: Sequence[str] | None = None) -> int:
    """Export a run; returns the exit status."""
    options = _parser().parse_args(arguments)
    allow_any_text()
    before = identity(options.bundle)
    try:
        with Interrupts() as interrupts, few_collections():
            return _export(options, interrupts)
    except KeyboardInterrupt:
        print(f"{TYPED}: stopped; {one_line(_fate(options.bundle, before))}", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return drop_output()
    except ValueError as error:
        print(f"{TYPED}: {one_line(error)}", file=sys.stderr)
        return 1
    except (OSError, MemoryError) as error:
        reason = str(error) or "memory is short"
        fate = _fate(options.bundle, before)
        print(
            f"{TYPED}: {one_line(f'{fate}: {reason}')}; mend that, then run the same command",
            file=sys.stderr,
        )
        return 1


def _parser():
    parser = _Parser(
        prog=TYPED,
        description="Make a bundle (ONNX graphs and SavedModels, verified) from a finished run.",
    )
    for flag, options, help in ARGUMENTS:
        parser.add_argument(flag, **options, help=help)
    return parser


def _names(text):
    return tuple(name for name in text.split(",") if name and name != "float32")


SWITCH, FOLDER, NUMBER = {"action": "store_true"}, {"type": Path}, {"type": float, "metavar": "X"}
ARGUMENTS = [  # (flag, options of argparse, help)
    ("run", FOLDER | {"metavar": "RUN"}, "Folder of the finished run."),
    ("bundle", FOLDER | {"metavar": "BUNDLE"}, "Bundle folder to make."),
    ("--overwrite", SWITCH, "Replace the bundle in the folder."),
    (
        "--precision",
        {"type": _names, "default": (), "dest": "precisions", "metavar": "NAME,…"},
        "Precisions beside float32: int8, int8-embedding, int4, float16.",
    ),
    (
        "--tolerance",
        NUMBER | {"default": 0.005},
        "Largest drop of a precision's score below float32's score. Default: 0.005.",
    ),
    (
        "--agreement",
        NUMBER | {"default": 0.99},
        "Smallest share of a precision's answers that equal float32's, for a run without targets "
        "or without a float32 score above 0. Default: 0.99.",
    ),
    (
        "--log-prob-tolerance",
        NUMBER | {"default": 0.1},
        "Largest mean error of a precision's log-probabilities, for a run without targets or "
        "without a float32 score above 0. Default: 0.1.",
    ),
    (
        "--generate-in-graph",
        SWITCH,
        "Add one ONNX file from token ids to token ids, for hosts other than Python.",
    ),
    (
        "--attention-heads",
        SWITCH,
        "Add graphs that output the attention of each head of each layer.",
    ),
    (
        "--stream",
        SWITCH,
        "Add a graph that answers frames as they come, for a model that reads no later frames.",
    ),
    (
        "--n-best",
        {"type": int, "default": 0, "metavar": "N"},
        "Add a signature n_best to the SavedModels, with N results for each input.",
    ),
    (
        "--sampling",
        SWITCH,
        "Add a signature sample to the SavedModels, with temperature, top_k, top_p and seed.",
    ),
    (
        "--portable",
        SWITCH,
        "Restrict graphs to standard ONNX operators, for runtimes other than onnxruntime.",
    ),
    (
        "--no-strings",
        {"dest": "strings", "action": "store_false"},
        "Omit the SavedModel that reads strings; the SavedModel of token ids stays.",
    ),
    (
        "--no-saved-models",
        {"dest": "saved_models", "action": "store_false"},
        "Make ONNX graphs alone, without SavedModels: a smaller bundle for devices, in less time.",
    ),
    (
        "--web",
        FOLDER | {"metavar": "FOLDER"},
        "Folder of static files to make: a page that answers in the browser.",
    ),
    (
        "--node-modules",
        FOLDER | {"metavar": "FOLDER"},
        "Folder node_modules with onnxruntime-web, for --web. Default: serving/javascript's.",
    ),
    (
        "--import",
        {"dest": "modules", "action": "append", "default": [], "metavar": "MODULE"},
        "Module that registers your classes with Keras: my_model for my_model.py in the current "
        "folder. Repeatable.",
    ),
]


def _fate(bundle, before):
    """Return what a failed export has left at the bundle's place, in words."""
    made = identity(bundle) not in (None, before)
    return f"{bundle} was {'made, whole and verified' if made else 'not made or changed'}"


def _export(options, interrupts):
    # What the folders alone tell is refused before TensorFlow is loaded.
    web = None
    if options.web is not None:
        taken = (options.run, options.bundle)
        web = WebFolder(options.web, taken, options.overwrite, options.node_modules)
    require_free(options.bundle, options.overwrite, options.run)
    RunRecord.read(options.run)
    with interrupts.held():
        import_tensorflow()
        from tensorflow.errors import OpError

        from seqkeras.export.bundle import ExportOptions, export
        from seqkeras.export.tolerances import Tolerances

    began, values = time.monotonic(), vars(options)

    def say(line):
        interrupts.check()
        print(f"  {one_line(line)}", flush=True)

    try:
        for module in options.modules:
            _import(module)
        manifest = export(
            options.run,
            options.bundle,
            options.overwrite,
            say,
            ExportOptions(
                **{
                    name: values[name]
                    for name in values.keys() & ExportOptions.__annotations__.keys()
                },
                tolerances=Tolerances(
                    options.tolerance, options.agreement, options.log_prob_tolerance
                ),
            ),
        )
        if web is not None:
            say("the page with the model, as static files")
            web.write(options.bundle, manifest.plain_name)
    except OpError as error:  # of the file system, as TensorFlow has it
        raise OSError(str(error)) from error
    _report(options.bundle, manifest, options.run, time.monotonic() - began)
    if web is not None:
        print(
            f"the page: python -m http.server --directory {one_line(shlex.quote(str(options.web)))}"
        )
    return 0


def _import(module):
    sys.path.insert(0, "")  # the current directory
    try:
        importlib.import_module(module)
    except Exception as error:  # a user's module can raise anything
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"--import {module}: {reason}; it must be a module that can be imported from here: "
            "FILE for FILE.py, FOLDER.FILE for FOLDER/FILE.py."
        ) from error


def _report(bundle, manifest, run, seconds):
    from seqkeras.export.card.precisions import about_answers, mark_of
    from seqkeras.export.next_command import next_command

    sizes = {}
    for path, entry in manifest.files.items():
        part = path.partition("/")[0]
        sizes[part] = sizes.get(part, 0) + entry.bytes
    for part, size in sizes.items():
        print(f"  {part:18}{size / 1e3:9,.1f} kB")
    for name, precision in manifest.precisions.items():
        figures = precision.figures
        sizes = f"{figures['bytes'] / 1e3:,.1f} kB against {figures['float32_bytes'] / 1e3:,.1f}"
        speed = f"{figures['speed_batch_1']:.2f} times as fast at batch 1"
        print(f"  {name}: {sizes} of float32, {speed}, {about_answers(figures)}")
        if mark := mark_of(figures):
            print(f"  {name} is {mark}")
    parity = manifest.parity
    differences = [value for name, value in parity.items() if name.endswith("difference")]
    what = "log-probabilities" if "onnx_log_prob_difference" in parity else "numbers"
    strings = ", the same strings" if "onnx_ties" in parity else ""
    print(
        f"{one_line(bundle)}: made in {seconds:.0f} s; {what} within {max(differences):.1e} of "
        f"Keras{strings}, on {parity['examples']} real inputs"
    )
    print(f"next: {one_line(next_command(bundle, manifest, run))}")


if __name__ == "__main__":
    sys.exit(main())
