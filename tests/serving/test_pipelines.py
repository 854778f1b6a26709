import dataclasses
import re

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.manifest import (
    DecodingDefaults,
    describe_files,
    read_manifest,
    write_manifest,
)
from seqkeras.serving.text import CharacterTable
from tests.serving import references
from tests.serving.toy_bundle import (
    LETTERS,
    PREFIXES,
    SOURCE,
    TARGET,
    TARGET_LENGTH,
    ToyModel,
    write_bundle,
)


def texts_of_many_lengths(count, seed=0):
    random = np.random.default_rng(seed)
    return [
        f"{random.choice(PREFIXES)}|{''.join(random.choice([*LETTERS], random.integers(1, 9)))}"
        for _ in range(count)
    ]


def of(text):
    """The toy model's log-probabilities for one text."""
    source = SOURCE.encode(text)
    return lambda prefix: ToyModel().log_probs(source, prefix)


@pytest.mark.parametrize("num_beams, alpha", [(5, 0.0), (5, 0.8), (len(TARGET), 0.8)])
def test_beam_answers_are_those_of_the_model_itself(pipeline, num_beams, alpha):
    texts = texts_of_many_lengths(11)
    answers = pipeline(texts, num_beams=num_beams, n_best=3, length_penalty=alpha)
    for text, answer in zip(texts, answers):
        expected = references.beam_search(of(text), num_beams, TARGET_LENGTH, alpha)[:3]
        found = [answer, *answer.alternatives]
        assert [a.text for a in found] == [TARGET.decode(ids) for _, ids in expected]
        scores = [score for score, _ in expected]
        np.testing.assert_allclose([a.score for a in found], scores, rtol=1e-5)


@pytest.mark.parametrize("num_beams", [1, 3])
def test_a_batch_of_mixed_lengths_gives_the_strings_of_single_texts(pipeline, num_beams):
    texts = texts_of_many_lengths(131, seed=1)  # three batches
    options = {"num_beams": num_beams, "n_best": num_beams, "attention": True}
    for text, together in zip(texts, pipeline(texts, **options)):
        alone = pipeline(text, **options)
        for a, b in zip((together, *together.alternatives), (alone, *alone.alternatives)):
            assert a.text == b.text
            assert a.score == pytest.approx(b.score, rel=1e-5)
            np.testing.assert_allclose(a.attention, b.attention, atol=1e-6)


def test_attention_has_a_row_for_each_target_token_and_a_column_for_each_source_token(pipeline):
    text = "down|gab"
    answer, _ = pipeline([text, "down|abcdefg"], num_beams=3, n_best=2, attention=True)
    for found in (answer, *answer.alternatives):
        source = SOURCE.encode(text)
        expected = [ToyModel().attention(source, t) for t in range(len(found.text))]
        assert found.attention.shape == (len(found.text), len(text))
        np.testing.assert_allclose(found.attention, expected, atol=1e-6)


@pytest.mark.parametrize(
    "text, message",
    [
        (3, "Translate: text must be a string; received int 3."),
        ("", "Translate: text is empty; write something to answer."),
        ("x" * 10**5, "Translate: text must begin with a direction and '|'; write e.g. 'up|bad'; "),
        ("sideways|a", "Translate: text has an unknown direction 'sideways'; known: down, up; "),
        ("|a", "Translate: text has an unknown direction ''; known: down, up; "),
        ("up| ", "Translate: text has nothing after 'up|'; write e.g. 'up|bad'."),
        ("up|" + 11 * "a", "Translate: text has 14 characters; the limit is 13. "),
    ],
)
def test_a_text_that_can_not_be_answered_is_refused(pipeline, text, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        pipeline(text)
    assert "\n" not in str(caught.value)
    in_a_list = message.replace("text", "texts[1]", 1)
    with pytest.raises(ValueError, match=f"^{re.escape(in_a_list)}"):
        pipeline(["up|a", text])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_beams": 12}, "num_beams must be a whole number from 1 to 11; received int 12."),
        ({"n_best": 2}, "n_best must be at most num_beams; received 2 and 1."),
        ({"length_penalty": float("nan")}, "length_penalty must be a number from .*; .*nan."),
        ({"attention": "heads"}, 'attention must be .* not "heads"; .* --attention-heads.'),
        ({"attention": "no"}, "attention must be True or False; received 'no'."),
        ({"early_stopping": 1}, 'early_stopping must be "never", False or True; received int 1.'),
        ({"truncate": 1}, "truncate must be True or False; received int 1."),
        ({"token_budget": 0}, "token_budget must be a whole number of at least 1; received int 0."),
    ],
)
def test_a_wrong_option_is_refused_even_with_nothing_to_answer(pipeline, options, message):
    with pytest.raises(ValueError, match=rf"^Translate: {message}$"):
        pipeline([], **options)


def test_an_altered_file_is_refused_before_it_is_opened(bundle):
    file = bundle / "tokenizer/target.json"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    message = "toy: tokenizer/target.json does not have the manifest's sha2"
    with pytest.raises(serving.BundleError, match=message):
        serving.load(bundle)


def test_a_bundle_without_a_tokenizer_or_with_one_of_another_size_is_refused(bundle):
    CharacterTable.learn(["abc"]).to_file(bundle / "tokenizer/target.json")
    manifest = dataclasses.replace(read_manifest(bundle), files=describe_files(bundle))
    write_manifest(bundle, manifest)
    message = "the target table has 7 characters, the decoder 11. Export"
    with pytest.raises(serving.BundleError, match=message):
        serving.load(bundle)
    only_target = {"target": manifest.tokenizers["target"]}
    write_manifest(bundle, dataclasses.replace(manifest, tokenizers=only_target))
    with pytest.raises(serving.BundleError, match="manifest.json: no source tokenizer is named"):
        serving.load(bundle)


@pytest.mark.parametrize("name, most", [("start_id", 10), ("end_id", 10), ("num_beams", 11)])
def test_decoding_beyond_the_vocabulary_is_refused(bundle, name, most):
    manifest = read_manifest(bundle)
    decoding = dataclasses.replace(manifest.decoding, **{name: most + 1})
    write_manifest(bundle, dataclasses.replace(manifest, decoding=decoding))
    message = f"decoding.{name} must be at most {most}, by the decoder's vocabulary; received "
    with pytest.raises(serving.BundleError, match=message):
        serving.load(bundle)


def test_a_model_that_gives_no_number_is_refused(tmp_path):
    model = ToyModel()
    model.W[:] = np.nan
    pipeline = serving.load(write_bundle(tmp_path / "toy", model))
    for answer in (pipeline, lambda text: next(pipeline.stream(text))):
        with pytest.raises(serving.BundleError, match="the model gives no finite number"):
            answer("up|bad")


def test_the_manifest_holds_the_defaults(tmp_path):
    folder = write_bundle(tmp_path / "toy", decoding=DecodingDefaults(5, 0.75))
    translate, options = serving.load(folder), {"length_penalty": np.float32(0.75)}
    answer = translate("up|feed", num_beams=np.int64(5), n_best=np.int32(2), **options)
    assert translate("up|feed").score == answer.score
    assert len(answer.alternatives) == 1
