"""The pages of streams, devices, clusters, servers and speed: what they show runs, or is read by
the program's own parser where it needs what no test has (GPUs, a cluster, Docker, rivals)."""

import argparse
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib

import onnx
import pytest
import yaml

from seqkeras.serving import __version__, triton
from seqkeras.training.cluster import Cluster
from seqkeras.training.commands import command
from seqkeras.training.tasks import TASKS
from tests.conftest import CHECKOUT, in_shell
from tests.journeys.pages import commands, files, page_of, printed, shown
from tests.serving import toy_language_model
from tests.serving.cpp.built import library_of_wheel
from tests.serving.deploy.test_deploy import tool
from tests.serving.http.served import as_process
from tests.serving.npm_folder import npm_folder
from tests.serving.pipelines.toys import Toy, write_bundle

DOCS = CHECKOUT / "docs"
NAMES = "edge pretrained streams distributed clusters server speed bundles export".split()
PAGES = sorted(
    path.relative_to(DOCS).as_posix()
    for name in NAMES
    for path in (DOCS / f"{name}.md", *DOCS.glob(f"{name}/*.md"))
)
BUDGET = " --max-steps 6 --looks 1"
REVIEWS = "text,label\n" + "a fine film,good\na dull cast,bad\n" * 12


@pytest.fixture
def dates(folder, dates_run, dates_bundle):
    """The run and the bundle of the dates, where pages have them."""
    for kind, path in (("runs", dates_run), ("bundles", dates_bundle)):
        (folder / kind).mkdir()
        (folder / kind / "dates").symlink_to(path)
    return folder


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_short(name):
    assert (DOCS / name).stat().st_size <= 8 * 1024


def frames(count, tag):
    """Rows of three numbers and, if wanted, a tag that the first of them tells."""
    rows = [
        f"{1 + place // 40 % 2}.{place % 7},9.{place % 10},0.{place % 5}"
        + (f",{'sit' if place // 40 % 2 else 'walk'}" if tag else "")
        for place in range(count)
    ]
    return "\n".join(["x,y,z,tag" if tag else "x,y,z", *rows, ""])


def test_recordings_become_a_stream(folder, capsys):
    motion = files(page_of("tasks/recordings.md"))["motion.csv"]
    (folder / "motion.csv").write_text(motion, encoding="utf-8")
    (folder / "sensor.csv").write_text(frames(5, tag=False), encoding="utf-8")
    (folder / "day.csv").write_text(frames(800, tag=True), encoding="utf-8")
    (_, train), (_, script), (_, day) = shown(page_of("streams.md"))
    train, export, stream = train.splitlines()
    printed(shlex.split(train + " --batch-size 2" + BUDGET)[1:])
    printed(shlex.split(export)[1:])
    answers = in_shell(stream.replace(" -f ", " "), folder).splitlines()
    assert len(answers) == 5 and all(re.match(r"(walk|sit)\t0\.\d+", line) for line in answers)
    exec(compile(script, "streams.md", "exec"), {})
    assert len(re.findall(r"\('(?:walk|sit)',\) 0\.\d+", capsys.readouterr().out)) == 2
    printed(shlex.split(day.strip() + " --batch-size 4" + BUDGET)[1:])
    assert (folder / "runs/day/scores.json").exists()


def test_rows_that_were_lost_are_filled(folder, capsys):
    rows = [
        f"2024-04-{1 + hour // 24:02} {hour % 24:02}:00,{20 + hour % 24 + hour % 5}"
        for hour in range(400)
    ]
    (folder / "air.csv").write_text("time,pm\n" + "\n".join(rows), encoding="utf-8")
    (_, lines), (_, script) = shown(page_of("streams/python.md"))
    train, export = lines.splitlines()
    printed(shlex.split(train + " --context 24 --units 6 --num-layers 1" + BUDGET)[1:])
    printed(shlex.split(export)[1:])
    names = {}
    exec(compile(script, "streams/python.md", "exec"), names)
    assert len(names["stream"].missing({"time": "2024-05-01 07:00", "pm": 30})) == 2
    assert names["answer"].values.shape == (3, 1)


@pytest.mark.parametrize("name", ["edge.md", "streams/hosts.md"])
def test_c_plus_plus_of_a_page_compiles(name, folder):
    headers = os.environ.get("ONNXRUNTIME_INCLUDE_DIR")
    if not headers:
        pytest.skip("needs onnxruntime's headers: docs/edge.md")
    [program] = [text for language, text in shown(page_of(name)) if language == "cpp"]
    includes, body = program.split("\n\n", 1)
    (folder / "page.cpp").write_text(
        f"#include <iostream>\n{includes}\nint main() {{\n{body}}}\n", encoding="utf-8"
    )
    paths = [f"-I{CHECKOUT / 'serving/cpp'}", f"-I{headers}"]
    compiled = subprocess.run(
        ["g++", "-std=c++17", "-fsyntax-only", *paths, "page.cpp"], capture_output=True, text=True
    )
    assert compiled.returncode == 0, compiled.stderr


