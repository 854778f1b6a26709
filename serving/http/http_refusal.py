"""Requests that are refused, as an HTTP status and one line."""

from ..manifest import BundleError, NoFiniteNumber
from ..printing import in_line, printable


class HttpRefusal(Exception):
    """A request that is refused.

    Args:
        status: the HTTP status.
        message: one line: what was expected, what came.
        headers: headers of the response.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None):
        super().__init__(message)
        self.status, self.message, self.headers = status, message, headers or {}


def as_http(error: Exception) -> HttpRefusal:
    """Return the refusal that tells a client of an error of a pipeline."""
    if isinstance(error, HttpRefusal):
        return error
    if isinstance(error, TimeoutError):
        return HttpRefusal(504, "there was no answer in time: ask for less at once, or again later")
    if isinstance(error, BundleError) and not isinstance(error, NoFiniteNumber):
        return HttpRefusal(500, f"the bundle gave no answer: {'; '.join(error.reasons)}")
    if isinstance(error, MemoryError):
        return HttpRefusal(500, "there is not enough memory: ask for less at once")
    if isinstance(error, ValueError):
        return HttpRefusal(400, in_line(printable(str(error))))
    return HttpRefusal(500, "the server failed; its log says why")
