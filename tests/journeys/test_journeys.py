"""From a user's file to an answer, by the scripts beside this file, as a user types them.

Each script's docstring holds its commands; here they run in a folder that holds the user's files
alone.
"""

import csv
import json
import math
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from seqkeras import serving
from seqkeras.models import Bert
from seqkeras.pretrained import save_hugging_face
from seqkeras.tokenizers import learn_word_piece, pad, read_tokenizer
from tests.arrays import close
from tests.conftest import CHECKOUT
from tests.serving.http.served import as_process, ask
from tests.training.test_translation import sentences as translated_sentences

HERE = Path(__file__).parent
OTHERS = ("test_", "conftest", "__", "pages")
SCRIPTS = sorted(each for each in HERE.glob("*.py") if not each.name.startswith(OTHERS))
ANSWERS = ["good", "bad"]  # to what the scripts ask of a bundle of reviews


def labelled_sentences():
    """All 72 sentences that reviews are drawn from, (text, label); their adjectives tell it."""
    adjectives = {"good": ["fine", "lovely", "great"], "bad": ["dull", "poor", "weak"]}
    frames = ["a {} {}", "what a {} {}", "a very {} {}, I think", "the {1} is {0}"]
    return [
        (frame.format(adjective, noun), label)
        for frame in frames
        for noun in ("film", "story", "cast")
        for label, words in adjectives.items()
        for adjective in words
    ]


HELD_OUT = labelled_sentences()[::5]  # of which no review is made


