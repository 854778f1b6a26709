import numpy as np
import pytest
from keras import ops

from seqkeras.decoding import BannedTokens, StateEntry, beam, generate, greedy, sample
from seqkeras.models import RNNLanguageModel, RNNSeq2Seq
from tests import references
from tests.arrays import close, numbers
from tests.conftest import others_long
from tests.refusals import refusals
from tests.seqkeras.decoding.toys import BOS, EOS, VOCAB_SIZE, Automaton, compiled

SOURCES, MAX_LENGTH = 5, 11
IDS = {"start_id": BOS, "end_id": EOS}


def decoded(decoder, function=greedy, **options):
    options = IDS | {"max_length": MAX_LENGTH} | options
    return numbers(function(decoder.step, decoder.initial_state, **options))


def bare(decoder):
    """The decoder's step, without saying whose it is."""
    return lambda token_ids, state: decoder.step(token_ids, state)


@pytest.mark.parametrize("seed", range(3))
def test_greedy_decoding_is_the_plain_loop_from_the_start_of_each_row(seed):
    decoder, starts = Automaton(seed), [2, 4, 0, 6, 2]
    token_ids, lengths, scores = decoded(decoder, start_id=np.array(starts))
    assert token_ids.shape == (SOURCES, MAX_LENGTH)
    assert (token_ids.dtype, lengths.dtype, scores.dtype) == ("int32", "int32", "float32")
    for row, start in enumerate(starts):
        ids, score = references.greedy(decoder.logits, row, start, EOS, MAX_LENGTH)
        assert token_ids[row].tolist() == ids + [0] * (MAX_LENGTH - len(ids))
        assert lengths[row] == len(ids)
        close(scores[row], score)


def test_the_loop_ends_with_the_last_row():
    steps = []

    def step(token_ids, state):
        steps.append(token_ids)
        logits = ops.one_hot(ops.where(state["left"] == 0, EOS, 5), VOCAB_SIZE)
        return (logits,), {"left": state["left"] - 1}

    state = {"left": np.array([[1], [0], [2]], "int32")}
    _, lengths, _ = greedy(step, state, max_length=1000, **IDS)
    assert numbers(lengths).tolist() == [2, 1, 3]
    assert len(steps) <= 3


def test_choose_sees_log_probabilities_and_the_position_and_has_the_last_word():
    decoder = Automaton(0)

    def least_probable_and_then_fives(log_probs, position):
        total = ops.sum(ops.exp(log_probs), axis=-1)
        first = ops.where(ops.abs(total - 1) < 1e-5, ops.argmin(log_probs, axis=-1), 0)
        return ops.where(position == 0, first, 5)

    token_ids, _, _ = decoded(
        decoder, generate, choose=least_probable_and_then_fives, max_length=2, end_id=-1
    )
    first = [decoder.logits(row, [BOS]).argmin() for row in range(SOURCES)]
    assert token_ids[:, 0].tolist() == first
    assert token_ids[:, 1].tolist() == [5] * SOURCES


PROMPT = np.array([[4, EOS, 5], [6, 0, 0], [0, 0, 0], [1, 5, 0], [5, 5, EOS]]), [3, 1, 0, 2, 3]


@pytest.mark.parametrize("seed", others_long(range(3)))
def test_every_row_goes_on_from_its_own_prompt(seed):
    decoder = Automaton(seed)
    token_ids, lengths, scores = decoded(decoder, prompt=PROMPT)
    for row, (ids, length) in enumerate(zip(*PROMPT)):
        prompt = ids[:length].tolist()
        ids, score = references.greedy(
            lambda row, prefix, prompt=prompt: decoder.logits(row, [BOS, *prompt, *prefix[1:]]),
            row,
            BOS,
            EOS,
            MAX_LENGTH - length,
        )
        assert token_ids[row, : lengths[row]].tolist() == prompt + ids
        assert not token_ids[row, lengths[row] :].any()
        close(scores[row], score)


def test_a_prompt_overrules_the_processors_and_may_fill_the_result():
    decoder = Automaton(1)
    token_ids, lengths, scores = decoded(
        decoder, prompt=PROMPT, max_length=3, processors=[BannedTokens([4, 5])]
    )
    assert token_ids[0].tolist() == [4, EOS, 5]
    assert (lengths[0], scores[0]) == (3, 0.0)
    assert not set(token_ids[1]) & {4, 5}


