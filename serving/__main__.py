"""The command line: python -m serving predict|bench|inspect BUNDLE …

Text goes in and out as UTF-8. What a user gets wrong is said in one line on standard error; the
exit status is then 1, or 2 if the command itself was wrong.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from . import __version__, load
from .describe import describe, table
from .manifest import read_bundle, verify_files

PROGRAM = "seqkeras-serving"
CALL = "python -m serving" if __package__ == "serving" else PROGRAM  # what a user types
INTERRUPTED, PIPE_CLOSED = 130, 141  # what a shell reports for SIGINT and SIGPIPE


def main(argv=None):
    """Run the command line `argv` and return the exit status."""
    try:
        options = _parse(sys.argv[1:] if argv is None else argv)
        sys.stdout.reconfigure(encoding="utf-8")
        options.run(options)
        sys.stdout.flush()
        return 0
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        status = PIPE_CLOSED
    except (OSError, ValueError) as error:
        print(f"{PROGRAM}: {_message(error)}", file=sys.stderr)
        status = 1
    _flush_or_drop_output()
    return status


def predict(options):
    """Print the answers to the texts given, or else to the lines of standard input."""
    pipeline = load(options.bundle, options.threads)
    search = _search(options) | {"n_best": options.n_best, "attention": options.attention}
    pipeline([], **search)  # refuses wrong options before anything is read
    if options.texts:
        batches = [list(_accepted(pipeline, _arguments(options.texts)))]
    else:
        size = 1 if sys.stdin.isatty() else pipeline.batch_size
        batches = _batches(_accepted(pipeline, _lines(sys.stdin.buffer, "standard input")), size)
    as_json = options.json or options.attention
    for texts in batches:
        for text, answer in zip(texts, pipeline(texts, **search)):
            print(_as_json(text, answer) if as_json else _as_text(answer, options.n_best))
        sys.stdout.flush()


def bench(options):
    """Print a table of latency and throughput, and what it was measured on."""
    pipeline = load(options.bundle, options.threads)
    from .bench import machine, measure  # brings NumPy and onnxruntime, which `inspect` spares

    texts = pipeline.manifest.examples
    if options.input:
        with open(options.input, "rb") as stream:
            texts = list(_accepted(pipeline, _lines(stream, options.input)))
    if not texts:
        raise ValueError("bench: there is nothing to answer; name a file of texts with --input.")
    rows = [
        measure(pipeline, texts, size, options.seconds, options.repeats, **_search(options))
        for size in options.batch_sizes
    ]
    print(table([list(rows[0]), *([f"{value:g}" for value in row.values()] for row in rows)]))
    beam_size = options.beam_size or pipeline.manifest.decoding.beam_size
    measured = (
        f"{pipeline.manifest.name}, beam size {beam_size}, {len(texts)} different texts in turn, "
        f"text in to text out, {options.threads or 'default'} threads; {machine()}"
    )
    print(f"measured: {measured}")
    if options.json:
        content = json.dumps({"measured": measured, "rows": rows}, indent=2)
        Path(options.json).write_text(content + "\n", encoding="utf-8")


def inspect(options):
    """Print what a bundle is, after holding every file against its sha256."""

    def verified(manifest):
        verify_files(options.bundle, manifest)
        return manifest

    manifest = read_bundle(options.bundle, verified)
    if options.json:
        print(manifest.to_json(), end="")
    else:
        print(describe(manifest))
        print(f"verified: the sha256 of all {len(manifest.files)} files is the manifest's.")


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{PROGRAM}: {message}; see {self.prog} --help\n")


def _parse(argv):
    """Return the options; `options.run` is the command's function."""
    parser = _Parser(prog=CALL, description="Run a seqkeras bundle.")
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    parser.add_argument("command", choices=_COMMANDS, help="; ".join(_COMMANDS_HELP))
    command = parser.parse_args(argv[:1]).command
    # A parser of its own, since argparse mixes options and texts only where there is no subcommand.
    return _COMMANDS[command](f"{CALL} {command}").parse_intermixed_args(argv[1:])


def _predict_parser(prog):
    parser = _Parser(prog=prog, description=predict.__doc__)
    parser.add_argument("bundle", metavar="BUNDLE", help="the bundle's folder")
    parser.add_argument("texts", metavar="TEXT", nargs="*", help="none: lines of standard input")
    _add_search_options(parser)
    parser.add_argument(
        "--n-best", type=_count, default=1, metavar="N", help="answers to a text; 1"
    )
    parser.add_argument("--json", action="store_true", help="one object a line")
    parser.add_argument("--attention", action="store_true", help="attention weights too, as JSON")
    parser.set_defaults(run=predict)
    return parser


