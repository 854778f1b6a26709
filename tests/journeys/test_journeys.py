"""From a user's file to an answer, by the scripts beside this file, as a user types them.

Each script's docstring holds its commands; here they run in a folder that holds the user's files
alone.
"""

import csv
import datetime
import gzip
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
from seqkeras.runs import RunFiles
from seqkeras.serving.manifest.fields import parse_fields
from seqkeras.serving.pipelines.forecast import Settings
from seqkeras.tokenizers import learn_word_piece, pad, read_tokenizer
from seqkeras.training.answering import answerer
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


def play(folder):
    """play.txt, speakers and their lines; answers.jsonl, questions with one answer each."""
    draw = random.Random(0)
    speakers, verbs = ["First Citizen", "All", "Menenius"], ["hear", "see", "know", "love"]
    lines = (f"{draw.choice(speakers)}:\nI {draw.choice(verbs)} you.\n" for _ in range(600))
    (folder / "play.txt").write_text("\n".join(lines), encoding="utf-8")
    rows = [{"prompt": f"Who {verb}s?", "answer": f"I {verb}."} for verb in verbs] * 12
    content = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "answers.jsonl").write_text(content, encoding="utf-8")


def tales(folder):
    """tales.txt, sentences of one form; people.conll, the same with tags of their names."""
    draw, sentences = random.Random(0), []
    for _ in range(150):
        name, town = draw.choice(["Ada", "Grace", "Alan"]), draw.choice(["Oslo", "Paris", "Rome"])
        verb = draw.choice(["left", "saw", "likes"])
        sentences.append([(name, "B-PER"), (verb, "O"), (town, "B-LOC"), (".", "O")])
    texts = (" ".join(word for word, _ in sentence) for sentence in sentences)
    (folder / "tales.txt").write_text("\n".join(texts), encoding="utf-8")
    tagged = ("".join(f"{word} {tag}\n" for word, tag in sentence) for sentence in sentences)
    (folder / "people.conll").write_text("\n".join(tagged), encoding="utf-8")


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


def hours_of_load(folder):
    """load.csv: the load of 30 days, colder nights and a tariff; last.csv: its last hours, of
    which the last twelve are to be forecast."""
    draw, time = random.Random(0), datetime.datetime(2024, 1, 1)
    lines = []
    for hour in range(720):
        temperature = 5 + draw.gauss(0, 2)
        load = 60 - 2 * temperature - 20 * math.cos(hour * math.pi / 12) + draw.gauss(0, 1)
        shown = "NA" if draw.random() < 0.05 else f"{load:.1f}"
        tariff = "night" if hour % 24 < 6 else "day"
        lines.append(f"{time:%Y-%m-%d %H:%M},{shown},{temperature:.1f},{tariff}\n")
        time += datetime.timedelta(hours=1)
    header = "time,load,temperature,tariff\n"
    (folder / "load.csv").write_text("".join([header, *lines]), encoding="utf-8")
    plan = [re.sub(",.*?,", ",,", line, count=1) for line in lines[-12:]]
    last = "".join([header, *lines[-60:-12], *plan])
    (folder / "last.csv").write_text(last, encoding="utf-8")


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


def commands_of(name, page):
    """The commands of a page that train, export and ask what has a name."""
    found = re.findall(rf"^seqkeras .* (?:runs|bundles)/{name}\b.*$", page, re.MULTILINE)
    return [command for command in found if not {"evaluate", "describe"} & {*command.split()}][:3]


def commands_alone(name, folder, page, shorter=""):
    """Run the commands of a page of docs/ that train, export and ask what has a name.

    Args:
        shorter: options with which the training takes less time than on a user's larger file.

    Returns:
        What the last one prints.
    """
    commands = commands_of(name, (CHECKOUT / f"docs/{page}.md").read_text(encoding="utf-8"))
    trained = run(f"{commands[0]} {shorter}", folder, CHECKOUT)
    exported, answer = [run(command, folder, CHECKOUT) for command in commands[1:]]
    assert trained.splitlines()[-1] == f"next: {commands[1]}"
    assert f"next: seqkeras predict bundles/{name} " in exported
    return answer


def test_a_file_becomes_a_classifier_by_commands_alone(tmp_path):
    reviews(tmp_path)
    assert commands_alone("reviews", tmp_path, "tasks/classification").startswith("good\t")
    scores = json.loads((tmp_path / "runs/reviews/scores.json").read_text(encoding="utf-8"))
    card = (tmp_path / "bundles/reviews/README.md").read_text(encoding="utf-8")
    assert f"\n{scores['baselines']['summary']}.\n" in card
    for method in ("model", "most frequent class", "words and pairs"):
        right = scores["baselines"]["methods"][method]["validation examples right"]
        assert f"| {method} | {right:.2%} | " in card


