"""`save_run` writes a run of any model, or refuses it and writes nothing."""

import json
import re

import keras
import numpy as np
import pytest

from seqkeras.export import save_run
from seqkeras.models import Bert, ClassificationHead, WithHeads
from seqkeras.runs import VALIDATION, RunError, RunRecord, with_arrays
from seqkeras.serving.manifest import PIPELINE_TEXTS
from seqkeras.tokenizers import CharacterTable, Subwords, VectorizedWords, from_keras_nlp
from tests.conftest import run_python


def model():
    return keras.Sequential([keras.Input((None, 3)), keras.layers.Dense(2)])


# A run that no pipeline serves.
GIVEN = {
    "pipeline": "Forecast",
    "validation": [{"input": [1.5]}],
    "limits": {"source_length": 7},
    "check_export": False,
}


def test_numbers_of_numpy_are_saved_as_they_are(tmp_path):
    given = {"validation": [{"input": np.ones((2, 3), "float32")}]}
    given |= {"limits": {"source_length": np.int64(7)}}
    given |= {"inputs": {"window": ("float32", ("batch", "length", 3))}}
    save_run(tmp_path / "run", model(), **GIVEN | given)
    record = RunRecord.read(tmp_path / "run")
    assert record.limits == {"source_length": 7}
    [spec] = record.parse("run").inputs
    assert (spec.name, spec.dtype, spec.shape) == ("window", "float32", ("batch", "length", 3))
    validation = json.loads((tmp_path / "run" / VALIDATION).read_text())
    [example] = with_arrays(validation, tmp_path / "run")
    assert example["input"].tolist() == [[1.0] * 3] * 2
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_run_is_replaced_where_that_is_asked_for_and_nothing_else_is(tmp_path):
    folder = tmp_path / "run"
    save_run(folder, model(), **GIVEN)
    (folder / "curves.png").write_bytes(b"of the run before")
    again = {**GIVEN, "limits": {"source_length": 11}}
    with pytest.raises(RunError, match=r"run: holds a run; replace it by overwrite=True.$"):
        save_run(folder, model(), **again)
    with pytest.raises(RunError, match="limits.source_length must be at least 1"):
        save_run(folder, model(), **again | {"limits": {"source_length": 0}}, overwrite=True)
    assert RunRecord.read(folder).limits == {"source_length": 7}
    save_run(folder, model(), **again, overwrite=True)
    assert RunRecord.read(folder).limits == {"source_length": 11}
    assert not (folder / "curves.png").exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/notes.txt").write_text("mine")
    with pytest.raises(RunError, match="mine: must not exist, or be empty; choose another folder"):
        save_run(tmp_path / "mine", model(), **GIVEN, overwrite=True)
    assert (tmp_path / "mine/notes.txt").read_text() == "mine"


