"""From a run to a bundle: what is in it, what is refused, what a full disk or a kill leaves."""

import contextlib
import json
import resource
import shutil
import signal
import sys
import time

import onnx
import pytest

from seqkeras.export import __main__ as command_line
from seqkeras.export.__main__ import main
from seqkeras.export.bundle import export
from seqkeras.export.graph import Graph
from seqkeras.export.verifying import ParityError, parity
from seqkeras.serving.manifest import read_manifest, verify_files
from tests.conftest import run_python, start_python


def leftovers(folder):
    return sorted(path.name for path in folder.iterdir())


def flip_a_byte(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


def test_a_bundle_holds_what_its_manifest_says(dates_run, dates_bundle):
    manifest = read_manifest(dates_bundle)
    verify_files(dates_bundle, manifest)
    files = {p.relative_to(dates_bundle).as_posix() for p in dates_bundle.rglob("*") if p.is_file()}
    assert files == {*manifest.files, "manifest.json"}
    assert "evaluation.json" not in files  # dates are read from no file
    assert (manifest.task, manifest.pipeline) == ("dates", "Translate")
    assert manifest.text_prefix.values == ("de", "ja")
    assert manifest.scores == json.loads((dates_run / "scores.json").read_text())
    assert manifest.parity["examples"] == parity.EXAMPLES
    assert 0 < manifest.parity["onnx_log_prob_difference"] <= 1e-4
    # TensorFlow's kernels are those of Keras: on some processors not a bit differs.
    assert 0 <= manifest.parity["saved_model_log_prob_difference"] <= 1e-4
    card = (dates_bundle / "README.md").read_text(encoding="utf-8")
    for part in (f"seqkeras predict {dates_bundle.name} ", "| clean |", "onnx/encoder.onnx"):
        assert part in card


def test_recurrent_layers_are_native_nodes_and_no_graph_loops(dates_bundle):
    for role in ("encoder", "decoder_step"):
        counts = Graph(onnx.load(dates_bundle / "onnx" / f"{role}.onnx")).node_counts()
        assert counts["GRU"] == 1
        assert not {"Loop", "Scan", "If"} & set(counts)


def test_an_existing_bundle_is_kept_without_overwrite(dates_run, dates_bundle, capsys):
    before = (dates_bundle / "manifest.json").read_bytes()
    assert main([str(dates_run), str(dates_bundle)]) == 1
    assert capsys.readouterr().err == (
        f"seqkeras export: {dates_bundle}: exists already; replace it with --overwrite.\n"
    )
    assert (dates_bundle / "manifest.json").read_bytes() == before


def test_what_is_not_the_bundles_is_never_replaced(dates_run, dates_bundle, tmp_path, capsys):
    old = shutil.copytree(dates_bundle, tmp_path / "dates")
    (old / "notes").mkdir()
    (old / "notes/mine.txt").write_text("mine")
    assert main([str(dates_run), str(old), "--overwrite"]) == 1
    said = "would be replaced as a whole, and notes/mine.txt is not in its manifest; move that aw"
    assert said in capsys.readouterr().err
    assert (old / "notes/mine.txt").read_text() == "mine"
    shutil.rmtree(old / "notes")
    for name in (".env", "onnx/.env"):
        (old / name).write_text("mine")
        assert main([str(dates_run), str(old), "--overwrite"]) == 1
        assert f"and {name} is not in its manifest; move" in capsys.readouterr().err
        (old / name).unlink()
    run = shutil.copytree(dates_run, old / "run")
    assert main([str(run), str(old), "--overwrite"]) == 1
    assert f"the run {run} lies in it; choose another folder" in capsys.readouterr().err
    assert (run / "model.keras").exists()


@pytest.mark.parametrize(
    "place, where", [(".", "is"), ("bundle", "lies in"), ("tokenizer/../a/bundle", "lies in")]
)
def test_no_bundle_is_made_in_the_folder_of_its_run(dates_run, place, where, tmp_path, capsys):
    run = shutil.copytree(dates_run, tmp_path / "run")
    before = sorted(run.rglob("*"))
    assert main([str(run), str(run / place), "--overwrite"]) == 1
    expected = f"seqkeras export: {run / place}: {where} the run {run}; choose another folder.\n"
    assert capsys.readouterr().err == expected
    assert sorted(run.rglob("*")) == before and leftovers(tmp_path) == ["run"]


NOT_ITS = "and manifest.json is not a bundle's, so which files are its own"


@pytest.mark.parametrize(
    "manifest, message",
    [
        (None, "exists, and is no bundle (manifest.json is missing)"),
        ("{", NOT_ITS),
        ("{}", NOT_ITS),
        ('{"name": "my app", "version": 3}', NOT_ITS),
    ],
)
def test_a_folder_that_is_no_bundle_is_never_replaced(
    dates_run, manifest, message, tmp_path, capsys
):
    (tmp_path / "main.js").write_text("mine")
    if manifest is not None:
        (tmp_path / "manifest.json").write_text(manifest)
    assert main([str(dates_run), str(tmp_path), "--overwrite"]) == 1
    error = capsys.readouterr().err
    assert message in error and "choose another folder" in error and error.count("\n") == 1
    assert (tmp_path / "main.js").read_text() == "mine"


@pytest.mark.long
def test_overwrite_replaces_a_bundle_and_leaves_nothing_beside_it(
    dates_run, dates_bundle, tmp_path, capsys
):
    old = shutil.copytree(dates_bundle, tmp_path / "dates")
    created = read_manifest(old).created
    assert main([str(dates_run), str(old), "--overwrite"]) == 0
    assert leftovers(tmp_path) == ["dates"]
    assert read_manifest(old).created > created
    lines = capsys.readouterr().out.splitlines()
    assert "the same strings, on 256 real inputs" in lines[-2]
    assert lines[-1].startswith("next: seqkeras predict")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: shutil.rmtree(run), "no such run folder"),
        (lambda run: (run / "run.json").write_text("{"), "run.json: not a run record"),
        (lambda run: (run / "model.keras").write_bytes(b"PK"), "not a model that Keras can load"),
        (lambda run: (run / "model.keras").unlink(), "not a model that Keras can load"),
        (lambda run: (run / "scores.json").unlink(), "scores.json: can not be read"),
        (lambda run: (run / "validation.json").write_text("["), "validation.json: can not be read"),
        (lambda run: (run / "validation.json").write_text("[]"), "validation.json: must be a list"),
        (lambda run: (run / "validation.json").write_text("{}"), "validation.json: must be a list"),
        (lambda run: flip_a_byte(run / "model.keras"), "not a model that Keras can load"),
        (lambda run: (run / "tokenizer/source.json").write_text("[]"), "source.json can not be us"),
    ],
)
def test_a_damaged_run_is_refused_in_one_line(dates_run, tmp_path, damage, message, capsys):
    run = shutil.copytree(dates_run, tmp_path / "run")
    damage(run)
    assert main([str(run), str(tmp_path / "bundles" / "dates")]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.startswith("seqkeras export: ") and error.count("\n") == 1
    assert leftovers(tmp_path) in (["run"], [])


@pytest.mark.long
def test_a_bundle_that_answers_differently_is_refused(dates_run, tmp_path, monkeypatch):
    monkeypatch.setattr(parity, "TOLERANCE", 0.0)
    with pytest.raises(ParityError, match="onnx log-probabilities differ by .* from Keras"):
        export(dates_run, tmp_path / "dates")
    assert leftovers(tmp_path) == []


@pytest.mark.long
def test_a_full_disk_leaves_the_old_bundle_and_nothing_else(dates_run, dates_bundle, tmp_path):
    shutil.copytree(dates_bundle, tmp_path / "dates")

    def allow_small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))

    finished = run_python(
        *("-m", "export", dates_run, tmp_path / "dates", "--overwrite"),
        preexec_fn=allow_small_files,
    )
    assert finished.returncode == 1
    assert finished.stderr.startswith("python -m export: ") and finished.stderr.count("\n") == 1
    assert f"{tmp_path / 'dates'} was not made or changed" in finished.stderr
    assert "File too large; mend that" in finished.stderr
    assert leftovers(tmp_path) == ["dates"]
    verify_files(tmp_path / "dates", read_manifest(tmp_path / "dates"))


