"""The page with bundles as static files, in a folder that any web server takes."""

import gzip
import json

import pytest

from seqkeras import serving
from seqkeras.serving.manifest import MANIFEST, BundleError
from seqkeras.serving.playground import foreign_file, page_of, write_static
from tests.serving.npm_folder import npm_folder
from tests.serving.playground.chromium import NEEDS_CHROMIUM, NEEDS_PACKAGES, opened, panel
from tests.serving.web_server import web_server


@pytest.fixture
def node_modules(tmp_path):
    return npm_folder(tmp_path)


def written(folder, bundle, page):
    folder.mkdir()
    write_static(folder, [("letters", bundle)], page)
    return folder


def test_the_folder_holds_the_page_and_what_a_browser_needs_of_the_bundle(
    bundle, tmp_path, node_modules
):
    page = page_of(node_modules)
    folder = written(tmp_path / "web", bundle, page)
    for path, file in page.files.items():
        assert (folder / path).read_bytes() == file.read_bytes()
    content = json.loads((folder / "page.json").read_text(encoding="utf-8"))
    assert content["server"] is False and content["browser"]["missing"] == ""
    assert content["bundles"] == [
        {"name": "letters", "pipeline": "Translate", "files": "bundles/letters/", "unread": ""}
    ]
    copy = folder / "bundles/letters"
    manifest = serving.load(bundle).manifest
    needed = {*manifest.tokenizers.values()}
    needed |= {name for graph in manifest.graphs.values() for name in graph.files} | {MANIFEST}
    found = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    assert found - {f"{name}.gz" for name in needed} == needed
    assert all((copy / name).read_bytes() == (bundle / name).read_bytes() for name in needed)


def test_beside_a_large_file_lies_its_gzip_for_servers_that_send_it(bundle, tmp_path, node_modules):
    runtime = next(node_modules.rglob("*.wasm"))
    runtime.write_bytes(b"a function of many" * 1000)
    folder = written(tmp_path / "web", bundle, page_of(node_modules))
    found = sorted(folder.rglob("*.gz"))
    assert f"{runtime.name}.gz" in {path.name for path in found}
    for path in found:
        original = path.with_suffix("").read_bytes()
        assert gzip.decompress(path.read_bytes()) == original
        assert path.stat().st_size < len(original) / 2
        assert path.suffixes[0] != ".onnx"
    assert foreign_file(folder) is None


def test_only_a_folder_of_such_files_alone_is_its_own(bundle, tmp_path, node_modules):
    folder = written(tmp_path / "web", bundle, page_of(node_modules))
    (folder / "notes.txt").touch()
    assert foreign_file(folder) == "notes.txt"
    assert foreign_file(bundle) == "index.html"


def test_a_damaged_bundle_is_refused(bundle, tmp_path, node_modules):
    (bundle / "tokenizer/source.json").write_text("{}")
    with pytest.raises(BundleError, match="source.json"):
        written(tmp_path / "web", bundle, page_of(node_modules))


@pytest.fixture
def address(bundle, tmp_path):
    """The address of a static page, below a folder of its web server."""
    (tmp_path / "root").mkdir()
    written(tmp_path / "root" / "demo", bundle, page_of())
    with web_server(tmp_path / "root") as server:
        yield f"http://127.0.0.1:{server.server_port}/demo/"


class TestInChromium:
    pytestmark = [*NEEDS_CHROMIUM, NEEDS_PACKAGES]

    def test_the_static_page_answers_after_it_has_said_what_it_loads(
        self, browser, address, tmp_path
    ):
        with opened(browser, address) as page:
            loads = page.get_by_role("button", name="Answer in this browser (loads 14 MB)")
            loads.wait_for()
            assert page.get_by_role("radio").count() == 0
            assert page.get_by_label("Second model").count() == 0
            asked = []
            page.on("request", lambda request: asked.append(request.url))
            page.get_by_label("Text").fill("bad")
            page.wait_for_timeout(500)
            assert not asked
            loads.click()
            answer = panel(page, "in this browser")
            answer.locator(".text").filter(has_text="cbe").wait_for()
            assert any(url.endswith(".wasm") for url in asked)
            page.get_by_label("direction").select_option("down")
            page.get_by_label("Text").fill("egad")
            expected = serving.load(tmp_path / "toy", threads=1)("down|egad").text
            answer.locator(".text").filter(has_text=expected).wait_for()
