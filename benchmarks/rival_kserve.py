"""The same bundle behind KServe's SDK: python benchmarks/rival_kserve.py BUNDLE PORT.

Answers {"input": text} at /v1/models/bundle:predict, one request at a time.
"""

import os
import sys

import kserve

sys.path.insert(0, os.getcwd())  # the checkout


class Model(kserve.Model):
    """The bundle's pipeline."""

    def load(self):
        """Open the bundle."""
        from seqkeras import serving

        self.pipeline = serving.load(sys.argv[1])
        self.ready = True
        return True

    def predict(self, payload, headers=None, response_headers=None):
        """Return the content of a response."""
        answer = self.pipeline(payload["input"])
        return {"text": answer.text, "score": answer.score}


if __name__ == "__main__":
    model = Model("bundle")
    model.load()
    kserve.ModelServer(http_port=int(sys.argv[2]), enable_grpc=False).start([model])
