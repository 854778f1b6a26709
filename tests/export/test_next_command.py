import shlex

import numpy as np

from seqkeras import serving
from seqkeras.export import save_run
from seqkeras.export.bundle import ExportOptions, export
from seqkeras.export.next_command import next_command
from seqkeras.models import Forecaster
from seqkeras.serving.printing import as_line
from tests.arrays import floats
from tests.conftest import in_shell


def test_arrays_that_are_too_long_are_answered_from_the_file_of_the_run(tmp_path):
    model = Forecaster(horizon=5, units=7, num_targets=2)
    model.build({"window": (None, None, 3)})
    windows = [floats(length, 3, seed=length).astype("float32") for length in (211, 223)]
    validation = [{"input": window} for window in windows]
    run, bundle = tmp_path / "my runs", tmp_path / "my bundle"
    save_run(run, model, "Forecast", validation, {"source_length": 300, "target_length": 1})
    manifest = export(run, bundle, options=ExportOptions(saved_models=False))
    line = next_command(bundle, manifest, run)
    assert shlex.split(line)[1:] == [
        "predict",
        *map(str, (bundle, run / "validation.npz")),
        "--truncate",
    ]
    found = [np.array(row.split(), float) for row in in_shell(line, tmp_path).splitlines()]
    expected = [
        np.array(as_line(serving.load(bundle)(window)).split(), float) for window in windows
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    (run / "validation.npz").unlink()
    line = next_command(bundle, manifest, run)
    assert line.startswith("python -c ") and in_shell(line, tmp_path).split()