def doubtful_reviews(path, seed):
    """A file of 1,200 reviews of which three in ten have the wrong label."""
    draw = random.Random(seed)
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerow(("text", "label"))
        for text, label in draw.choices(labelled_sentences(), k=1200):
            other = "bad" if label == "good" else "good"
            csv.writer(file).writerow((text, other if draw.random() < 0.3 else label))


def test_a_file_of_doubtful_labels_becomes_a_classifier_that_says_so(tmp_path):
    """Seven in ten labels are right, and so sure are the answers of the bundle."""
    for seed, name in enumerate(("own.csv", "others.csv")):
        doubtful_reviews(tmp_path / name, seed)
    trained, _, evaluated, answer = [
        run(command, tmp_path, CHECKOUT)
        for command in (
            "seqkeras train classification own.csv --held-out 0.4 --out runs/doubtful",
            "seqkeras export runs/doubtful bundles/doubtful",
            "seqkeras train evaluate bundles/doubtful --data others.csv --out others.json",
            'seqkeras predict bundles/doubtful "what a fine story"',
        )
    ]
    scores = json.loads((tmp_path / "runs/doubtful/scores.json").read_text(encoding="utf-8"))
    told, card = scores["calibration"], (tmp_path / "bundles/doubtful/README.md").read_text()
    assert f"scores divided by a temperature of {told['temperature']:.2f}" in trained
    assert f"| temperature of {told['temperature']:.3f} |" in card
    of_others = json.loads((tmp_path / "others.json").read_text(encoding="utf-8"))["calibration"]
    assert of_others["expected_calibration_error"] < told["before"]["expected_calibration_error"]
    assert "calibration error of 1,200 scores " in evaluated
    label, score = answer.split("\t")
    assert label == "good" and 0.5 < float(score) < 0.85


def test_a_file_is_tuned_and_the_best_run_is_served(tmp_path):
    reviews(tmp_path)
    study = "seqkeras train tune classification reviews.csv --passes 2 --out runs/tuned --trials"
    printed = run(f"{study} 2 --search learning_rate,units", tmp_path, CHECKOUT)
    printed = run(f"{study} 3 --search learning_rate,units", tmp_path, CHECKOUT)
    assert "  going on: 2 trials are done" in printed.splitlines()
    assert printed.splitlines()[-1] == "next: seqkeras export runs/tuned/best bundles/tuned"
    exported = run(printed.splitlines()[-1].removeprefix("next: "), tmp_path, CHECKOUT)
    assert "next: seqkeras predict bundles/tuned " in exported
    table = json.loads((tmp_path / "runs/tuned/tuning.json").read_text(encoding="utf-8"))
    assert table["best"]["score"] == max(each["score"] or 0 for each in table["trials"])
    answer = run('seqkeras predict bundles/tuned "what a fine story"', tmp_path, CHECKOUT)
    assert answer.startswith("good\t")


def test_a_file_of_few_pairs_becomes_a_small_translator(tmp_path):
    parallel_text(tmp_path)
    given = "--passes 3 --subword-dropout 0.1 --out runs/small"
    trained = run(f"seqkeras train translation pairs.tsv {given}", tmp_path, CHECKOUT)
    [size] = [line for line in trained.splitlines() if "--size small" in line]
    assert "--hidden-dim 128" in size and "--passes" not in size
    run("seqkeras export runs/small bundles/small", tmp_path, CHECKOUT)
    printed = run('seqkeras predict bundles/small "the red house is big"', tmp_path, CHECKOUT)
    assert printed == f"{answer_of_keras(tmp_path, 'small', 'the red house is big')}\n"
    model = keras.models.load_model(tmp_path / "runs/small/model.keras", compile=False)
    assert model.get_config()["hidden_dim"] == 128


def test_a_file_becomes_a_translator_by_commands_alone(tmp_path):
    parallel_text(tmp_path)
    printed = commands_alone("en-de", tmp_path, "tasks/translation", "--max-steps 150")
    assert printed == f"{answer_of_keras(tmp_path, 'en-de', 'the red house is big')}\n"


def test_a_text_becomes_a_language_model_and_that_one_that_answers_by_commands_alone(tmp_path):
    play(tmp_path)
    page = (CHECKOUT / "docs/tasks/language-model.md").read_text(encoding="utf-8")
    trained, exported, drawn = [
        run(command, tmp_path, CHECKOUT) for command in commands_of("play", page)
    ]
    assert trained.splitlines()[-1] == "next: seqkeras export runs/play bundles/play"
    assert "next: seqkeras predict bundles/play " in exported
    assert drawn.strip()
    page = (CHECKOUT / "docs/tasks/prompt-answer.md").read_text(encoding="utf-8")
    for command in commands_of("answers", page):
        run(command, tmp_path, CHECKOUT)
    served = serving.load(tmp_path / "bundles/answers")
    messages = [{"role": "user", "content": "Who hears?"}]
    assert served({"messages": messages}).text == served("Who hears?").text


