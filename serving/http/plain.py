"""The server's own API: a bundle takes what its pipeline takes, as JSON.

POST /v1/bundles/NAME          {"input": ..., "options": {...}}    an object, like `predict --json`
                               {"inputs": [...], "options": ...}   {"answers": [...]}, in order;
                                                                   a refused one is its "error"
POST /v1/bundles/NAME/stream   {"input": ..., "options": {...}}    server-sent events: pieces
GET  /v1/bundles[/NAME]        what is served
"""

import contextlib
from typing import Any

from starlette.responses import Response

from ..checks import shown
from ..lines import from_json
from ..parsing import as_json
from ..printing import as_content
from .body import object_of
from .endpoint import Call, reply
from .events import event, events
from .http_refusal import HttpRefusal, as_http
from .served_bundle import VERSION, ServedBundle, ServedBundles

MOST_SHOWN = 200  # characters of an example
FIELDS = ("input", "inputs", "options")


class PlainApi:
    """The handlers of the server's own API.

    Args:
        bundles: the `ServedBundles`.
    """

    def __init__(self, bundles: ServedBundles):
        self._bundles = bundles

    async def answer(self, call: Call) -> Response:
        """Answer an input, or each of several."""
        bundle = self._bundles.require(call.path["name"])
        content = object_of(call.body, FIELDS)
        options = _options(content)
        if ("input" in content) == ("inputs" in content):
            raise HttpRefusal(
                400, f'the body must have either "input" or "inputs"{_example(bundle)}'
            )
        if "input" in content:
            value = from_json(content["input"])
            [answer] = await bundle.answers([value], options)
            return reply(content_of(value, answer))
        values = content["inputs"]
        if not isinstance(values, list):
            raise HttpRefusal(400, f"inputs must be a list; received {shown(values)}")
        values = list(map(from_json, values))
        answers = await bundle.answers_or_errors(values, options)
        return reply({"answers": list(map(content_of, values, answers))})

    async def stream(self, call: Call) -> Response:
        """Answer an input piece by piece."""
        bundle = self._bundles.require(call.path["name"])
        content = object_of(call.body, FIELDS)
        if "input" not in content or "inputs" in content:
            raise HttpRefusal(400, f'the body must have "input"{_example(bundle)}')
        pieces = bundle.stream(from_json(content["input"]), _options(content))

        async def told():
            async with contextlib.aclosing(pieces):
                async for piece in pieces:
                    yield event({"text": piece})
            yield event({}, "end")

        return await events(told(), lambda refusal: event({"error": refusal.message}, "error"))

    async def describe(self, call: Call) -> Response:
        """Tell what a bundle is."""
        return reply(_about(self._bundles.require(call.path["name"])))

    async def list(self, call: Call) -> Response:
        """Tell what is served."""
        return reply({"bundles": list(map(_about, self._bundles))})


def _options(content):
    options = content.get("options", {})
    if not isinstance(options, dict):
        raise HttpRefusal(400, f"options must be an object; received {shown(options)}")
    return options


def content_of(value: Any, answer: Any) -> dict[str, Any]:
    """Return an input with its answer or its error, as JSON content."""
    if isinstance(answer, Exception):
        return {"input": as_content(value), "error": as_http(answer).message}
    return {"input": as_content(value), **as_content(answer)}


def _example(bundle):
    examples = [as_json({"input": example}) for example in bundle.manifest.examples]
    short = [text for text in examples if len(text) <= MOST_SHOWN]
    return f", e.g. {short[0]}" if short else ""


def _about(bundle: ServedBundle) -> dict[str, Any]:
    manifest = bundle.manifest
    return {
        "name": bundle.name,
        "task": manifest.task,
        "pipeline": bundle.kind,
        "version": VERSION,
        "created": manifest.created,
        "fields": list(getattr(bundle.pipeline, "fields", ("text",))),
        "options": list(bundle.option_names()),
        "streams": hasattr(bundle.pipeline, "stream"),
        "limits": {
            "source_length": manifest.limits.source_length,
            "target_length": manifest.limits.target_length,
        },
        "examples": list(manifest.examples[:3]),
    }
