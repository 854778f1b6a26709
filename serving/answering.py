"""Answers to many inputs at once, of which one that fails never fails the others."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Answers(Protocol):
    """An object that answers inputs, such as the pipeline of `serving.load`."""

    def __call__(self, *args: Any, **options: Any) -> Any: ...

    def encode(self, *args: Any, **options: Any) -> Any: ...


def answers_or_errors(
    pipeline: Answers,
    values: Sequence,
    options: dict[str, Any],
    check: Callable[[Any], None] | None = None,
) -> list:
    """Return an answer or an error for each input.

    All are answered together. Only if that fails, they are checked one by one, and the good ones
    are answered together; if nothing is wrong with any before it is answered, each half alone.

    Args:
        pipeline: the result of `serving.load`.
        values: the inputs.
        options: options of the pipeline.
        check: None, or a function that raises an error for an input that is not to be answered.
    """
    check = check or (lambda value: None)
    try:
        for value in values:
            check(value)
        if len(values) == 1:  # its errors then name no place in a batch
            return [pipeline(values[0], **options)]
        return pipeline([*values], **options)
    except Exception as error:
        if len(values) == 1:
            return [error]
    try:
        pipeline([], **options)
    except Exception as error:  # the options are wrong
        return [error] * len(values)
    refusals = [_refusal(pipeline, value, options, check) for value in values]
    good = [index for index, refusal in enumerate(refusals) if refusal is None]
    together = [values[index] for index in good]
    if len(good) == len(values):
        middle = len(values) // 2
        answers = [
            answer
            for half in (values[:middle], values[middle:])
            for answer in answers_or_errors(pipeline, half, options, check)
        ]
    else:
        answers = answers_or_errors(pipeline, together, options, check) if good else []
    for index, answer in zip(good, answers):
        refusals[index] = answer
    return refusals


def answers_or_refusals(pipeline: Answers, values: Sequence, options: dict[str, Any]) -> list:
    """Return for each input its answer, or the ValueError that says why it has none.

    It is a BundleError if the pipeline takes the input and the bundle's graphs give no answer.

    Raises:
        Exception: any other error.
    """
    answers = answers_or_errors(pipeline, values, options)
    for answer in answers:
        if isinstance(answer, Exception) and not isinstance(answer, ValueError):
            raise answer
    return answers


def encoding_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return those options of a pipeline that its `encode` takes."""
    names = ("truncate", "max_new_tokens", "strict", "gaps")
    return {name: options[name] for name in names if options.get(name) is not None}


def _refusal(pipeline, value, options, check):
    """Return the error with which an input is refused, or None."""
    try:
        check(value)
        pipeline.encode(value, **encoding_options(options))
    except Exception as error:
        return error
    return None
