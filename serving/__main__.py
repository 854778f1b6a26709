"""The command line: python -m serving predict|bench|inspect|serve BUNDLE …

Text goes in and out as UTF-8. A pipeline gets the given options, and refuses those that it does not
have. An error of the user is one line on standard error; the exit status is then 1, or 2 if the
command itself was wrong. `predict` answers all inputs that it can, and reports each of the others.
"""

import argparse
import json
import os
import shlex
import sys
from pathlib import Path

from . import __version__, load
from .answering import encoding_options
from .describe import describe, table
from .lines import (
    FILES,
    answered,
    arguments,
    batches,
    checked_inputs,
    from_json,
    inputs,
    inputs_or_refusals,
    lines,
    refusal_of,
    series_of,
)
from .manifest import BundleError, OverLimit, read_verified
from .option_types import add_session_options, count, seconds
from .parsing import as_json
from .printing import (
    as_content,
    as_line,
    as_typed,
    in_line,
    in_lines,
    marked,
    printable,
    unknown_in_words,
)
from .replacing import replacement

AT_ONCE = 256  # lines that are answered together, sorted by length
GAPS = ("refuse", "fill")  # of `serving.rows`, which brings NumPy
INTERRUPTED, PIPE_CLOSED = 130, 141  # what a shell reports for SIGINT and SIGPIPE


def main(argv=None):
    """Run the command line `argv` and return the exit status."""
    words = sys.argv[1:] if argv is None else argv
    typed = as_typed(__package__, *(word for word in words[:1] if word in _COMMANDS))
    try:
        _open("standard output", sys.stdout).reconfigure(encoding="utf-8")
        options = _parse(words)
        status = options.run(options) or 0
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        status = INTERRUPTED
    except BrokenPipeError:
        status = PIPE_CLOSED
    except (ImportError, MemoryError, OSError, ValueError) as error:
        _report(typed, error)
        status = 1
    _flush_or_drop_output()
    return status


def predict(options):
    """Print the answers to the inputs given, or else to the lines of standard input.

    Among several inputs, one without an answer has an empty line in its place, or a JSON object of
    "error".

    Returns:
        The exit status, 1 if an input has no answer.
    """
    pipeline = _load(options)
    if options.stream:
        return _stream(pipeline, options)
    chosen = _chosen(pipeline, pipeline, options)
    if options.mark and (
        not hasattr(pipeline, "marked_text") or getattr(pipeline, "reads_json", False)
    ):
        raise ValueError(f"{type(pipeline).__name__} has no option --mark for this bundle.")
    pipeline([], **chosen)  # refuses wrong options before anything is read
    named_inputs, status = _inputs(pipeline, options), 0
    is_alone = len(options.inputs) == 1
    is_typed = not options.inputs and not options.examples and sys.stdin.isatty()
    in_json = options.json or options.attention or options.words
    for batch in batches(named_inputs, 1 if is_typed else AT_ONCE):
        for value, answer in answered(pipeline, batch, chosen):
            if isinstance(answer, ValueError):
                _report(options.typed, answer)
                status = 1
                if not is_alone:
                    print(as_json({"error": _message(answer)}) if in_json else "")
            elif in_json:
                print(as_json({"input": as_content(value), **as_content(answer)}))
            elif options.mark:
                _print(marked(pipeline.marked_text(value), answer, options.n_best or 1))
            else:
                for warning in unknown_in_words(answer):
                    _report(options.typed, f"{warning}; --strict refuses such rows.")
                name = series_of(pipeline, value)
                _print((f"{in_line(name)}\t" if name else "") + _line(answer, options))
        sys.stdout.flush()
    return status


def bench(options):
    """Print a table of latency and throughput, and what it was measured on.

    A bundle with a stream has a second table, of frames that come one at a time. Its real-time
    factor is the time of a frame over the step between two rows.
    """
    pipeline = _load(options)
    chosen = _chosen(pipeline, pipeline, options)
    # These bring NumPy and onnxruntime, which `inspect` spares.
    from .bench import machine, measure, measure_frames
    from .row_streams import has_stream_of_rows

    values = [from_json(example) for example in pipeline.manifest.examples]
    if options.input:
        with open(options.input, "rb") as stream:
            texts = lines(stream, options.input)
            if getattr(pipeline, "reads_json", False) and options.input.endswith(FILES):
                texts = arguments([options.input])
            given = inputs(pipeline, texts, options.json_input)
            values = [*checked_inputs(pipeline, given, **encoding_options(chosen))]
    if not values:
        raise ValueError("there is nothing to answer; name a file of texts with --input.")
    with replacement(options.json) as write:  # refuses before anything is measured
        rows = [
            measure(pipeline, values, size, options.seconds, options.repeats, **chosen)
            for size in options.batch_sizes
        ]
        tables = {"rows": rows}
        if has_stream_of_rows(pipeline):
            tables["stream"] = [measure_frames(pipeline, values, options.seconds, options.repeats)]
        measured = _measured(pipeline, values, options, chosen, machine())
        write(json.dumps({"measured": measured, **tables}, indent=2) + "\n")
    for rows in tables.values():
        print(table([list(rows[0]), *([f"{value:g}" for value in row.values()] for row in rows)]))
    print(printable(in_line(f"measured: {measured}")))


