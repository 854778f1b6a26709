"""The parts of bundles that the JavaScript package does not read, and the page does not offer."""

import contextlib
import re
from pathlib import Path

from ..manifest import Manifest

SENTENCE_PIECE = re.compile(rb'\s*\{\s*"type":\s*"sentencepiece"')  # as SentencePieces writes it
HEAD = 64  # bytes


def unread(folder: Path, manifest: Manifest) -> str:
    """Return why JavaScript refuses a bundle; "" if nothing is known.

    The package itself refuses rarer tokenizers, before it loads a graph.
    """
    for name in manifest.tokenizers.values():
        with contextlib.suppress(OSError), (folder / name).open("rb") as file:
            if SENTENCE_PIECE.match(file.read(HEAD)):
                return "a SentencePiece model is not read in JavaScript"
    return ""
