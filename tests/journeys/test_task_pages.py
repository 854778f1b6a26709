"""docs/tasks: the files and the commands of each page, from training to an answer over HTTP."""

import json
import math
import re
import shlex
import subprocess
from pathlib import Path

import keras
import pytest

from seqkeras.models import Bert
from seqkeras.pretrained import save_hugging_face
from seqkeras.runs import MODEL, RECORD
from seqkeras.tokenizers import word_piece
from seqkeras.training.commands import command
from seqkeras.training.tasks import TASKS
from tests.conftest import CHECKOUT
from tests.journeys.pages import commands, files, printed, write_files
from tests.serving.http.served import as_process, ask
from tests.training.pretrained_folders import SIZES, VOCABULARY
from tests.training.test_translation_of_folders import made as made_folder

DOCS = CHECKOUT / "docs"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in DOCS.glob("tasks/*.md")}
PARTS = ["Your file", "Train", "The scores", "Export and serve", "When it goes wrong"]
RUN = re.compile(r"runs/[\w-]+")
BUDGET = "--max-steps 6 --looks 1"
SHARE = r"[01]\.\d{4}"
NUMBER = r"-?\d+(\.\d+)?(e[+-]?\d+)?"
FILLED = rf"the ?\S* is old\t(\S+ {SHARE} ?)+"
LAYERS = r'\{.*"words": \[\{"text": "She", .*\{"text": "house", .*\}'
ADA_LIVES = r"Ada/\S+ lives/\S+ in/\S+ Oslo/\S+"
MARKED = " ".join(rf"\[?{word}(: \S+ {SHARE}\])?" for word in ("Ada", "lives", "in", "Oslo"))
WORDS = "[AdalivesnOo. ]*"
SPAN = rf"{WORDS}\t{SHARE}"
IN_CONTEXT = rf"\[no answer {SHARE}\] Ada lives in Oslo\.|{WORDS}\[{WORDS}: {SHARE}\]{WORDS}"
SCORED = r'\{"input": "the red house is big", "text": "[\w ]*", "score": -\d.*"alternatives": \[.*'
ANSWERS = {  # of each question to a bundle; a model of a few steps knows its form alone
    "bert-pretraining": {"bert": [FILLED]},
    "bilm": {"tales": [LAYERS], "people": [r"Ada/\S+ left/\S+ Oslo/\S+ \./\S+"]},
    "classification": {"reviews": [rf"(good|bad)\t{SHARE}"], "pairs": [rf"(same|other)\t{SHARE}"]},
    "denoising-pretraining": {"restorer": [r"[\w.<> ]*"], "translation": [r"[\w.ß ]*"]},
    "distillation": {"small": [rf"(good|bad)\t{SHARE}"]},
    "forecasting": {"load": [rf"({NUMBER}\t){{11}}{NUMBER}"]},
    "language-model": {"play": [r"[\w,.:;?!' \\-]+"]},
    "multiple-choice": {"exam": [rf"a (cat|dog)\t{SHARE}"]},
    "prompt-answer": {"answers": [r"[\w,.:?!\\ ]*", r"[\w,.:?!\\ ]*"]},
    "question-answering": {"questions": [SPAN, IN_CONTEXT, rf"({SPAN}\n?){{3}}"]},
    "recordings": {
        "motion": [rf"([abcd]\t(walk|sit)\t{SHARE}\n?){{4}}"],
        "steps": [r"([abcd]\t(walk|sit) (walk|sit)\n?){4}"],
    },
    "regression": {"similar": [NUMBER]},
    "several": {"people": [ADA_LIVES]},
    "sources": {"things": [r"[a-z ]*", r"([a-z ]*\n?){10}"]},
    "tagging": {"names": [ADA_LIVES, MARKED], "tuned": [ADA_LIVES]},
    "translation": {"en-de": [r"[\wß ]*", SCORED]},
    "trees": {
        "trees": [rf"([^\t\n]+\t[0-4]\t{SHARE}\n?){{5}}"],
        "balanced": [rf"(good|bad)\t{SHARE}"],
    },
}


def exported(page):
    """Return a dictionary: run -> bundle, of what a page exports; tasks of `several` are one."""
    found = re.findall(r"^seqkeras export (runs/[\w-]+)\S* (\S+)$", page, re.MULTILINE)
    return dict(found)


def lines(page):
    """Return what a user types, in order: lines of the shell, and scripts as `python SCRIPT`."""
    found = re.findall(r"^```(\w*)\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return [
        line
        for kind, text in found
        for line in ([f"python {shlex.quote(text)}"] if kind == "python" else commands(text))
    ]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with small models of random weights: an encoder, and a Marian."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    keras.utils.set_random_seed(0)
    encoder = Bert(len(VOCABULARY), **SIZES, max_length=97)
    encoder.build(None)
    tokenizer = word_piece(VOCABULARY, lowercase=True)
    save_hugging_face(encoder, tmp_path / "models/minilm", tokenizers={"text": tokenizer})
    (tmp_path / "pairs.tsv").write_text(files(PAGES["translation"])["pairs.tsv"], encoding="utf-8")
    marian, *_ = made_folder("marian", tmp_path, tmp_path / "pairs.tsv")
    marian.rename(tmp_path / "models/opus-mt-en-de")
    return tmp_path


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_the_parts_of_every_page_in_their_order(name):
    parts = [part for part in re.findall(r"^## (.*)$", PAGES[name], re.MULTILINE) if part in PARTS]
    assert parts == PARTS
    assert files(PAGES[name])


