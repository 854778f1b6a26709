"""The page at "/", and the files that answers in the browser read."""

import contextlib
import dataclasses
import gzip
import hashlib
import http.client
import json
import os
import posixpath
import random
import re
import shutil
import socket
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from seqkeras.serving.__main__ import main
from seqkeras.serving.http import compressed_files
from seqkeras.serving.http.bounds import Bounds
from seqkeras.serving.http.page import POLICY
from seqkeras.serving.playground import page_of
from seqkeras.serving.playground.page import FROM_NPM, INSTALL, MODULES, STATIC
from tests.conftest import CHECKOUT
from tests.serving.http.served import ask, served, until
from tests.serving.npm_folder import npm_folder

TYPES = {"css": "text/css", "html": "text/html", "js": "text/javascript", "mjs": "text/javascript"}
IMPORTED = re.compile(r'(?:^import|^export|^\} from|new URL\().*"(\.\.?/[^"]+\.js)"', re.MULTILINE)
IN_WORKER = re.compile(r'imported\("([^"]+)"\)')  # below MODULES


@pytest.fixture(scope="module")
def node_modules(tmp_path_factory):
    return npm_folder(tmp_path_factory.mktemp("npm"))


@pytest.fixture(scope="module")
def page(node_modules):
    return page_of(node_modules)


@pytest.fixture(scope="module")
def port(folders, page):
    with served({name: folders[name] for name in ("letters", "classes")}, page=page) as port:
        yield port


def get(port, path, method="GET", headers=()):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, headers=dict(headers))
    response = connection.getresponse()
    body = response.read()
    connection.close()
    return response, body


def test_the_page_stands_at_the_root_under_a_strict_policy(port):
    for path in ("/", "/index.html"):
        response, body = get(port, path)
        assert response.status == 200 and body == (STATIC / "index.html").read_bytes()
        assert response.getheader("content-type") == "text/html; charset=utf-8"
        assert response.getheader("content-security-policy") == POLICY
        assert response.getheader("x-content-type-options") == "nosniff"
    assert "unsafe-inline" not in POLICY and "'unsafe-eval'" not in POLICY
    written = re.search('Content-Security-Policy" content="([^"]+)"', body.decode())[1]
    assert f"{written}; frame-ancestors 'none'" == POLICY


def test_everything_that_the_page_names_is_served_and_nothing_lies_elsewhere(port, page):
    index = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"https?://|<style|\sstyle=|<script>|\son\w+=", index)
    waiting, seen = re.findall(r'(?:src|href)="(page/[^"]+)"', index), set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        response, body = get(port, f"/{path}")
        assert response.status == 200, path
        assert body == page.files[path].read_bytes()
        kind = path.rpartition(".")[2]
        if kind in TYPES:
            assert response.getheader("content-type") == f"{TYPES[kind]}; charset=utf-8"
        if kind == "js":
            code = re.sub(r"/\*.*?\*/", "", body.decode(), flags=re.DOTALL)
            found = [f"{posixpath.dirname(path)}/{name}" for name in IMPORTED.findall(code)]
            waiting += [*map(posixpath.normpath, found)]
            waiting += [MODULES + name for name in IN_WORKER.findall(code)]
    assert MODULES + "tokenizers/tokenizers.min.mjs" in seen
    unused = {path for path in page.files if path.endswith(".js")} - seen
    assert unused <= {"page/types.js", f"{MODULES}seqkeras-serving/folder.js"}


def test_the_page_is_small():
    files = [path for path in STATIC.rglob("*") if path.is_file()]
    sizes = {path: len(compressed_files.compressed(path)) for path in files}
    assert sum(sizes.values()) < 55_000, sizes


@pytest.mark.parametrize(
    "path", ["/page/main.js", "/page/style.css", "/v1/bundles/letters/files/manifest.json"]
)
def test_who_takes_gzip_gets_the_same_file_in_fewer_bytes(port, path):
    plain, expected = get(port, path, headers={"accept-encoding": "identity"})
    for header in ("gzip", "deflate, GZIP;q=0.5", "*", "br, *;q=0.1"):
        response, body = get(port, path, headers={"accept-encoding": header})
        assert response.getheader("content-encoding") == "gzip", header
        assert gzip.decompress(body) == expected
        assert len(body) == int(response.getheader("content-length")) < len(expected) / 2
    for name in ("content-type", "content-security-policy", "vary"):
        assert response.getheader(name) == plain.getheader(name)
    assert plain.getheader("vary") == "accept-encoding"
    head, nothing = get(port, path, "HEAD", {"accept-encoding": "gzip"})
    assert (int(head.getheader("content-length")), nothing) == (len(body), b"")
    etag = response.getheader("etag")
    assert etag != plain.getheader("etag")
    headers = {"accept-encoding": "gzip", "if-none-match": etag}
    again, nothing = get(port, path, headers=headers)
    assert (again.status, nothing, again.getheader("vary")) == (304, b"", "accept-encoding")