def test_the_programs_of_c_plus_plus_are_built_and_answer_as_shown(dates):
    headers = os.environ.get("ONNXRUNTIME_INCLUDE_DIR")
    export, build, _ = [text for language, text in shown(page_of("edge.md")) if not language]
    line = export.strip().replace("bundles/dates", "bundles/device")
    printed(shlex.split(line)[1:])
    graph = onnx.load(dates / "bundles/device/onnx/generate.onnx", load_external_data=False).graph
    told = page_of("edge/phones.md")
    assert {given.name for given in graph.input} == {"token_ids", "lengths"}
    assert {given.name for given in graph.output} >= {"generated_ids"}
    assert all(told.count(f'"{name}"') >= 4 for name in ("token_ids", "lengths", "generated_ids"))
    if not headers:
        pytest.skip("needs onnxruntime's headers: docs/edge.md")
    (dates / "serving").symlink_to(CHECKOUT / "serving")
    (dates / "texts").write_text("de|Samstag, 3. Mai 2014\n", encoding="utf-8")
    _, configure, answer, _ = build.splitlines()
    answer = answer.replace("bundles/dates", "bundles/device")
    answer = answer.replace("/path/to/libonnxruntime.so.1", str(library_of_wheel()))
    in_shell(f"{configure.replace('FOLDER', headers)}\n{answer}", dates)
    assert (dates / "answers").read_text(encoding="utf-8").strip()


def test_trainings_on_several_devices_are_read_by_their_command(folder, monkeypatch):
    (folder / "reviews.csv").write_text(REVIEWS, encoding="utf-8")
    page = page_of("distributed.md")
    classification = command("classification", TASKS["classification"])
    found = []
    for line in commands(page):
        options, *_ = classification.main(shlex.split(line)[3:], standalone_mode=False)
        found.append(options.strategy)
    assert found == ["mirrored", "multi-worker"]
    [setting] = re.findall(r"^export TF_CONFIG='(.*)'$", page, re.MULTILINE)
    monkeypatch.setenv("TF_CONFIG", setting)
    cluster = Cluster.of_environment()
    assert (cluster.is_chief, len(cluster.addresses)) == (True, 2)


