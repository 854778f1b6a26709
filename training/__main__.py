"""python -m training TASK [--config FILE] [--option value ...] --out runs/NAME"""

import sys

import click

from seqkeras.quiet import import_tensorflow
from seqkeras.runs import RunError


def main(arguments=None):
    """Run a task; returns the exit status."""
    import_tensorflow()
    from training.tasks import TASKS

    group = click.Group("training", commands=TASKS, help="Train a model: options in, a run out.")
    try:
        group.main(arguments, prog_name="python -m training", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as help_text:
        print(help_text.format_message())
        return 2
    except click.ClickException as error:
        print(f"training: {error.format_message()}", file=sys.stderr)
        return error.exit_code
    except (RunError, OSError) as error:
        print(f"training: {error}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, click.Abort):
        print(
            "training: stopped; the same command goes on from the last checkpoint",
            file=sys.stderr,
        )
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
