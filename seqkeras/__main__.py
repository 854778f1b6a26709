"""The command `seqkeras`: train, export, figure, and the commands of `serving`."""

import sys

from seqkeras import __version__
from seqkeras.terminal import drop_output

SERVING = ("predict", "stream", "bench", "inspect", "serve")
USAGE = """usage: seqkeras train TASK --out RUN [options]
       seqkeras export RUN BUNDLE [options]
       seqkeras predict|stream|bench|inspect BUNDLE [options]
       seqkeras serve BUNDLE [options]
       seqkeras figure NAME --out FILE.png [options]
       seqkeras --version

Each has --help."""


def main(arguments=None):
    """Run a command and return the exit status."""
    try:
        try:
            return _run(arguments)
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        return drop_output()


def _run(arguments):
    words = list(sys.argv[1:] if arguments is None else arguments)
    command, *others = words or [""]
    if command == "train":
        from seqkeras.training.__main__ import main as run
    elif command == "export":
        from seqkeras.export.__main__ import main as run
    elif command == "figure":
        from seqkeras.analysis.__main__ import main as run
    elif command in SERVING:
        from seqkeras.serving.__main__ import main as run

        others = words
    elif command in ("-h", "--help"):
        print(USAGE)
        return 0
    elif command == "--version":
        print(f"seqkeras {__version__}")
        return 0
    else:
        print(
            f"seqkeras: the command must be one of train, export, figure, {', '.join(SERVING)}; "
            f"received {command!r}; see seqkeras --help",
            file=sys.stderr,
        )
        return 2
    return run(others)


if __name__ == "__main__":
    sys.exit(main())
