"""The SavedModels: core operators, and the one tokenizer."""

import importlib.metadata

import numpy as np
import pytest
import tensorflow as tf

from seqkeras import serving
from seqkeras.composites import cudnn
from seqkeras.data import dates
from seqkeras.export import saved_model
from seqkeras.export.signatures import Signature
from seqkeras.export.text_graphs.character_ids import CharacterIds
from seqkeras.recurrent import LSTM
from seqkeras.serving.manifest import TensorSpec, read_manifest
from seqkeras.tokenizers import CharacterTable
from tests.export.operators import require_core


def test_a_saved_model_on_ids_holds_core_tensorflow_operators_only(dates_bundle):
    require_core(dates_bundle / "saved_model/1")


def test_the_notes_name_the_operators_that_strings_need(dates_bundle):
    said = (dates_bundle / "tensorflow_serving/README.md").read_text(encoding="utf-8")
    assert saved_model.foreign_operators(dates_bundle / "saved_model_text/1") == {"NormalizeUTF8"}
    assert "which the image links, of its own version: `NormalizeUTF8`." in said
    assert f"{importlib.metadata.version('tensorflow-text')} here." in said


def test_a_saved_model_made_on_a_gpu_holds_none_of_its_operators(tmp_path, monkeypatch):
    def fused(*args, **options):
        raise AssertionError("asked for a fused function")

    monkeypatch.setattr(cudnn, "on_gpu", lambda tensor=None: True)
    monkeypatch.setattr(cudnn.backend, "lstm", fused)
    model = LSTM(5)
    model.build((None, None, 3))
    sequence = TensorSpec("sequence", "float32", ("batch", "length", 3))
    read = Signature(lambda sequence: {"state": model(sequence)}, [sequence], [])
    with pytest.raises(AssertionError, match="fused"):  # which a plain call does
        model(np.ones((2, 4, 3), np.float32))
    saved_model.write(model, {"read": read}, tmp_path)
    require_core(tmp_path)


@pytest.fixture(scope="module")
def loaded(dates_bundle):
    """The signatures of the bundle's SavedModels by their paths."""
    paths = read_manifest(dates_bundle).saved_models
    return {path: tf.saved_model.load(str(dates_bundle / path)).signatures for path in paths}


def test_the_signatures_are_those_of_the_manifest(dates_bundle, loaded):
    for path, signatures in read_manifest(dates_bundle).saved_models.items():
        assert set(loaded[path]) == set(signatures)
        for name, declared in signatures.items():
            inputs = loaded[path][name].structured_input_signature[1]
            outputs = loaded[path][name].structured_outputs
            for specs, actual in ((declared.inputs, inputs), (declared.outputs, outputs)):
                found = {key: (each.dtype.name, len(each.shape)) for key, each in actual.items()}
                assert found == {spec.name: (spec.dtype, len(spec.shape)) for spec in specs}


def test_text_becomes_the_same_ids_in_the_graph_as_in_serving():
    table = CharacterTable.learn(dates.characters())
    texts = [example.text for example in dates.sample("test", 4000, 3, noisy=0.5)]
    texts += ["🙂 é\u0301 \u0000 \U0010ffff", "x", "\n", "ｄｅ｜１", "फ़रवरी"]
    tokens = CharacterIds(table)(tf.constant(texts))
    assert tokens.token_ids.to_list() == [table.encode(text) for text in texts]
    assert tokens.starts.to_list() == [list(range(len(text))) for text in texts]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "text: must be a locale, then | and something after it; known: de, ja."),
        ("xx|3. Mai 2014", "text: must be a locale"),
        ("3. Mai 2014", "text: must be a locale"),
        ("de|  \u2003", "text: must be a locale"),
        ("de|\x0b\x1c\x85", "text: must be a locale"),
        ("de|" + 126 * "x", "text: at most 128 characters; nothing was truncated."),
    ],
)
def test_a_text_that_serving_refuses_is_refused_in_the_graph(dates_bundle, loaded, text, message):
    texts = tf.constant(["de|3. Mai 2014", text])
    found = loaded["saved_model_text/1"]["serving_default"](texts)
    well, refused = found["error"].numpy()
    assert well == b"" and refused.decode().startswith(message)
    assert found["text"].numpy()[1] == b"" != found["text"].numpy()[0]
    with pytest.raises(ValueError, match="Translate: "):
        serving.load(dates_bundle)(text)
