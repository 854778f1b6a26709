"""Serve bundles over HTTP: `python -m serving serve BUNDLE`.

    GET  /v1/bundles                      what is served
    POST /v1/bundles/NAME                 answers, like `predict --json`: plain
    POST /v1/bundles/NAME/stream          an answer as server-sent events: plain
    POST /v1/models/NAME[...]:predict     TensorFlow Serving's REST API: tensorflow_serving
    POST /v2/models/NAME[...]/infer       the Open Inference Protocol: open_inference
    POST /v1/completions, /v1/embeddings  OpenAI's API: open_ai
    GET  /metrics                         for Prometheus: metrics

A `Worker` thread of each bundle answers what waits, together (`worker`). Needs the packages of
requirements-http.txt; nothing else of `serving` imports this package.
"""