def _measured(pipeline, values, options, chosen, machine):
    """Return in words what was measured."""
    from .pipelines.options import option_names

    if "num_beams" in option_names(pipeline):
        chosen = {"num_beams": pipeline.manifest.decoding.num_beams} | chosen
    parts = [
        pipeline.manifest.name,
        options.precision or "float32",
        *(f"{name} {value}" for name, value in chosen.items()),
        f"{len(values)} different inputs in turn",
        "text in to text out",
        f"{options.threads or 'default'} thread{'' if options.threads == 1 else 's'}",
    ]
    return f"{', '.join(parts)}; {machine}"


def stream(options):
    """Print a line for each row of a CSV file on standard input as the row comes: its answer.

    The answer to a row of a series stands behind the series and a tab. A row before the first
    answer has an empty line, or an empty JSON object; a row that is refused has an empty line, or
    a JSON object of "error".

    Returns:
        The exit status, 1 if a row has no answer.
    """
    from .row_streams import RowStreams  # brings NumPy, which `inspect` spares

    pipeline, status = _load(options), 0
    texts = lines(_open("standard input", sys.stdin).buffer, "standard input")
    with RowStreams(pipeline, options.state, options.gaps == "fill") as streams:
        for series, answer in streams.answers(texts):
            named = {} if series is None else {"series": series}
            if isinstance(answer, ValueError):
                _report(options.typed, answer)
                status = 1
                line = as_json(named | {"error": _message(answer)}) if options.json else ""
            elif options.json:
                line = as_json(named | ({} if answer is None else as_content(answer)))
            else:
                told = "" if answer is None else as_line(answer)
                line = (f"{in_line(series)}\t" if series else "") + told
            _print(line, flush=True)
    return status


def inspect(options):
    """Print what a bundle is, after verifying every file against its sha256."""
    manifest = read_verified(options.bundle)
    if options.json:
        print(manifest.to_json(), end="")
    else:
        print(printable(in_lines(describe(manifest))))
        print(f"verified: the sha256 of all {len(manifest.files)} files is the manifest's.")


class _Parser(argparse.ArgumentParser):
    takes_inputs = False

    def error(self, message):
        if self.takes_inputs and message.startswith("unrecognized arguments: -"):
            message += "; write an input that begins with - after --"
        message = in_line(printable(message))
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def _parse(argv):
    """Return the options; `options.run` is the command's function."""
    parser = _Parser(prog=as_typed(__package__), description="Run a seqkeras bundle.")
    parser.add_argument("--version", action="version", version=f"seqkeras-serving {__version__}")
    parser.add_argument("command", choices=_COMMANDS, help="; ".join(_COMMANDS_HELP))
    command = parser.parse_args(argv[:1]).command
    # A separate parser: argparse allows options between texts only without subcommands.
    parser = _COMMANDS[command](as_typed(__package__, command))
    parser.set_defaults(typed=parser.prog)
    return parser.parse_intermixed_args(argv[1:])


def _predict_parser(prog):
    parser = _Parser(prog=prog, description=predict.__doc__.partition("\n")[0])
    parser.takes_inputs = True
    parser.add_argument("bundle", metavar="BUNDLE", help="Folder of the bundle.")
    parser.add_argument(
        "inputs",
        metavar="INPUT",
        nargs="*",
        default=(),
        help="Texts. For bundles that read numbers or rows: JSON, or the names of .npy, .npz and "
        ".csv files. Default: lines of standard input (< FILE).",
    )
    parser.add_argument(
        "--examples", action="store_true", help="Answer the bundle's examples instead of inputs."
    )
    _add_common_options(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--json", action="store_true", help="Print each answer as a JSON object in a line."
    )
    form.add_argument(
        "--mark", action="store_true", help="Print the text, with answers or entities marked."
    )
    form.add_argument("--stream", action="store_true", help="Print text as soon as it is final.")
    parser.set_defaults(run=predict)
    return parser


