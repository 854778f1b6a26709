"""The figure of heads shows a model that knows what "it" stands for."""

import numpy as np
import pytest

from seqkeras.analysis import antecedents
from seqkeras.analysis.attention_heads import ENGLISH, heads_of_word
from tests.conftest import long_fixture


@long_fixture
def model():
    return antecedents.train()


def test_the_model_finds_the_antecedent_of_new_sentences(model):
    random = np.random.default_rng(11)
    words, places, antecedent = zip(*(antecedents.sentence(random) for _ in range(100)))
    token_ids, lengths = antecedents.encode(words)
    logits = np.asarray(model({"token_ids": token_ids, "lengths": lengths})["word"])
    rows = np.arange(100)
    answers = logits[rows, list(places)].argmax(axis=-1)
    assert np.mean(answers == token_ids[rows, list(antecedent)]) > 0.95


@pytest.mark.parametrize(("adjective", "answer"), [("tired", "dog"), ("wide", "street")])
def test_one_word_changes_the_answer(adjective, answer, model):
    layers = heads_of_word(model, ENGLISH.replace("tired", adjective))
    titles = [f"layer {layer}: it → {answer}" for layer in (1, 2)]
    assert [panel.title for panel in layers] == titles