@pytest.mark.parametrize("accepted", [None, "deflate, br", "gzip;q=0", "gzip; q=0.000, *"], ids=str)
def test_who_does_not_take_gzip_gets_the_file_as_it_is(port, accepted):
    headers = {} if accepted is None else {"accept-encoding": accepted}
    response, body = get(port, "/page/main.js", headers=headers)
    assert response.getheader("content-encoding") is None
    assert body == (STATIC / "page/main.js").read_bytes()


def test_a_part_of_a_file_and_weights_are_sent_as_they_are(port):
    headers = {"accept-encoding": "gzip"}
    response, body = get(port, "/page/main.js", headers=headers | {"range": "bytes=2-8"})
    assert response.status == 206 and body == (STATIC / "page/main.js").read_bytes()[2:9]
    files = "/v1/bundles/letters/files"
    graphs = json.loads(get(port, f"{files}/manifest.json")[1])["graphs"]
    for graph in graphs.values():
        response, _ = get(port, f"{files}/{graph['file']}", headers=headers)
        assert response.getheader("content-encoding") is None


def test_a_file_is_compressed_once_until_it_is_replaced(folders, page, tmp_path, calls):
    read = calls(compressed_files, "compressed")
    file, headers = tmp_path / "own.js", {"accept-encoding": "gzip"}
    page = dataclasses.replace(page, files=page.files | {"page/own.js": file})
    with served({"letters": folders["letters"]}, page=page) as port:
        for content in (b"a" * 5000, b"bc" * 4000):
            file.write_bytes(content)
            with ThreadPoolExecutor(7) as threads:
                found = threads.map(lambda _: get(port, "/page/own.js", headers=headers), range(7))
            assert {gzip.decompress(body) for _, body in found} == {content}
    assert read == [(file,), (file,)]


def test_the_page_learns_what_it_can_ask(port, page):
    status, content = ask(port, "/page.json")
    assert status == 200 and content["server"] is True
    wasm = next(path for path in page.files if path.endswith(".wasm"))
    assert content["browser"] == {"missing": "", "bytes": page.files[wasm].stat().st_size}
    assert content["bundles"] == [
        {
            "name": name,
            "pipeline": pipeline,
            "files": f"v1/bundles/{name}/files/",
            "unread": "",
        }
        for name, pipeline in (("letters", "Translate"), ("classes", "Classify"))
    ]


def test_files_that_a_manifest_names_are_given_as_they_are(port, folders):
    files = "/v1/bundles/letters/files"
    response, body = get(port, f"{files}/manifest.json")
    assert body == (folders["letters"] / "manifest.json").read_bytes()
    for path, entry in json.loads(body)["files"].items():
        response, body = get(port, f"{files}/{path}")
        assert response.status == 200 and hashlib.sha256(body).hexdigest() == entry["sha256"]
    again, body = get(
        port, f"{files}/{path}", headers={"If-None-Match": response.getheader("etag")}
    )
    assert (again.status, body) == (304, b"")
    head, body = get(port, f"{files}/{path}", method="HEAD")
    assert (head.status, body) == (200, b"")
    assert int(head.getheader("content-length")) == entry["bytes"]
    assert ask(port, f"{files}/manifest.json", {})[0] == 405


@pytest.mark.parametrize(
    "path",
    [
        *("../manifest.json", "../classes/manifest.json", "%2e%2e/classes/manifest.json"),
        *("..%2fclasses%2fmanifest.json", "..%5cclasses%5cmanifest.json", "./manifest.json"),
        *("/etc/passwd", "%2fetc%2fpasswd", "manifest.json%00", "notes.txt", ""),
        *("/v1/bundles/../files/manifest.json", "/v1/bundles/none/files/manifest.json"),
        *("/page/../index.html", "/page/%2e%2e/index.html", "/page/..%2f..%2fpage.py"),
        *("/page//etc/passwd", "/page/"),
    ],
)
def test_nothing_else_can_be_read(port, folders, path):
    (folders["letters"] / "notes.txt").write_text("a note that the manifest does not name")
    if not path.startswith(("/v1", "/page")):
        path = f"/v1/bundles/letters/files/{path}"
    try:
        status, content = ask(port, path)
        assert status == 404 and set(content) == {"error"} and "\n" not in content["error"]
    finally:
        (folders["letters"] / "notes.txt").unlink()