def _stream_parser(prog):
    parser = _Parser(prog=prog, description=stream.__doc__.partition("\n")[0])
    parser.add_argument("bundle", metavar="BUNDLE", help="Folder of the bundle.")
    add_session_options(parser, "the bundle's precisions")
    parser.add_argument(
        "--json", action="store_true", help="Print each answer as a JSON object in a line."
    )
    parser.add_argument(
        "--state",
        metavar="FILE",
        help="File of the state of one series: read at the start if it exists, written at the end.",
    )
    parser.add_argument(
        "--gaps",
        choices=GAPS,
        default="refuse",
        help="Rows that are missing by their times: refuse the next row, or fill the gap with rows "
        "without values. Default: refuse.",
    )
    parser.set_defaults(run=stream)
    return parser


def _bench_parser(prog):
    parser = _Parser(prog=prog, description=bench.__doc__)
    parser.add_argument("bundle", metavar="BUNDLE", help="Folder of the bundle.")
    _add_common_options(parser)
    parser.add_argument(
        "--batch-sizes",
        type=_counts,
        default=(1, 16, 64),
        metavar="N,…",
        help="Batch sizes to measure. Default: 1,16,64.",
    )
    parser.add_argument(
        "--seconds",
        type=seconds(3600),
        default=2.0,
        metavar="S",
        help="Seconds for each batch size. Default: 2.",
    )
    parser.add_argument(
        "--repeats",
        type=count,
        metavar="N",
        help="Calls for each batch size, instead of --seconds.",
    )
    parser.add_argument(
        "--input",
        metavar="FILE",
        help="File with an input in each line. Default: the bundle's examples.",
    )
    parser.add_argument("--json", metavar="FILE", help="File to write the figures to.")
    parser.set_defaults(run=bench, stream=False)
    return parser


def _inspect_parser(prog):
    parser = _Parser(prog=prog, description=inspect.__doc__)
    parser.add_argument("bundle", metavar="BUNDLE", help="Folder of the bundle.")
    parser.add_argument("--json", action="store_true", help="Print the manifest.")
    parser.set_defaults(run=inspect)
    return parser


def _add_common_options(parser):
    add_session_options(parser, "the bundle's precisions")
    parser.add_argument("--json-input", action="store_true", help="Read each input as JSON.")
    group = parser.add_argument_group("options of the bundle's pipeline")
    for name, (kind, text) in _PIPELINE_OPTIONS.items():
        flag = f"--{name.replace('_', '-')}"
        if kind is bool:
            group.add_argument(flag, action="store_true", default=None, help=text)
        elif isinstance(kind, tuple):
            group.add_argument(flag, choices=kind, help=text)
        else:
            metavar = {count: "N", float: "X", int: "N"}.get(kind, "TEXT")
            if kind is list:
                group.add_argument(flag, action="append", metavar=metavar, help=text)
            else:
                group.add_argument(flag, type=kind, metavar=metavar, help=text)


def _serve_parser(prog):
    from .http.command import add_options, serve

    parser = _Parser(prog=prog, description=serve.__doc__.partition("\n")[0])
    add_options(parser)
    parser.set_defaults(run=serve)
    return parser


_COMMANDS = {
    "predict": _predict_parser,
    "stream": _stream_parser,
    "bench": _bench_parser,
    "inspect": _inspect_parser,
    "serve": _serve_parser,
}
_COMMANDS_HELP = (
    "predict: answer texts",
    "stream: answer rows as they come",
    "bench: measure latency and throughput",
    "inspect: describe a bundle and verify its files",
    "serve: answer over HTTP",
)


def _counts(text):
    return tuple(map(count, text.split(",")))


_PIPELINE_OPTIONS = {
    "num_beams": (count, "Beams of the search; 1 is greedy. Default: the bundle's."),
    "n_best": (count, "Answers to each input. Default: 1."),
    "length_penalty": (float, "Alpha of GNMT's length penalty. Default: the bundle's."),
    "attention": (bool, "Print attention weights too, as JSON."),
    "max_new_tokens": (count, "New tokens, at most. Default: the model's limit."),
    "min_new_tokens": (int, "New tokens, at least. Default: 0."),
    "sample": (bool, "Draw each token from its distribution."),
    "temperature": (float, "Temperature of the distribution. Default: 1."),
    "top_k": (
        count,
        "Number of most probable tokens to choose from. Default: all; 5 to fill a mask.",
    ),
    "top_p": (float, "Total probability of the tokens to choose from. Default: 1."),
    "seed": (int, "Seed of the draws; equal seeds draw equal tokens."),
    "repetition_penalty": (float, "Penalty of repeated tokens; above 1 repeats less. Default: 1."),
    "stop": (list, "String that ends a text, repeatable."),
    "regex": (str, "Regular expression of the whole text. Default: the bundle's."),
    "choices": (list, "Answer that is allowed, repeatable."),
    "echo": (bool, "Print the prompt before its continuation."),
    "no_answer_threshold": (
        float,
        "Smallest margin of an answer over no answer. Default: the bundle's.",
    ),
    "nodes": (bool, "Print the classes of every node of a tree."),
    "top": (count, "Number of most probable labels to print, with their scores."),
    "words": (bool, "Print the layers of every word, as JSON."),
    "truncate": (bool, "Cut inputs over the limit."),
    "strict": (bool, "Refuse rows with a category that the model does not know."),
    "gaps": (
        GAPS,
        "Rows that are missing by their times: refuse them, or fill the gap with rows without "
        "values. Default: refuse.",
    ),
    "token_budget": (count, "Tokens of a batch, at most."),
}


