"""Write bundles and Python's answers, to which `serving/javascript` is held.

    python -m tests.serving.javascript.cases FOLDER

makes FOLDER/cases.json, a bundle for each name in it, FOLDER/tokens.json, and what `streams` makes.
`npm test` reads them in the folder that SEQKERAS_JAVASCRIPT_CASES names.
"""

import json
import sys
from pathlib import Path

from seqkeras import serving
from seqkeras.serving.printing import as_content
from tests.serving.javascript import streams, tokens
from tests.serving.javascript.bundles import BUNDLES

# What JavaScript calls otherwise in an error.
SPOKEN = {
    "True": "true",
    "False": "false",
    "None": "null",
    "a tuple or a dictionary of": "an object of",
    "a dictionary of": "an object of",
    "received int ": "received number ",
    "received float ": "received number ",
    "received bool ": "received boolean ",
    "received dict ": "received Object ",
    "received list ": "received array ",
    "received tuple ('',)": "received array ['']",
    "a tuple.": "an object.",
    "give one as an array or an object.": "give one as an object.",
    "(length,)": "(length)",
}


def write(folder, names=BUNDLES):
    """Write the bundles of these names, cases.json, tokens.json and streams into a folder."""
    cases = {}
    for name in names:
        bundle, path = BUNDLES[name], folder / name.replace(" ", "-")
        bundle.write(path)
        pipeline = serving.load(path, threads=1)
        cases[path.name] = [
            {"inputs": inputs, "options": options, **answered(pipeline, inputs, options)}
            for inputs, options in bundle.cases
        ] + [{"inputs": text, "stream": [*pipeline.stream(text)]} for text in bundle.streams]
    text = json.dumps(cases)  # lone surrogates are escaped
    (folder / "cases.json").write_text(text, encoding="utf-8")
    tokens.write(folder)
    streams.write(folder)


def answered(pipeline, inputs, options):
    """Return the answers of Python, or its error as JavaScript words it."""
    try:
        found = pipeline(in_python(inputs), **in_python(options))
        return {"answers": as_content(found)}
    except ValueError as error:
        text = str(error)
        for python, javascript in SPOKEN.items():
            text = text.replace(python, javascript)
        return {"error": text}


def in_python(value):
    """Return what JSON says as Python has it: words in a tuple, places of tokens as numbers."""
    if isinstance(value, list):
        return [in_python(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"text"} and isinstance(value["text"], list):
        return {"text": tuple(value["text"])}
    return {
        name: {int(place): token for place, token in inner.items()}
        if name == "forced_tokens"
        else inner
        for name, inner in value.items()
    }


if __name__ == "__main__":
    write(Path(sys.argv[1]))
