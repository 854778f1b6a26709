"""`Generate` while it trains: prompts to what follows them, by the search that the run asks for."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
from keras import ops

from seqkeras.decoding import greedy, in_batches
from seqkeras.decoding.waiting import behind_prompts, waiting
from seqkeras.runs import RunFiles
from seqkeras.serving.pipelines.pieces import Detokenizer
from seqkeras.serving.results import Generation
from seqkeras.serving.text import Turns
from seqkeras.tokenizers import pad
from seqkeras.training.compiling import OncePerModel


class Generate:
    """Prompts to `Generation`s, each token the most probable one; compiled once for a model.

    Args:
        run: a `seqkeras.runs.RunFiles`.
    """

    def __init__(self, run: RunFiles):
        parsed = run.record.parse("run.json")
        self.tokenizer, self.limits = run.tokenizers["text"], parsed.limits
        turns = run.record.settings.get("turns")
        self.turns = None if turns is None else Turns(**turns)
        self.start_id, self.end_id = parsed.decoding.start_id, parsed.decoding.end_id
        self.decode = OncePerModel(self._decoder)

    def __call__(
        self,
        model: keras.Model,
        texts: Sequence[str],
        advance: Callable[[int], object] | None = None,
    ) -> Any:
        """Return the answers of a model to prompts.

        Args:
            advance: called with the number of answers after each batch, for a progress bar.
        """
        prompts = [self.token_ids(text) for text in texts]
        columns = in_batches(self.decode(model), prompts, pad, batch_size=64, advance=advance)
        return [self._generation(*row) for row in zip(prompts, *columns, strict=True)]

    def fits(self, model: keras.Model, text: Any) -> bool:
        """Return whether a prompt is within the limit, with a token behind it."""
        most = min(self.limits.source_length, self.limits.target_length - 1)
        return len(self.token_ids(text)) <= most

    def token_ids(self, text: Any) -> list[int]:
        """Return the ids of a prompt, as the pipeline reads it."""
        prompt = text if self.turns is None else self.turns.prompt(text, "prompt")
        return self.tokenizer.encode(prompt) or [self.start_id]

    def _decoder(self, model):
        def generate(token_ids, lengths):
            state = model.initial_state(ops.shape(token_ids)[0])
            step = model.step
            if getattr(model, "reads_prefix", False):
                _, state = behind_prompts(model.read, token_ids, lengths, state, waits=lengths)
                step = waiting(step)
            behind_first = ops.pad(token_ids[:, 1:], [(0, 0), (0, 1)])  # one token at least
            return greedy(
                step,
                state,
                start_id=token_ids[:, 0],
                end_id=self.end_id,
                prompt=(behind_first, lengths - 1),
                max_length=self.limits.target_length - 1,
            )

        return generate

    def _generation(self, prompt, token_ids, length, score):
        generated = [int(token) for token in token_ids[len(prompt) - 1 : length]]
        ended = generated[-1:] == [self.end_id]
        text = Detokenizer(self.tokenizer, prompt).text(generated[: len(generated) - ended])
        return Generation(text, float(score), "end" if ended else "length")
