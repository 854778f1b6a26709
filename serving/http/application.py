"""The ASGI application of a server."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from ..playground import Page
from .access import Access
from .bounds import Bounds
from .direct import Direct
from .endpoint import Call, Endpoint
from .http_refusal import HttpRefusal
from .metrics import CONTENT_TYPE, Metrics
from .open_ai import OpenAiApi, open_ai_error
from .open_inference import OpenInferenceApi
from .page import PageApi
from .plain import PlainApi
from .served_bundle import Opening, ServedBundle, ServedBundles
from .tensorflow_serving import TensorFlowServingApi


@dataclass(frozen=True)
class Service:
    """The bundles and settings of a server.

    Attributes:
        bundles: (name, folder) of each bundle.
        opening: how they are opened.
        bounds: what the server takes on.
        token: the token that clients must have; None for none.
        origins: origins of web pages that may ask.
        log: whether each request is logged.
        page: the `Page` at "/"; None for none.
        hosts: names by which clients ask, beside loopback names; None for any name.
    """

    bundles: Sequence[tuple[str, Path]]
    opening: Opening = field(default_factory=Opening)
    bounds: Bounds = field(default_factory=Bounds)
    token: str | None = field(default=None, repr=False)
    origins: Sequence[str] = ()
    log: bool = True
    page: Page | None = None
    hosts: Sequence[str] | None = None


class Application:
    """The ASGI application of a `Service`.

    Starlette's router without its middleware: every endpoint reports errors itself.

    Attributes:
        bundles: the `ServedBundles`.
        direct: answers the requests that need no task; see `Connection`.

    Raises:
        ValueError: if a bundle can not be opened.
    """

    def __init__(self, service: Service):
        metrics, bounds = Metrics(), service.bounds
        self.bundles = ServedBundles(
            [
                ServedBundle(name, folder, service.opening, bounds, metrics)
                for name, folder in service.bundles
            ]
        )
        routes = _routes(self.bundles, metrics, bounds)
        if service.page is not None:
            routes += _page_routes(PageApi(service.page, self.bundles, bounds), bounds)
        other = Endpoint("other", _unknown, bounds, ("GET", "POST"))
        inner: ASGIApp = Router(
            routes, redirect_slashes=False, default=other, lifespan=self._lifespan
        )
        if service.origins:
            inner = CORSMiddleware(
                inner,
                allow_origins=list(service.origins),
                allow_methods=["GET", "POST"],
                allow_headers=["authorization", "content-type", "inference-header-content-length"],
            )
        self._app = Access(inner, metrics, service.token, service.log, service.hosts)
        self.direct = Direct(self.bundles, self._app, bounds)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    @contextlib.asynccontextmanager
    async def _lifespan(self, app):
        following = [asyncio.create_task(bundle.follow()) for bundle in self.bundles]
        try:
            yield
        finally:
            for task in following:
                task.cancel()
            await asyncio.to_thread(self.bundles.close)


def _routes(served, metrics, bounds) -> list[BaseRoute]:
    plain, tensorflow = PlainApi(served), TensorFlowServingApi(served)
    open_inference, open_ai = OpenInferenceApi(served), OpenAiApi(served)

    async def measured(call: Call) -> Response:
        for bundle in served:
            bundle.count_waiting()
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    def route(path, api, handler, *methods, **options):
        return Route(path, Endpoint(api, handler, bounds, methods, **options))

    def of_open_ai(path, handler, method="POST"):
        return route(path, "open_ai", handler, method, error=open_ai_error)

    def of_open_inference(path, handler, method="GET"):
        return route(f"/v2{path}", "open_inference", handler, method)

    one = "/models/{name}", "/models/{name}/versions/{version}"
    return [
        route(
            "/v1/bundles/{name}", "plain", _by_method(plain.describe, plain.answer), "GET", "POST"
        ),
        route("/v1/bundles/{name}/stream", "plain", plain.stream, "POST"),
        route("/v1/bundles", "plain", plain.list, "GET"),
        of_open_ai("/v1/models", open_ai.list, "GET"),
        route("/v1/models/{path:path}", "tensorflow_serving", tensorflow.answer, "GET", "POST"),
        *(of_open_inference(f"{path}/infer", open_inference.infer, "POST") for path in one),
        *(of_open_inference(f"{path}/ready", open_inference.ready) for path in one),
        *(of_open_inference(path, open_inference.metadata) for path in one),
        of_open_inference("", open_inference.server),
        of_open_inference("/health/live", open_inference.live),
        of_open_inference("/health/ready", open_inference.all_ready),
        of_open_ai("/v1/completions", open_ai.complete),
        of_open_ai("/v1/chat/completions", open_ai.chat),
        of_open_ai("/v1/embeddings", open_ai.embed),
        route("/metrics", "metrics", measured, "GET"),
    ]


def _page_routes(api, bounds) -> list[BaseRoute]:
    handlers = {
        "/": api.index,
        "/index.html": api.index,
        "/page/{path:path}": api.asset,
        "/page.json": api.content,
        "/v1/bundles/{name}/files/{path:path}": api.file,
    }
    return [
        Route(path, Endpoint("page", handler, bounds, ("GET",)))
        for path, handler in handlers.items()
    ]


def _by_method(get, post):
    """Return the handler that reads with GET and answers with POST."""
    return lambda call: (post if call.scope["method"] == "POST" else get)(call)


async def _unknown(call: Call) -> Response:
    raise HttpRefusal(404, "there is nothing here; GET /v1/bundles tells what is served")
