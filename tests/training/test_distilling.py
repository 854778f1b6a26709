"""Distillation on the command line: what students learn, keep, answer and refuse."""

import random
from pathlib import Path

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.models import WithHeads
from seqkeras.pretrained import save_hugging_face
from seqkeras.tokenizers import word_piece
from seqkeras.training.parts.pretrained import Pretrained, spread
from seqkeras.training.parts.teacher import Teacher
from seqkeras.training.run import TEACHER
from seqkeras.training.tasks.classification import ClassificationOptions
from tests.conftest import others_long
from tests.training.commands import exported, printed, refusal, refused_options, scores_of
from tests.training.pretrained_folders import VOCABULARY, hugging_face_folder, tiny_bert
from tests.training.stops import stopped_behind_a_checkpoint

WORDS = {"good": ["good", "fine"], "bad": ["bad", "dull"]}
NUMBERS = {"bad": 1000.0, "dull": 2000.0, "fine": 3500.0, "good": 4000.0}
NOUNS = "film story cast play book child house".split()
TUNED = "--learning-rate 0.01 --batch-size 11 --passes 20 --dropout 0 --looks 1".split()
STUDENT = "--learning-rate 0.02 --batch-size 11 --passes 9 --looks 1".split()
READER = "--embedding-dim 12 --units 11".split()
SMALL = "--encoder bert --embedding-dim 12 --num-layers 1 --num-heads 3".split()


def reviews(path, count=110, wrong=0.0, words=slice(2)):
    """A CSV file whose label is told by a word, but for a share that has the other label."""
    draw, rows = random.Random(0), []
    for _ in range(count):
        label = draw.choice([*WORDS])
        text = f"a {draw.choice(WORDS[label][words])} {draw.choice(NOUNS)}"
        rows.append((text, label if draw.random() >= wrong else {"good": "bad"}.get(label, "good")))
    path.write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    return str(path)


def named_people(path, count):
    """A file of sentences with a person and a place."""
    draw, lines = random.Random(0), []
    for _ in range(count):
        name, place = draw.choice(["a child", "the book"]), draw.choice(["oslo", "house"])
        words = [*name.split(), "lives", "in", place]
        tags = ["B-PER", "I-PER", "O", "O", "B-LOC"]
        lines.append("".join(f"{word} {tag}\n" for word, tag in zip(words, tags, strict=True)))
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def teacher(tmp_path_factory):
    """The run of a fine-tuned encoder."""
    folder = tmp_path_factory.mktemp("teacher")
    model, file = hugging_face_folder(folder / "tiny"), reviews(folder / "reviews.csv")
    arguments = [file, "--pretrained", model, *TUNED, "--out", folder / "run"]
    printed("classification", *arguments)
    assert scores_of(folder / "run")["accuracy"] == 1
    return folder / "run"


def taught(teacher, path, *arguments, **rows):
    """The lines of a training with a teacher, into path / "run"."""
    file = reviews(path / "own.csv", **rows)
    common = [file, "--validation", teacher.parent / "reviews.csv", "--teacher", teacher]
    return printed("classification", *common, *STUDENT, "--out", path / "run", *arguments)


@pytest.mark.long
def test_a_reader_of_words_learns_from_the_teacher_what_its_labels_do_not_tell(teacher, tmp_path):
    lines = taught(teacher, tmp_path, *READER, "--distil-weight", "1", wrong=0.5)
    assert any("the teacher answered 110 texts in" in line for line in lines)
    assert scores_of(tmp_path / "run")["accuracy"] == 1
    assert {path.name for path in (tmp_path / "run").iterdir()} >= {"run.json", "model.keras"}
    assert not (tmp_path / "run" / TEACHER).exists()
    pipeline = serving.load(exported(tmp_path))
    assert [pipeline(f"a {word} film").labels for word in ("fine", "dull")] == [("good",), ("bad",)]
    header = (tmp_path / "run/history.csv").read_text().splitlines()[0].split(",")
    assert {"labels_loss", "soft_loss", "labels_accuracy", "validation_loss"} <= {*header}


@pytest.mark.long
def test_texts_without_a_label_teach_words_that_no_label_tells(teacher, tmp_path):
    more = reviews(tmp_path / "more.csv", words=slice(1, 2))
    arguments = ["--unlabelled", more, *READER, "--distil-loss", "mse"]
    lines = taught(teacher, tmp_path, *arguments, count=55, words=slice(1))
    texts = {line.split(",")[0] for line in Path(more).read_text().splitlines()[1:]}
    assert any(f"  {len(texts)} texts without a label are the teacher's" in line for line in lines)
    assert any(f"the teacher answered {55 + len(texts)} texts in" in line for line in lines)
    assert scores_of(tmp_path / "run")["accuracy"] == 1


