"""Language models of a user's text: what they learn, leave, measure and refuse."""

import gzip
import json
import math
import random
import re
from pathlib import Path

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.data import texts, token_streams
from seqkeras.models import GPT, PermutedGPT, RNNLanguageModel
from seqkeras.pretrained import save_hugging_face
from seqkeras.runs import RunError
from seqkeras.tokenizers import learn_byte_pairs, read_tokenizer
from seqkeras.tokenizers.of_stream import STREAM_TOKENIZERS
from seqkeras.training.carried import CarriedTokens
from seqkeras.training.parts import language_model, plain_texts
from seqkeras.training.parts.language_model import LanguageModelModelling
from seqkeras.training.starting import read_start
from seqkeras.training.tasks.language_model import LanguageModelOptions
from tests.conftest import CHECKOUT
from tests.training.commands import (
    evaluated,
    exported,
    printed,
    refused_files,
    refused_options,
    scores_of,
)
from tests.training.exporting import refusals_of_run

TINY = "--hidden-dim 8 --num-heads 2 --num-layers 1 --context 7 --batch-size 5".split()
FEW = [*TINY, "--max-steps", "6", "--steps-per-save", "3"]


def text_file(path, sentences=200):
    """A text of one form of sentence, a line each."""
    draw = random.Random(0)
    words = [["the", "a"], ["old", "red", "small"], ["house", "book", "child"], ["is", "was"]]
    lines = [" ".join([*map(draw.choice, words), "here."]) for _ in range(sentences)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def trained(file, folder, *options):
    """Return the lines of a training that ends well, into the run of a folder."""
    return printed("language-model", file, *options, "--out", folder / "run")


@pytest.fixture(scope="module")
def characters(tmp_path_factory):
    """The run of a GPT of characters, its file and its lines."""
    folder = tmp_path_factory.mktemp("characters")
    file = text_file(folder / "text.txt")
    return folder / "run", file, trained(file, folder, *FEW)


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """The run of an LSTM of words, whose rows go on, its file and its lines."""
    folder = tmp_path_factory.mktemp("words")
    file = text_file(folder / "text.txt")
    options = "--model lstm --tokens words --learning-rate 0.03 --passes 4".split()
    return folder / "run", file, trained(file, folder, *TINY, *options)


def test_its_scores_are_those_of_the_whole_validation_text(characters):
    run, file, (first, second, *_, following) = characters
    text = Path(file).read_text(encoding="utf-8")
    held_out = text[int(0.9 * len(text)) :]
    kept = len(text) - len(held_out)
    sizes = f"{kept:,} characters of training and {len(held_out):,} of validation"
    assert first == f"language-model: {sizes}"
    assert second.endswith("; random windows of 7")
    assert following == f"next: seqkeras export {run} bundles/run"
    model = keras.models.load_model(run / "model.keras")
    table = read_tokenizer(run / "tokenizer/text.json")
    ids = [table.id_of("\n"), *table.encode(held_out)]
    total = 0.0
    for start in range(0, len(ids) - 1, 7):
        window = np.array(ids[start : start + 8])
        logits = model({"token_ids": window[None, :-1]}).numpy()[0].astype("float64")
        log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
        total -= log_probs[np.arange(len(window) - 1), window[1:]].sum()
    scores, loss = scores_of(run), total / len(held_out)
    words = len(held_out.split()) + held_out.count("\n")
    expected = {
        "validation_loss": loss,
        "perplexity": np.exp(loss),
        "perplexity_per_word": np.exp(total / words),
        "bits_per_character": loss / np.log(2),
        "unknown_tokens": 0.0,
    }
    assert scores.keys() == expected.keys()
    np.testing.assert_allclose([*scores.values()], [*expected.values()], rtol=1e-4)


def test_words_are_learned_by_rows_that_go_on(words):
    run, _, (_, unknown, second, *steps) = words
    assert unknown == (  # the end of the word at which the text is held out
        "  validation: the vocabulary does not know 1.00% of the tokens of inputs and targets ('e')"
    )
    assert second.endswith("; rows that go on from batch to batch of 7")
    scores = scores_of(run)
    # Of six words and <eos> three can be told, the others by 2, 3, 3 and 2 of equal chances.
    assert scores["perplexity"] < 3.5
    assert any("validation loss" in line and "perplexity" in line for line in steps)
    np.testing.assert_allclose(scores["perplexity"], scores["perplexity_per_word"], rtol=0.05)


def test_a_recurrent_model_to_start_from_takes_no_mask(words):
    message = "--mask prefix: .* has a recurrent model, .*; leave --mask out, or start from a GPT"
    with pytest.raises(RunError, match=message):
        read_start(words[0], mask="prefix")


def test_two_streams_are_not_started_from_one_nor_one_from_two(characters, tmp_path):
    with pytest.raises(RunError, match="trained without it: it has no query stream; leave --mask "):
        read_start(characters[0], mask="permutation")
    trained(characters[1], tmp_path, *FEW, "--mask", "permutation")
    with pytest.raises(RunError, match="--mask causal: .* trained with --mask permutation; leave"):
        read_start(tmp_path / "run", mask="causal")
    assert isinstance(read_start(tmp_path / "run", mask="permutation").model, PermutedGPT)


@pytest.mark.long
def test_the_page_trains_one_from_python(tmp_path, monkeypatch, capsys):
    text_file(tmp_path / "play.txt")
    monkeypatch.chdir(tmp_path)
    page = (CHECKOUT / "docs/training/scripts-of-texts.md").read_text(encoding="utf-8")
    section = page.split("## Language models")[1].split("\n## ")[0]
    training, sampling = re.findall("```python\n(.*?)```", section, re.DOTALL)
    exec(compile(training, "scripts-of-texts.md", "exec"), shown := {})
    assert float(capsys.readouterr().out.split()[-1]) < np.log(20)  # of 24 characters
    exec(compile(sampling, "scripts-of-texts.md", "exec"), shown)
    texts = capsys.readouterr().out
    assert texts.startswith("the old ") and "\na " in texts
    again, *_ = shown["go_on"](*shown["pad"]([shown["table"].encode("the old ")] * 2))
    first, second = np.asarray(again)
    assert np.any(first != second)  # each row draws by itself
    assert first.shape == (32,)


def test_export_takes_both(characters, words):
    assert refusals_of_run(characters[0]) == []
    assert refusals_of_run(words[0]) == []


def test_a_state_goes_on_until_its_row_begins_anew(tmp_path):
    keras.utils.set_random_seed(0)
    model = RNNLanguageModel(11, 5, 7, 2, cell="lstm")
    carried = CarriedTokens(model, 3)
    carried.build()
    token_ids = np.random.default_rng(0).integers(11, size=(3, 12))
    whole = model({"token_ids": token_ids})
    begins = np.array([True, True, True])
    first = carried({"token_ids": token_ids[:, :5], "begins": begins})
    carried.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    for reader in (carried, again):
        second = reader({"token_ids": token_ids[:, 5:], "begins": ~begins})
        found = np.concatenate([first, second], axis=1)
        np.testing.assert_allclose(found, whole, rtol=1e-5, atol=1e-6)
    anew = carried({"token_ids": token_ids[:, :5], "begins": np.array([True, False, True])})
    np.testing.assert_allclose(anew[::2], first[::2], rtol=1e-5, atol=1e-6)
    assert np.abs(anew[1] - first[1]).max() > 1e-3


def test_several_files_are_one_text_and_may_be_compressed(tmp_path):
    first, second = tmp_path / "a.txt", tmp_path / "b.txt.gz"
    first.write_text("one two three four five six\n", encoding="utf-8")
    second.write_bytes(gzip.compress(b"seven eight nine ten eleven twelve\n"))
    options = LanguageModelOptions(files=(str(first), str(second)), held_out=0.25)
    train, passages = options.make().reading.read()
    parts = [["one two three four five six\n"], ["seven eight nine te"]]
    assert [[*text] for text in train] == parts
    whole = "".join(part.before + part.text + part.rest for part in passages)
    assert whole == "n eleven twelve\n"
    assert passages[0].before == "n "


def test_of_a_long_text_a_million_characters_are_held_out(tmp_path, monkeypatch):
    monkeypatch.setattr(plain_texts, "MOST_CHARACTERS", 100)
    file = text_file(tmp_path / "text.txt")
    size = len(Path(file).read_text(encoding="utf-8"))
    for held_out, left in ((None, 100), (0.1, math.ceil(size / 10))):
        options = LanguageModelOptions(files=(file,), held_out=held_out)
        [text], passages = options.make().reading.read()
        assert len(text) == size - left
        assert sum(map(len, (each.before + each.text + each.rest for each in passages))) == left


@pytest.mark.parametrize("tokens", STREAM_TOKENIZERS)
def test_subwords_are_learned_on_parts_of_a_long_text(tokens, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(texts, "BYTES_AT_ONCE", 100)
    monkeypatch.setattr(token_streams, "CHUNK", 100)
    file = tmp_path / "text.txt"
    file.write_text("".join(f"the {chr(97 + place % 26) * 20}\n" * 5 for place in range(26)))
    options = LanguageModelOptions(files=(str(file),), tokens=tokens, vocab_size=300)
    tokenizers = []
    for most in (language_model.MOST_LEARNED, 500):
        monkeypatch.setattr(language_model, "MOST_LEARNED", most)
        reading = options.make().reading
        tokenizers.append(reading.tokenizers(reading.read()[0])["text"])
    is_of_parts = tokens not in ("characters", "words")
    assert (tokenizers[0] != tokenizers[1]) == is_of_parts
    told = "the vocabulary is learned on 16.7% of the text" in capsys.readouterr().out
    assert told == is_of_parts


@pytest.mark.parametrize("kind", STREAM_TOKENIZERS)
@pytest.mark.parametrize(
    "sentence",
    ["KING:\nUnquestionably, my lord. ", "北京市民今天在公园里散步。", "aaaaaaaaaaaaaab"],
)
def test_prompts_begin_with_a_word_and_end_with_a_token(tmp_path, kind, sentence):
    text = sentence * 97
    (tmp_path / "play.txt").write_text(text, encoding="utf-8")
    options = LanguageModelOptions(files=(str(tmp_path / "play.txt"),), tokens=kind, vocab_size=300)
    task = options.make()
    texts, passages = task.reading.read()
    tokenizer = task.reading.tokenizers(texts)["text"]
    passages = task.reading.with_tokenizers(passages, {"text": tokenizer})
    held_out = "".join(own.before + own.text + own.rest for own in passages)
    assert text.endswith(held_out) and len(passages) > 4
    for passage in passages:
        ids = tokenizer.encode(passage.text + passage.rest)
        prompt = tokenizer.encode(passage.text)
        assert prompt and prompt == ids[: len(prompt)]
        if " " in sentence:
            assert passage.text.startswith("Unquestionably")
            assert passage.text.split()[-1] in sentence.split()
            assert len(passage.text) <= 32


def test_it_goes_on_from_another_run_with_its_tokenizer_and_weights(words, tmp_path):
    run, file, _ = words
    options = ["--context", 7, "--batch-size", 5, "--learning-rate", 1e-6, "--max-steps", 3]
    lines = trained(file, tmp_path, "--start-from", run, *options)
    assert any(line.endswith("; rows that go on from batch to batch of 7") for line in lines)
    before, after = scores_of(run), scores_of(tmp_path / "run")
    np.testing.assert_allclose(after["validation_loss"], before["validation_loss"], rtol=1e-3)
    tokenizers = [folder / "tokenizer/text.json" for folder in (run, tmp_path / "run")]
    assert tokenizers[0].read_text() == tokenizers[1].read_text()


@pytest.mark.long
def test_it_goes_on_with_tokens_learned_anew(words, tmp_path):
    run, _, _ = words
    file = tmp_path / "more.txt"
    file.write_text("the new words of an old book\n" * 20, encoding="utf-8")
    options = ["--context", 7, "--batch-size", 2, "--learning-rate", 1e-9, "--max-steps", 2]
    tokens = ["--new-tokens", "true", "--tokens", "words", "--vocab-size", 30]
    out = tmp_path / "run"
    lines = trained(file, tmp_path, "--start-from", run, *options, *tokens)
    tables = [read_tokenizer(folder / "tokenizer/text.json") for folder in (run, out)]
    models = [keras.models.load_model(folder / "model.keras") for folder in (run, out)]
    both = [word for word in tables[1].words if word in tables[0].words]
    assert {"the", "old", "book"} < {*both} < {*tables[1].words}
    assert any(line.endswith(f"tokens are known in {run}") for line in lines)
    rows = [model.embedding.embeddings.numpy() for model in models]
    for word in both:
        before, after = (found[table.id_of(word)] for found, table in zip(rows, tables))
        np.testing.assert_allclose(after, before, atol=1e-6)


@pytest.mark.long
def test_mixed_precision_and_accumulation_are_those_of_a_training_that_goes_on(
    words, tmp_path, monkeypatch
):
    run, file, _ = words
    policies, made = set(), LanguageModelModelling.model

    def watched(self, run):
        model = made(self, run)
        policies.add(self.trained(model).embedding.dtype_policy.name)
        return model

    monkeypatch.setattr(LanguageModelModelling, "model", watched)
    options = (
        "--context 7 --batch-size 5 --max-steps 4 --gradient-accumulation 2 --steps-per-save 2"
    )
    options = [*options.split(), "--mixed-precision", "bfloat16", "--start-from", run]
    trained(file, tmp_path, *options)
    assert policies == {"mixed_bfloat16", "float32"}  # it computes in one, and is kept in the other
    rows = (tmp_path / "run/history.csv").read_text().splitlines()[1:]
    assert [int(row.split(",")[0]) for row in rows] == [2, 4]


@pytest.mark.long
def test_it_goes_on_from_a_folder_of_hugging_face(tmp_path):
    file = text_file(tmp_path / "text.txt", 60)
    tokenizer = learn_byte_pairs([Path(file).read_text(encoding="utf-8")], 280)
    model = GPT(len(tokenizer), 8, 1, 2, 16, max_length=16)
    model.build()
    save_hugging_face(model, tmp_path / "gpt2", tokenizers={"text": tokenizer})
    options = ["--context", 11, "--batch-size", 3, "--max-steps", 2, "--dropout", 0.1]
    trained(file, tmp_path, "--start-from", tmp_path / "gpt2", *options)
    tuned = keras.models.load_model(tmp_path / "run/model.keras")
    assert (tuned.config["dropout"], tuned.max_length) == (0.1, 16)
    record = json.loads((tmp_path / "run/run.json").read_text())
    assert record["limits"] == {"source_length": 16, "target_length": 16}
    assert record["decoding"]["end_id"] == tokenizer.id_of("<|endoftext|>")


test_what_can_not_be_trained_gets_one_line = refused_files(
    "language-model",
    "text.txt",
    (b"", "", "text.txt: the file is empty."),
    (b"one\n\xff\n", "", "text.txt, line 2: the byte 0xff is not UTF-8; save the file as UTF-8"),
    ("a short text", "", "text.txt: 10 tokens are left for training, too few for 32 windows"),
    ("a short text", "--held-out 0", "--held-out 0.0 leaves nothing for validation."),
    ("a short text", "--held-out 1", "--held-out 1.0 leaves nothing for training."),
    ("a b " * 99, "--tokens byte-pairs --vocab-size 9", "--vocab-size must be at least 257, for"),
    ("a b " * 99, "--tokenizer {tmp_path}/nothing", "nothing: no tokenizer; expected tokenizer"),
)


@pytest.fixture
def begun(tmp_path):
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun/run.json").write_text("{}")
    return f"--start-from {tmp_path / 'begun'}"


test_options_that_do_not_go_together_are_refused = refused_options(
    "language-model {table}",
    ("--windows consecutive", "--windows consecutive carries a state on, which a GPT has none"),
    ("--num-heads 3", "--hidden-dim must be a multiple of --num-heads; received 128 and 3."),
    ("--stride 65", "--stride must be at most --context; received 65 and 64."),
    ("--start-from {tmp_path}/nothing", "nothing: no language model; expected a finished run"),
    ("--start-from {tmp_path}", ": no language model; expected a finished run, or a GPT-2 folde"),
    ("{begun} --tokenizer a", "--start-from brings its tokenizer; leave --tokenizer out."),
    ("{begun} --model lstm", "--model: --start-from brings its own; leave it out."),
    ("{begun} --tokens words", "--tokens: --start-from brings its tokens; add --new-tokens tr"),
    ("--new-tokens true", "--new-tokens needs --start-from, the run of other tokens."),
)


@pytest.mark.long
def test_what_is_served_goes_on_from_a_prompt_as_the_text_does(words):
    answer = serving.load(exported(words[0].parent))("the old", max_new_tokens=9)
    subject, verb, *end = answer.text.split()
    assert subject in ("house", "book", "child") and verb in ("is", "was")
    assert (end, answer.finish) == (["here."], "end")


@pytest.mark.long
@pytest.mark.parametrize("of", ["characters", "words"])
def test_a_bundle_has_the_scores_of_its_run_on_any_text(of, request):
    run, file, _ = request.getfixturevalue(of)
    of_run, of_bundle = (evaluated(each, file) for each in (run, exported(run.parent)))
    assert of_run.keys() == of_bundle.keys() == scores_of(run).keys()
    np.testing.assert_allclose([*of_bundle.values()], [*of_run.values()], rtol=1e-5)
