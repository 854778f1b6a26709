"""A folder served as files, in a thread."""

import contextlib
import functools
import http.server
import json
import queue
import threading


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder without a log, and keeps what is posted."""

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


@contextlib.contextmanager
def web_server(folder):
    """Serve a folder; yields the server, whose `posted` is a queue."""
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
