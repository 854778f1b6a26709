import re

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.manifest import DecodingDefaults, Limits
from seqkeras.serving.text import BOS, EOS, CharacterTable
from tests.serving import references
from tests.serving.pipelines.toys import of_bytes as bytes_tokenizer
from tests.serving.pipelines.toys import sentence_pieces
from tests.serving.toy_language_model import LIMIT, TABLE, ToyLanguageModel, write_bundle

MODEL = ToyLanguageModel(unknown=-1.0)
PROMPTS = ["a", "bad", "", "cab", "deadbeef", "gab", "face", "g"]


@pytest.fixture(scope="module")
def generate(tmp_path_factory):
    model = ToyLanguageModel()
    model.M[:, EOS] += 1.5
    folder = tmp_path_factory.mktemp("bundles") / "toy"
    return serving.load(write_bundle(folder, model), threads=1), model


@pytest.fixture(scope="module")
def of_bytes(tmp_path_factory):
    """A model of bytes, whose answers are no UTF-8."""
    tokenizer = bytes_tokenizer()
    folder = tmp_path_factory.mktemp("bundles") / "bytes"
    model, decoding = ToyLanguageModel(len(tokenizer), 61), DecodingDefaults(start_id=0, end_id=0)
    return serving.load(write_bundle(folder, model, tokenizer, decoding=decoding), threads=1)


def ids_of(prompt):
    return TABLE.encode(prompt) or [BOS]


def text_of(token_ids):
    return TABLE.decode([each for each in token_ids if each != EOS])


def texts_of(answer):
    return [answer.text, *(each.text for each in answer.alternatives)]


def test_greedy_answers_are_those_of_the_model_itself(generate):
    pipeline, model = generate
    finishes = set()
    for prompt, answer in zip(PROMPTS, pipeline(PROMPTS), strict=True):
        ids, total = references.greedy(model.behind(ids_of(prompt)), LIMIT - len(ids_of(prompt)))
        assert answer.text == text_of(ids)
        assert answer.score == pytest.approx(total, rel=1e-5)
        assert answer.finish == ("end" if ids[-1] == EOS else "length")
        finishes.add(answer.finish)
    assert finishes == {"end", "length"}


@pytest.mark.parametrize("alpha", [0.0, 0.8])
def test_beam_answers_are_those_of_the_model_itself(generate, alpha):
    pipeline, model = generate
    answers = pipeline(PROMPTS, num_beams=5, n_best=3, length_penalty=alpha, max_new_tokens=7)
    for prompt, answer in zip(PROMPTS, answers):
        behind = model.behind(ids_of(prompt))
        expected = references.beam_search(behind, 5, 7, alpha)[:3]
        found = [answer, *answer.alternatives]
        assert [each.text for each in found] == [text_of(ids) for _, ids in expected]
        scores = [score for score, _ in expected]
        np.testing.assert_allclose([each.score for each in found], scores, rtol=1e-5)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_beams": 3, "n_best": 2},
        {"repetition_penalty": 1.5, "min_new_tokens": 3},
        {"sample": True, "n_best": 3, "seed": 4, "top_p": 0.9},
    ],
    ids=str,
)
@pytest.mark.parametrize("new", [3, None])
def test_a_prompt_is_answered_as_it_is_alone(generate, options, new):
    pipeline, _ = generate
    together = pipeline(PROMPTS, max_new_tokens=new, **options)
    for prompt, answer in zip(PROMPTS, together, strict=True):
        assert texts_of(answer) == texts_of(pipeline(prompt, max_new_tokens=new, **options))


def test_tokens_are_banned_and_forced_behind_the_prompt(generate):
    pipeline, _ = generate
    options = {"banned_tokens": ["a", TABLE.id_of("b"), EOS], "forced_tokens": {0: "g", 2: "f"}}
    for answer in pipeline(PROMPTS, max_new_tokens=6, **options):
        assert (answer.text[0], answer.text[2]) == ("g", "f")
        assert not {"a", "b"} & set(answer.text)
        assert answer.finish == "length"


