"""`save_run` refuses what export refuses, in words of its own arguments, and nothing is written."""

import functools
import json
import random
import re

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import layers

from seqkeras import serving
from seqkeras.export import save_run
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.models import GPT, Bert
from seqkeras.runs import RunError
from tests.arrays import randomize
from tests.export import test_checking, test_own_models
from tests.export.test_checking import BYTES, LIMIT, LONG, TABLE, WORDS, examples, transformer
from tests.export.test_own_models import LABELS, TOKENIZER, classifier, functional, of_two
from tests.export.test_own_models_refused import OfOneLength, pooled
from tests.zoo import TEXTS

classify, generate, translate, save = (
    functools.partial(make, check_export=True)
    for make in (
        test_checking.classify,
        test_checking.generate,
        test_checking.translate,
        test_own_models.save,
    )
)


def bert():
    model = Bert(len(WORDS), 16, 2, 2, 24, max_length=LIMIT)
    model.build({"token_ids": (None, None)})
    return model


def gpt_of_a_prefix():
    model = GPT(len(BYTES), 16, 2, 2, 24, LIMIT, mask="prefix")
    model.build()
    return model


def with_decoding(**decoding):
    return {"start_id": 0, "end_id": 1} | decoding


REFUSED = {
    "labels beside outputs": (
        lambda run: classify(run, settings={"output": "head", "labels": ["a", "b", "c"]}),
        "settings.labels names 3 labels; the model's output head has 2 logits",
    ),
    "an output that is not there": (
        lambda run: classify(run, settings={"output": "tail", "labels": ["a", "b"]}),
        "settings.output must be one of head; received 'tail'",
    ),
    "an unknown setting": (
        lambda run: classify(run, settings={"output": "head", "labels": ["a", "b"], "label": 3}),
        "settings.label is unknown",
    ),
    "a single label": (
        lambda run: save(run, pooled(size=1), settings={"labels": ["yes"]}),
        "settings.labels must be two at least, or settings.multi_label true",
    ),
    "no tokenizer": (
        lambda run: classify(run, tokenizers={}),
        "no text tokenizer is named",
    ),
    "another role": (
        lambda run: translate(run, tokenizers={"source": TABLE}),
        "no target tokenizer is named",
    ),
    "a softmax": (
        lambda run: save(run, pooled(activation="softmax")),
        "the model's output holds probabilities, where Classify needs logits: leave out the s",
    ),
    "a sigmoid": (
        lambda run: save(run, pooled(activation="sigmoid")),
        "the model's output holds probabilities, where Classify needs logits: leave out the s",
    ),
    "padding": (
        lambda run: save(run, classifier(mask_zero=False)),
        "the model's output changes with the padding behind a text: leave it out",
    ),
    "one length": (
        lambda run: save(run, untraced()),
        "the model must take rows of any size in a graph; it says: TypeError: slice ",
    ),
    "the model's room": (
        lambda run: generate(run, limits={"source_length": LIMIT, "target_length": 90}),
        "limits.target_length must be at most the model's room for tokens, 24; received 90",
    ),
    "no room to go on": (
        lambda run: generate(run, limits={"source_length": LIMIT}),
        "limits.target_length must be at least 2, a prompt and what follows; received 1",
    ),
    "a translator's room": (
        lambda run: translate(
            run, transformer(), limits={"source_length": 40, "target_length": 50}
        ),
        "limits.target_length must be at most the model's room for tokens, 11; received 50",
    ),
    "an end that is no id": (
        lambda run: generate(run, decoding=with_decoding(end_id=9999)),
        f"decoding.end_id must be an id, from 0 to {len(BYTES) - 1}; received 9999",
    ),
    "an end that is never generated": (
        lambda run: translate(run, decoding={"end_id": 1}),
        "decoding.end_id must be an id that the model may generate; received 1, and never_",
    ),
    "beams": (
        lambda run: translate(run, decoding={"num_beams": 99}),
        f"decoding.num_beams must be at most the vocabulary's size, {len(TABLE)}; received 99",
    ),
    "no text of a regular expression": (
        lambda run: translate(run, decoding={"regex": "[a-f]{77}"}),
        "decoding.regex: the shortest text that it allows has 78 tokens with <eos>; limits.target",
    ),
    "an encoder that translates": (
        lambda run: translate_by(run, bert()),
        "Translate serves a model of kind 'encoder-decoder'; a Bert is one of kind 'single pass'",
    ),
    "a language model that classifies": (
        lambda run: classify(run, model=gpt_of_a_prefix(), settings={}),
        "Classify serves a model of kind 'single pass'; a GPT is one of kind 'language model'",
    ),
    "a target that is no label": (
        lambda run: classify(run, validation=[{"input": "small", "target": "middle"}]),
        "validation[0]: target must be one of the labels low, high; received 'middle'",
    ),
    "a translation without a target": (
        lambda run: translate(run, validation=[{"input": "small"}]),
        "validation[0]: must have text and target",
    ),
    "a choice over the limit": (
        lambda run: test_checking.choose(run, check_export=True),
        "validation[0], text has 51 tokens; the limit is 24",
    ),
    "inputs that the pipeline does not feed": (
        lambda run: save(run, of_two("words", "real")),
        "Classify can not serve the model: it lacks token_ids; it has an input real, which the "
        "pipeline does not feed",
    ),
}