@pytest.mark.parametrize(
    "path",
    [*DOCS.glob("tasks/*.md"), *DOCS.glob("training/*.md"), *DOCS.glob("*tr*ning.md")],
    ids=lambda path: path.stem,
)
def test_a_page_is_short(path):
    assert path.stat().st_size <= 8 * 1024


def test_every_task_has_a_page():
    hub = (DOCS / "training.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\]\(tasks/([\w-]+)\.md\)", hub)) == set(PAGES) == set(ANSWERS)
    assert {*TASKS} <= {*PAGES, "dates"}


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_of_a_page_lead_from_its_file_to_an_answer_over_http(name, folder):
    page = PAGES[name]
    write_files(page, folder)
    few = " ".join(re.findall(r"these few lines,? add `(.*?)`", page))
    bundles, starts, asked, served = exported(page), [], {}, 0
    for line in lines(page):
        program, *arguments = shlex.split(line, comments=True)
        if program == "python":
            exec(compile(*arguments, name, "exec"), {})
        elif program == "gzip":
            subprocess.run(line, shell=True, check=True)
        elif program == "curl":
            ask_of_page(arguments, starts[-1])
            served += 1
        elif arguments[0] == "serve":
            starts.append([str(folder / bundle) for bundle in arguments[1:]])
        elif arguments[0] != "train" or arguments[1] == "evaluate":
            answer = printed(arguments)
            if arguments[0] == "predict":
                asked.setdefault(arguments[1].removeprefix("bundles/"), []).append(answer)
        elif (out := run_of(arguments)) in needed(page, bundles) and not (folder / out).exists():
            last = printed([*arguments, *shlex.split(f"{few} {BUDGET}")]).splitlines()[-1]
            assert last.startswith("next: seqkeras export ")
            if out in bundles and arguments[1] != "several":
                assert last.split()[-2:] == [out, bundles[out]]
    assert served
    assert asked.keys() == ANSWERS[name].keys()
    for bundle, patterns in ANSWERS[name].items():
        for pattern, answer in zip(patterns, asked[bundle], strict=True):
            assert re.fullmatch(pattern, answer), answer


def run_of(arguments):
    """Return the folder of the run that a training makes."""
    return arguments[arguments.index("--out") + 1]


def needed(page, bundles):
    """Return the runs that a page exports, begins another training with, or opens in Python."""
    teachers = re.findall(r"--(?:start-from|teacher|features) (runs/[\w-]+)", page)
    scripts = [line for line in lines(page) if line.startswith("python ")]
    opened = RUN.findall(" ".join(scripts))
    return {*bundles, *teachers, *opened}


def ask_of_page(arguments, bundles):
    """Ask a server of the page's bundles what the page's curl asks; `predict` says the same."""
    address, _, content = arguments
    path = address.removeprefix("localhost:8000")
    if content.startswith("@"):
        content = Path(content[1:]).read_text(encoding="utf-8")
    request = json.loads(content)
    with as_process(*bundles) as (_, _, port):
        status, answer = ask(port, path, request)
    assert status == 200, answer
    if "options" not in request:
        bundle = path.replace("/v1/", "")
        question = ["--json-input", json.dumps(request["input"])]
        said = json.loads(printed(["predict", bundle, "--json", *question]))
        del answer["input"], said["input"]
        assert alike(answer, said), (answer, said)


def alike(one, other):
    """Return whether two contents of JSON are equal but for the last digits of numbers."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-3, abs_tol=1e-5)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return one == other


@pytest.mark.parametrize("name", PAGES)
def test_the_options_of_trainings_that_are_shown_alone_go_together(name, folder):
    (folder / "training").symlink_to(CHECKOUT / "training")  # recipes
    write_files(PAGES[name], folder)
    trained = needed(PAGES[name], exported(PAGES[name]))
    for line in commands(PAGES[name]):
        _, *arguments = shlex.split(line)
        if arguments[0] != "train" or arguments[1] not in TASKS:
            continue
        if run_of(arguments) in trained:  # by the test above
            trained.remove(run_of(arguments))
            continue
        for path in re.findall(r"[\w/-]+\.(?!toml)[a-z.]+", " ".join(arguments)):
            (folder / path).touch()
        for run in re.findall(r"--[\w-]+ (runs/[\w-]+)", line.rpartition(" --out ")[0]):
            (folder / run).mkdir(parents=True, exist_ok=True)
            for file in (MODEL, RECORD):
                (folder / run / file).touch()
        task = command(arguments[1], TASKS[arguments[1]])
        options, out, _ = task.main(arguments[2:], standalone_mode=False)
        assert options.task == arguments[1] and str(out) == run_of(arguments)


@pytest.mark.parametrize("name", PAGES)
def test_an_option_in_a_table_of_a_page_is_an_option_of_its_task(name):
    tasks = {shlex.split(line)[2] for line in commands(PAGES[name])} & {*TASKS}
    known = {
        option
        for task in tasks
        for parameter in command(task, TASKS[task]).params
        for option in parameter.opts
    }
    named = re.findall(r"^\| ([^|]*`--[^|]*) \|", PAGES[name], re.MULTILINE)
    assert {option for cell in named for option in re.findall(r"--[a-z][\w-]*", cell)} <= known
