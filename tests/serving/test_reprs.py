"""What objects say that they are: in a line, without the numbers of an array."""

import re

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.results import Embedding, Forecasting, Generation, Translation, WordFeatures
from seqkeras.serving.text import CharacterTable, WordTable, word_piece

ONES = np.ones((2, 3), "float32")
SAID = {
    "Translation(text='a', score=-0.5)": Translation("a", -0.5),
    "Translation(text='a', score=-0.5, attention=<float32 (2, 3)>, source_tokens=('b',))": (
        Translation("a", -0.5, ONES, source_tokens=("b",))
    ),
    "Generation(text='a', score=-0.5, finish='end', alternatives=())": Generation("a", -0.5, "end"),
    "Embedding(vector=<float32 (3,)>)": Embedding(ONES[0]),
    "WordFeatures(text='a', start=0, end=1, layers=<float32 (2, 3)>)": WordFeatures(
        "a", 0, 1, ONES
    ),
    "Forecasting(values=<float32 (2, 3)>, quantiles={0.1: <float32 (2, 3)>})": (
        Forecasting(ONES, {0.1: ONES})
    ),
    "<CharacterTable: 7 characters>": CharacterTable.learn(["abc"]),
    "<WordTable: 4 words>": WordTable.learn(["a", "b"]),
    "<Subwords: WordPiece, 5 tokens>": word_piece("[UNK] [CLS] [SEP] the cat".split()),
}


@pytest.mark.parametrize("expected", SAID)
def test_an_object_says_what_it_is(expected):
    assert repr(SAID[expected]) == expected


def test_a_pipeline_and_its_manifest_name_the_bundle(shared_bundle):
    pipeline = serving.load(shared_bundle)
    assert repr(pipeline) == "<Translate of 'toy': 'letters', made 2026-01-02T03:04:05+00:00>"
    assert re.fullmatch(
        r"<Manifest 'toy': Translate, float32, 5 files of [\d,]+ bytes, made 2026-01-02T.*>",
        repr(pipeline.manifest),
    )
