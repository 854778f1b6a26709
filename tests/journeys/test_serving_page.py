"""serving/README.md: its scripts and its commands run as they are shown, on a bundle of each
pipeline."""

import contextlib
import io
import re
import shlex
import sys

import pytest

from seqkeras import serving
from seqkeras.__main__ import main
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.serving.__main__ import main as serving_main
from tests import zoo
from tests.conftest import CHECKOUT, in_shell

PAGE = (CHECKOUT / "serving/README.md").read_text(encoding="utf-8")
TOUR = (CHECKOUT / "docs/tour.md").read_text(encoding="utf-8")
SCRIPTS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = re.findall(r"^seqkeras-serving (.*)$", PAGE, re.MULTILINE)
BUNDLES = {  # a small model with random weights, whose answers are of the right form and no more
    "bert": zoo.fill_mask,
    "exam": zoo.choose,
    "names": zoo.tag,
    "pairs": zoo.classify,
    "play": zoo.generate,
    "questions": zoo.answer_of_words,
    "reviews": zoo.classify,
    "sentences": zoo.embed,
    "trees": zoo.classify_trees,
}
LINES = {  # what a script must print, in this order, among other lines
    "dates": [],
    "reviews": [r"\('(low|middle|high)',\)", r"{'\w+': 0\.\d+.*}"],
    "tide": [r"\[\[.*", *[r" \[.*"] * 4, r" \[.*\]\]"],
    "play": [" yes| no", r"(19|20)\d\d-\d\d-\d\d"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, dates_bundle):
    """A folder with the bundles and the files of the page."""
    folder = tmp_path_factory.mktemp("serving")
    (folder / "bundles").mkdir()
    (folder / "bundles/dates").symlink_to(dates_bundle)
    options = ExportOptions(saved_models=False)
    for name, make in BUNDLES.items():
        make(folder / "runs" / name)
        export(folder / "runs" / name, folder / "bundles" / name, options=options)
    make_table, train, *_, cut, _ = re.search(r"(awk .*\n)(.*\n)(.*\n)(.*\n)(.*\n)", TOUR).groups()
    in_shell(make_table + cut, folder)
    with contextlib.chdir(folder):
        assert main([*shlex.split(train)[1:], "--max-steps", "2", "--baselines", "false"]) == 0
        assert main(["export", "runs/tide", "bundles/tide"]) == 0
    (folder / "texts.txt").write_text("a fine film\na dull film\n", encoding="utf-8")
    (folder / "questions.tsv").write_text("Where is Ada?\tAda is in Oslo.\n", encoding="utf-8")
    return folder


def printed(run):
    """Return what a function prints."""
    output = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(output):
        run()
    return output.buffer.getvalue().decode()


@pytest.mark.parametrize("place, lines", [*enumerate(LINES.values())], ids=LINES)
def test_a_script_of_the_page_runs_as_it_is_shown(place, lines, folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "seqkeras_serving", serving)
    script = SCRIPTS[place]
    said = printed(lambda: exec(compile(script, "README.md", "exec"), {}))
    told = iter(said.splitlines())
    for line in lines:
        assert any(re.fullmatch(line, each) for each in told), (line, said)


def test_every_script_of_the_page_is_run():
    assert len(SCRIPTS) == len(LINES)


@pytest.mark.parametrize(
    "line", [line for line in COMMANDS if line.split()[0] in ("predict", "bench", "inspect")]
)
def test_a_command_of_the_page_runs_as_it_is_shown(line, folder, monkeypatch):
    monkeypatch.chdir(folder)
    words, statuses = shlex.split(line, comments=True), []
    if "<" in words:
        *words, _, path = words
        given = io.BytesIO((folder / path).read_bytes())
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(given, encoding="utf-8"))
    said = printed(lambda: statuses.append(serving_main(words)))
    assert statuses == [0] and said.strip()