def reviews(folder):
    """reviews.csv: 400 labelled sentences of a few words."""
    draw = random.Random(0)
    known = [each for each in labelled_sentences() if each not in HELD_OUT]
    with open(folder / "reviews.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *draw.choices(known, k=400)])


def parallel_text(folder):
    """pairs.tsv: sentences of one form, English and German."""
    pairs = [[text.lower().rstrip(".") for text in pair] for pair in translated_sentences()]
    lines = [f"{source}\t{target}\n" for source, target in 8 * pairs]
    random.Random(0).shuffle(lines)
    (folder / "pairs.tsv").write_text("".join(lines), encoding="utf-8")


def load(folder):
    """load.csv: the load of each hour, of 40 days that are alike but for noise."""
    draw = random.Random(0)
    hours = (200 + 100 * math.sin(hour * math.pi / 12) + draw.gauss(0, 5) for hour in range(960))
    lines = [f"{hour},{value:.1f}\n" for hour, value in enumerate(hours)]
    (folder / "load.csv").write_text("".join(["hour,load\n", *lines]), encoding="utf-8")


def weather(folder):
    """weather.csv: the load of each hour, of 30 days, higher where it is colder."""
    draw = random.Random(0)
    lines = ["hour,load,temperature\n"]
    for hour in range(720):
        temperature = 10 - 8 * math.cos(hour * math.pi / 12) + draw.gauss(0, 2)
        lines.append(f"{hour},{200 - 5 * temperature + draw.gauss(0, 1):.1f},{temperature:.1f}\n")
    (folder / "weather.csv").write_text("".join(lines), encoding="utf-8")


def hugging_face(folder):
    """reviews.csv, and models/tiny-bert: an encoder and a tokenizer of Hugging Face."""
    reviews(folder)
    texts = (folder / "reviews.csv").read_text(encoding="utf-8").splitlines()
    tokenizer = learn_word_piece(texts, 200)
    model = Bert(len(tokenizer), 32, 2, 2, 64, max_length=32)
    model.build()
    (folder / "models").mkdir()
    save_hugging_face(model, folder / "models/tiny-bert", tokenizers={"text": tokenizer})


def run(command, folder, path):
    """Run a command in a folder, where `path` alone is what Python finds of ours."""
    environment = {**os.environ, "PYTHONPATH": str(path), "KERAS_BACKEND": "tensorflow"}
    environment.pop("TF_CPP_MIN_LOG_LEVEL", None)  # which libraries of the tests set
    arguments, _, standard_input = command.partition(" < ")
    program, *arguments = shlex.split(arguments)
    assert program in ("python", "seqkeras")
    module = ["-m", "seqkeras"] if program == "seqkeras" else []
    with open(folder / standard_input if standard_input else os.devnull, "rb") as given:
        done = subprocess.run(
            [sys.executable, *module, *arguments],
            cwd=folder,
            env=environment,
            stdin=given,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
    assert done.returncode == 0, f"{command}: {done.stderr[-2000:]}"
    print(f"$ {command}\n{done.stdout}{done.stderr}")  # pytest shows it of a test that fails
    assert "Traceback" not in done.stderr
    return done.stdout


def travel(script, folder, path=CHECKOUT):
    """Run a script's commands, each behind the other, as its docstring has them.

    Returns:
        What the last one prints.
    """
    shutil.copy(HERE / script, folder)
    docstring = (HERE / script).read_text(encoding="utf-8").split('"""')[1]
    lines = docstring.splitlines()
    commands = [line for line in lines if line.startswith(("python ", "seqkeras "))]
    assert commands[0] == f"python {script}"
    return [run(command, folder, path) for command in commands][-1]


@pytest.fixture(scope="module")
def of_reviews(tmp_path_factory):
    """The folder of the first journey, behind it."""
    folder = tmp_path_factory.mktemp("own_sentences")
    reviews(folder)
    assert travel("own_sentences.py", folder).startswith("good\t")
    return folder


def test_the_classifier_is_served_as_the_page_shows(of_reviews):
    page = (CHECKOUT / "docs/journeys.md").read_text(encoding="utf-8")
    [(_, bundle)] = re.findall(r"^(seqkeras serve) (\S+)", page, re.MULTILINE)
    [(path, content)] = re.findall(r"^curl localhost:8000(\S+) -d '(.*?)'", page, re.MULTILINE)
    with as_process(str(of_reviews / bundle)) as (_, _, port):
        status, answer = ask(port, path, json.loads(content))
    assert status == 200 and answer["labels"] == ["good"]


def test_own_sentences_become_a_classifier_of_others(of_reviews):
    texts, labels = zip(*HELD_OUT)
    answers = serving.load(of_reviews / "bundles/reviews")(list(texts))
    right = [answer.labels[0] == label for answer, label in zip(answers, labels, strict=True)]
    assert sum(right) >= 0.9 * len(right)
    model = keras.models.load_model(of_reviews / "runs/reviews/model.keras")
    tokenizer = read_tokenizer(of_reviews / "runs/reviews/tokenizer/text.json")
    token_ids, _ = pad([tokenizer.analyze(text).token_ids for text in texts])
    expected = keras.ops.convert_to_numpy(keras.ops.softmax(model(token_ids)))
    for row, answer in zip(expected, answers, strict=True):
        scores = np.array([answer.scores[label] for label in ("bad", "good")])
        close(scores, row, rtol=1e-4, atol=1e-5)


def test_parallel_text_becomes_a_translator(tmp_path):
    parallel_text(tmp_path)
    assert travel("parallel_text.py", tmp_path) == "das rote haus ist groß\n"


def test_a_classifier_of_keras_hub_is_served(tmp_path):
    reviews(tmp_path)
    assert travel("hub_classifier.py", tmp_path).startswith("good\t")


def test_an_ordinary_functional_forecaster_is_served(tmp_path):
    load(tmp_path)
    values = [float(each) for each in travel("functional.py", tmp_path).split()]
    expected = [200 + 100 * math.sin(hour * math.pi / 12) for hour in range(24)]
    errors = [abs(value - other) for value, other in zip(values, expected, strict=True)]
    assert sum(errors) / 24 < 20  # of values from 100 to 300


def test_a_model_of_a_dictionary_answers_as_its_user_calls_it(tmp_path):
    weather(tmp_path)
    values = [float(each) for each in travel("two_inputs.py", tmp_path).split()]
    day = json.loads((tmp_path / "day.json").read_text())
    model = keras.models.load_model(tmp_path / "runs/weather/model.keras")
    given = {"load": np.array([day["series"]]), "degrees": np.array([day["known"]])}
    expected = keras.ops.convert_to_numpy(model(given))[0]
    close(np.array(values), expected, rtol=1e-3, atol=1e-2)


def test_a_folder_of_hugging_face_gets_a_new_head(tmp_path):
    hugging_face(tmp_path)
    assert travel("hugging_face.py", tmp_path).startswith("good\t")
    assert (tmp_path / "models/tuned/tokenizer.json").is_file()


def test_a_bundle_answers_alone_on_an_edge_machine(of_reviews, tmp_path):
    ignored = shutil.ignore_patterns("__pycache__", "build")
    shutil.copytree(CHECKOUT / "serving", tmp_path / "serving", ignore=ignored)
    blocked = "import sys\nfor name in ('tensorflow', 'keras', 'seqkeras', 'onnx'):\n"
    (tmp_path / "sitecustomize.py").write_text(f"{blocked}    sys.modules[name] = None\n")
    printed = travel("edge.py", of_reviews, path=tmp_path)
    assert [line.split()[0] for line in printed.splitlines()] == ANSWERS


def test_a_saved_model_answers_where_nothing_of_ours_is(of_reviews, tmp_path):
    blocked = "import sys\nfor name in ('seqkeras', 'serving', 'keras_nlp'):\n"
    (tmp_path / "sitecustomize.py").write_text(f"{blocked}    sys.modules[name] = None\n")
    printed = travel("tensorflow_alone.py", of_reviews, path=tmp_path)
    assert [line.split()[0] for line in printed.splitlines()] == ANSWERS


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_journey_is_short_and_shown_in_the_docs(script):
    text = script.read_text(encoding="utf-8")
    assert text.count("\n") < 40
    shown = (CHECKOUT / "docs/journeys.md").read_text(encoding="utf-8")
    _, docstring, code = text.split('"""', 2)
    assert code.strip() in shown
    for line in docstring.splitlines():
        assert not line.startswith(("python ", "seqkeras ")) or line in shown