def test_altered_copies_are_asked_for_and_keep_pairs_together(teacher, tmp_path):
    file = tmp_path / "pairs.tsv"
    rows = [f"a good {noun} in oslo\tthe {noun} lives\tx" for noun in NOUNS * 3]
    rows[1::2] = [row.replace("\tx", "\ty") for row in rows[1::2]]
    file.write_text("\n".join(["text\tpair\tlabel", *rows]))
    options = ClassificationOptions(
        file=str(file), pair_column="pair", teacher=str(teacher), augment=2, batch_size=3
    )
    train, validation = options.make().reading.read()
    labelled = [example for example in train if example.target is not None]
    more = [example.text for example in train if example.target is None]
    assert len(labelled) + len(validation) == 21
    assert 21 < len(more) <= 2 * len(labelled)
    assert len({*more} | {example.text for example in labelled}) == len(more) + 7
    words = {word for line in rows for word in line.split()}
    assert all(len(text) == 2 and {*" ".join(text).split()} <= words for text in more)
    again, _ = options.make().reading.read()
    assert again == train


@pytest.mark.long
@pytest.mark.parametrize("kind", others_long(["bert", "pretrained"]))
def test_a_smaller_bert_learns_the_teachers_layers(kind, teacher, tmp_path):
    compared = ["--distil-hidden", "1", "--distil-attention", "1", "--mixed-precision", "bfloat16"]
    student = {"bert": SMALL, "pretrained": ["--pretrained", teacher, "--keep-layers", "1"]}[kind]
    taught(teacher, tmp_path, *student, *compared)
    model = keras.models.load_model(tmp_path / "run/model.keras", compile=False)
    assert type(model) is WithHeads and len(model.encoder.encoder.blocks) == 1
    header, *rows = (tmp_path / "run/history.csv").read_text().splitlines()
    names = header.split(",")
    for name in ("hidden_loss", "attention_loss"):
        values = [float(row.split(",")[names.index(name)]) for row in rows]
        assert all(np.isfinite(values))
    assert scores_of(tmp_path / "run")["accuracy"] == 1
    assert serving.load(exported(tmp_path))("a dull film").labels == ("bad",)


