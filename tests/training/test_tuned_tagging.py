"""Tagging by a pre-trained encoder: names, in any scheme and script, from a file to an answer."""

import random

import keras
import pytest

from seqkeras import serving
from seqkeras.models import Bert
from seqkeras.pretrained import save_hugging_face
from seqkeras.tokenizers import word_piece
from seqkeras.training.parts.tagging import NO_TAG
from seqkeras.training.run_of_task import run_files
from seqkeras.training.tasks.tagging import TaggingOptions
from tests.conftest import others_long
from tests.training.commands import exported, printed, scores_of, scores_of_both
from tests.training.pretrained_folders import SIZES

PEOPLE, PLACES = "Ada Alan Grace".split(), "Oslo Rome Paris".split()
CHARACTERS = "我他去了住在北京上海小明很好。"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "lives", "in", "saw", "##ove"]
VOCABULARY += [*PEOPLE, *PLACES, "L", "##lace", *CHARACTERS]
FAST = "--learning-rate 0.02 --batch-size 7 --passes 9 --dropout 0 --looks 1".split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    keras.utils.set_random_seed(5)
    encoder = Bert(len(VOCABULARY), **SIZES, max_length=31, pooler=None)
    encoder.build(None)
    path = tmp_path_factory.mktemp("models") / "tiny"
    tokenizer = word_piece(VOCABULARY, lowercase=False)
    save_hugging_face(encoder, path, tokenizers={"text": tokenizer})
    return str(path)


def write(path, sentences, between="\n"):
    """A file of sentences, lists of (word, tag)."""
    lines = ["".join(f"{word}\t{tag}\n" for word, tag in sentence) for sentence in sentences]
    path.write_text(between.join(lines), encoding="utf-8")
    return str(path)


def names(count, tags):
    """Sentences with a person and a place; `tags`: (kind, number of words) -> their tags."""
    draw = random.Random(count)
    found = []
    for _ in range(count):
        person = [draw.choice(PEOPLE), *["Lovelace"] * draw.randrange(2)]
        middle = draw.choice(["lives in", "saw"]).split()
        place = (draw.choice(PLACES), *tags("LOC", 1))
        words = [*zip(person, tags("PER", len(person)), strict=True), place, (".", "O")]
        words[len(person) : len(person)] = [(word, "O") for word in middle]
        found.append(words)
    return found


def iob1(kind, size):
    return [f"I-{kind}"] * size


def bio2(kind, size):
    return [f"B-{kind}", *[f"I-{kind}"] * (size - 1)]


def bioes(kind, size):
    return [f"S-{kind}"] if size == 1 else [f"B-{kind}", *[f"I-{kind}"] * (size - 2), f"E-{kind}"]


def tuned(folder, path, file):
    """The bundle of a run that has learned all of a file."""
    printed("tagging", file, "--pretrained", folder, *FAST, "--out", path / "run")
    assert scores_of(path / "run")["entity_f1"] == 1.0
    return serving.load(exported(path))


@pytest.mark.long
@pytest.mark.parametrize("tags", others_long([bioes, iob1, bio2]))
def test_names_of_every_scheme_are_learned_and_answered_by_the_bundle(tags, folder, tmp_path):
    file = write(tmp_path / "names.conll", names(60, tags), between="\t\n")
    answer = tuned(folder, tmp_path, file)("Ada Lovelace lives in Rome .")
    found = [(entity.text, entity.label) for entity in answer.entities]
    assert found == [("Ada Lovelace", "PER"), ("Rome", "LOC")]
    scores_of_both(tmp_path, file)


@pytest.mark.long
@pytest.mark.parametrize("by_characters", [True, False])  # or words, found whole in a text
def test_chinese_is_tagged_as_its_file_has_it(by_characters, folder, tmp_path):
    draw, sentences = random.Random(0), []
    kinds = [["我", "小明/PER"], ["住在", "去了"], ["北京/LOC", "上海/LOC"], ["。"]]
    for _ in range(60):
        words = [draw.choice(kind).partition("/") for kind in kinds]
        parts = [(word, f"B-{tag}" if tag else "O") for word, _, tag in words]
        if by_characters:
            parts = [
                (character, tag.replace("B-", "I-") if place else tag)
                for word, tag in parts
                for place, character in enumerate(word)
            ]
        sentences.append(parts)
    answer = tuned(folder, tmp_path, write(tmp_path / "zh.conll", sentences))("小明去了上海。")
    found = [(entity.text, entity.label, entity.start) for entity in answer.entities]
    assert found == [("小明", "PER", 0), ("上海", "LOC", 4)]
    assert not by_characters or [word.text for word in answer.words] == [*"小明去了上海。"]