@pytest.mark.long
def test_a_kill_by_sigterm_says_so_and_leaves_nothing(dates_run, tmp_path):
    with start_python("-m", "export", dates_run, tmp_path / "dates") as process:
        while not leftovers(tmp_path) and process.poll() is None:
            time.sleep(0.01)
        process.terminate()
        error = process.stderr.read()
    assert error == f"python -m export: stopped; {tmp_path / 'dates'} was not made or changed\n"
    assert process.returncode == 130
    assert leftovers(tmp_path) == []


def test_swapped_arguments_are_named(dates_run, dates_bundle, tmp_path, capsys):
    assert main([str(dates_bundle), str(tmp_path / "new")]) == 1
    assert "is a bundle; the order is: seqkeras export RUN BUNDLE" in capsys.readouterr().err
    assert main([str(dates_bundle), str(dates_run), "--overwrite"]) == 1
    assert "is a run; the order is: seqkeras export RUN BUNDLE" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_a_library_passes_over_still_ends_the_export(
    number, dates_run, tmp_path, monkeypatch, capsys
):
    def import_tensorflow():
        with contextlib.suppress(BaseException):
            signal.raise_signal(number)

    # What a shell runs in the background ignores SIGINT.
    own, hook = signal.signal(number, signal.default_int_handler), sys.unraisablehook
    monkeypatch.setattr(command_line, "import_tensorflow", import_tensorflow)
    bundle = tmp_path / "bundle"
    try:
        assert command_line.main([str(dates_run), str(bundle)]) == 130
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, own)
    assert (
        capsys.readouterr().err == f"seqkeras export: stopped; {bundle} was not made or changed\n"
    )
    assert sys.unraisablehook is hook