def quantized(mode):
    model = of_layer(keras.layers.Dense(4, name="tagged"))
    model.get_layer("tagged").quantize(mode)
    return model


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"model": keras.Sequential([keras.layers.Dense(2)])}, "the model must be built, or it"),
        ({"validation": []}, "validation must be a list of .*, one at least."),
        ({"validation": None}, "validation must be a list of .*, one at least."),
        ({"validation": ["a text"]}, "validation must be a list of .*, one at least."),
        ({"validation": [{"text": "a text"}]}, "validation must be a list of .*, one at least."),
        ({"tokenizers": {"text": "x.json"}}, r"tokenizers\['text'\] must be a tok.*eived a str."),
        ({"tokenizers": {"../text": "x"}}, "tokenizers must be named text, source, .*'../text'."),
        (
            {"inputs": {"window": ["float", ["batch"]], "known": ["flaot32", ["batch"]]}},
            "inputs.known must have a type of NumPy's; received 'flaot32'",
        ),
        ({"pipeline": "Forecasts"}, "pipeline must be Translate, .*; received 'Forecasts'"),
        ({"limits": {"length": 3}}, "limits.source_length is missing; limits.length is unknown"),
        ({"limits": {"source_length": "24"}}, "limits.source_length must be a whole number; rec"),
        ({"decoding": {"length_penalty": "x"}}, "decoding.length_penalty must be a number; rec"),
        ({"decoding": {"num_beams": 0}}, "decoding.num_beams must be at least 1; received 0"),
        ({"decoding": {"num_beams": 3}}, "decoding is for Translate and Generate, .*; Forecast ge"),
        ({"text_prefix": {"name": "x"}}, "text_prefix.separator is missing"),
        ({"settings": {"labels": object()}}, "settings must be what JSON can hold: received a ob"),
        ({"scores": {"loss": float("nan")}}, "scores must be what JSON can hold"),
        ({"inputs": {"window": "float32"}}, r"inputs\[0\].shape is missing"),
    ],
)
def test_what_export_would_refuse_is_not_saved(changes, reason, tmp_path):
    given = {"model": model(), **GIVEN, **changes}
    with pytest.raises(RunError, match=f"^{re.escape(str(tmp_path / 'run'))}: .*{reason}"):
        save_run(tmp_path / "run", **given)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "changes, reason",
    [
        ({"model": None}, "model must be a Keras model; received a NoneType."),
        ({"folder": keras.Sequential(), "model": "x"}, "model must be a Keras model; received a"),
        ({"pipeline": []}, f"pipeline must be {', '.join(PIPELINE_TEXTS)}; received a list."),
        ({"tokenizers": "text"}, "tokenizers must be a dictionary, as {'text': tokenizer}; rece"),
        ({"settings": ["no"]}, "settings must be a dictionary, as {'labels': ['no', 'yes']}; re"),
    ],
)
def test_arguments_in_each_others_place_are_refused(changes, reason, tmp_path):
    given = {"folder": tmp_path / "run", "model": model(), **GIVEN, **changes}
    with pytest.raises(RunError, match=f"^save_run: {re.escape(reason)}"):
        save_run(**given)
    assert list(tmp_path.iterdir()) == []


def of_keras_hub():
    from keras_hub.models import BertTokenizer

    return BertTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat"])


def of_the_library_tokenizers():
    from tokenizers import Tokenizer, models

    return Tokenizer(models.WordLevel({"[UNK]": 0, "the": 1}, "[UNK]"))


def of_transformers():
    kind = type("BertTokenizerFast", (), {"__module__": "transformers.models.bert.tokenization"})
    return type("Mine", (kind,), {"__module__": "mine"})()


@pytest.mark.parametrize(
    "make, way",
    [
        (of_keras_hub, "BertTokenizer: from_keras_nlp(tokenizer) makes one of it."),
        (of_the_library_tokenizers, "Tokenizer: Subwords(tokenizer.to_str()) makes one of it."),
        (
            of_transformers,
            "Mine: Subwords.from_file('FOLDER/tokenizer.json') reads what its "
            "save_pretrained('FOLDER') writes.",
        ),
        (
            lambda: keras.layers.TextVectorization(vocabulary=["the"]),
            "TextVectorization: from_text_vectorization(layer) makes one of it.",
        ),
    ],
)
def test_the_tokenizer_of_another_library_is_refused_with_the_call_that_makes_it_ours(
    make, way, tmp_path
):
    message = f"must be a tokenizer of seqkeras.tokenizers; received a {way}"
    with pytest.raises(RunError, match=f"{re.escape(message)}$"):
        save_run(tmp_path / "run", model(), **GIVEN, tokenizers={"text": make()})


def test_the_calls_that_a_refusal_names_make_tokenizers_of_ours(tmp_path):
    theirs = of_the_library_tokenizers()
    theirs.save(str(tmp_path / "tokenizer.json"))
    for ours in (Subwords(theirs.to_str()), Subwords.from_file(tmp_path / "tokenizer.json")):
        assert ours.encode("the") == [1]
    assert len(from_keras_nlp(of_keras_hub())) == 7


def test_a_validation_that_nests_too_deep_is_not_saved(tmp_path):
    deep = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RunError, match="validation must be what JSON can hold: "):
        save_run(tmp_path / "run", model(), **{**GIVEN, "validation": deep})
    assert list(tmp_path.iterdir()) == []


def text_model():
    made = WithHeads(Bert(17, 6, 1, 3, 7, max_length=13), {"classes": ClassificationHead(2)})
    made.build(None)
    return made


def words(*more):
    return VectorizedWords(["<pad>", "<unk>", "the", "cat", *more])