@pytest.mark.parametrize(
    ("word", "tag", "of_others"),
    [
        ("Lovelace", "B-PER", None),
        ("Lovelace's", "B-PER", "I-PER"),  # words that a text has within one of the file
        ("Lovelace's", "NNP", "NNP"),
        ("Lovelace's", "S-PER", None),
    ],
)
def test_the_first_token_of_a_word_has_its_tag(word, tag, of_others, folder, tmp_path):
    file = write(tmp_path / "names.conll", [[(word, tag), ("saw", "O")]] * 9)
    task = TaggingOptions(file=file, pretrained=folder, batch_size=2).make()
    train, validation = task.reading.read()
    run = run_files(task, tmp_path / "run", train, validation, task.reading.tokenizers(train))
    inputs, targets, lengths = task.modelling.arrays(train[:1], run)
    tokens = [run.tokenizers["text"].token_of(token) for token in inputs["token_ids"][[0]][0]]
    others = ["[UNK]"] * 2 if word.endswith("'s") else []
    assert tokens == ["[CLS]", "L", "##ove", "##lace", *others, "saw", "[SEP]"]
    labels = run.record.settings["labels"]
    assert labels == sorted({"O", tag, *(["I-PER"] if tag == "B-PER" else [])})
    tags = [None if place == NO_TAG else labels[place] for place in targets[[0]][0]]
    assert tags == [None, tag, None, None, *[of_others for _ in others], "O", None]
    assert list(inputs) == ["token_ids", "lengths"] and lengths.tolist() == [len(tokens)]


@pytest.mark.parametrize(
    ("tags", "count", "letters"),
    [
        (["B-X", "O", "I-X", "I-X", "I-Y"], 2, "I-"),
        (["I-X", "O", "I-X", "B-X"], 0, "I-"),
        (["B-X", "I-X"], 0, "I-"),
        (["I-X", "E-X", "O", "E-X", "I-Y", "S-Y"], 3, "I- or E-"),
        (["B-X", "E-X", "S-X"], 0, "I- or E-"),
        (["B-X", "L-X", "L-X", "U-X"], 1, "I- or L-"),
    ],
)
def test_entities_that_begin_inside_are_counted_where_they_may_not_and_skipped_if_asked(
    tags, count, letters, tmp_path, capsys
):
    words = [(f"w{place}", tag) for place, tag in enumerate(tags)]
    file = write(tmp_path / "names.conll", [[("a", "O")], words] * 2)
    TaggingOptions(file=file, batch_size=1).make().reading.read()
    line = f"names.conll: {2 * count} entities begin with {letters}, the first in the sentence of "
    assert (f"{line}line 3;" in capsys.readouterr().out) == bool(count)
    labels = [*tags, "O", "B-Y"]
    found = TaggingOptions(skip_bad=True).make().reading.examples_of([file], {"labels": labels})
    assert len(found) == (2 if count else 4)
    assert ("2 sentences are left out; the first: " in capsys.readouterr().out) == bool(count)


def test_whether_a_word_has_a_token_is_told_by_the_tokenizer_that_reads_it(folder):
    accent = "\u0301"
    learned = TaggingOptions(lowercase=True).make().reading
    tuned = TaggingOptions(pretrained=folder).make().reading
    tuned.read_pretrained()
    assert tuned.has_token(accent) and tuned.has_token("Ada")
    assert learned.has_token("Ada") and not learned.has_token(accent)
    scored = TaggingOptions(lowercase=True).make().reading
    scored.known_tokenizers = {"text": tuned.pretrained.tokenizer}
    assert scored.has_token(accent)
