"""seqkeras train|export|serve …: in the checkout also python -m training|export|serving …"""

import sys

from seqkeras import __version__

USAGE = """usage: seqkeras train TASK --out RUN [options]
       seqkeras export RUN BUNDLE [options]
       seqkeras serve predict|bench|inspect BUNDLE [options]
       seqkeras --version

Each has --help."""


def main(arguments=None):
    """Run a command; returns the exit status."""
    command, *others = (sys.argv[1:] if arguments is None else arguments) or [""]
    if command == "train":
        from training.__main__ import main as run
    elif command == "export":
        from export.__main__ import main as run
    elif command == "serve":
        from serving.__main__ import main as run
    elif command in ("-h", "--help"):
        print(USAGE)
        return 0
    elif command == "--version":
        print(f"seqkeras {__version__}")
        return 0
    else:
        print(
            f"seqkeras: the command must be train, export or serve; received {command!r}; "
            "see seqkeras --help",
            file=sys.stderr,
        )
        return 2
    return run(others)


if __name__ == "__main__":
    sys.exit(main())
