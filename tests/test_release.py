"""One version, the metadata of three packages, the workflow, and `make release` as far as it builds
nothing: tests/test_installed.py builds and installs the wheels."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import seqkeras
from seqkeras import serving
from tests import release
from tests.conftest import CHECKOUT

WORKFLOWS = {path.stem: path for path in (CHECKOUT / ".github/workflows").glob("*.yml")}
CITATION = CHECKOUT / "CITATION.cff"
PROJECTS = ("pyproject.toml", "serving/pyproject.toml")
PACKAGE = "serving/javascript/package.json"
PYTHONS = ["3.11", "3.12", "3.13"]


def text(path):
    return (CHECKOUT / path).read_text(encoding="utf-8")


def project(path):
    return tomllib.loads(text(path))["project"]


def checked(name, *arguments):
    """Run a linter of requirements-test.txt; what it finds fails the test."""
    command = Path(sys.executable).with_name(name)
    if not command.exists():
        pytest.skip(f"needs {name} of requirements-test.txt")
    done = subprocess.run([command, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_parts_have_one_version_and_one_date():
    citation = yaml.safe_load(CITATION.read_text(encoding="utf-8"))
    lock = json.loads(text("serving/javascript/package-lock.json"))
    heading, *_ = re.findall(r"^## \[(\d.*)\] - (.*)$", text("CHANGELOG.md"), re.MULTILINE)
    assert heading == (citation["version"], str(citation["date-released"]))
    assert {
        seqkeras.__version__,
        serving.__version__,
        json.loads(text(PACKAGE))["version"],
        lock["version"],
        lock["packages"][""]["version"],
    } == {citation["version"]}


def test_the_citation_is_of_the_format_that_it_names():
    checked("check-jsonschema", "--builtin-schema", "vendor.citation-file-format",
            "--force-filetype", "yaml", CITATION)  # fmt: skip


def workflow(name):
    """Return a workflow; YAML reads its key `on` as true."""
    return yaml.safe_load(WORKFLOWS[name].read_text(encoding="utf-8"))


def commands_of(job):
    return [step["run"] for step in job["steps"] if "run" in step]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_is_one_and_gives_nobody_more_than_he_needs(name):
    checked("check-jsonschema", "--builtin-schema", "vendor.github-workflows", WORKFLOWS[name])
    checked("zizmor", "--offline", "--quiet", WORKFLOWS[name])


def test_workflows_run_commands_of_the_makefile():
    jobs = {name: job for path in WORKFLOWS for name, job in workflow(path)["jobs"].items()}
    commands = {name: commands_of(job) for name, job in jobs.items()}
    assert commands == {
        "lint": ["make lint"],
        "test": ["make test"],
        "docs": ["make docs", "make test-site"],
        "wheels": ["make release"],
        "test-all": ["make test-all"],
    }
    goals = set(re.findall(r"^([\w-]+):", text("Makefile"), re.MULTILINE))
    assert {run.split()[1] for runs in commands.values() for run in runs} <= goals


def test_what_takes_hours_runs_every_week_and_by_hand():
    assert workflow("ci")[True].keys() == {"push", "pull_request"}
    weekly = workflow("weekly")
    assert weekly[True].keys() == {"schedule", "workflow_dispatch"}
    [schedule] = weekly[True]["schedule"]
    minute, hour, day, month, weekday = schedule["cron"].split()
    assert (day, month) == ("*", "*") and minute.isdigit() and hour.isdigit() and weekday.isdigit()
    assert weekly["jobs"]["test-all"]["timeout-minutes"] == 360  # the most that GitHub gives a job


def test_what_says_for_which_python_it_is_says_the_same():
    jobs = workflow("ci")["jobs"]
    for job in ("test", "wheels"):
        assert jobs[job]["strategy"]["matrix"]["python"] == PYTHONS
    for path in PROJECTS:
        named = re.findall(r"Python :: (3\.\d+)", "\n".join(project(path)["classifiers"]))
        assert (named, project(path)["requires-python"]) == (PYTHONS, ">=3.11,<3.14")


def test_a_package_names_its_authors_and_no_address_and_has_the_license():
    for path in (*PROJECTS, PACKAGE):
        metadata = json.loads(text(path)) if path == PACKAGE else project(path)
        author = metadata["author"] if path == PACKAGE else metadata["authors"]
        assert author in ("The seqkeras developers", [{"name": "The seqkeras developers"}])
        assert metadata["license"] == "Apache-2.0" and metadata["keywords"]
        assert not {"repository", "homepage", "bugs", "urls"} & metadata.keys()
        assert "://" not in json.dumps(metadata)
    for path in ("serving/LICENSE", "serving/javascript/LICENSE"):
        assert text(path) == text("LICENSE")


def test_a_release_needs_npm(monkeypatch):
    monkeypatch.setattr(release.shutil, "which", lambda name: None)
    with pytest.raises(release.Failed, match="^node and npm must be installed: they pack and ask"):
        release.main()


def test_a_release_is_of_a_commit_without_changed_and_new_files(tmp_path, monkeypatch):
    monkeypatch.setattr(release, "CHECKOUT", tmp_path)
    (tmp_path / ".gitignore").write_text("ignored.txt", encoding="utf-8")
    author = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    release.run("git", "init", "--quiet", folder=tmp_path)
    release.run("git", "add", ".gitignore", folder=tmp_path)
    release.run("git", *author, "commit", "--quiet", "-m", "first", folder=tmp_path)
    monkeypatch.setattr(release.shutil, "which", lambda name: name)
    for name in ("ignored.txt", "new.txt", ".gitignore"):
        (tmp_path / name).write_text("ignored.txt\n", encoding="utf-8")
    with pytest.raises(release.Failed, match=r"^commit these first, .*: \.gitignore, new\.txt$"):
        release.main()


def test_a_command_that_fails_is_told_with_what_it_said(tmp_path):
    command = (sys.executable, "-c", "print('out'); raise SystemExit('why')")
    with pytest.raises(release.Failed, match=r"(?s)python.* -c .*out\nwhy\n$"):
        release.run(*command, folder=tmp_path)
