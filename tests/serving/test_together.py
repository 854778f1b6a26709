"""Searches that share steps give the answers that each gives alone, whenever they come."""

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.models import GPT, Transformer
from seqkeras.serving.decoding import Together
from seqkeras.serving.manifest import DecodingDefaults, Limits
from seqkeras.serving.text import CharacterTable
from tests.arrays import randomize
from tests.serving.exported import write_bundle

TABLE = CharacterTable.learn(["abcdefghijklm"])
V, LIMIT = len(TABLE), 40
GREEDY, BEAMS = {"num_beams": 1}, {"num_beams": 3, "length_penalty": 0.7}
SAMPLES = {"sample": True, "n_best": 2, "seed": 5, "temperature": 0.8}
LONG = {"regex": "[a-d]{20,30}"}
OPTIONS = {
    "Generate": [GREEDY, BEAMS, SAMPLES, GREEDY | {"regex": "[a-d]{4,9}"}, BEAMS | {"n_best": 2}],
    "Translate": [GREEDY, BEAMS, GREEDY | {"regex": "[a-d]{4,9}"}, BEAMS | {"regex": "[a-d]{2,7}"}],
}


def write_toy(folder, kind):
    """Write the bundle of a model with random weights, whose pipeline has that name."""
    generates = kind == "Generate"
    sizes = 32, 2, 4, 40
    model = GPT(V, *sizes, LIMIT) if generates else Transformer(V, V, *sizes, max_length=LIMIT)
    model.build({"token_ids": (None, None)} if generates else None)
    randomize(model)
    tokenizers = {"text": TABLE} if generates else {"source": TABLE, "target": TABLE}
    limits = Limits(LIMIT, LIMIT)
    return write_bundle(folder, model, kind, tokenizers, limits=limits, decoding=DecodingDefaults())


@pytest.fixture(scope="module", params=["Generate", "Translate"])
def pipeline(request, tmp_path_factory):
    return serving.load(write_toy(tmp_path_factory.mktemp("bundles") / "toy", request.param))


def random_texts(draw, count):
    return ["".join(draw.choice([*"abcdefghijklm"], draw.integers(1, 12))) for _ in range(count)]


@pytest.mark.parametrize("seed", range(4))
def test_answers_are_those_of_each_alone(pipeline, seed):
    draw, together = np.random.default_rng(seed), Together(pipeline.step)
    kinds, ahead, going, found = OPTIONS[type(pipeline).__name__], [], [], []
    for _ in range(12):
        options = kinds[draw.integers(len(kinds))]
        ahead.append((random_texts(draw, int(draw.integers(1, 4))), options))
    while ahead or going:
        if ahead and (not len(together) or draw.random() < 0.3):
            texts, options = ahead.pop()
            for job in pipeline.jobs(texts, **options):
                together.begin(job.search, job.begin())
                going.append((job, [texts[place] for place in job.places], options))
        elif len(together):
            together.step()
        found += [each for each in going if each[0].search.is_over]
        going = [each for each in going if not each[0].search.is_over]
    assert not len(together)
    count = 0
    for job, texts, options in found:
        assert job.search.error is None
        for text, answer in zip(texts, job.results(range(len(texts))), strict=True):
            alone = pipeline(text, **options)
            assert [answer.text, *(each.text for each in answer.alternatives)] == [
                alone.text,
                *(each.text for each in alone.alternatives),
            ]
            assert answer.score == pytest.approx(alone.score, rel=1e-4)
            count += 1
    assert count >= 12


def test_one_that_leaves_changes_no_other(pipeline):
    together = Together(pipeline.step)
    jobs = [
        job for text in ("abc", "ml", "dead") for job in pipeline.jobs([text], num_beams=2, **LONG)
    ]
    for job in jobs:
        together.begin(job.search, job.begin())
    together.step()
    together.leave(jobs[1].search)
    while len(together):
        together.step()
    for job, text in ((jobs[0], "abc"), (jobs[2], "dead")):
        [answer] = job.results([0])
        assert answer.text == pipeline(text, num_beams=2, **LONG).text
    assert not jobs[1].search.is_over


def test_the_error_of_a_step_is_that_of_each_search_in_it(pipeline):
    calls = []

    def step(*arguments):
        calls.append(arguments)
        if len(calls) > 3:
            raise ValueError("no memory")
        return pipeline.step(*arguments)

    together = Together(step)
    jobs = [job for text in ("abc", "ml") for job in pipeline.jobs([text], num_beams=1, **LONG)]
    for job in jobs:
        together.begin(job.search, job.begin())
    while len(together):
        together.step()
    assert [str(job.search.error) for job in jobs] == ["no memory"] * 2


def test_an_error_of_what_one_search_makes_of_a_step_ends_it_alone(pipeline):
    together = Together(pipeline.step)
    jobs = [job for text in ("abc", "ml") for job in pipeline.jobs([text], num_beams=1, **LONG)]
    for job in jobs:
        together.begin(job.search, job.begin())

    def extend(candidates, length):
        raise MemoryError("none left")

    jobs[0].search.results.extend = extend
    while len(together):
        together.step()
    assert str(jobs[0].search.error) == "none left" and jobs[1].search.error is None
    [answer] = jobs[1].results([0])
    assert answer.text == pipeline("ml", num_beams=1, **LONG).text


def test_light_searches_have_half_of_the_time_beside_heavy_ones(pipeline):
    clock, rows = [0.0], []

    def step(token_ids, *rest):
        rows.append(token_ids.shape[1])
        clock[0] += token_ids.shape[1]
        return pipeline.step(token_ids, *rest)

    together = Together(step, clock=lambda: clock[0])
    for num_beams in (8, 1):
        for job in pipeline.jobs(["ab"], num_beams=num_beams, **LONG):
            together.begin(job.search, job.begin())
    del rows[:]
    while len(together):
        together.step()
    heavy_ones = [index for index, beams in enumerate(rows) if beams == 8]
    assert np.diff(heavy_ones[:4]).tolist() == [9, 9, 9]


@pytest.mark.parametrize("kind", [{"num_beams": 3}, SAMPLES | {"temperature": 3.0}])
def test_an_answer_that_is_done_stands_while_others_go_on(pipeline, kind):
    draw = np.random.default_rng(3)
    texts = ["".join(draw.choice([*"abcdefghijklm"], 5)) for _ in range(16)]
    if "sample" in kind and type(pipeline).__name__ == "Translate":
        pytest.skip("a translation draws no samples")
    options = kind | {"choices": ["a", "bcdabcdabcdabcd", "cba", "dabcdabcdabc"]}
    together, seen = Together(pipeline.step), {}
    jobs = pipeline.jobs(texts, **options)
    for job in jobs:
        together.begin(job.search, job.begin())
    early = 0
    while True:
        for job in jobs:
            for number, is_done in enumerate(job.is_done()):
                place = job.places[number]
                if is_done and place not in seen:
                    seen[place] = job.results([number])[0]
                    early += not job.search.is_over
        if not len(together):
            break
        together.step()
    assert early and len(seen) == len(texts)
    for place, text in enumerate(texts):
        alone = pipeline(text, **options)
        assert seen[place].text == alone.text
        assert len(seen[place].alternatives) == len(alone.alternatives)
        assert seen[place].score == pytest.approx(alone.score, rel=1e-4)