def _bench_parser(prog):
    parser = _Parser(prog=prog, description=bench.__doc__)
    parser.add_argument("bundle", metavar="BUNDLE", help="the bundle's folder")
    _add_search_options(parser)
    parser.add_argument(
        "--batch-sizes", type=_counts, default=(1, 16, 64), metavar="N,…", help="1,16,64"
    )
    parser.add_argument(
        "--seconds", type=_seconds, default=2.0, metavar="S", help="a batch size; 2"
    )
    parser.add_argument("--repeats", type=_count, metavar="N", help="calls, instead of seconds")
    parser.add_argument("--input", metavar="FILE", help="of a text a line; the bundle's examples")
    parser.add_argument("--json", metavar="FILE", help="write the figures here too")
    parser.set_defaults(run=bench)
    return parser


def _inspect_parser(prog):
    parser = _Parser(prog=prog, description=inspect.__doc__)
    parser.add_argument("bundle", metavar="BUNDLE", help="the bundle's folder")
    parser.add_argument("--json", action="store_true", help="the manifest as it is")
    parser.set_defaults(run=inspect)
    return parser


def _add_search_options(parser):
    parser.add_argument(
        "--beam-size", type=_count, metavar="N", help="1: greedy; the bundle's default"
    )
    parser.add_argument(
        "--length-penalty", type=float, metavar="A", help="GNMT's; the bundle's default"
    )
    parser.add_argument("--threads", type=_count, metavar="N", help="one a core")


_COMMANDS = {"predict": _predict_parser, "bench": _bench_parser, "inspect": _inspect_parser}
_COMMANDS_HELP = (
    "predict: answer texts",
    "bench: measure latency and throughput",
    "inspect: say what a bundle is and verify its files",
)


def _count(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1; received {text!r}")
    return int(text)


def _counts(text):
    return tuple(map(_count, text.split(",")))


def _seconds(text):
    seconds = float(text)
    if not 0 < seconds <= 3600:
        raise argparse.ArgumentTypeError(f"expected a number over 0, up to 3600; received {text!r}")
    return seconds


def _search(options):
    return {"beam_size": options.beam_size, "length_penalty": options.length_penalty}


def _arguments(texts):
    """Yield where each argument stands, and its text."""
    for number, text in enumerate(texts, start=1):
        where = f"argument {number}: text"
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ValueError(f"{where} must be UTF-8; received {text!r}.") from error
        yield where, text


def _lines(stream, name):
    """Yield where each line of a binary stream stands, and its text; lines end with "\\n" only."""
    for number, line in enumerate(stream, start=1):
        where = f"{name}, line {number}: text"
        try:
            yield where, line.removesuffix(b"\n").removesuffix(b"\r").decode()
        except UnicodeDecodeError as error:
            byte = f"byte 0x{error.object[error.start]:02x} at position {error.start}"
            raise ValueError(f"{where} must be UTF-8; received {byte}.") from error


def _accepted(pipeline, texts):
    """Yield each text that the pipeline takes; the first that it does not take raises."""
    for where, text in texts:
        pipeline.encode(text, where)
        yield text


def _batches(texts, size):
    """Yield lists of up to `size` texts; those before an error still come before it."""
    batch, refusal = [], None
    try:
        for text in texts:
            batch.append(text)
            if len(batch) == size:
                yield batch
                batch = []
    except ValueError as error:
        refusal = error
    if batch:
        yield batch
    if refusal:
        raise refusal


def _as_text(answer, n_best):
    """The text alone; n best: a line of text, tab, score for each, then an empty line."""
    if n_best == 1:
        return answer.text
    answers = (answer, *answer.alternatives)
    return "".join(f"{answer.text}\t{answer.score:.4f}\n" for answer in answers)


def _as_json(text, answer):
    content = {"input": text, **_content(answer)}
    if answer.alternatives:
        content["alternatives"] = [_content(other) for other in answer.alternatives]
    return json.dumps(content, ensure_ascii=False)


def _content(answer):
    content = {"text": answer.text, "score": answer.score}
    if answer.attention is not None:
        content["attention"] = answer.attention.astype(float).round(6).tolist()
    return content


def _message(error):
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'output'}: {error.strerror}"
    return str(error)


def _flush_or_drop_output():
    """Print what is left; if nobody takes it, drop it, or Python would complain at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