def test_a_text_ends_before_what_stops_it(generate):
    pipeline, _ = generate
    options = {"banned_tokens": [0, 1, 2, EOS]}
    for prompt, answer in zip(PROMPTS, pipeline(PROMPTS, **options)):
        stop = answer.text[3:5]
        stopped = pipeline(prompt, stop=["no such", stop], **options)
        assert stopped.text == answer.text[: answer.text.index(stop)]
        assert stopped.finish == "stop"
        assert stopped.score > answer.score  # nothing is generated behind it


@pytest.mark.parametrize(
    "options",
    [{}, {"echo": True}, {"stop": "cc"}, {"sample": True, "seed": 3, "stop": ["ab", "d"]}],
    ids=str,
)
def test_the_pieces_of_a_stream_are_the_answer(generate, options):
    pipeline, _ = generate
    for prompt, answer in zip(PROMPTS, pipeline(PROMPTS, **options)):
        stream, pieces = pipeline.stream(prompt, **options), []
        with pytest.raises(StopIteration) as ended:
            while True:
                pieces.append(next(stream))
        assert all(pieces)
        assert "".join(pieces) == answer.text
        returned = ended.value.value
        assert (returned.text, returned.finish) == (answer.text, answer.finish)
        assert returned.num_new_tokens == answer.num_new_tokens


def test_a_stream_of_bytes_gives_whole_characters(of_bytes):
    characters = ["n", "é", "😀", " ", "ü"]
    token_ids = of_bytes.encode("".join(characters))
    forced = dict(enumerate([*token_ids, 0]))
    assert list(of_bytes.stream("x", forced_tokens=forced)) == characters
    del forced[len(token_ids)]
    del forced[len(token_ids) - 1]
    forced[len(token_ids) - 1] = 0  # ends within a character
    assert list(of_bytes.stream("x", forced_tokens=forced)) == [*characters[:-1], "\ufffd"]


def test_a_stream_gives_a_piece_before_the_next_step(generate, calls):
    pipeline, _ = generate
    steps = calls(pipeline._graphs, "step")
    stream = pipeline.stream("fed", forced_tokens={0: "a", 1: "b", 2: EOS})
    assert steps == []
    assert [(piece, len(steps)) for piece in stream] == [("a", 1), ("b", 2)]
    assert len(steps) == 3


def test_every_prompt_begins_with_the_start_if_the_settings_say_so(tmp_path):
    folder = write_bundle(tmp_path / "toy", MODEL, settings={"start": True})
    pipeline = serving.load(folder)
    assert pipeline.encode("ab") == [BOS, *TABLE.encode("ab")]
    assert pipeline.encode("") == [BOS]
    cut = pipeline.encode("abcdefg" * 5, max_new_tokens=13, truncate=True)
    assert cut == [BOS, *TABLE.encode("efg")]
    assert pipeline.encode("abc", max_new_tokens=16, truncate=True) == TABLE.encode("c")
    with pytest.raises(serving.BundleError, match="settings.stop is unknown"):
        serving.load(write_bundle(tmp_path / "wrong", MODEL, settings={"stop": True}))


def test_a_failure_of_onnxruntime_is_one_line(generate, monkeypatch):
    monkeypatch.setattr(generate[0]._reader, "_token_ids", lambda text: [999])
    message = "decoder_step.onnx: onnxruntime .* can not run it: .*out of data bounds.* If ids are "
    with pytest.raises(serving.BundleError, match=message):
        generate[0]("a")