def _load(options):
    return load(options.bundle, options.precision, options.threads, options.provider)


def _chosen(pipeline, function, options):
    """Return the given options that `function` of the pipeline takes.

    Raises:
        ValueError: if an option is given that it does not take.
    """
    from .pipelines.options import option_names  # brings NumPy, which `inspect` spares

    known = option_names(function)
    chosen = {name: getattr(options, name) for name in _PIPELINE_OPTIONS}
    chosen = {name: value for name, value in chosen.items() if value is not None}
    for name in chosen:
        if name not in known:
            flag = f"--{name.replace('_', '-')}"
            streams = " where it streams" if options.stream else ""
            raise ValueError(f"{type(pipeline).__name__} has no option {flag}{streams}.")
    return chosen


def _inputs(pipeline, options):
    """Return an iterator over the inputs, given or from standard input, and refusals.

    Raises:
        ValueError: if both inputs and --examples are given.
    """
    if options.examples:
        if options.inputs:
            raise ValueError("--examples stands in the place of inputs; leave one of both out.")
        examples = enumerate(pipeline.manifest.examples, start=1)
        return ((f"example {number}", from_json(example)) for number, example in examples)
    if options.inputs:
        texts = arguments(options.inputs)
    else:
        texts = lines(_open("standard input", sys.stdin).buffer, "standard input")
    return inputs_or_refusals(pipeline, texts, options.json_input)


def _open(name, stream):
    """Return a stream of the process.

    Raises:
        ValueError: if the process was started without it.
    """
    if stream is None:
        raise ValueError(f"{name} is closed; open it, or name a file.")
    return stream


def _stream(pipeline, options):
    """Print each answer piece by piece; see `predict`."""
    if not hasattr(pipeline, "stream"):
        raise ValueError(f"{type(pipeline).__name__} has no option --stream.")
    chosen = _chosen(pipeline, pipeline.stream, options)
    status = 0
    for name, value in _inputs(pipeline, options):
        refusal = refusal_of(pipeline, name, value, chosen)
        error = refusal or _print_pieces(name, pipeline.stream(value, **chosen))
        if error:
            _report(options.typed, error)
            status = 1
        if not refusal or len(options.inputs) != 1:
            print(flush=True)
    return status


def _print_pieces(name, pieces):
    """Print the pieces of an answer; return the error that ends them early, or None."""
    try:
        for piece in pieces:
            _print(in_lines(piece), end="", flush=True)
    except BundleError as error:
        return ValueError(f"{name}: {error}")
    return None


def _line(answer, options):
    """Return an answer as text; with --top, all labels that have a score."""
    return as_line(answer, options.n_best or 1) if options.top is None else answer.line(ranked=True)


def _print(text, **options):
    """Print an answer.

    Raises:
        ValueError: if UTF-8 can not encode it.
    """
    try:
        print(text, **options)
    except UnicodeEncodeError as error:
        raise ValueError(
            "an answer must hold no lone surrogate to be printed; it holds "
            f"{text[error.start]!r}. Ask for --json."
        ) from error


def _report(typed, error):
    message = _message(error).removeprefix(f"{typed.rpartition(' ')[2]}: ")
    print(f"{typed}: {in_line(printable(message))}", file=sys.stderr)


def _message(error):
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'output'}: {error.strerror}"
    if isinstance(error, ImportError):
        requirements = Path(__file__).with_name("requirements.txt")
        return f"{error}: pip install -r {shlex.quote(str(requirements))}"
    if isinstance(error, MemoryError):
        return "there is not enough memory; ask for a smaller --token-budget, or for less at once."
    if isinstance(error, OverLimit):
        return str(error.with_option("--truncate"))
    return str(error)


def _flush_or_drop_output():
    """Flush the output; drop it if its reader has gone, or Python would print an error at exit."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
