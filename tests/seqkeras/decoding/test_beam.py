import numpy as np
import pytest
from keras import ops

from seqkeras.decoding import beam
from tests.arrays import BACKEND, close, numbers
from tests.references import decoding as references
from tests.refusals import refusals
from tests.seqkeras.decoding.toys import BOS, EOS, VOCAB_SIZE, Automaton, Uniform

MAX_LENGTH = 7
IDS = {"start_id": BOS, "end_id": EOS}
PROMPT = np.array([[4, EOS, 5], [6, 0, 0], [0, 0, 0], [1, 5, 0], [5, 5, EOS]]), [3, 1, 0, 2, 3]


def searched(decoder, max_length=MAX_LENGTH, **options):
    """For each row the hypotheses as (score, ids), the best first."""
    token_ids, lengths, scores = numbers(
        beam(
            decoder.step,
            decoder.initial_state,
            max_length=max_length,
            state_entries=decoder.state_entries,
            **IDS | options,
        )
    )
    n_best = options.get("n_best", 1)
    assert token_ids.shape == (decoder.sources, n_best, max_length)
    assert (token_ids.dtype, lengths.dtype, scores.dtype) == ("int32", "int32", "float32")
    assert not token_ids[np.arange(max_length) >= lengths[..., None]].any()
    return [
        [(score, ids[:length].tolist()) for score, ids, length in zip(*row) if score > -np.inf]
        for row in zip(scores, token_ids, lengths)
    ]


def assert_same(found, expected):
    assert [ids for _, ids in found] == [ids for _, ids in expected]
    close([score for score, _ in found], [score for score, _ in expected])


@pytest.mark.parametrize(
    "num_beams, n_best, alpha, early_stopping",
    [
        *[(3, 3, alpha, rule) for alpha, rule in ((-1.0, "never"), (0.6, False), (3.0, True))],
        (1, 1, 3.0, "never"),
        (2, 1, 0.0, "never"),
        (2, 1, 3.0, "never"),
        (5, 2, 0.6, "never"),
        (5, 2, 0.6, True),
    ],
)
@pytest.mark.parametrize("toy", [Automaton, Uniform])
def test_a_beam_search_is_the_plain_loop(toy, num_beams, n_best, alpha, early_stopping):
    if toy is Uniform and BACKEND == "torch":
        pytest.skip("torch.topk promises no order among equals")
    decoder = toy(0, sources=17)
    answers = searched(
        decoder,
        num_beams=num_beams,
        n_best=n_best,
        length_penalty=alpha,
        early_stopping=early_stopping,
    )
    rule = num_beams == 1 or early_stopping
    for row, found in enumerate(answers):
        expected = references.beam_search(
            decoder.logits, row, BOS, EOS, MAX_LENGTH, num_beams, alpha, early_stopping=rule
        )
        assert_same(found, expected[:n_best])


def test_the_three_rules_of_stopping_are_three():
    decoder = Automaton(0, eos=1, sources=17)
    options = {"num_beams": 3, "n_best": 3, "length_penalty": 3.0, "max_length": 11}
    answers = [searched(decoder, early_stopping=rule, **options) for rule in ("never", False, True)]
    assert answers[0] != answers[1] != answers[2] != answers[0]


@pytest.mark.parametrize("alpha", [0.0, 0.7])
def test_a_beam_that_holds_everything_finds_the_best_results_there_are(alpha):
    decoder, length = Automaton(4, sources=3), 3
    answers = searched(
        decoder, length, num_beams=VOCAB_SIZE**length, n_best=11, length_penalty=alpha
    )
    for row, found in enumerate(answers):
        expected = references.all_sequences(
            decoder.logits, row, BOS, EOS, length, VOCAB_SIZE, alpha
        )
        assert_same(found, expected[:11])


@pytest.mark.parametrize("alpha, beta", [(0.0, 0.2), (0.6, 1.0)])
def test_the_coverage_penalty_is_gnmts(alpha, beta):
    decoder = Automaton(0, sources=13)
    options = {"num_beams": 3, "n_best": 3, "length_penalty": alpha}
    with_coverage = {"coverage_penalty": beta, "source_mask": decoder.source_mask}
    answers = searched(decoder, **with_coverage, **options)
    for row, found in enumerate(answers):
        expected = references.beam_search(
            decoder.logits, row, BOS, EOS, MAX_LENGTH, 3, alpha, beta, decoder.attention
        )
        assert_same(found, expected)
    without = searched(decoder, **options)
    assert any(a[0][1] != b[0][1] for a, b in zip(answers, without))


