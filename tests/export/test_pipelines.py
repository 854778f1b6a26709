"""Every pipeline that has a name has a class in serving and a record in export."""

from pathlib import Path
from types import SimpleNamespace

import pytest

import seqkeras.export.pipelines
from seqkeras.export.feeds import ENCODER_DECODER, LANGUAGE_MODEL, SINGLE_PASS
from seqkeras.export.pipelines import record_of
from seqkeras.serving.manifest import PIPELINE_TEXTS, Limits
from seqkeras.serving.pipelines import PIPELINES

SHARED = {"__init__", "record", "strings", "targets", "expected"}  # files that hold no record


def test_every_name_has_a_record_and_a_class_in_serving():
    assert [*PIPELINES] == [*PIPELINE_TEXTS]
    for name, texts in PIPELINE_TEXTS.items():
        record = record_of(name)
        if record.model_kind == SINGLE_PASS:  # what has signatures on strings is compared
            assert not texts.generated and bool(record.expected) == bool(record.strings)
        else:
            assert record.model_kind in (ENCODER_DECODER, LANGUAGE_MODEL)
            assert texts.generated and record.strings and not record.expected
    records = {id(record_of(name)) for name in PIPELINE_TEXTS}
    files = {path.stem for path in Path(seqkeras.export.pipelines.__file__).parent.glob("*.py")}
    assert len(records) == len(PIPELINE_TEXTS) == len(files - SHARED)


def test_a_pipeline_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="^pipeline must be one of Translate, .*; received 'Sing'"):
        record_of("Sing")


@pytest.mark.parametrize("name", ["Classify", "Tag"])
def test_what_reads_windows_says_so_and_which_signatures_do_not(name):
    record, limits = record_of(name), Limits(16)
    plain, windows = (
        SimpleNamespace(settings=settings, limits=limits, tokenizers={"text": ""})
        for settings in ({}, {"stride": 5})
    )
    assert record.input_limits(plain, "tokens") == "Text of at most 16 tokens."
    assert record.input_limits(windows, "tokens").startswith("Text of any length: it is read in")
    [said] = {*record.differences(windows)} - {*record.differences(plain)}
    assert said.startswith("A text of more than 16 tokens is refused")
