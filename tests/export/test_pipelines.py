"""Every pipeline that has a name has a class in serving and a record in export."""

from pathlib import Path
from types import SimpleNamespace

import pytest

import seqkeras.export.pipelines
from seqkeras.export.feeds import ENCODER_DECODER, LANGUAGE_MODEL, SINGLE_PASS
from seqkeras.export.pipelines import PipelineRecord, record_of
from seqkeras.serving.manifest import PIPELINE_TEXTS, Limits
from seqkeras.serving.pipelines import PIPELINES

every_name = pytest.mark.parametrize("name", PIPELINE_TEXTS)
SHARED = {"__init__", "record", "strings", "targets", "expected"}  # files that hold no record


@every_name
def test_every_name_has_a_record(name):
    record = record_of(name)
    assert isinstance(record, PipelineRecord)
    assert record.model_kind in (ENCODER_DECODER, LANGUAGE_MODEL, SINGLE_PASS)
    assert bool(PIPELINE_TEXTS[name].generated) == (record.model_kind != SINGLE_PASS)


def test_every_name_has_a_class_in_serving_and_no_class_lacks_a_name():
    assert [*PIPELINES] == [*PIPELINE_TEXTS]


def test_every_file_of_records_has_a_name():
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
