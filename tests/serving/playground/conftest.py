import dataclasses

import pytest

from seqkeras.serving.playground import page_of
from seqkeras.serving.rows import Column, Rows
from tests.serving.http.served import served
from tests.serving.pipelines.toys import frames_graph
from tests.serving.playground.asked import ASKED
from tests.serving.playground.chromium import driven
from tests.serving.test_streams import W, forecaster_of_rows, stream_of, written
from tests.serving.written import model_of

LABELS = ["off", "on"]
ROWS = Rows(tuple(Column(name, mean=0.5, deviation=2.0) for name in "zxy"), series="machine")


@pytest.fixture(scope="package")
def browser():
    """A Chromium, driven by playwright."""
    with driven() as browser:
        yield browser


@pytest.fixture(scope="package")
def bundles(folders, tmp_path_factory):
    """The bundles of `ASKED`, by name, to read only."""
    from tests.serving.javascript.bundles import BUNDLES  # imports TensorFlow

    parent = tmp_path_factory.mktemp("bundles")
    for name in ASKED.keys() - folders.keys():
        BUNDLES[name].write(parent / name)
    return {name: folders.get(name, parent / name) for name in ASKED}


@pytest.fixture(scope="package")
def port(bundles):
    """The port of a server of them, with a page."""
    folders = {name.replace(" ", "-"): folder for name, folder in bundles.items()}
    with served(folders, page=page_of()) as port:
        yield port


@pytest.fixture(scope="package")
def stream_bundles(tmp_path_factory):
    """Bundles of frames that have a stream, by name, to read only."""
    folder = tmp_path_factory.mktemp("streams")
    graphs = {"model": frames_graph(W), "stream": stream_of(W)}
    of_each = """
        model (float[batch,frames,3] frames) => (float[batch,frames,2] output) {
            output = MatMul (frames, W)
        }
    """
    settings = {
        "Classify": {"labels": LABELS},
        "Tag": {"labels": LABELS, "scheme": None},
        "rows": {"labels": LABELS, "rows": dataclasses.asdict(ROWS)},
    }
    return {"Forecast": forecaster_of_rows(folder / "Forecast")} | {
        name: written(
            folder / name,
            name.replace("rows", "Classify"),
            graphs | ({"model": model_of(of_each, W=W)} if name == "Tag" else {}),
            given,
        )
        for name, given in settings.items()
    }
