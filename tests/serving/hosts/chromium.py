"""Bundles in a worker of a real Chromium, by the package as it is: no bundler, no build step."""

import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from tests.serving.javascript.package import PACKAGE, require_packages
from tests.serving.playground.chromium import ARGUMENTS, CHROMIUM
from tests.serving.web_server import web_server

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


def answers_of_chromium(bundle, texts):
    """The answer to each text as JSON, each asked alone, or what `load` says of a wrong bundle."""
    if CHROMIUM is None:
        pytest.skip("needs chromium on the PATH")
    require_packages()
    with tempfile.TemporaryDirectory() as root, web_server(root) as server:
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