@pytest.mark.parametrize("function, options", [(greedy, {}), (beam, {"num_beams": 3})])
def test_the_entries_of_the_model_whose_step_it_is_need_not_be_given(function, options):
    decoder = Automaton(0)
    given = decoded(decoder, function, state_entries=decoder.state_entries, **options)
    close(decoded(decoder, function, **options), given)
    if function is greedy:
        options = IDS | {"max_length": MAX_LENGTH}
        close(greedy(bare(decoder), decoder.initial_state, **options), given)


@pytest.mark.parametrize("function", [greedy, beam, sample])
def test_decoding_is_the_same_when_it_is_compiled_for_any_batch(function):
    decoder = Automaton(1)
    options = IDS | {"max_length": MAX_LENGTH, "state_entries": decoder.state_entries}
    if function is beam:
        options |= {"num_beams": 3, "n_best": 2, "length_penalty": 0.7}
    if function is sample:
        options |= {"seed": 3, "top_k": 5, "top_p": 0.9}
    prompt_lengths = np.array(PROMPT[1])

    def search(rows, weights):
        state = {
            "place": ops.zeros_like(rows)[:, None],
            "logits": ops.take(decoder.table, rows, axis=0),
            "attention": weights,
        }
        prompt = ops.take(PROMPT[0], rows, axis=0), ops.take(prompt_lengths, rows, axis=0)
        more = {}
        if function is beam:
            mask = ops.take(decoder.source_mask, rows, axis=0)
            more = {"coverage_penalty": 0.3, "source_mask": mask}
        return function(decoder.step, state, prompt=prompt, **options, **more)

    rows = np.array([3, 1, 4], "int32")
    inputs = rows, decoder.weights[rows]
    close(compiled(search, *inputs), search(*map(ops.convert_to_tensor, inputs)))


def decode(**options):
    return lambda: decoded(Automaton(0), **options)


def of_models(function=greedy, **wrong):
    """Calls of two models of 13 tokens, with two rows."""
    writer, translator = RNNLanguageModel(13, 5, 7), RNNSeq2Seq.bahdanau(17, 13, 5, 7, 11)
    given = {**IDS, "max_length": 5, **wrong}
    sources = np.array([[3], [16]]), np.array([1, 1])
    return [
        lambda: function(writer.step, writer.initial_state(2), **given),
        lambda: function(translator.step, translator.encode(*sources), **given),
    ]


ENTRIES = Automaton.state_entries
PER_BEAM = [StateEntry(each.name, "beam", ()) for each in ENTRIES]
WHOLE = "decode: max_length must be a positive integer; received"
LENGTHS = "decode: the prompt's lengths must be from 0 to 3"
test_what_can_not_be_decoded_is_refused = refusals(
    (decode(max_length=0), f"{WHOLE} 0."),
    (decode(max_length=7.0), f"{WHOLE} 7.0."),
    (decode(prompt=([1, 2, 3], [3])), "prompt must be (token_ids ...; received (3,), (1,)"),
    (decode(prompt=PROMPT, max_length=2), "longer than max_length, 2; received 3 tokens"),
    (decode(prompt=(PROMPT[0], PROMPT[1][:4])), "prompt must be ...; received (5, 3), (4,)"),
    (decode(prompt=(PROMPT[0][:2], PROMPT[1][:2])), "must have a row for each of the state, 5; re"),
    (decode(prompt=(PROMPT[0], [3, 1, 0, 2, -1])), LENGTHS),
    (decode(prompt=(PROMPT[0], [3, 1, 0, 2, 4])), LENGTHS),
    *(
        (call, f"decode: {message} to 12; received")
        for wrong, message in (
            ({"start_id": -1}, "start_id must be from 0"),
            ({"start_id": np.array([1, 13])}, "start_id must be from 0"),
            ({"end_id": 13}, "end_id must be from -1"),
            ({"end_id": -2, "function": beam, "num_beams": 2}, "end_id must be from -1"),
            ({"prompt": (np.array([[3], [13]]), [1, 1])}, "the prompt's ids must be from 0"),
        )
        for call in of_models(**wrong)
    ),
    (
        lambda: beam(
            bare(Automaton(0)), Automaton(0).initial_state, num_beams=2, max_length=3, **IDS
        ),
        "state_entries must say what is per beam",
    ),
    (
        decode(function=beam, num_beams=2, state_entries=[StateEntry("a", "beam", ())]),
        "name the state's entries, ['attention', ...; received ['a']",
    ),
    (
        decode(function=beam, num_beams=2, state_entries=PER_BEAM),
        "logits must have shape (batch, 1, ...; received (5, 101",
    ),
)
