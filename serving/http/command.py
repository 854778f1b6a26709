"""The command `serve`: its options, and the server that they ask for."""

import argparse
import os
import re
import shlex
from pathlib import Path

from ..checks import shown
from ..option_types import add_session_options, count, seconds
from .bounds import Bounds

TOKEN = "SEQKERAS_TOKEN"
AUTO = "auto"
PACKAGES = ("starlette", "uvicorn", "httptools", "prometheus_client")
REQUIREMENTS = Path(__file__).parents[1] / "requirements-http.txt"
BOUNDS = {
    "max_queue": (int, "N", "Inputs that wait for a bundle; further inputs are refused with 429."),
    "max_batch": (int, "N", "Inputs that are answered together."),
    "max_body": (int, "BYTES", "Size of a request; a larger request is refused with 413."),
    "max_tokens": (
        int,
        "N",
        "Tokens of an input, all parts together; a longer input is refused with 413.",
    ),
    "max_new_tokens": (int, "N", "New tokens after a prompt."),
    "max_answers": (int, "N", "Beams of a search, and answers to an input."),
    "max_work": (
        int,
        "N",
        "Tokens of a batch: inputs x beams x new tokens; a larger input is refused with 400.",
    ),
    "timeout": (float, "S", "Seconds from a request to its answer; a later answer is 504."),
    "idle": (float, "S", "Seconds in which a connection must send the head of a request."),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `serve` to a parser."""
    parser.add_argument(
        "bundles",
        metavar="BUNDLE",
        nargs="+",
        help="Folder of a bundle; NAME=FOLDER gives the bundle another name in addresses.",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="Address to listen on. Default: 127.0.0.1, this machine alone.",
    )
    parser.add_argument(
        "--port", type=_port, default=8000, help="Port; 0: any free port. Default: 8000."
    )
    parser.add_argument(
        "--processes",
        type=_processes,
        default=1,
        metavar="N",
        help="Processes that share the port; auto: as many as the cores and the free memory allow. "
        "Default: 1.",
    )
    add_session_options(
        parser, "the bundles' precisions", "one for each 4 MiB of weights, at most one a core"
    )
    parser.add_argument(
        "--cache-memory",
        type=count,
        metavar="MIB",
        help="Memory of the caches of answers that share steps, of all bundles and processes; "
        "further inputs wait. Default: half of the free memory.",
    )
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help=f"File of the token that clients send as Authorization: Bearer. Default: ${TOKEN}.",
    )
    parser.add_argument(
        "--cors",
        type=_origin,
        action="append",
        default=[],
        metavar="ORIGIN",
        help="Origin of web pages that may ask, such as https://page.example, repeatable; *: all. "
        "Default: none.",
    )
    parser.add_argument(
        "--allow-host",
        type=_host,
        action="append",
        default=[],
        metavar="NAME",
        help="Host name by which clients may ask, repeatable; *.NAME allows all names below NAME. "
        "Default: names of this machine on a loopback --host, otherwise any name.",
    )
    parser.add_argument("--no-log", action="store_true", help="Log no requests.")
    parser.add_argument("--no-page", action="store_true", help="Serve no page at /, and no files.")
    parser.add_argument(
        "--node-modules",
        type=Path,
        metavar="FOLDER",
        help="Folder node_modules with onnxruntime-web, for answers in the browser. Default: "
        "serving/javascript's.",
    )
    group = parser.add_argument_group("bounds")
    for name, (kind, metavar, text) in BOUNDS.items():
        default = getattr(Bounds, name)
        default_text = (
            "the bundle's" if default is None else f"{default:g}" if kind is float else default
        )
        group.add_argument(
            f"--{name.replace('_', '-')}",
            type=count if kind is int else seconds(86400),
            default=default,
            metavar=metavar,
            help=f"{text} Default: {default_text}.",
        )


def serve(options: argparse.Namespace) -> None:
    """Answer requests over HTTP until SIGTERM or Ctrl-C.

    Raises:
        ValueError: if something can not be served.
        OSError: if the file of the token can not be read.
    """
    bundles = [_named(text) for text in options.bundles]
    token = _token(options.token_file)
    try:
        from .application import Service
        from .cores import cache_bytes_for, count_cores, free_memory, processes_for, weights_of
        from .served_bundle import Opening
        from .server import run
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in PACKAGES:
            raise
        raise ValueError(
            f"serve: the package {package} is missing, which answering over HTTP needs: "
            f"pip install -r {shlex.quote(str(REQUIREMENTS))}"
        ) from error
    from ..manifest import read_manifest
    from ..playground import page_of

    page = None if options.no_page else page_of(options.node_modules)
    named = [(name or read_manifest(folder).plain_name, Path(folder)) for name, folder in bundles]
    names = [name for name, _ in named]
    if len(set(names)) < len(names):
        raise ValueError(
            f"serve: the names of bundles must be distinct; received {', '.join(names)}. "
            "Write NAME=FOLDER."
        )
    processes = options.processes
    if processes == AUTO:
        weights = [weights_of(read_manifest(folder), options.precision) for _, folder in named]
        processes = processes_for(weights, count_cores(), free_memory())
    service = Service(
        bundles=named,
        opening=Opening(
            options.precision,
            options.threads,
            tuple(options.provider or ()) or None,
            cache_bytes_for(options.cache_memory, free_memory(), processes * len(named)),
        ),
        bounds=Bounds(**{name: getattr(options, name) for name in BOUNDS}),
        token=token,
        origins=tuple(options.cors),
        log=not options.no_log,
        page=page,
    )
    token_from = f"$(cat {options.token_file})" if options.token_file else f"${TOKEN}"
    run(
        service,
        options.host,
        options.port,
        processes,
        token_from if token else "",
        options.allow_host,
    )


def _named(text):
    """Return the name, or None, and the folder of an argument."""
    name, equals, folder = text.partition("=")
    if not equals or os.path.exists(text):
        return None, text
    if not name or set(name) - set(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
    ):
        raise ValueError(
            f"serve: a name must be of letters, digits, '.', '_' and '-'; received {shown(name)}."
        )
    return name, folder


def _token(file):
    """Return the token of a file, or of the environment, or None."""
    token = os.environ.get(TOKEN) if file is None else Path(file).read_text(encoding="utf-8")
    if token is None:
        return None
    token = token.strip()
    if not (token.isascii() and token.isprintable() and token and " " not in token):
        where = file or f"${TOKEN}"
        raise ValueError(f"serve: {where}: a token must be of ASCII letters, digits and signs.")
    return token


def _processes(text):
    if text == AUTO:
        return text
    try:
        return count(text)
    except argparse.ArgumentTypeError as error:
        expected, received = str(error).split("; ")
        raise argparse.ArgumentTypeError(f"{expected}, or {AUTO}; {received}") from error


def _origin(text):
    if text not in ("*", "null") and not re.fullmatch(r"[a-z][a-z0-9+.-]*://[^/\s]+", text.lower()):
        raise argparse.ArgumentTypeError(
            f"expected an origin such as https://page.example, or *; received {text!r}"
        )
    return text.lower()  # as browsers write it


def _host(text):
    if "/" in text or text.count(":") == 1:
        raise argparse.ArgumentTypeError(
            f"expected a name without scheme, port and path; received {text!r}"
        )
    return text


def _port(text):
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535; received {text!r}")
    return int(text)
