"""Files of a user to examples, and examples to batches for `fit`.

A module holds a form of file. What reads files imports no Keras: `from seqkeras.data import
read_text` loads the module of that name alone.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seqkeras.data.batches import Batches, FrameSequences, Sequences
    from seqkeras.data.batching import BucketedBatches, TokenBatches
    from seqkeras.data.choices import Choices, read_choices
    from seqkeras.data.columns import column_names, read_columns
    from seqkeras.data.conll import Sentence, read_sentences, to_iob2
    from seqkeras.data.denoising import Damaged, span_corruption, span_mask, text_infilling
    from seqkeras.data.dialogues import read_dialogues
    from seqkeras.data.documents import Corpus, read_documents
    from seqkeras.data.masking import Masking
    from seqkeras.data.mixing import MixedBatches
    from seqkeras.data.nested import NestedSequences
    from seqkeras.data.parallel import read_parallel, read_pronunciations, read_tab_separated
    from seqkeras.data.recordings import Recording, read_arrays
    from seqkeras.data.series import Series, WindowArrays, numbers_of, read_series
    from seqkeras.data.squad import Answer, Question, read_questions
    from seqkeras.data.texts import DataError, lines_of, read_text
    from seqkeras.data.token_records import TokenRecords, begin_records, write_shard
    from seqkeras.data.token_streams import token_stream
    from seqkeras.data.trees import Tree, parse_tree, read_trees, tree_arrays
    from seqkeras.data.windows import (
        consecutive_windows,
        mixed_windows,
        random_windows,
        with_orders,
        with_prefixes,
    )

__all__ = [
    "Answer",
    "Batches",
    "BucketedBatches",
    "Choices",
    "Corpus",
    "Damaged",
    "DataError",
    "FrameSequences",
    "Masking",
    "MixedBatches",
    "NestedSequences",
    "Question",
    "Recording",
    "Sentence",
    "Sequences",
    "Series",
    "TokenBatches",
    "TokenRecords",
    "Tree",
    "WindowArrays",
    "begin_records",
    "column_names",
    "consecutive_windows",
    "lines_of",
    "mixed_windows",
    "numbers_of",
    "parse_tree",
    "random_windows",
    "read_arrays",
    "read_choices",
    "read_columns",
    "read_dialogues",
    "read_documents",
    "read_parallel",
    "read_pronunciations",
    "read_questions",
    "read_sentences",
    "read_series",
    "read_tab_separated",
    "read_text",
    "read_trees",
    "span_corruption",
    "span_mask",
    "text_infilling",
    "to_iob2",
    "token_stream",
    "tree_arrays",
    "with_orders",
    "with_prefixes",
    "write_shard",
]

_MODULES = {  # what is imported where it is used first: module -> its public names
    "batches": "Batches FrameSequences Sequences",
    "batching": "BucketedBatches TokenBatches",
    "choices": "Choices read_choices",
    "columns": "column_names read_columns",
    "conll": "Sentence read_sentences to_iob2",
    "denoising": "Damaged span_corruption span_mask text_infilling",
    "dialogues": "read_dialogues",
    "documents": "Corpus read_documents",
    "masking": "Masking",
    "mixing": "MixedBatches",
    "nested": "NestedSequences",
    "parallel": "read_parallel read_pronunciations read_tab_separated",
    "recordings": "Recording read_arrays",
    "series": "Series WindowArrays numbers_of read_series",
    "squad": "Answer Question read_questions",
    "texts": "DataError lines_of read_text",
    "token_records": "TokenRecords begin_records write_shard",
    "token_streams": "token_stream",
    "trees": "Tree parse_tree read_trees tree_arrays",
    "windows": "consecutive_windows mixed_windows random_windows with_orders with_prefixes",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Import a public name, with its module, at its first use."""
    if name in _MODULE_OF:
        return getattr(importlib.import_module(f"seqkeras.data.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module 'seqkeras.data' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
