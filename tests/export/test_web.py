"""--web: the bundle with a page, as static files."""

import json

import pytest

from seqkeras.export.__main__ import main
from seqkeras.export.checks import ExportError
from seqkeras.export.web import WebFolder
from seqkeras.serving.playground.page import INSTALL
from tests.serving.npm_folder import npm_folder
from tests.zoo import classify


@pytest.fixture
def node_modules(tmp_path):
    return npm_folder(tmp_path)


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("run", "/run is there; choose another folder"),
        ("bundle/web", "/bundle is there; choose another folder"),
        (".", "/run is there; choose another folder"),
        ("other", "is not only such a page (index.html), so it is never replaced"),
        ("page", "exists already; replace it with --overwrite"),
    ],
)
def test_a_folder_of_something_else_is_never_replaced(tmp_path, node_modules, place, reason):
    (tmp_path / "other").mkdir()
    (tmp_path / "page").mkdir()
    for name in ("index.html", "page.json"):
        (tmp_path / "page" / name).touch()
    taken = (tmp_path / "run", tmp_path / "bundle")
    with pytest.raises(ExportError) as error:
        WebFolder(tmp_path / place, taken, node_modules=node_modules)
    assert reason in str(error.value)
    WebFolder(tmp_path / "page", taken, True, node_modules)
    (tmp_path / "page" / "mine.txt").touch()
    with pytest.raises(ExportError, match=r"not only such a page \(mine.txt\)"):
        WebFolder(tmp_path / "page", taken, True, node_modules)


def test_without_the_packages_nothing_is_exported(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("seqkeras.serving.playground.page.NODE_MODULES", tmp_path)
    arguments = [str(tmp_path / name) for name in ("run", "bundle")]
    assert main([*arguments, "--web", str(tmp_path / "web")]) == 1
    said = capsys.readouterr().err
    assert (
        said.startswith("seqkeras export: --web: onnxruntime-web is not installed")
        and INSTALL in said
    )
    assert not (tmp_path / "bundle").exists() and not (tmp_path / "web").exists()


@pytest.mark.long
def test_a_run_becomes_a_bundle_and_a_page(tmp_path, node_modules, capsys):
    classify(tmp_path / "run")
    arguments = [str(tmp_path / name) for name in ("run", "my bundle")]
    web = tmp_path / "web"
    options = ["--no-strings", "--web", str(web), "--node-modules", str(node_modules)]
    assert main([*arguments, *options]) == 0
    assert f"the page: python -m http.server --directory {web}" in capsys.readouterr().out
    content = json.loads((web / "page.json").read_text(encoding="utf-8"))
    entry = {"name": "my_bundle", "pipeline": "Classify", "files": "bundles/my_bundle/"}
    assert content["bundles"] == [entry | {"unread": ""}]
    manifest = (tmp_path / "my bundle" / "manifest.json").read_bytes()
    assert (web / "bundles/my_bundle/manifest.json").read_bytes() == manifest
    assert main([*arguments, *options]) == 1
    assert "--overwrite" in capsys.readouterr().err