@keras.saving.register_keras_serializable("tests")
class Broken(keras.layers.Layer):
    def build(self, shape):
        self.scale = self.add_weight(shape=(), initializer=lambda *a, **o: np.float32("nan"))

    def call(self, inputs):
        return inputs * self.scale


def with_a_local_class():
    class Twice(keras.layers.Layer):
        def call(self, inputs):
            return 2 * inputs

    return keras.Sequential([keras.Input((None, 3)), Twice()])


def relu(x):  # Keras would find its own function of this name
    return x * x


def of_layer(layer, **options):
    inputs = keras.Input((None, 3), **options)
    return keras.Model(inputs, layer(inputs))


def with_lambda():
    return of_layer(keras.layers.Lambda(lambda x: 2 * x, name="twice"))


def stateful():
    layer = keras.layers.LSTM(4, stateful=True)
    return of_layer(keras.layers.Bidirectional(layer, name="both"), batch_size=2)


@pytest.mark.parametrize(
    "changes, reason",
    [
        (
            {"model": with_lambda()},
            "function of the layer twice must be a function that Keras finds again: write it "
            r"with def, below @keras.saving.register_keras_serializable\(\), .* by layer.function",
        ),
        (
            {"model": of_layer(keras.layers.Dense(4, activation=relu, name="squares"))},
            "activation of the layer squares must be a function that Keras finds again",
        ),
        (
            {"model": stateful()},
            "the layer both must have stateful=False, since a bundle answers each input by itself: "
            r"make the model so, .* new.set_weights\(model.get_weights\(\)\)\.$",
        ),
        (
            {"model": quantized("float8")},
            "the layer tagged must not be quantized to float8: save the model as it was before ",
        ),
        ({"limits": {"source_length": 14}}, "source_length must be at most the model's positions"),
        (
            {"tokenizers": {"text": words(*"abcdefghijklmnop")}},
            "the text tokenizer must have at most the model's vocab_size, 17, tokens; it has 20",
        ),
        (
            {"limits": {"source_length": 2}},
            r"validation\[0\] has 3 words; (the limit|limits.source_length) is 2",
        ),
        (
            {"tokenizers": {"text": CharacterTable.learn(["the cat"])}},
            "the text tokenizer must be one of subwords or a table of words; it is a Character",
        ),
        (
            {"model": keras.Sequential([keras.Input((3,)), Broken()])},
            "the model's weights are not finite, .* among them: train again",
        ),
        ({"model": with_a_local_class()}, "the class Twice must be registered, or the model can"),
    ],
)
def test_a_run_that_export_would_refuse_is_not_written(changes, reason, tmp_path):
    given = {
        "model": text_model(),
        "pipeline": "Classify",
        "validation": [{"input": "the cat sat"}],
        "limits": {"source_length": 5},
        "tokenizers": {"text": words()},
        "settings": {"labels": ["no", "yes"]},
    }
    with pytest.raises(RunError, match=f"^{re.escape(str(tmp_path / 'run'))}: .*{reason}"):
        save_run(tmp_path / "run", **{**given, **changes})
    assert not (tmp_path / "run").exists()


SAVES_ON_JAX = """
import sys

from tests.training.on_jax import MISSING, Absent

sys.meta_path.insert(0, Absent())
import keras
import numpy as np

from seqkeras.export import save_run
from seqkeras.runs import RunError

given = [{"input": np.ones((5, 3), "float32")}]
for length in (5, 0):
    model = keras.Sequential([keras.Input((None, 3)), keras.layers.Dense(2)])
    try:
        save_run(f"{sys.argv[1]}/{length}", model, "Forecast", given, {"source_length": length})
    except RunError as error:
        print(str(error).partition(": ")[2])
print(keras.backend.backend(), sorted(set(MISSING) & set(sys.modules)))
"""


def test_a_run_is_saved_and_refused_on_jax_where_tensorflow_is_not_installed(tmp_path):
    finished = run_python("-c", SAVES_ON_JAX, tmp_path)
    assert finished.returncode == 0, finished.stderr
    refused = "limits.source_length must be at least 1; received 0."
    assert finished.stdout.splitlines() == [refused, "jax []"]
    assert [path.name for path in tmp_path.iterdir()] == ["5"]
    assert RunRecord.read(tmp_path / "5").limits == {"source_length": 5}
