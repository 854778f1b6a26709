"""docs/tasks: the files and the commands of each page, from training to an answer over HTTP."""

import json
import re
import shlex
import shutil
import subprocess

import keras
import pytest

from seqkeras.models import Bert
from seqkeras.pretrained import save_hugging_face
from seqkeras.runs import MODEL, RECORD
from seqkeras.tokenizers import word_piece
from seqkeras.training.commands import command
from seqkeras.training.tasks import TASKS
from tests.conftest import CHECKOUT
from tests.journeys.pages import blocks, commands, files, printed, write_files
from tests.serving.http.served import as_process, ask
from tests.training.pretrained_folders import SIZES, VOCABULARY

DOCS = CHECKOUT / "docs"
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in DOCS.glob("tasks/*.md")}
PARTS = ["Your file", "Train", "The scores", "Export and serve", "When it goes wrong"]
BUDGET = "--max-steps 6 --looks 1"
ANSWERS = {  # of the first question to each bundle
    "bert-pretraining": {"bert": r".+"},
    "bilm": {"tales": r'.*"words": .*', "people": r"Ada/\S+ left/\S+ Oslo/\S+ \./\S+"},
    "classification": {"reviews": r"(good|bad)\t0\.\d+", "pairs": r"(same|other)\t0\.\d+"},
    "denoising-pretraining": {"restorer": r".*", "translation": r".*"},
    "distillation": {"small": r"(good|bad)\t0\.\d+"},
    "forecasting": {"load": r"(-?\d+(\.\d+)?\s*){12}"},
    "language-model": {"play": r"(.|\n)+"},
    "multiple-choice": {"exam": r"a (cat|dog)\t0\.\d+"},
    "prompt-answer": {"answers": r".*"},
    "question-answering": {"questions": r".*\t0\.\d+"},
    "recordings": {"motion": r"(\w\t(walk|sit)\t0\.\d+\n?){4}", "steps": r"(.|\n)*walk(.|\n)*"},
    "regression": {"similar": r"-?\d+\.\d+"},
    "several": {"people": r"Ada/\S+ lives/\S+ in/\S+ Oslo/\S+"},
    "sources": {"things": r".*"},
    "tagging": {"names": r"Ada/\S+ lives/\S+ in/\S+ Oslo/\S+", "tuned": r"Ada/\S+ lives/.*"},
    "translation": {"en-de": r".*"},
    "trees": {"trees": r"(.|\n)*\d(.|\n)*", "balanced": r"(good|bad)\t0\.\d+"},
}


def exported(page):
    """Return a dictionary: run -> bundle, of what a page exports; tasks of `several` are one."""
    found = re.findall(r"^seqkeras export (runs/[\w-]+)\S* (\S+)$", page, re.MULTILINE)
    return dict(found)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with models/minilm, a small encoder of random weights."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "models").mkdir()
    keras.utils.set_random_seed(0)
    encoder = Bert(len(VOCABULARY), **SIZES, max_length=97)
    encoder.build(None)
    tokenizer = word_piece(VOCABULARY, lowercase=True)
    save_hugging_face(encoder, tmp_path / "models/minilm", tokenizers={"text": tokenizer})
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
    before, _, after = page.partition("\n## Train")
    for _, script in blocks(before, "python"):
        exec(compile(script, name, "exec"), {})
    few = " ".join(re.findall(r"these few lines,? add `(.*?)`", page))
    bundles, starts, asked = exported(page), [], {}
    for line in commands(page):
        program, *arguments = shlex.split(line, comments=True)
        if program == "gzip":
            subprocess.run(line, shell=True, check=True)
        elif program == "curl":
            assert ask_of_page(arguments, starts)
        elif arguments[0] == "serve":
            starts.append([str(folder / bundle) for bundle in arguments[1:]])
        elif arguments[0] != "train" or arguments[1] == "evaluate":
            answer = printed(arguments)
            if arguments[0] == "predict":
                asked.setdefault(arguments[1].removeprefix("bundles/"), answer)
        elif (out := run_of(arguments)) in needed(page, bundles) and not (folder / out).exists():
            last = printed([*arguments, *shlex.split(f"{few} {BUDGET}")]).splitlines()[-1]
            assert last.startswith("next: seqkeras export ")
            if out in bundles and arguments[1] != "several":
                assert last.split()[-2:] == [out, bundles[out]]
    for _, script in blocks(after, "python"):
        if "bundles/" in script or "runs/bert/" in script:
            exec(compile(script, name, "exec"), {})
    assert asked.keys() == ANSWERS[name].keys()
    for bundle, answer in asked.items():
        assert re.fullmatch(ANSWERS[name][bundle], answer), answer


def run_of(arguments):
    """Return the folder of the run that a training makes."""
    return arguments[arguments.index("--out") + 1]


def needed(page, bundles):
    """Return the runs that a page exports, and those with which their trainings begin."""
    teachers = re.findall(r"--(?:start-from|teacher|features) (runs/[\w-]+)", page)
    return {*bundles, *teachers}


def ask_of_page(arguments, starts):
    """Ask a server, started as the page says, what the page's curl asks; return the answer."""
    address, _, content = arguments
    path = address.removeprefix("localhost:8000")
    with as_process(*starts[-1]) as (_, _, port):
        status, answer = ask(port, path, json.loads(content))
    assert status == 200 and "error" not in answer, answer
    return answer


@pytest.mark.parametrize("name", PAGES)
def test_the_options_of_trainings_that_are_shown_alone_go_together(name, folder):
    (folder / "training").symlink_to(CHECKOUT / "training")  # recipes
    shutil.copytree(folder / "models/minilm", folder / "models/opus-mt-en-de")
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