def test_a_source_position_without_attention_costs_much_but_not_everything():
    decoder = Automaton(0)
    decoder.weights[:, :, 0] = 0.0
    answers = searched(
        decoder, num_beams=3, n_best=3, coverage_penalty=1.0, source_mask=decoder.source_mask
    )
    assert all(len(found) == 3 and found[0][0] < np.log(1e-6) for found in answers)


def test_beams_go_on_from_a_prompt_of_each_row():
    decoder = Automaton(1)
    answers = searched(decoder, num_beams=3, n_best=3, length_penalty=0.7, prompt=PROMPT)
    for row, found in enumerate(answers):
        prompt = PROMPT[0][row, : PROMPT[1][row]].tolist()
        expected = references.beam_search(
            decoder.logits, row, BOS, EOS, MAX_LENGTH, 3, 0.7, prompt=prompt
        )
        assert_same(found, expected)


def test_fewer_are_returned_when_the_model_allows_fewer():
    def only_eos(token_ids, state):
        logits = ops.where(ops.arange(VOCAB_SIZE) == EOS, 0.0, -np.inf)
        return (logits + 0.0 * ops.cast(token_ids, "float32")[..., None],), state

    token_ids, lengths, scores = by_itself(only_eos)
    assert token_ids.tolist() == [[[EOS, 0, 0], [0, 0, 0], [0, 0, 0]]] * 2
    assert lengths.tolist() == [[1, 0, 0]] * 2
    assert scores.tolist() == [[0.0, -np.inf, -np.inf]] * 2


def test_a_model_that_gives_no_number_gives_no_hypothesis():
    def broken(token_ids, state):
        return (ops.ones((2, 3, VOCAB_SIZE)) * np.nan,), state

    token_ids, lengths, scores = by_itself(broken)
    assert not token_ids.any() and not lengths.any()
    assert scores.tolist() == [[-np.inf] * 3] * 2


def by_itself(step):
    """What three beams find for two rows with a step that needs no state."""
    decoder = Automaton(0, sources=2)
    options = {"num_beams": 3, "n_best": 3, "max_length": 3}
    entries = {"state_entries": decoder.state_entries}
    return numbers(beam(step, decoder.initial_state, **options, **entries, **IDS))


def test_a_row_that_is_done_waits_for_the_others():
    steps = []

    def step(token_ids, state):
        steps.append(1)
        logits = ops.one_hot(ops.where(state["left"] == 0, EOS, 5), VOCAB_SIZE)
        return (9 * logits,), {"left": state["left"] - 1}

    decoder = Automaton(0, sources=3)
    state = {"left": np.array([[1], [0], [2]], "int32")}
    entries = [type(decoder.state_entries[0])("left", "beam", (), "int32")]
    options = {"num_beams": 2, "max_length": 1000, "state_entries": entries}
    token_ids, lengths, _ = numbers(beam(step, state, **options, **IDS))
    assert lengths.tolist() == [[2], [1], [3]]
    assert token_ids[:, 0, :3].tolist() == [[5, 3, 0], [3, 0, 0], [5, 5, 3]]
    assert len(steps) <= 5


def test_coverage_needs_attention_weights():
    decoder = Automaton(0)
    mask = decoder.source_mask
    for others in ((), (None,)):
        with_weights = Automaton(0).step

        def step(token_ids, state, others=others, with_weights=with_weights):
            (logits, _), state = with_weights(token_ids, state)
            return (logits, *others), state

        decoder.step = step
        with pytest.raises(ValueError, match="^beam: coverage_penalty must be 0 if the step retu"):
            searched(decoder, num_beams=2, coverage_penalty=0.1, source_mask=mask)


def search(**options):
    return lambda: searched(Automaton(0), **{"num_beams": 3} | options)


test_what_can_not_be_searched_is_refused = refusals(
    (search(num_beams=0), "beam: num_beams must be a positive integer; received 0"),
    (search(num_beams=2.0), "beam: num_beams must be a positive integer; received 2.0"),
    (search(n_best=4), "beam: n_best must be at most num_beams, 3; received 4."),
    (search(n_best=0), "beam: n_best must be a positive integer; received 0"),
    (search(length_penalty=np.nan), "length_penalty must be finite; received nan"),
    (search(coverage_penalty=-0.1), "coverage_penalty must not be negative, ... received -0.1"),
    (search(coverage_penalty=0.1), "source_mask must be given with a coverage_penalty"),
    (search(early_stopping="soon"), "early_stopping must be True, False or ...; received 'soon'"),
)