def test_a_link_out_of_the_bundle_is_not_followed(folders, page, tmp_path):
    folder = shutil.copytree(folders["letters"], tmp_path / "bundle")
    outside = tmp_path / "outside"
    name = "tokenizer/source.json"
    with served({"letters": folder}, page=page) as port:
        assert ask(port, f"/v1/bundles/letters/files/{name}")[0] == 200
        os.rename(folder / name, outside)
        os.symlink(outside, folder / name)
        assert ask(port, f"/v1/bundles/letters/files/{name}")[0] == 404
        os.unlink(folder / name)
        assert ask(port, f"/v1/bundles/letters/files/{name}")[0] == 404
        os.mkfifo(folder / name)
        assert ask(port, f"/v1/bundles/letters/files/{name}")[0] == 404


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_a_reader_that_takes_nothing_is_let_go(coding, folders, page, tmp_path):
    large = tmp_path / "large.js"
    large.write_bytes(random.Random(7).randbytes(2**24))
    files = page.files | {"page/large.js": large}
    options = {"bounds": Bounds(timeout=0.3), "page": dataclasses.replace(page, files=files)}
    bundles = {"letters": folders["letters"]}
    with (
        served(bundles, **options) as port,
        socket.create_connection(("127.0.0.1", port)) as connection,
    ):
        headers = {"accept-encoding": coding}
        until(lambda: get(port, "/page/large.js", "HEAD", headers)[0].status == 200)
        line = (
            f"GET /page/large.js HTTP/1.1\r\nhost: localhost\r\naccept-encoding: {coding}\r\n\r\n"
        )
        connection.sendall(line.encode())
        time.sleep(1)
        connection.settimeout(20)
        taken = 0
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(2**20):
                taken += len(part)
        assert 0 < taken < 2**24
        assert ask(port, "/page/main.js")[0] == 200


def test_the_page_needs_no_token_and_all_that_it_shows_does(folders, page):
    bundles = {"letters": folders["letters"]}
    shown = ("/", "/index.html", "/page/main.js", f"/{MODULES}seqkeras-serving/index.js")
    kept = ("/page.json", "/v1/bundles/letters/files/manifest.json", "/page", "/v1/page/")
    with served(bundles, token="se-cret", page=page) as port:
        assert {ask(port, path)[0] for path in shown} == {200}
        for header in ({}, {"authorization": "Bearer wrong"}, {"authorization": "se-cret"}):
            found = [ask(port, path, headers=header) for path in (*kept, "/metrics")]
            assert all(status == 401 and "Bearer" in content["error"] for status, content in found)
        assert ask(port, "/v2/health/ready") == (200, {"ready": True})
        header = {"authorization": "Bearer se-cret"}
        assert ask(port, "/page.json", headers=header)[0] == 200
    with served(bundles) as port:  # without a page no address gives a file
        assert {ask(port, path)[0] for path in (*shown, *kept)} == {404}


def test_a_server_says_why_it_lacks_answers_in_the_browser(
    folders, page, monkeypatch, capsys, tmp_path
):
    assert main(["serve", str(folders["letters"]), "--node-modules", str(tmp_path)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"seqkeras serve: --node-modules {tmp_path}: onnxruntime-web is not")
    assert said.count("\n") == 1
    monkeypatch.setattr("seqkeras.serving.playground.page.NODE_MODULES", tmp_path)
    without = page_of()
    assert INSTALL in without.missing and without.missing.startswith("onnxruntime-web is not inst")
    assert not any(path.startswith(MODULES) for path in without.files)
    with served({"letters": folders["letters"]}, page=without) as port:
        assert ask(port, "/page.json")[1]["browser"] == {"missing": without.missing, "bytes": 0}
        assert ask(port, f"/{MODULES}seqkeras-serving/index.js")[0] == 404


def test_the_packages_to_install_are_those_of_the_javascript_package():
    package = json.loads((CHECKOUT / "serving/javascript/package.json").read_text("utf-8"))
    pinned = package["dependencies"] | package["devDependencies"]
    names = ("onnxruntime-web", "@huggingface/tokenizers")
    assert INSTALL.split()[-2:] == [f"{name}@{pinned[name]}" for name in names]
    assert {path.partition("/dist/")[0] for path in FROM_NPM.values()} == {*names}
