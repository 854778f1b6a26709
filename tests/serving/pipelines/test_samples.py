"""Tokens that are drawn, by the pipeline that generates."""

import numpy as np
import pytest

from seqkeras import serving
from tests.serving.pipelines.test_generate import PROMPTS, ids_of
from tests.serving.toy_language_model import TABLE, ToyLanguageModel, write_bundle


@pytest.fixture(scope="module")
def generate(tmp_path_factory):
    model, folder = ToyLanguageModel(), tmp_path_factory.mktemp("bundles") / "toy"
    return serving.load(write_bundle(folder, model), threads=1), model


def texts_of(answer):
    return [answer.text, *(each.text for each in answer.alternatives)]


@pytest.fixture
def drawn(generate, monkeypatch):
    """How many rows each run of the graph had that drew tokens, as they are run."""
    sizes = []
    step = generate[0]._graphs.step_to_logits
    monkeypatch.setattr(
        generate[0]._graphs,
        "step_to_logits",
        lambda token_ids, *others: sizes.append(len(token_ids)) or step(token_ids, *others),
    )
    return sizes


def test_samples_follow_the_distribution_behind_the_prompt(generate):
    pipeline, model = generate
    answer = pipeline("bad", sample=True, n_best=4000, max_new_tokens=1, seed=0)
    texts = [answer.text, *(each.text for each in answer.alternatives)]
    probabilities = np.exp(model.log_probs(ids_of("bad")))
    for character in "abcdefg":
        probability = probabilities[TABLE.id_of(character)]
        spread = np.sqrt(4000 * probability * (1 - probability))
        assert abs(texts.count(character) - 4000 * probability) < 5 * spread + 1
    scores = {each.text: each.score for each in (answer, *answer.alternatives)}
    assert scores["e"] == pytest.approx(np.log(probabilities[TABLE.id_of("e")]), rel=1e-4)


def test_a_seed_gives_one_answer_and_none_another_each_time(generate):
    pipeline, _ = generate
    options = {"sample": True, "n_best": 7}
    first, again, other = (
        [each.text for each in (answer, *answer.alternatives)]
        for answer in (pipeline("a", seed=seed, **options) for seed in (5, 5, 6))
    )
    assert first == again != other
    assert len(set(first)) > 1
    assert len({pipeline("a", **options).alternatives[0].text for _ in range(7)}) > 1
    fewer = pipeline("a", seed=5, sample=True, n_best=2)
    assert [fewer.text, fewer.alternatives[0].text] == first[:2]


@pytest.mark.parametrize("cold", [{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}], ids=str)
def test_the_coldest_sample_is_greedy(generate, cold):
    pipeline, _ = generate
    greedy = [each.text for each in pipeline(PROMPTS)]
    assert [each.text for each in pipeline(PROMPTS, sample=True, seed=1, **cold)] == greedy


def test_a_prompt_is_read_once_for_all_its_samples(generate, monkeypatch):
    pipeline, _ = generate
    read = []
    run = pipeline._graphs._decoder._run
    monkeypatch.setattr(
        pipeline._graphs._decoder,
        "_run",
        lambda token_ids, *others: read.append(token_ids.shape) or run(token_ids, *others),
    )
    pipeline("deadbeef", sample=True, n_best=5, max_new_tokens=1)
    assert read == [(1, 1, 7), (5, 1, 1)]


def test_samples_are_drawn_by_batches_of_the_token_budget_and_are_the_same(generate, drawn):
    pipeline, _ = generate
    options = {"sample": True, "n_best": 11, "seed": 4, "max_new_tokens": 3}
    prompts = ["bad", "bad", "a", "deadbeef"]
    expected = [texts_of(answer) for answer in pipeline(prompts, **options)]
    assert max(drawn) == 33  # "deadbeef" is a batch of its own
    for budget, most in ((30, 7), (11, 2), (1, 1)):  # tokens; rows of "a", which has 4 with its own
        drawn.clear()
        answers = pipeline(prompts, token_budget=budget, **options)
        assert [texts_of(answer) for answer in answers] == expected
        assert max(drawn) == most


def test_divisors_of_logits_at_their_bounds_leave_numbers(generate):
    pipeline, _ = generate
    for number in (1e-15, 1e15):
        answer = pipeline(
            "bad", sample=True, seed=3, temperature=number, repetition_penalty=1 / number
        )
        assert np.isfinite(answer.score)
