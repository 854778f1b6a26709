"""Searches that share steps give the answers that each gives alone, whenever they come."""

import time
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.decoding import Memory, Size, Together
from seqkeras.serving.decoding import together as together_module
from seqkeras.serving.pipelines import generate, jobs
from seqkeras.serving.slots import Slots
from tests.conftest import others_long
from tests.serving.exported import LIMIT

GREEDY, BEAMS = {"num_beams": 1}, {"num_beams": 3, "length_penalty": 0.7}
SAMPLES = {"sample": True, "n_best": 2, "seed": 5, "temperature": 0.8}
LONG = {"regex": "[a-d]{20,30}"}
OPTIONS = {
    "Generate": [GREEDY, BEAMS, SAMPLES, GREEDY | {"regex": "[a-d]{4,9}"}, BEAMS | {"n_best": 2}],
    "Translate": [GREEDY, BEAMS, GREEDY | {"regex": "[a-d]{4,9}"}, BEAMS | {"regex": "[a-d]{2,7}"}],
}


@pytest.fixture(scope="module", params=["Generate", "Translate"])
def pipeline(request, letters_bundle):
    return serving.load(letters_bundle(request.param))


def random_texts(draw, count):
    return ["".join(draw.choice([*"abcdefghijklm"], draw.integers(1, 12))) for _ in range(count)]


def joined(pipeline, together, texts, **options):
    """The jobs of texts, which begin among others one by one."""
    found = [job for text in texts for job in pipeline.jobs([text], **options)]
    for job in found:
        job.join(together, pipeline.step)
    return found


def end(together):
    while len(together):
        together.step()


def require_as_alone(pipeline, job, text, **options):
    """Assert that the job of one text has the text that the pipeline answers to it alone."""
    [answer] = job.results([0])
    assert answer.text == pipeline(text, **options).text


def require_same(answer, alone):
    assert [answer.text, *(each.text for each in answer.alternatives)] == [
        alone.text,
        *(each.text for each in alone.alternatives),
    ]
    assert answer.score == pytest.approx(alone.score, rel=1e-4)


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
            light = draw.random() < 0.5
            for job in pipeline.jobs(texts, **options):
                job.join(together, pipeline.step, light)
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
            require_same(answer, pipeline(text, **options))
            count += 1
    assert count >= 12


@pytest.mark.parametrize("share", others_long([0.0, 0.3, 1.0]))
def test_inputs_of_a_list_begin_as_others_end(share, pipeline, monkeypatch):
    monkeypatch.setattr(jobs._Pace, "best_share", share)
    begin, beside = Together.begin, []

    def counting(together, *arguments):
        beside.append(len(together))
        begin(together, *arguments)

    monkeypatch.setattr(Together, "begin", counting)
    texts = random_texts(np.random.default_rng(0), 23)
    of_many_lengths = {"num_beams": 3, "choices": ["a", "bcdabcdabcdabcd", "cba", "dabcdabcdabc"]}
    for options in [*OPTIONS[type(pipeline).__name__], of_many_lengths]:
        answers = pipeline(texts, token_budget=190, **options)
        for text, answer in zip(texts, answers, strict=True):
            require_same(answer, pipeline(text, **options))
    assert any(beside) or share == 1.0


def test_an_error_of_a_step_is_that_of_the_list(pipeline, monkeypatch):
    monkeypatch.setattr(jobs._Pace, "best_share", 0.0)
    calls, step = [], pipeline._graphs.step

    def failing(*arguments):
        calls.append(arguments)
        if len(calls) > 9:
            raise ValueError("no memory")
        return step(*arguments)

    monkeypatch.setattr(pipeline._graphs, "step", failing)
    with pytest.raises(ValueError, match="no memory"):
        pipeline(random_texts(np.random.default_rng(0), 23), token_budget=190, **GREEDY)


def test_one_that_leaves_changes_no_other(pipeline):
    together, options = Together(pipeline.step), {"num_beams": 2} | LONG
    first, second, third = joined(pipeline, together, ["abc", "ml", "dead"], **options)
    together.step()
    together.leave(second.search)
    end(together)
    require_as_alone(pipeline, first, "abc", **options)
    require_as_alone(pipeline, third, "dead", **options)
    assert not second.search.is_over


def test_the_error_of_a_step_is_that_of_each_search_in_it(pipeline):
    calls = []

    def step(*arguments):
        calls.append(arguments)
        if len(calls) > 3:
            raise ValueError("no memory")
        return pipeline.step(*arguments)

    together = Together(step)
    jobs = joined(pipeline, together, ["abc", "ml"], num_beams=1, **LONG)
    end(together)
    assert [str(job.search.error) for job in jobs] == ["no memory"] * 2


