"""The files of `serving/deploy/`, by the tools of those who read them."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from seqkeras.export.tensorflow_serving import COMPOSE, IMAGE
from seqkeras.serving import __version__
from seqkeras.serving.__main__ import main
from seqkeras.serving.http.bounds import Bounds
from seqkeras.serving.playground.page import FROM_NPM
from tests.conftest import CHECKOUT

DEPLOY = CHECKOUT / "serving/deploy"
KUBERNETES = sorted((DEPLOY / "kubernetes").glob("*.yaml"))


def tool(name):
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        pytest.skip(f"needs {name} of requirements-test.txt")
    return path


def documents(path):
    return [*yaml.safe_load_all(path.read_text(encoding="utf-8"))]


def container(path):
    """The container of a manifest of Kubernetes or of KServe."""
    spec = documents(path)[0]["spec"]
    [found] = (spec["template"]["spec"] if "template" in spec else spec["predictor"])["containers"]
    return found


def test_hadolint_finds_nothing_in_the_dockerfile():
    done = subprocess.run([tool("hadolint"), DEPLOY / "Dockerfile"], capture_output=True, text=True)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_the_dockerfile_copies_files_that_are_there():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    copied = re.findall(r"serving[\w./-]*", " ".join(re.findall("^COPY (serving.*) /", text, re.M)))
    assert "serving/requirements-http.txt" in copied
    assert all((CHECKOUT / path).exists() for path in copied)


def test_the_image_has_what_the_page_needs_for_answers_in_the_browser():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    copied = re.findall(r"^COPY --from=packages ((?:.*\\\n)*)\s+/node_modules/(\S+)/$", text, re.M)
    found = {
        path.removeprefix("/packages/node_modules/"): folder
        for paths, folder in copied
        for path in paths.replace("\\", " ").split()
    }
    assert found == {path: path.rpartition("/")[0] for path in FROM_NPM.values()}
    assert '"--node-modules", "/node_modules"' in text


def test_kubernetes_takes_the_manifests():
    command = [tool("kubernetes-validate"), "--strict", *KUBERNETES]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["kubernetes/server.yaml", "kserve/inference-service.yaml"])
def test_the_server_takes_the_arguments_of_its_container(name, capsys):
    found = container(DEPLOY / name)
    assert found["image"] == f"seqkeras-serving:{__version__}"
    bundle, *_ = found["args"]
    assert main(["serve", *found["args"]]) == 1  # it read all of them
    assert f"{bundle}: there is no such folder; expected a bundle" in capsys.readouterr().err


def test_a_container_is_given_the_time_to_finish():
    [spec] = [found["spec"] for found in documents(KUBERNETES[0]) if found["kind"] == "Deployment"]
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] > Bounds.timeout + 5


def test_tensorflow_serving_is_what_export_writes():
    found = container(DEPLOY / "kubernetes/tensorflow-serving.yaml")
    text = COMPOSE.format(name="dates", image=IMAGE, volumes="      - dates")
    [service] = yaml.safe_load(text)["services"].values()
    assert (found["image"], found["args"]) == (service["image"], service["command"])
