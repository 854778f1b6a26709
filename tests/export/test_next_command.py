import dataclasses
import shlex

import numpy as np
import pytest

from seqkeras.export.next_command import next_command
from seqkeras.models import Forecaster
from seqkeras.serving.printing import as_line
from tests.arrays import floats
from tests.conftest import in_shell
from tests.export.bundles import bundled


@pytest.mark.long
def test_arrays_that_are_too_long_are_answered_from_the_file_of_the_run(tmp_path):
    model = Forecaster(horizon=5, units=7, num_targets=2)
    model.build({"window": (None, None, 3)})
    windows = [floats(length, 3, seed=length).astype("float32") for length in (211, 223)]
    run, bundle = tmp_path / "my folder/run", tmp_path / "my folder/bundle"
    forecast = bundled(tmp_path / "my folder", model, "Forecast", windows, 300)
    line = next_command(bundle, forecast.manifest, run)
    names = [str(bundle), str(run / "validation.npz")]
    assert shlex.split(line)[1:] == ["predict", *names, "--truncate"]
    found = [np.array(row.split(), float) for row in in_shell(line, tmp_path).splitlines()]
    expected = [np.array(as_line(forecast(window)).split(), float) for window in windows]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    (run / "validation.npz").unlink()
    line = next_command(bundle, forecast.manifest, run)
    assert shlex.split(line)[1:] == ["predict", str(bundle), "--examples"]
    answers = in_shell(line, tmp_path).splitlines()
    assert len(answers) == len(forecast.manifest.examples) > 0
    manifest = dataclasses.replace(forecast.manifest, examples=())
    assert shlex.split(next_command(bundle, manifest, run))[1:] == ["inspect", str(bundle)]
