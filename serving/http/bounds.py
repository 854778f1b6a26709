"""The bounds of a server's load."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Bounds:
    """The bounds of a server; what exceeds one is refused.

    What is taken on holds back others of its bundle for a batch at most, in turn.

    Attributes:
        max_queue: inputs that wait for a bundle, or streams that run; more are refused with 429.
        max_batch: inputs of several requests that are answered together.
        max_body: bytes of a request; a larger one is refused with 413.
        max_tokens: tokens of an input, all its parts and windows together (413); what a bundle
            itself takes is often less.
        max_new_tokens: tokens that follow a prompt; None: as many as the bundle allows.
        max_answers: beams of a search, and answers to an input.
        max_work: tokens that a batch may take, inputs times beams (or samples) times new tokens;
            larger batches are divided, and an input that exceeds it alone is refused with 400.
        timeout: seconds from a request to its answer (504), of a stream's silence, and in which a
            client takes no byte of an answer (it is let go); what nobody waits for then ends before
            the next run of a graph.
        idle: seconds in which a connection must send a whole head of a request (it is closed).
    """

    max_queue: int = 1024
    max_batch: int = 64
    max_body: int = 2**20
    max_tokens: int = 16_384
    max_new_tokens: int | None = None
    max_answers: int = 64
    max_work: int = 65_536
    timeout: float = 30.0
    idle: float = 10.0