def refused(message):
    return pytest.raises(ValueError, match=f"^{re.escape('Generate: ')}{message}")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"max_new_tokens": 0}, "max_new_tokens must be a whole number of at least 1; received"),
        ({"min_new_tokens": 10**6}, "max_new_tokens and min_new_tokens must be under 17, the limi"),
        ({"min_new_tokens": -1}, "min_new_tokens must be a whole number of at least 0; received"),
        ({"min_new_tokens": 3, "max_new_tokens": 2}, "min_new_tokens must be at most max_new"),
        ({"num_beams": 12}, "num_beams must be a whole number from 1 to 11; received int 12."),
        ({"n_best": 10**8, "sample": True}, "n_best must be a whole number from 1 to 10000; recei"),
        ({"num_beams": 2, "sample": True}, "sample needs num_beams=1; received 2."),
        ({"num_beams": 2, "stop": "a"}, "stop needs num_beams=1; received 2."),
        ({"length_penalty": "1"}, "length_penalty must be a number from -10 to 10; received '1'."),
        ({"sample": True, "temperature": 0}, "temperature must be a number from 1e-15 to 1e[+]15;"),
        ({"sample": True, "top_k": 0}, "top_k must be a whole number of at least 1; received"),
        ({"sample": True, "top_p": 1.5}, "top_p must be a number from 1e-15 to 1; received"),
        ({"sample": True, "seed": "x"}, "seed must be a whole number of at least 0; received 'x'."),
        ({"temperature": 0.5}, "temperature needs sample=True."),
        ({"repetition_penalty": 0}, "repetition_penalty must be a number from 1e-15 to 1e[+]15; r"),
        ({"sample": "yes"}, "sample must be True or False; received 'yes'."),
        ({"echo": 1}, "echo must be True or False; received int 1."),
        ({"truncate": "no"}, "truncate must be True or False; received 'no'."),
        ({"truncate": True}, "truncate needs max_new_tokens, or a prompt would leave room for one"),
        ({"early_stopping": 1}, 'early_stopping must be "never", False or True; received int 1.'),
        ({"forced_tokens": {0: "b"}, "banned_tokens": ["a", 5]}, "forced_tokens must be none of b"),
        ({"forced_tokens": {100: 5}}, r"prompts\[0\] leaves room for 16 tokens; forced_tokens has"),
        ({"stop": [""]}, "stop must be strings, none of them empty; received"),
        ({"stop": 5}, "stop must be a string or list or tuple; received int 5."),
        ({"banned_tokens": "ab"}, "banned_tokens must be a list or tuple or range; received 'ab'."),
        ({"forced_tokens": [3]}, r"forced_tokens must be a dict; received list \[3\]."),
        ({"banned_tokens": [11]}, "banned_tokens must be from 0 to 10; received 11."),
        ({"banned_tokens": ["z"]}, "banned_tokens: CharacterTable: the table must hold 'z'"),
        ({"banned_tokens": range(11)}, "banned_tokens must leave one token; received all of them."),
        ({"forced_tokens": {-1: "a"}}, "a place of forced_tokens must be a whole number of at"),
        ({"forced_tokens": {0: 1.5}}, "forced_tokens must be ids or tokens; received float 1.5."),
        ({"token_budget": 0}, "token_budget must be a whole number of at least 1; received int 0."),
    ],
    ids=str,
)
def test_a_wrong_option_is_refused(generate, options, message):
    with refused(message) as caught:
        generate[0](["a"], **options)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "prompt, message",
    [
        (3, r"prompts\[1\] must be a string; received int 3."),
        (17 * "a", r"prompts\[1\] has 17 tokens; with 1 new ones the limit is 16. Nothing was tru"),
    ],
)
def test_a_prompt_that_can_not_be_answered_is_refused(generate, prompt, message):
    with refused(message):
        generate[0](["a", prompt])
    with refused(message.replace(r"prompts\[1\]", "prompt")):
        generate[0].stream(prompt)


def test_a_lone_surrogate_is_refused_where_text_is_bytes(generate, of_bytes):
    with refused("prompt must hold no lone surrogate; received .* at 1."):
        of_bytes("a\ud800")
    assert generate[0]("a\ud800").finish


def test_a_stream_of_several_answers_is_refused(generate):
    for options in ({"num_beams": 3}, {"sample": True, "n_best": 3}):
        with refused(r"a stream needs (num_beams|n_best)=1; received 3\."):
            generate[0].stream("a", **options)


