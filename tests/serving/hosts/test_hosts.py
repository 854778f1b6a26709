"""Every host gives Python's answers to one list of inputs, and refuses what Python refuses.

A command each: `python -m pytest tests/serving/hosts -k node`.
"""

import functools

import numpy as np
import pytest

from seqkeras import serving
from seqkeras.serving.printing import as_content
from tests.serving.hosts import hosts
from tests.serving.hosts.bundles import ASKED, texts_of, write
from tests.serving.hosts.chromium import answers_of_chromium

pytestmark = pytest.mark.long

HOSTS = {
    "command": hosts.command,
    "server": hosts.server,
    "tensorflow-serving-api": hosts.tensorflow_serving_api,
    "open-inference": hosts.open_inference,
    "saved-model": hosts.saved_model,
    "node": hosts.node,
    "chromium": hosts.chromium,
    "cpp": hosts.cpp,
}
IN_CPP = {"dates", "transformer", "gpt"}  # what generates, with a table of characters


@pytest.fixture(scope="module")
def bundle_of(tmp_path_factory, dates_run):
    """Takes the name of a bundle; its folder, written once."""
    folder = tmp_path_factory.mktemp("hosts")
    return functools.cache(lambda name: write(name, folder, dates_run))


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("host", HOSTS)
def test_answers_are_those_of_python(host, name, bundle_of, dates_run):
    if host == "cpp" and name not in IN_CPP:
        pytest.skip(f"C++ answers {', '.join(sorted(IN_CPP))}")
    bundle, texts, refused = bundle_of(name), texts_of(name, dates_run), ASKED[name].refused
    pipeline = serving.load(bundle, threads=1)
    expected = [hosts.short(as_content(answer)) for answer in pipeline(texts)]
    assert len({str(answer) for answer in expected}) > len(texts) // 2
    answers = HOSTS[host](bundle, texts)
    assert [answer.text for answer in answers] == [answer.text for answer in expected]
    numbers, others = ([answer.numbers for answer in given] for given in (answers, expected))
    np.testing.assert_allclose(numbers, others, atol=1e-4)
    for text in refused:
        with pytest.raises(ValueError):
            pipeline(text)
    errors = HOSTS[host](bundle, refused) if refused else []
    assert len(errors) == len(refused)
    assert all(isinstance(error, str) and error.strip() for error in errors)


def test_a_worker_that_finds_no_bundle_says_so(tmp_path):
    found = answers_of_chromium(tmp_path / "nowhere", [])
    assert "/bundle has no manifest.json; expected a bundle" in found["error"]
