"""Bundles in a worker of a real Chromium, by the package as it is: no bundler, no build step."""

import contextlib
import functools
import http.server
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest

from tests.serving.javascript.package import PACKAGE, require_packages
from tests.serving.playground.chromium import ARGUMENTS, CHROMIUM

WORKER = """
import * as ort from "/package/node_modules/onnxruntime-web/dist/ort.wasm.min.mjs";
import * as tokenizers from "/package/node_modules/@huggingface/tokenizers/dist/tokenizers.min.mjs";
import { address } from "/package/src/address.js";
import { load } from "/package/src/index.js";

ort.env.wasm.numThreads = 1;
const asList = (_, value) => (ArrayBuffer.isView(value) ? [...value] : value);
try {
  const pipeline = await load(address(`${self.location.origin}/bundle`), ort, { tokenizers });
  const answers = [];
  for (const text of TEXTS) {
    answers.push(await pipeline(text).catch(({ message }) => ({ error: message })));
  }
  await fetch("/answers", { method: "POST", body: JSON.stringify(answers, asList) });
} catch ({ message }) {
  await fetch("/answers", { method: "POST", body: JSON.stringify({ error: message }) });
}
"""
PAGE = """<!doctype html><script type="module">
const worker = new Worker("/worker.js", { type: "module" });
worker.onerror = ({ message }) =>
  fetch("/answers", { method: "POST", body: JSON.stringify({ error: message }) });
</script>"""
PATIENCE = 120  # seconds


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and keeps what is posted."""

    extensions_map = http.server.SimpleHTTPRequestHandler.extensions_map | {
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        self.server.posted.put(json.loads(body))

    def log_message(self, *_):
        pass


def answers_of_chromium(bundle, texts):
    """The answer to each text as JSON, each asked alone, or what `load` says of a wrong bundle."""
    if CHROMIUM is None:
        pytest.skip("needs chromium on the PATH")
    require_packages()
    with tempfile.TemporaryDirectory() as root, _served(Path(root)) as server:
        (Path(root) / "bundle").symlink_to(bundle)
        (Path(root) / "package").symlink_to(PACKAGE)
        worker = WORKER.replace("TEXTS", json.dumps(texts))
        (Path(root) / "worker.js").write_text(worker, encoding="utf-8")
        (Path(root) / "index.html").write_text(PAGE, encoding="utf-8")
        command = [CHROMIUM, "--headless", *ARGUMENTS, f"--user-data-dir={root}/profile"]
        command += [
            "--remote-debugging-port=0",
            f"http://127.0.0.1:{server.server_port}/index.html",
        ]
        quiet = subprocess.DEVNULL
        browser = subprocess.Popen(command, stdout=quiet, stderr=quiet, start_new_session=True)
        try:
            return server.posted.get(timeout=PATIENCE)
        finally:
            os.killpg(browser.pid, signal.SIGTERM)
            browser.wait(PATIENCE)


@contextlib.contextmanager
def _served(folder):
    handler = functools.partial(Handler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.posted = queue.Queue()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
