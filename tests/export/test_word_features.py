"""A bidirectional language model is served: a text's vector, and the layers of its words."""

import json

import numpy as np
import pytest
from keras import ops

from seqkeras.models import BiLM
from seqkeras.serving.__main__ import main as command_line
from seqkeras.tokenizers import CharacterTable
from tests.arrays import close, randomize
from tests.export.bundles import bundled

TEXTS = ["A small model.", "Is it small?", "It reads characters, of every word."]
WORDS = ["Is", "it", "small", "?"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """The model, its table, the pipeline of its bundle, and the bundle's folder."""
    folder = tmp_path_factory.mktemp("bilm")
    table = CharacterTable.learn(TEXTS)
    model = BiLM(17, len(table), 5, [1, 3], [7, 11], 13, 7, num_layers=2)
    model.build(None)
    embed = bundled(folder, randomize(model), "Embed", TEXTS, 11, {"characters": table})
    return model, table, embed, folder / "bundle"


def test_words_have_the_layers_that_keras_gives_the_text_alone(served):
    model, table, embed, _ = served
    [_, answer, _] = embed(TEXTS, words=True, normalize=False)
    assert [word.text for word in answer.words] == WORDS
    assert [TEXTS[1][word.start : word.end] for word in answer.words] == WORDS
    ids = [table.encode(word) for word in WORDS]
    padded = np.array([each + [0] * (5 - len(each)) for each in ids])
    layers = ops.convert_to_numpy(model.represent({"character_ids": padded[None]}))[0]
    close(np.stack([word.layers for word in answer.words], axis=1), layers, atol=1e-5)
    close(answer.vector, layers.mean(axis=(0, 1)), atol=1e-5)


def test_vectors_alone_are_the_same_and_have_length_1(served):
    _, _, embed, _ = served
    one, other = embed(TEXTS[1]), embed(TEXTS[1], words=True, normalize=False)
    assert one.words == ()
    close(np.linalg.norm(one.vector), 1.0)
    close(one.similarity(other), 1.0)


def test_the_command_prints_the_layers_of_words_as_json(served, capsys):
    *_, folder = served
    assert command_line(["predict", str(folder), "--words", "Is it"]) == 0
    words = json.loads(capsys.readouterr().out)["words"]
    assert [word["text"] for word in words] == ["Is", "it"]
    assert np.shape([word["layers"] for word in words]) == (2, 3, 14)


def test_what_can_not_be_answered_is_refused(served):
    _, _, embed, _ = served
    with pytest.raises(ValueError, match=r"^Embed: text has 12 words; .* 11"):
        embed("a " * 12)
    with pytest.raises(ValueError, match="^Embed: words must be True or False; received int 1"):
        embed("a", words=1)