def test_the_job_of_kubernetes_is_valid_and_each_worker_knows_its_place(folder, monkeypatch):
    [text] = [text for language, text in shown(page_of("distributed.md")) if language == "yaml"]
    (folder / "job.yaml").write_text(text, encoding="utf-8")
    validate = [tool("kubernetes-validate"), "--strict", "job.yaml"]
    done = subprocess.run(validate, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    _, job = yaml.safe_load_all(text)
    [container] = job["spec"]["template"]["spec"]["containers"]
    [script] = container["args"]
    setting, exec_, _ = script.partition("exec ")
    assert exec_
    told = in_shell(f'JOB_COMPLETION_INDEX=1\n{setting}\necho "$TF_CONFIG"', folder)
    monkeypatch.setenv("TF_CONFIG", told)
    cluster = Cluster.of_environment()
    assert (cluster.name, cluster.is_chief) == ("worker 1", False)
    assert len(cluster.addresses) == job["spec"]["completions"] == job["spec"]["parallelism"]


def test_a_training_runs_on_jax(folder):
    pytest.importorskip("jax", reason="needs jax")
    (folder / "reviews.csv").write_text(REVIEWS, encoding="utf-8")
    [line] = re.findall(r"^KERAS_BACKEND=jax .*$", page_of("distributed.md"), re.MULTILINE)
    in_shell(f"{line} --batch-size 4{BUDGET}", folder)
    assert (folder / "runs/jax/model.keras").exists()


def test_ones_own_fit_runs_under_a_strategy():
    """On one device: `tests/training/test_strategies.py` compares two with it."""
    [script] = [text for language, text in shown(page_of("distributed.md")) if language == "python"]
    assert 'strategy("mirrored")' in script
    names = {}
    exec(compile(script.replace('"mirrored"', '"one"'), "distributed.md", "exec"), names)
    assert names["model"].optimizer.iterations == 10


def test_a_repository_for_triton_is_written(folder):
    labels = {"labels": ["x", "y", "z"]}
    write_bundle(folder / "bundles/reviews", "Classify", Toy(3).graph("pooled"), labels)
    [line] = re.findall(r"^python -m seqkeras.serving.triton .*$", page_of("clusters.md"), re.M)
    assert triton.main(shlex.split(line)[3:]) == 0
    folders = [*(folder / "repository").iterdir()]
    assert [(path / "config.pbtxt").exists() for path in folders] == [True]


def test_the_image_is_built_of_a_file_that_is_there_and_has_the_version():
    build, run = re.findall(r"^docker .*$", page_of("clusters.md"), re.MULTILINE)
    parser = argparse.ArgumentParser(exit_on_error=False)
    for option in ("-f", "-t", "-p", "-v"):
        parser.add_argument(option)
    parser.add_argument("words", nargs="*")
    built, ran = (parser.parse_args(shlex.split(line)[2:]) for line in (build, run))
    assert (CHECKOUT / built.f).is_file() and built.words == ["."]
    assert ran.words == [built.t] == [f"seqkeras-serving:{__version__}"]
    dockerfile = (CHECKOUT / built.f).read_text(encoding="utf-8")
    assert ran.v.split(":")[1] in dockerfile and f"EXPOSE {ran.p.split(':')[1]}" in dockerfile


def test_what_installs_the_server_is_there():
    installs = re.findall(r"^pip install (.*)$", page_of("server.md"), re.MULTILINE)
    requirements, *wheels = (shlex.split(line) for line in installs)
    assert (CHECKOUT / requirements[1]).is_file()
    for [wheel] in wheels:
        path, extra = re.fullmatch(r"(.*)\[(\w+)\]", wheel).groups()
        project = tomllib.loads((CHECKOUT / path / "pyproject.toml").read_text(encoding="utf-8"))
        assert extra in project["project"]["optional-dependencies"]


def test_the_server_answers_the_requests_of_the_page(dates):
    toy_language_model.write_bundle(dates / "bundles/play")
    text = page_of("server.md")
    asked = [line for line in commands(text) if line.startswith("curl")]
    with as_process(dates / "bundles/dates") as (_, line, port):
        told = re.search(r"try: (curl .*)", line)[1]
        assert json.loads(in_shell(told, dates))["text"] is not None
        single, several = (
            json.loads(in_shell(line.replace(":8000", f":{port}"), dates)) for line in asked[:2]
        )
        assert [*single] == ["input", "text", "score", "alternatives"]
        assert [[*answer] for answer in several["answers"]] == [
            ["input", "text", "score"],
            ["input", "error"],
        ]
        assert "text has an unknown locale 'xx'; known: " in several["answers"][1]["error"]
    assert "localhost:8000/v1/bundles/play/stream" in asked[2]
    with as_process(f"play={dates}/bundles/play") as (_, _, port):
        line = asked[2].replace(":8000", f":{port}").replace("ROMEO:", "bad")
        line = line.replace('"max_new_tokens": 40', '"max_new_tokens": 5')
        events = in_shell(line, dates)
    assert re.match(r'data: \{"text": ', events) and events.rstrip().endswith(
        "event: end\ndata: {}"
    )


def test_packages_for_the_browser_are_of_the_version_that_the_checkout_has(dates):
    install, serve = re.findall(
        r"^(?:npm install|seqkeras serve .*--node).*$", page_of("server/page.md"), re.MULTILINE
    )
    package = json.loads((CHECKOUT / "serving/javascript/package.json").read_text("utf-8"))
    versions = package["dependencies"] | package["devDependencies"]
    words = shlex.split(install)
    for name, _, version in (word.rpartition("@") for word in words[4:]):
        assert versions[name] == version
    npm_folder(dates / words[3])
    bundle, option, packages = shlex.split(serve)[2:]
    with as_process(dates / bundle, page=[option, dates / packages]) as (_, line, _):
        assert line.startswith("serving dates (Translate) at ")


class Parsed(Exception):
    """Leaves a benchmark when its arguments are read."""


COMMANDS = sorted(
    {
        line
        for name in PAGES
        for line in re.findall(r"python -m benchmarks\.[^`|]+", page_of(name).replace("\n", " "))
    }
)


@pytest.mark.parametrize("line", COMMANDS)
def test_a_benchmark_takes_the_arguments_of_the_page(line, folder, monkeypatch):
    _, _, module, *arguments = shlex.split(line)
    for name in ("TEXT", "PYTHON"):
        (folder / name).touch()
    parse = argparse.ArgumentParser.parse_args

    def parsed(parser, given=None, namespace=None):
        raise Parsed(parse(parser, given, namespace))

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", parsed)
    if arguments == ["--", "TASK", "…"]:
        arguments[1:] = ["classification", "reviews.csv"]
    with pytest.raises(Parsed):
        importlib.import_module(module).main([*arguments])


def test_there_are_commands_of_benchmarks():
    assert len(COMMANDS) > 20


def test_every_host_that_the_page_of_bundles_names_is_tested():
    text = page_of("bundles.md").replace("\n", " ")
    line, hosts = re.search(
        r"`(python -m pytest \S+ -k HOST)`, +with HOST one of (.*?) \(", text
    ).groups()
    hosts = re.findall(r"`([\w-]+)`", hosts)
    assert len(hosts) == 8
    _, *arguments = shlex.split(line)
    for host in hosts:
        words = [host if word == "HOST" else word for word in arguments]
        done = subprocess.run(
            [sys.executable, *words, "--collect-only", "-q"],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0 and f"[{host}" in done.stdout, done.stdout[-500:]


@pytest.mark.parametrize("name", PAGES)
def test_a_command_of_a_page_is_one_that_a_test_runs(name):
    """What a page shows in a block of commands begins with what the tests above look for."""
    known = r"seqkeras |curl |python |pip |npm |docker |hf |export TF_CONFIG|KERAS_BACKEND=jax |"
    known += r"cmake |apt-get |build/|tail |tritonserver |\(cd |serving |data: |event: |\{|⋮| |$"
    known += r"|WithHeads: |models/|Non-zero "
    for language, text in shown(page_of(name)):
        if not language:
            assert all(re.match(known, line) for line in text.splitlines()), text
