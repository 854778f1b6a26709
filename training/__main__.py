"""seqkeras train TASK [--config FILE] [--option value ...] --out runs/NAME"""

import gc
import sys
import time
from collections.abc import Sequence

import click

from seqkeras.data.texts import DataError
from seqkeras.interrupts import Interrupts
from seqkeras.locking import InUseError
from seqkeras.memory import keep_freed_memory
from seqkeras.quiet import import_keras
from seqkeras.runs import CHECKPOINT, RECORD
from seqkeras.serving.manifest import Refusal
from seqkeras.serving.printing import as_typed
from seqkeras.terminal import allow_any_text, drop_output, one_line
from seqkeras.training.commands import command
from seqkeras.training.describe import DESCRIBE, Description, describe, describe_command
from seqkeras.training.evaluate import EVALUATE, Evaluation, evaluate, evaluate_command
from seqkeras.training.run import is_finished
from seqkeras.training.tasks import TASKS
from seqkeras.training.tuning.command import TUNE, Tuning, tune_command

TYPED = as_typed(__package__, "train")
OUT_OF_MEMORY = {"ResourceExhaustedError", "OutOfMemoryError"}  # of TensorFlow, of PyTorch


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a task; returns the exit status."""
    allow_any_text()
    left = _Left()
    try:
        with Interrupts() as interrupts:
            _train(arguments, interrupts, left)
    except click.exceptions.NoArgsIsHelpError as help_text:
        print(help_text.format_message())
        return 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context else TYPED
        print(f"{TYPED}: {one_line(error.format_message())} See {path} --help.", file=sys.stderr)
        return error.exit_code
    except BrokenPipeError:
        return drop_output()
    except (DataError, InUseError, Refusal) as error:
        print(f"{TYPED}: {one_line(error)}", file=sys.stderr)
        return 1
    except OSError as error:
        named = error.filename is not None and error.strerror
        reason = f"{error.filename}: {error.strerror}" if named else error
        print(f"{TYPED}: {one_line(reason)}", file=sys.stderr)
        return 1
    except MemoryError:
        print(f"{TYPED}: memory is short; choose a smaller --batch-size or model", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, click.Abort):
        print(f"{TYPED}: stopped{left.in_words()}", file=sys.stderr)
        return 130
    return 0


class _Left:
    """Files that a stopped training leaves in its folder."""

    folder, since, study = None, 0.0, None

    def begin(self, folder, overwrite):
        """Say that a training begins; with `overwrite` files from before are not its."""
        self.folder, self.since = folder, time.time() if overwrite else 0.0

    def in_words(self):
        """Return what it is, and the way on; empty for a command that trains nothing."""
        if self.study is not None:
            return "; the same command, without --overwrite, goes on with the study"
        if self.folder is None:
            return ""
        if self._has(RECORD):
            return "; the run is finished"
        if self._has(CHECKPOINT):
            return "; the same command, without --overwrite, goes on from the last checkpoint"
        return " before a checkpoint was made; the same command begins again"

    def _has(self, name):
        path = self.folder / name
        return path.exists() and path.stat().st_mtime >= self.since


def _train(arguments, interrupts, left):
    commands = {name: command(name, options) for name, options in TASKS.items()}
    commands |= {EVALUATE: evaluate_command(), DESCRIBE: describe_command()}
    commands[TUNE] = tune_command(TASKS)
    group = click.Group("training", commands=commands, help="Train a model: options in, a run out.")
    outcome = group.main(arguments, prog_name=TYPED, standalone_mode=False)
    if outcome == 0:  # for help, which is printed
        return
    if isinstance(outcome, tuple):
        options, folder, overwrite = outcome
        is_finished(folder, options.task, options, overwrite)  # refuses a folder of another run
    keep_freed_memory()
    with interrupts.held():
        import_keras()
        from seqkeras.training.train import train

    gc.freeze()  # what libraries have made stays: it need not be searched again

    try:
        if isinstance(outcome, Evaluation):
            evaluate(outcome)
        elif isinstance(outcome, Description):
            describe(outcome)
        elif isinstance(outcome, Tuning):
            from seqkeras.training.tuning.study import tune

            left.study = outcome.folder
            tune(outcome)
        else:
            left.begin(folder, overwrite)
            train(options.make(), folder, overwrite)
    except Exception as error:
        if _is_out_of_memory(error):
            raise MemoryError(str(error)) from error
        raise


def _is_out_of_memory(error):
    """Return whether a backend had no memory left, whichever backend that is."""
    names = {kind.__name__ for kind in type(error).__mro__}
    return bool(names & OUT_OF_MEMORY) or str(error).startswith("RESOURCE_EXHAUSTED")  # JAX


if __name__ == "__main__":
    sys.exit(main())