def test_an_error_of_what_one_search_makes_of_a_step_ends_it_alone(pipeline):
    together, options = Together(pipeline.step), {"num_beams": 1} | LONG
    first, second = joined(pipeline, together, ["abc", "ml"], **options)

    def extend(candidates, length):
        raise MemoryError("none left")

    first.search.results.extend = extend
    end(together)
    assert str(first.search.error) == "none left" and second.search.error is None
    require_as_alone(pipeline, second, "ml", **options)


def test_memory_that_runs_out_as_a_search_joins_ends_it_alone(pipeline, monkeypatch):
    def fit(slots, num_tokens, *rest, **options):
        if num_tokens == 0:  # of rows whose search has ended
            raise MemoryError("none left")
        return before(slots, num_tokens, *rest, **options)

    before = Slots._fit
    monkeypatch.setattr(Slots, "_fit", fit)
    together, options = Together(pipeline.step), {"num_beams": 2} | LONG
    leaves, *others = joined(pipeline, together, ["abc", "ml", "dead"], **options)
    while min(job.search.length for job in (leaves, *others)) < 3:
        together.step()
    together.leave(leaves.search)
    [late] = joined(pipeline, together, ["beef"], **options)
    end(together)
    assert str(late.search.error) == "none left"
    for job, text in zip(others, ["ml", "dead"], strict=True):
        require_as_alone(pipeline, job, text, **options)


def test_searches_wait_though_no_memory_is_left_to_let_go_of_some(pipeline, monkeypatch):
    def trim(slots):
        raise MemoryError("none left")

    monkeypatch.setattr(Slots, "trim", trim)
    together = Together(pipeline.step, of_toy(pipeline, monkeypatch, 4))
    found = joined(pipeline, together, ["abc", "ml", "dead"], num_beams=2, **LONG)
    end(together)
    assert [job.search.error for job in found] == [None] * 3


def test_light_searches_have_half_of_the_time_beside_heavy_ones(pipeline):
    clock, rows = [0.0], []

    def step(token_ids, *rest):
        rows.append(token_ids.shape[1])
        clock[0] += token_ids.shape[1]
        return pipeline.step(token_ids, *rest)

    together = Together(step, clock=lambda: clock[0])
    for num_beams in (8, 1):
        joined(pipeline, together, ["ab"], num_beams=num_beams, **LONG)
    end(together)
    heavy_ones = [index for index, beams in enumerate(rows) if beams == 8]
    assert np.diff(heavy_ones[:4]).tolist() == [9, 9, 9]


def test_a_light_search_does_not_share_the_steps_of_many_inputs(pipeline):
    clock, rows = [0.0], []

    def step(token_ids, *rest):
        rows.append(len(token_ids))
        clock[0] += len(token_ids)
        return pipeline.step(token_ids, *rest)

    together, beside = Together(step, clock=lambda: clock[0]), {"num_beams": 1} | LONG
    heavy, light = pipeline.jobs(16 * ["ab"], **beside), pipeline.jobs(["ab"], **beside)
    for job in heavy:
        job.join(together, step, light=False)
    while heavy[0].search.length < 3:
        together.step()
    begun = clock[0]
    light[0].join(together, step)
    while not light[0].search.is_over:
        together.step()
    assert set(rows) == {1, 16}
    assert clock[0] - begun <= 2 * light[0].search.length + 16
    end(together)
    answers = heavy[0].results(range(16)) + light[0].results([0])
    assert {answer.text for answer in answers} == {pipeline("ab", **beside).text}


def test_prompts_are_read_in_parts_between_the_steps_of_others(pipeline):
    read = {}  # steps of the first -> tokens of the others

    def step(token_ids, *rest):
        read[first.search.length] = read.get(first.search.length, 0) + token_ids.size
        return pipeline.step(token_ids, *rest)

    together, options = Together(step), {"num_beams": 1} | LONG
    [first] = pipeline.jobs(["ab"], **options)
    first.join(together, step)
    together.step()
    texts = random_texts(np.random.default_rng(0), 60)
    texts = [text.ljust(12, "a") for text in texts]
    [many] = pipeline.jobs(texts, **options)
    many.join(together, step)
    while not many.search.length:
        together.step()
    assert len(read) >= 3 and max(read.values()) < 3 * together_module.CHUNK
    end(together)
    for text, answer in zip(texts, many.results(range(60)), strict=True):
        assert answer.text == pipeline(text, **options).text


