"""OpenAI's API: /v1/completions of bundles that generate, /v1/embeddings of those that embed.

A prompt is text. As there, a completion has 16 tokens and temperature 1 by default; temperature 0
is greedy. Leaves out log-probabilities, penalties, biases, suffixes and prompts as token ids.

Reference: https://platform.openai.com/docs/api-reference/completions, .../embeddings
"""

import asyncio
import base64
import contextlib
import datetime
import time
import uuid
from dataclasses import dataclass
from typing import Any

import numpy as np
from starlette.responses import Response

from ..checks import require_count, require_flag, require_number, shown
from ..parsing import as_json
from ..results import Generation
from .body import object_of
from .endpoint import Call, reply
from .events import events, raw_event
from .http_refusal import HttpRefusal
from .served_bundle import ServedBundle, ServedBundles
from .worker import tokens_of

DEFAULTS: dict[str, Any] = {
    "max_tokens": 16,
    "temperature": 1.0,
    "n": 1,
    "stop": None,
    "echo": False,
    "stream": False,
    "top_p": None,
    "seed": None,
}
STREAM_OPTIONS = ("include_usage", "include_obfuscation")
REASONS = {"end": "stop", "stop": "stop", "length": "length"}
# Options that are not served, with the values that say nothing.
NEUTRAL: dict[str, tuple] = {
    "best_of": (None, 1),
    "frequency_penalty": (None, 0),
    "logit_bias": (None, {}),
    "logprobs": (None,),
    "presence_penalty": (None, 0),
    "suffix": (None, ""),
}
NO_EVENT = "[DONE]"


def open_ai_error(refusal: HttpRefusal) -> dict[str, Any]:
    """Return the content that tells of an error, in OpenAI's form."""
    kind = "server_error" if refusal.status >= 500 else "invalid_request_error"
    code = "model_not_found" if refusal.status == 404 else None
    return {"error": {"message": refusal.message, "type": kind, "param": None, "code": code}}


def open_ai_model(name: str, bundle: ServedBundle) -> dict[str, Any]:
    """Return what GET /v1/models/NAME tells of a model; TensorFlow Serving's API has that too."""
    created = int(datetime.datetime.fromisoformat(bundle.manifest.created).timestamp())
    return {"id": name, "object": "model", "created": created, "owned_by": "seqkeras"}


class OpenAiApi:
    """The handlers of OpenAI's API.

    Args:
        bundles: the `ServedBundles`.
    """

    def __init__(self, bundles: ServedBundles):
        self._bundles = bundles

    async def list(self, call: Call) -> Response:
        """Tell what is served."""
        models = [open_ai_model(bundle.name, bundle) for bundle in self._bundles]
        return reply({"object": "list", "data": models})

    async def complete(self, call: Call) -> Response:
        """Answer one prompt or several."""
        content = object_of(call.body)
        bundle = self._bundle(content, "Generate")
        prompts = _texts(content, "prompt")
        completion = _asked(content, bundle.most_answers)
        head = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": bundle.name,
        }
        if completion.streams:
            if len(prompts) != 1 or completion.count != 1:
                raise HttpRefusal(400, "a stream has one prompt, and n must be 1")
            return await _stream(bundle, prompts[0], completion, head)
        if completion.is_empty:
            answers = await asyncio.to_thread(_unanswered, bundle.pipeline, prompts, completion)
        else:
            answers = await bundle.answers(prompts, completion.options)
        choices: list[dict[str, Any]] = []
        all_found = [_found(answer, completion) for answer in answers]
        for generation in (one for several in all_found for one in several):
            choices.append(_choice(generation.text, len(choices), REASONS[generation.finish]))
        return reply({**head, "choices": choices, "usage": _usage(all_found)})

    async def chat(self, call: Call) -> Response:
        """Tell clients that chats are not served."""
        raise HttpRefusal(
            400,
            "there are no chats: POST /v1/completions with the text of the conversation as prompt",
        )

    async def embed(self, call: Call) -> Response:
        """Answer one text or several."""
        content = object_of(call.body)
        bundle = self._bundle(content, "Embed")
        texts = _texts(content, "input")
        form = content.get("encoding_format") or "float"
        if form not in ("float", "base64"):
            raise HttpRefusal(
                400, f"encoding_format must be float or base64; received {shown(form)}"
            )
        pipeline = bundle.pipeline  # another one may replace it before the answers are there
        answers = await bundle.answers(texts)
        dimensions = content.get("dimensions")
        if dimensions not in (None, *(len(answer.vector) for answer in answers[:1])):
            raise HttpRefusal(
                400,
                f"dimensions must be {len(answers[0].vector)}, the model's; received "
                f"{shown(dimensions)}",
            )
        data = [
            {"object": "embedding", "index": index, "embedding": _vector(answer.vector, form)}
            for index, answer in enumerate(answers)
        ]
        count = await asyncio.to_thread(_count, pipeline, texts)
        usage = {"prompt_tokens": count, "total_tokens": count}
        return reply({"object": "list", "data": data, "model": bundle.name, "usage": usage})

    def _bundle(self, content, kind) -> ServedBundle:
        name, known = content.get("model"), ", ".join(bundle.name for bundle in self._bundles)
        if not isinstance(name, str):
            raise HttpRefusal(400, f"model must be one of {known}; received {shown(name)}")
        bundle = self._bundles.find(name)
        if bundle is None:
            raise HttpRefusal(404, f"The model {shown(name)} does not exist; there is {known}")
        if bundle.kind != kind:
            raise HttpRefusal(400, f"{bundle.name} is of {bundle.kind}; this address needs {kind}")
        return bundle