def answer_of_keras(folder, name, text):
    """The answer of a run's Keras model to a text."""
    model = keras.models.load_model(folder / f"runs/{name}/model.keras", compile=False)
    [answer] = answerer(RunFiles.read(folder / f"runs/{name}"))(model, [text])
    return answer.text


@pytest.mark.long
def test_texts_become_a_restorer_and_that_one_a_translator_by_commands_alone(tmp_path):
    parallel_text(tmp_path)
    pairs = (tmp_path / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    sides = ["\n\n".join(side) for side in zip(*(line.split("\t") for line in pairs))]
    (tmp_path / "text.txt").write_text(sides[0], encoding="utf-8")
    with gzip.open(tmp_path / "more.txt.gz", "wt", encoding="utf-8") as file:
        file.write(sides[1])
    sizes = "--num-layers 1 --hidden-dim 32 --max-length 40 --vocab-size 120 --max-steps 150"
    printed = commands_alone("restorer", tmp_path, "tasks/denoising-pretraining", sizes)
    page = (CHECKOUT / "docs/tasks/denoising-pretraining.md").read_text(encoding="utf-8")
    asked = shlex.split(commands_of("restorer", page)[2])[-1]
    assert printed == f"{answer_of_keras(tmp_path, 'restorer', asked)}\n"
    tuning, *_ = commands_of("translation", page)
    run(f"{tuning} --max-steps 150 --learning-rate 0.005", tmp_path, CHECKOUT)
    run("seqkeras export runs/translation bundles/translation", tmp_path, CHECKOUT)
    translate = serving.load(tmp_path / "bundles/translation")
    for text in ("the red house is big", "the old dog is small"):
        assert translate(text).text == answer_of_keras(tmp_path, "translation", text)
    assert translate("the red house is big").text == "das rote haus ist groß"


@pytest.mark.long
def test_a_text_becomes_features_and_these_a_tagger_by_commands_alone(tmp_path):
    tales(tmp_path)
    assert '"words": [{"text": "She"' in commands_alone("tales", tmp_path, "tasks/bilm")
    printed = commands_alone("people", tmp_path, "tasks/bilm")
    trained = RunFiles.read(tmp_path / "runs/people")
    model = keras.models.load_model(tmp_path / "runs/people/model.keras", compile=False)
    [answer] = answerer(trained)(model, [("Ada", "left", "Oslo", ".")])
    assert printed == " ".join(f"{word.text}/{word.tag}" for word in answer.words) + "\n"
    assert [word.tag for word in answer.words] == ["B-PER", "O", "B-LOC", "O"]


@pytest.mark.long
def test_a_table_becomes_a_forecaster_by_commands_alone(tmp_path):
    hours_of_load(tmp_path)
    page = (CHECKOUT / "docs/tasks/forecasting.md").read_text(encoding="utf-8")
    commands = commands_of("load", page)
    trained, exported, printed = [run(command, tmp_path, CHECKOUT) for command in commands]
    assert trained.splitlines()[-1] == f"next: {commands[1]}"
    assert "next: " in exported
    [block] = re.findall(r"```python\n(import csv\n.*?)```", page, re.DOTALL)
    (tmp_path / "ask.py").write_text(block)
    assert run("python ask.py", tmp_path, CHECKOUT).startswith("[[")
    record = json.loads((tmp_path / "runs/load/run.json").read_text())
    rows = Settings(**parse_fields(Settings, record["settings"], "settings", [])).rows
    with open(tmp_path / "last.csv", newline="") as file:
        table = [*csv.DictReader(file)]
    window, last = rows.window(table[:48], "series")
    known = rows.future(table[48:], last, 12, "known")
    model = keras.models.load_model(tmp_path / "runs/load/model.keras", compile=False)
    scaled = keras.ops.convert_to_numpy(model({"window": window[None], "known": known[None]}))
    [target] = [column for column in rows.columns if column.name == "load"]
    expected = target.unscaled(scaled)
    answer = serving.load(tmp_path / "bundles/load")({"series": table[:48], "known": table[48:]})
    close(answer.values, expected[0, ..., 1], rtol=1e-4, atol=1e-3)
    low, high = (answer.quantiles[quantile][:, 0] for quantile in (0.1, 0.9))
    with open(tmp_path / "load.csv", newline="") as file:
        loads = [row["load"] for row in csv.DictReader(file)]
    came = np.array([float(load.replace("NA", "nan")) for load in loads[-12:]])
    inside = ((low <= came) & (came <= high))[~np.isnan(came)]
    assert inside.mean() >= 0.5  # of a band of 80 %, twelve values at most
    values = [float(each) for each in printed.split()]
    close(np.array(values), expected[0, :, 0, 1], rtol=1e-3, atol=1e-2)


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