@pytest.mark.parametrize("n_best", [1, 3])
def test_a_long_prompt_is_read_in_parts(n_best, letters_bundle, monkeypatch):
    pipeline = serving.load(letters_bundle("Generate"))
    options = SAMPLES | {"n_best": n_best, "max_new_tokens": 5}
    text = "abcdefghijklm" * 2
    alone = pipeline(text, **options)
    for module in (jobs, generate):
        monkeypatch.setattr(module, "CHUNK", 7)
    monkeypatch.setattr(together_module, "PAUSE", 7)
    read = []

    def step(token_ids, *rest):
        read.append(token_ids.size)
        return pipeline.step(token_ids, *rest)

    together, found = Together(step), pipeline.jobs([text, text[:13]], **options)
    [beside] = pipeline.jobs(["ab"], num_beams=1, max_new_tokens=30)
    for job in [beside, *found]:
        job.join(together, step)
    end(together)
    [answer] = found[-1].results([0])
    require_same(answer, alone)
    assert max(read) <= 7


def test_a_turn_that_only_reads_a_prompt_takes_no_time_off_what_a_job_costs():
    class Reading:
        def __len__(self):
            return 1

        def step(self):
            pass

    pace = jobs._Pace(lambda: time.sleep(0.02))
    pace.step()
    pace.turn(Reading())
    assert 0 <= pace.best_share < 1


def test_states_of_a_prompt_that_is_read_in_parts_are_not_kept():
    class State:
        pass

    def begin(inputs):
        for _ in range(3):
            states.append(weakref.ref(state := State()))
            yield 7, state
            del state
            kept.append(sum(ref() is not None for ref in states))

    states, kept, search = [], [], SimpleNamespace(is_over=True)
    assert [*jobs.Job([0], search, begin, None, "").alone(None)] == []
    assert max(kept) == 1


def of_toy(pipeline, monkeypatch, caches):
    """Give a pipeline memory for so many caches of one beam with all tokens."""
    graphs = pipeline._graphs
    size = Size(1, LIMIT, 1, 12 if type(pipeline).__name__ == "Translate" else 0)
    num_bytes = graphs._decoder._num_bytes
    memory = Memory(num_bytes, caches * num_bytes(size))
    monkeypatch.setattr(pipeline, "memory", memory)
    return memory


def test_searches_wait_for_memory(pipeline, monkeypatch):
    memory, options = of_toy(pipeline, monkeypatch, 4), {"num_beams": 2} | LONG
    together = Together(pipeline.step, memory)
    texts = random_texts(np.random.default_rng(0), 9)
    found = joined(pipeline, together, texts, **options)
    most = 0
    while len(together):
        together.step()
        going = [job for job in found if job.search.length and not job.search.is_over]
        most = max(most, len(going))
        held = [lane._state.num_bytes for lane in together._lanes.values() if lane._state]
        assert sum(held) <= memory.most
    assert most == 2
    for job, text in zip(found, texts, strict=True):
        require_as_alone(pipeline, job, text, **options)


def test_a_state_is_let_go_with_its_last_search_though_another_one_opens(pipeline):
    together, options = Together(pipeline.step), {"num_beams": 2} | LONG
    [first] = joined(pipeline, together, ["abc"], **options)
    while first.search.length < 3:
        together.step()
    [lane] = together._lanes.values()
    state = weakref.ref(lane._state)
    [second] = joined(pipeline, together, ["ml"], **options)
    together.leave(first.search)
    assert state() is None and len(lane) == 1
    end(together)
    require_as_alone(pipeline, second, "ml", **options)


def test_light_searches_do_not_wait_behind_a_heavy_one_that_waits_for_its_like(
    pipeline, monkeypatch
):
    together = Together(pipeline.step, of_toy(pipeline, monkeypatch, 6))
    options = {"num_beams": 1} | LONG
    heavy = [job for _ in range(2) for job in pipeline.jobs(4 * ["ab"], **options)]
    for job in heavy:
        job.join(together, pipeline.step, light=False)
    light = joined(pipeline, together, 3 * ["abc"], **options)
    ended = []
    while len(together):
        together.step()
        ended += [job for job in [*heavy, *light] if job.search.is_over and job not in ended]
    assert max(map(ended.index, light[:2])) < ended.index(heavy[1])
    assert {job.search.error for job in ended} == {None}


def test_what_can_never_fit_is_refused(pipeline, monkeypatch):
    of_toy(pipeline, monkeypatch, 4)
    wide = {"num_beams": 5}
    with pytest.raises(ValueError, match=r"s\[\d\] may take \d+\.\d KiB of caches, 5 beams or"):
        pipeline(["a", "abc" * 4], **wide)
    with pytest.raises(ValueError, match=r"the limit is \d+\.\d KiB: ask for fewer beams"):
        pipeline.jobs(["abc" * 4], **wide)
    texts = random_texts(np.random.default_rng(0), 9)
    assert all(len(job.places) <= 2 for job in pipeline.jobs(texts, num_beams=2))
    found = pipeline(texts, num_beams=2)
    monkeypatch.undo()
    assert [answer.text for answer in found] == [
        answer.text for answer in pipeline(texts, num_beams=2)
    ]


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
        job.join(together, pipeline.step)
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
        require_same(seen[place], pipeline(text, **options))