async def _stream(bundle, prompt, completion, head):
    ended = []
    head = head | ({"usage": None} if completion.tells_usage else {})

    async def pieces():
        if completion.is_empty:
            ended.extend(
                await asyncio.to_thread(_unanswered, bundle.pipeline, [prompt], completion)
            )
            yield ended[0].text
            return
        options = {name: value for name, value in completion.options.items() if name != "n_best"}
        pieces_of_answer = bundle.stream(prompt, options, ended.append)
        async with contextlib.aclosing(pieces_of_answer):
            async for piece in pieces_of_answer:
                yield piece

    async def told():
        async for piece in pieces():
            yield raw_event(as_json({**head, "choices": [_choice(piece, 0, None)]}))
        [answer] = ended
        yield raw_event(as_json({**head, "choices": [_choice("", 0, REASONS[answer.finish])]}))
        if completion.tells_usage:
            yield raw_event(as_json({**head, "choices": [], "usage": _usage([ended])}))
        yield raw_event(NO_EVENT)

    return await events(told(), lambda refusal: raw_event(as_json(open_ai_error(refusal))))


def _unanswered(pipeline, prompts, completion):
    """Return the answers that have no new token: "", or the prompts."""
    texts = prompts if completion.options.get("echo") else len(prompts) * [""]
    counts = [len(pipeline.encode(prompt)) for prompt in prompts]
    return [
        Generation(text, 0.0, "length", num_prompt_tokens=count)
        for text, count in zip(texts, counts)
    ]


def _found(answer, completion):
    """Return all answers to a prompt: those that were drawn, or the same one several times."""
    if completion.options["n_best"] == completion.count:
        return [answer, *answer.alternatives]
    return completion.count * [answer]


def _usage(all_found):
    """Return the counts of tokens; of the answers to each prompt, its own count once."""
    read = sum(answers[0].num_prompt_tokens for answers in all_found)
    new = sum(answer.num_new_tokens for answers in all_found for answer in answers)
    return {"prompt_tokens": read, "completion_tokens": new, "total_tokens": read + new}


def _count(pipeline, texts):
    return sum(tokens_of(pipeline.encode(text)) for text in texts)


def _texts(content, name):
    value = content.get(name)
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise HttpRefusal(
            400, f"{name} must be a text, or a list of texts; received {shown(value)}"
        )
    return texts


@dataclass(frozen=True)
class _Asked:
    """The contents of a request for completions.

    Attributes:
        options: options of the pipeline.
        count: count of the answers to each prompt.
        streams: whether they come in pieces.
        tells_usage: whether a stream ends with the counts of tokens.
        is_empty: whether no token is to be generated.
    """

    options: dict[str, Any]
    count: int
    streams: bool
    tells_usage: bool
    is_empty: bool


def _asked(content, most_answers):
    """Return the `_Asked` of a request."""
    for name, neutral in NEUTRAL.items():
        if content.get(name) not in neutral:
            raise HttpRefusal(400, f"{name} is not served; received {shown(content[name])}")
    parameters = DEFAULTS | {
        name: content[name] for name in DEFAULTS if content.get(name) is not None
    }
    for name in ("stream", "echo"):
        require_flag(name, parameters[name])
    temperature = require_number("temperature", parameters["temperature"], 0, 2)
    count = require_count("n", parameters["n"], most_answers)
    most_new = parameters["max_tokens"]
    is_empty = type(most_new) is int and most_new == 0
    options = {"max_new_tokens": 0 if is_empty else require_count("max_tokens", most_new)}
    options["n_best"] = 1
    for name in ("stop", "echo"):
        if parameters[name]:
            options[name] = parameters[name]
    if temperature:
        options |= {"sample": True, "temperature": temperature, "n_best": count}
        options |= {
            name: parameters[name] for name in ("top_p", "seed") if parameters[name] is not None
        }
    return _Asked(
        options,
        count,
        parameters["stream"],
        _tells_usage(content.get("stream_options"), parameters["stream"]),
        is_empty,
    )


def _tells_usage(options, streams):
    if options is None:
        return False
    if not isinstance(options, dict) or set(options) - set(STREAM_OPTIONS):
        expected = ", ".join(STREAM_OPTIONS)
        raise HttpRefusal(
            400, f"stream_options must be an object of {expected}; received {shown(options)}"
        )
    if not streams:
        raise HttpRefusal(400, "stream_options need stream: true")
    return require_flag("include_usage", options.get(STREAM_OPTIONS[0], False))


def _choice(text, index, reason):
    return {"text": text, "index": index, "logprobs": None, "finish_reason": reason}


def _vector(vector: np.ndarray, form: str) -> Any:
    if form == "base64":
        return base64.b64encode(vector.astype("<f4").tobytes()).decode()
    return [float(f"{number:.9g}") for number in vector]