def translate_by(folder, model):
    limits = {"source_length": 7, "target_length": 5}
    translate(folder, model, limits=limits, tokenizers={"source": WORDS, "target": WORDS})


def untraced():
    model = OfOneLength()
    model(np.ones((2, 3), int))
    return model


@pytest.mark.parametrize("make, message", REFUSED.values(), ids=REFUSED)
def test_what_export_would_refuse_is_not_saved(make, message, tmp_path):
    folder = tmp_path / "run"
    with pytest.raises(RunError) as caught:
        make(folder)
    text = str(caught.value)
    assert text.startswith(f"{folder}: ") and text.endswith(".") and not text.endswith("..")
    assert message in text and "\n" not in text
    for word in ("partial", ".json", "again"):
        assert word not in text
    assert [*tmp_path.iterdir()] == []


def test_all_reasons_come_in_one_line(tmp_path):
    with pytest.raises(RunError) as caught:
        generate(
            tmp_path / "run",
            validation=examples(LONG, "small", *[LONG] * 4),
            limits={"source_length": LIMIT, "target_length": 90},
            decoding={"start_id": 0, "end_id": 9999, "num_beams": 999},
        )
    for part in ("target_length", "end_id", "num_beams", r"n\[0\] has", r"n\[3\] has", "2 more"):
        assert re.search(part, str(caught.value)), part
    assert str(caught.value).count("validation[0]") == 1


def drawn_behind(tmp_path, name, check_export):
    """What a script goes on with behind `save_run`: numbers, names of layers, a policy."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(7)
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = classifier()
        save(tmp_path / name, model, check_export=check_export)
        return (
            random.random(),
            np.random.rand(),
            float(keras.random.uniform(())),
            layers.Dense(3).name,
            keras.config.dtype_policy().name,
            [each.dtype_policy.name for each in model.layers],
        )
    finally:
        keras.config.set_dtype_policy("float32")


def test_a_script_goes_on_as_if_nothing_had_been_checked(tmp_path):
    unchecked = drawn_behind(tmp_path, "unchecked", check_export=False)
    assert drawn_behind(tmp_path, "checked", check_export=True) == unchecked


def test_a_model_of_a_strategy_is_checked_outside_of_it(tmp_path):
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        save(tmp_path / "run", functional())
    assert json.loads((tmp_path / "run/run.json").read_text())["pipeline"] == "Classify"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method:UserWarning")
def test_a_quantized_model_passes_as_it_passes_export(tmp_path):
    model = randomize(pooled())
    model.quantize("int8")
    given = [{"input": text} for text in TEXTS], {"source_length": 24}, {"text": TOKENIZER}
    save_run(tmp_path / "run", model, "Classify", *given, settings={"labels": LABELS})
    export(tmp_path / "run", tmp_path / "bundle", options=ExportOptions(saved_models=False))
    assert set(serving.load(tmp_path / "bundle")(TEXTS[0]).scores) == set(LABELS)