def test_layers_that_are_kept_are_the_teachers_evenly_spread(tmp_path):
    assert [spread(few, 12) for few in (3, 4, 5)] == [[4, 8, 12], [3, 6, 9, 12], [2, 5, 7, 10, 12]]
    whole = Pretrained.read(hugging_face_folder(tmp_path / "tiny", num_layers=4))
    part = whole.with_layers(2)
    assert part.config == {**whole.config, "num_layers": 2}
    blocks = (len(whole.weights) - len(part.weights)) // 2
    embeddings = 5
    second, fourth = (embeddings + blocks * place for place in (1, 3))
    expected = [
        *whole.weights[:embeddings],
        *whole.weights[second : second + blocks],
        *whole.weights[fourth : fourth + blocks],
        *whole.weights[fourth + blocks :],
    ]
    for found, wanted in zip(part.weights, expected, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.long
def test_a_training_that_was_stopped_goes_on_without_asking_the_teacher_again(
    teacher, tmp_path, monkeypatch
):
    def trained(name):
        (tmp_path / name).mkdir(exist_ok=True)
        saves = "--steps-per-save 20 --tensorboard false".split()
        taught(teacher, tmp_path / name, *SMALL, "--distil-hidden", "1", *saves)
        return keras.models.load_model(tmp_path / name / "run/model.keras").get_weights()

    whole = trained("whole")
    with stopped_behind_a_checkpoint():
        trained("parts")
    assert (tmp_path / "parts/run" / TEACHER).exists()
    monkeypatch.delattr(Teacher, "_computed")
    for own, other in zip(trained("parts"), whole, strict=True):
        np.testing.assert_array_equal(own, other)


@pytest.mark.long
def test_numbers_are_learned_from_a_teacher(tmp_path):
    rows = [f"a {word} {noun},{number}" for word, number in NUMBERS.items() for noun in NOUNS]
    file = tmp_path / "rated.csv"
    file.write_text("text,number\n" + "\n".join(rows * 4) + "\n")
    arguments = [*READER, "--gradient-accumulation", 2]
    assert taught_by_a_tuned_one("regression", file, *arguments)["pearson_correlation"] > 0.95


def taught_by_a_tuned_one(task, file, *arguments):
    """The scores of a training of a file with a teacher that is tuned to the file first."""
    folder = file.parent
    common = [task, file, "--validation", file, *TUNED]
    model = hugging_face_folder(folder / "tiny")
    printed(*common, "--pretrained", model, "--out", folder / "teacher")
    printed(*common, "--teacher", folder / "teacher", *arguments, "--out", folder / "run")
    return scores_of(folder / "run")


@pytest.mark.long
def test_tags_are_learned_from_a_teacher_of_other_tokens(tmp_path):
    file = named_people(tmp_path / "names.conll", 66)
    arguments = [*READER, "--distil-weight", 1, "--vocab-size", 45]
    assert taught_by_a_tuned_one("tagging", file, *arguments)["entity_f1"] == 1
    found = serving.load(exported(tmp_path))("the book lives in oslo").entities
    labels = [(entity.text, entity.label) for entity in found]
    assert labels == [("the book", "PER"), ("oslo", "LOC")]


@pytest.fixture
def own(tmp_path):
    """A table with columns of other texts and of other labels."""
    file = tmp_path / "own.csv"
    header, *rows = Path(reviews(file)).read_text().splitlines()
    rows = [f"{row},a book,{'xy'[place % 2]}" for place, row in enumerate(rows)]
    file.write_text("\n".join([f"{header},more,kind", *rows]))
    return file


@pytest.fixture
def other(tmp_path):
    """An encoder of another vocabulary."""
    tokenizer = word_piece([*VOCABULARY[:-1], "##x"], lowercase=True)
    save_hugging_face(tiny_bert(), tmp_path / "other", tokenizers={"text": tokenizer})
    return tmp_path / "other"


TAUGHT, TUNED_BY = "classification {own} --teacher {teacher}", "--pretrained {teacher}"
test_options_that_do_not_go_with_a_teacher_get_one_line = refused_options(
    TAUGHT,
    ("--distil-hidden 1", "--distil-hidden: compares the layers of two BERTs, and --encode"),
    (f"--frozen true {TUNED_BY} --distil-attention 1", "of a --frozen encoder do not"),
    ("--keep-layers 1", "--keep-layers needs --pretrained, whose layers are kept"),
    ("--distil-temperature 3 --distil-loss mse", "--distil-temperature: is of --distil-los"),
    ("--encoder bert --vocab-size 99", "--vocab-size: --encoder bert reads the teacher's t"),
    (
        "--encoder bert --num-heads 3",
        "--num-heads must divide --embedding-dim; received 3 and 1",
    ),
    ("--numbers x --series-column y", "--teacher: reads texts; sequences of numbers have n"),
)
test_what_a_teacher_can_not_teach_gets_one_line = refused_options(
    TAUGHT,
    (f"--keep-layers 9 {TUNED_BY}", "--keep-layers 9: {teacher} has 2; choose at m"),
    ("--encoder bert --distil-attention 1", "have the 3 heads of the teacher; it has 4."),
    ("--pretrained {other} --distil-hidden 1", "vocabulary is not the vocabulary of {other}"),
    ("--pair-column more", "must have the pairs of"),
    ("--label-column kind", "must have the labels of"),
    status=1,
)
test_options_of_distillation_need_a_teacher = refused_options(
    "classification {own}",
    *(
        (option, f"{option.split()[0]}...--teacher")
        for option in ("--distil-weight 1", "--unlabelled {own}", "--augment 2", "--encoder bert")
    ),
)


def test_a_teacher_of_another_task_gets_one_line(teacher, tmp_path):
    file = named_people(tmp_path / "names.conll", 40)
    line = refusal("tagging", file, "--teacher", teacher, out=tmp_path / "run")
    message = "must be a run of the same task; it is one of classification."
    assert f"--teacher {teacher}: {message}" in line


def test_a_teacher_of_trees_is_refused_by_what_it_reads(tmp_path):
    file = reviews(tmp_path / "own.csv", 40)
    teacher, sizes = tmp_path / "trees", "--units 5 --embedding-dim 5 --max-steps 1".split()
    printed("classification", file, "--encoder", "tree", *sizes, "--out", teacher)
    line = refusal("classification", file, "--teacher", teacher, out=tmp_path / "run")
    assert "must be a run that reads texts by tokens, as the student does; it reads trees" in line
