"""The same bundle behind LitServe: python benchmarks/rival_litserve.py BUNDLE PORT.

Answers {"input": text} at /predict. Joins requests in batches of up to 64, and waits up to 2 ms for
more.
"""

import os
import sys

import litserve

sys.path.insert(0, os.getcwd())  # the checkout


class Api(litserve.LitAPI):
    """The bundle's pipeline."""

    def setup(self, device):
        """Open the bundle."""
        from seqkeras import serving

        self.pipeline = serving.load(sys.argv[1])

    def decode_request(self, request):
        """Return the text of a request."""
        return request["input"]

    def predict(self, texts):
        """Return the answers of a batch."""
        return self.pipeline(texts)

    def encode_response(self, answer):
        """Return the content of a response."""
        return {"text": answer.text, "score": answer.score}


if __name__ == "__main__":
    server = litserve.LitServer(Api(max_batch_size=64, batch_timeout=0.002), accelerator="cpu")
    options = {"generate_client_file": False, "log_level": "warning"}
    server.run(host="127.0.0.1", port=int(sys.argv[2]), **options)
