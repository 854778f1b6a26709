"""Every public layer and model: how to build it with arguments of its own, and a tiny input.

A file for each family. Sizes are distinct primes. `tests/properties` holds for all of it.
"""

from tests.catalogue import attention, recurrent, seq2seq
from tests.catalogue.case import Case, call

FAMILIES = [recurrent, attention, seq2seq]
CASES = [case for family in FAMILIES for case in family.CASES]

__all__ = ["CASES", "FAMILIES", "Case", "call"]
