"""Decoding: from a decoder's step to token ids, in NumPy. Knows no model and no text.

A model comes as a function of one step,

    step(token_ids, beam_index, k, state, reads) -> (candidates, state)

    token_ids: (B, K) int64, the last token of each beam of each source; at first the search's
        `start`, which for a language model is (B, 1, T): several tokens.
    beam_index: (B, K) int64, the row of the previous state that each beam continues: row = source *
        previous K + beam. This one gather reorders beams, widens one beam to K, and drops finished
        sources.
    k: how many candidates to return for each beam; a step may return fewer.
    state: whatever the previous step returned, which may be of no use then; at first, one beam for
        each source.
    reads: which parts of the candidates are asked for: `BEST`, `LOGITS`, or both.
    candidates: `Candidates`, the best continuations of each beam, the best first.

Processors of logits, sampling and constraints choose the candidates themselves: `FromLogits`. A
`Search` is a loop that somebody else turns; `Together` turns many at once.

Shape letters here: B sources still in the batch, K beams, C candidates, T target, S source length,
V vocabulary.
"""

# ruff: noqa: F401
# The names are for the other folders of serving.

from .allowed import MostProbableAllowed
from .beam import Beams
from .choosing import FromLogits, Prefix, Sample, most_probable
from .constraint import Constraint
from .greedy import Greedy
from .loop import Search, results_of, steps
from .processors import (
    BannedTokens,
    ForcedToken,
    MinLength,
    RepetitionPenalty,
    Temperature,
    TopK,
    TopP,
)
from .results import BEST, LOGITS, Candidates, Hypothesis, Prompts, length_divisor
from .together import CHUNK, Memory, Size, Together