def test_the_end_of_a_template_is_left_out_and_that_of_a_text_is_not(of_bytes, tmp_path):
    tokenizer = sentence_pieces(["the cat", "a dog"], vocab_size=20)
    start, end = (tokenizer.id_of(token) for token in ("<s>", "</s>"))
    model = ToyLanguageModel(len(tokenizer), LIMIT)
    decoding = DecodingDefaults(start_id=start, end_id=end)
    pipeline = serving.load(write_bundle(tmp_path / "toy", model, tokenizer, decoding=decoding))
    assert pipeline.encode("the cat") == [start, *tokenizer.encode("the cat")]
    assert pipeline("the cat", echo=True).text.startswith("the cat")
    assert of_bytes.encode("a<|endoftext|>")[1:] == [0]


def test_an_unknown_option_is_refused_as_python_refuses_it(generate):
    with pytest.raises(TypeError, match="Generate: unknown option cat; known: max_new_tokens, "):
        generate[0]("a", cat=1)


def test_a_tokenizer_of_more_tokens_than_the_decoder_has_is_refused(tmp_path):
    table = CharacterTable.learn(["abcdefgh"])
    folder = write_bundle(tmp_path / "toy", MODEL, table)
    message = "the text table has 12 characters, the decoder 11. Export the bundle again."
    with pytest.raises(serving.BundleError, match=message):
        serving.load(folder)


def test_a_model_that_gives_no_number_is_refused(tmp_path):
    model = ToyLanguageModel()
    model.W[:] = np.nan
    pipeline = serving.load(write_bundle(tmp_path / "toy", model))
    for options in ({}, {"num_beams": 3}, {"sample": True}, {"regex": "ab"}):
        with pytest.raises(serving.BundleError, match="gives no finite number"):
            pipeline("a", **options)
        if "num_beams" not in options:
            with pytest.raises(serving.BundleError, match="gives no finite number"):
                next(pipeline.stream("a", **options))


def test_the_manifest_holds_the_defaults(tmp_path, generate):
    decoding = DecodingDefaults(3, 0.7, start_id=BOS, end_id=EOS)
    limits = Limits(5, 9)
    folder = write_bundle(tmp_path / "toy", MODEL, decoding=decoding, limits=limits)
    pipeline = serving.load(folder)
    expected = pipeline("fad", num_beams=3, length_penalty=0.7, max_new_tokens=6)
    assert pipeline("fad").score == expected.score
    assert "".join(pipeline.stream("fad")) == pipeline("fad", num_beams=1).text
    with refused("prompt has 6 tokens; with 1 new ones the limit is 5."):
        pipeline("facade")


def test_samples_follow_the_distribution_behind_the_prompt(generate):
    pipeline, model = generate
    answer = pipeline("bad", sample=True, n_best=4000, max_new_tokens=1, seed=0)
    texts = texts_of(answer)
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
    first, again, other = (texts_of(pipeline("a", seed=seed, **options)) for seed in (5, 5, 6))
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


def test_samples_are_drawn_by_batches_of_the_token_budget_and_are_the_same(generate, calls):
    pipeline, _ = generate
    drawn = calls(pipeline._graphs, "step")
    options = {"sample": True, "n_best": 11, "seed": 4, "max_new_tokens": 3}
    prompts = ["bad", "bad", "a", "deadbeef"]
    expected = [texts_of(answer) for answer in pipeline(prompts, **options)]
    assert max(len(token_ids) for token_ids, *_ in drawn) == 33  # "deadbeef" is a batch of its own
    for budget, most in ((30, 7), (11, 2), (1, 1)):  # tokens; rows of "a", which has 4 with its own
        drawn.clear()
        answers = pipeline(prompts, token_budget=budget, **options)
        assert [texts_of(answer) for answer in answers] == expected
        assert max(len(token_ids) for token_ids, *_ in drawn) == most


def test_divisors_of_logits_at_their_bounds_leave_numbers(generate):
    pipeline, _ = generate
    for number in (1e-15, 1e15):
        answer = pipeline(
            "bad", sample=True, seed=3, temperature=number, repetition_penalty=1 / number
        )
        assert np.isfinite(answer.score)
