import dataclasses
import json
import os
import pickle
import re
import threading
import time

import pytest

from seqkeras.serving.manifest import (
    BundleError,
    Manifest,
    Refusal,
    describe_files,
    files,
    read_bundle,
    read_manifest,
    verify_files,
    write_manifest,
)
from tests.serving.toy_bundle import write_bundle


def change(bundle, edit):
    content = json.loads((bundle / "manifest.json").read_bytes())
    edit(content)
    (bundle / "manifest.json").write_text(json.dumps(content))


def refused(bundle, message):
    """Expect one line that names the bundle, then matches `message`."""
    return pytest.raises(BundleError, match=rf"^{re.escape(str(bundle))}.*{message}.*\.\Z")


def test_a_manifest_survives_its_file(bundle):
    manifest = read_manifest(bundle)
    assert Manifest.from_json(manifest.to_json()) == manifest
    write_manifest(bundle, manifest)
    assert read_manifest(bundle) == manifest
    assert manifest.graphs["encoder"].inputs[0].shape == ("batch", "source_length")
    assert manifest.beam_state == ("position", "memory")
    assert manifest.source_state == ("keys", "lengths")


def test_each_entry_of_a_manifest_has_a_line(bundle):
    manifest = dataclasses.replace(read_manifest(bundle), examples=([[1.5, 2.5], [3.5, 4.5]], "a"))
    text = manifest.to_json()
    assert Manifest.from_json(text) == manifest
    assert '  "examples": [\n    [[1.5, 2.5], [3.5, 4.5]],\n    "a"\n  ],\n' in text
    assert '  "decoding": {\n    "num_beams": ' in text and '  "settings": {},\n' in text


def test_a_missing_prefix_and_a_whole_length_penalty_can_be_read(bundle):
    change(bundle, lambda m: m.update(text_prefix=None, decoding={"length_penalty": 1}))
    manifest = read_manifest(bundle)
    assert manifest.text_prefix is None
    assert (manifest.decoding.num_beams, manifest.decoding.length_penalty) == (1, 1.0)


def test_every_file_but_the_manifest_is_described(bundle):
    files = describe_files(bundle)
    assert list(files) == sorted(files)
    assert "manifest.json" not in files
    assert files["saved_model/1/saved_model.pb"].bytes == 21
    (bundle / "abc").write_bytes(b"abc")  # the digest is FIPS 180-2's own example
    assert describe_files(bundle)["abc"].sha256 == (
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_what_is_no_bundle_is_refused_at_once(bundle, tmp_path, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda seconds: pytest.fail("it waited"))
    for path, message in (
        (tmp_path / "none", "there is no such folder; expected a bundle"),
        (bundle / "manifest.json", "is a file; expected a bundle's folder"),
        (tmp_path, "has no manifest.json; expected a bundle"),
    ):
        with refused(path, message):
            read_bundle(path, lambda manifest: manifest)
    (bundle / "onnx/encoder.onnx").write_bytes(b"")
    with refused(bundle, "encoder.onnx has 0 bytes"):
        read_bundle(bundle, lambda manifest: verify_files(bundle, manifest))


@pytest.mark.parametrize("content", [b"", b'{"schema_version": 1,', b"\xff", b"[" * 10**5, b"NaN"])
def test_a_manifest_that_is_not_json_is_refused(bundle, content):
    (bundle / "manifest.json").write_bytes(content)
    with refused(bundle, "manifest.json: is not valid JSON .*truncated or altered. Copy or export"):
        read_manifest(bundle)


def test_a_manifest_of_any_size_is_not_read_whole(bundle):
    with open(bundle / "manifest.json", "ab") as stream:
        stream.truncate(2**40)  # a hole: no disk holds it
    with refused(bundle, "manifest.json: must have at most 16,777,216 bytes; it has more"):
        read_bundle(bundle, lambda manifest: None)


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_a_pipe_or_a_device_is_no_file_of_a_bundle(bundle, make):
    manifest = read_manifest(bundle)
    (bundle / "onnx/encoder.onnx").unlink()
    make(bundle / "onnx/encoder.onnx")
    with refused(bundle, "onnx/encoder.onnx can not be read: it is a pipe or a device; expected a"):
        verify_files(bundle, manifest)
    (bundle / "manifest.json").unlink()
    make(bundle / "manifest.json")
    with refused(bundle, "manifest.json can not be read: it is a pipe or a device; expected a"):
        read_bundle(bundle, lambda manifest: None)


def of(*keys, **changes):
    """Change what stands at some keys of a manifest."""

    def edit(manifest):
        for key in keys:
            manifest = manifest[key]
        manifest.update(changes)

    return edit


@pytest.mark.parametrize(
    "edit, message",
    [
        (lambda m: m.pop("graphs"), "graphs is missing"),
        (lambda m: m.pop("schema_version"), "schema_version is missing"),
        (of(schema_version=2, limits=7), "has schema 2; this .* reads schema 3. Export the bundle"),
        (of(schema_version=4, unheard_of={}), "has schema 4; this .* reads schema 3. Upgrade seqk"),
        (of(extra=1), "extra is unknown"),
        (of(name=7), "name must be a string; received 7"),
        (of(limits=[]), r"limits must be an object; received \[\]"),
        (lambda m: m["limits"].pop("source_length"), "limits.source_length is missing"),
        (of("limits", source_length=True), "source_length must be a whole number; received true"),
        (of("limits", target_length=0), "limits.target_length must be at least 1; received 0"),
        (of("limits", target_length=10**30), "must be at most 16777216; received 10000"),
        (of("decoding", start_id=-1), "decoding.start_id must be at least 0; received -1"),
        (of("decoding", end_id=2**31), "end_id must be at most 2147483647; received 2147483648"),
        (of("decoding", length_penalty="high"), 'penalty must be a number; received "high"'),
        (of("decoding", length_penalty=1e9), "must be from -10 to 10; received 1000000000.0"),
        (of("decoding", length_penalty=10**400), "penalty must be a number; received 1000"),
        (of(examples="up"), 'examples must be a list; received "up"'),
        (of(scores=1), "scores must be an object; received 1"),
        (of("graphs", "encoder", "inputs", 1, shape=[1.5]), r"graphs.encoder.inputs\[1\].shape\[0"),
        (of("text_prefix", values=[]), "text_prefix must have a separator and values"),
        (
            of("state", 0, per="token"),
            "'position' must be per 'beam', 'source' or 'stream'; received 'token",
        ),
        (of("state", 0, name="keys"), "must be distinct; received keys, memory, keys, lengths"),
        (lambda m: m["files"].pop("onnx/encoder.onnx"), "files must list 'onnx/encoder.onnx', whi"),
        (of("files", "onnx/encoder.onnx", sha256="0" * 63 + "g"), "files 'onnx/encoder.onnx' must"),
    ],
)
def test_a_wrong_field_is_refused_by_name(bundle, edit, message):
    change(bundle, edit)
    with refused(bundle, f"manifest.json: .*{message}"):
        read_manifest(bundle)


def test_every_wrong_field_is_named_at_once(bundle):
    change(bundle, lambda m: (m.pop("task"), m.update(name=7), m["limits"].update(x=1)))
    with refused(bundle, "task is missing; name must be .*; limits.x is unknown"):
        read_manifest(bundle)


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "/etc/passwd",
        "onnx/../../x",
        "C:\\x",
        "onnx//x",
        "",
        "./x",
        "a\0",
        "onnx/*/_ORT_MEM_ADDR_/*",
    ],
)
def test_a_path_out_of_the_bundle_is_refused(bundle, path):
    change(bundle, lambda m: m["files"].update({path: m["files"]["onnx/encoder.onnx"]}))
    with refused(bundle, "path '.*' must lie inside the bundle"):
        read_manifest(bundle)


def test_a_manifest_that_could_not_be_read_is_not_written(bundle):
    manifest = read_manifest(bundle)
    object.__setattr__(manifest, "name", 7)
    with pytest.raises(BundleError, match=r"^manifest.json: name must be a string; received 7\.$"):
        write_manifest(bundle, manifest)
    assert read_manifest(bundle).name == "toy"


def test_missing_truncated_and_altered_files_are_all_named(bundle):
    manifest = read_manifest(bundle)
    (bundle / "tokenizer/source.json").unlink()
    truncated, altered = bundle / "onnx/encoder.onnx", bundle / "onnx/decoder_step.onnx"
    size = truncated.stat().st_size
    truncated.write_bytes(truncated.read_bytes()[:-1])
    altered.write_bytes(altered.read_bytes()[:-1] + b"?")
    with refused(
        bundle,
        "onnx/decoder_step.onnx does not have the manifest's sha256: altered; "
        f"onnx/encoder.onnx has {size - 1} bytes, expected {size}: truncated or altered; .*"
        "tokenizer/source.json is missing. Copy or export the bundle again",
    ):
        verify_files(bundle, manifest)
    verify_files(bundle, manifest, ["tokenizer/target.json"])


def test_the_gap_while_a_bundle_is_replaced_is_waited_out(bundle):
    new = write_bundle(bundle.parent / ".toy.new", name="renewed")
    bundle.rename(bundle.parent / ".toy.replaced-1")
    threading.Timer(0.3, lambda: new.rename(bundle)).start()
    assert read_bundle(bundle, lambda manifest: manifest.name) == "renewed"


def test_a_gap_that_stays_is_given_up(bundle, monkeypatch):
    pauses = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    bundle.rename(bundle.parent / ".toy.replaced-1")
    with refused(bundle, "there is no such folder"):
        read_bundle(bundle, lambda manifest: manifest.name)
    assert sum(pauses) == pytest.approx(1.0)


def replace(bundle, name):
    """Replace `bundle` as an exporter does, the old folder gone at the end."""
    new = write_bundle(bundle.parent / f".{name}.new", name=name, scores={"made_for": name})
    old = bundle.rename(bundle.parent / ".toy.replaced-1")
    new.rename(bundle)
    old.rename(bundle.parent / f"old-{name}")


@pytest.mark.parametrize("mixed", [True, False])
def test_a_bundle_that_is_replaced_while_it_is_read_is_read_again(bundle, mixed):
    """Its files are a mixture of two bundles, or were verified before."""
    seen = []

    def read(manifest):
        seen.append(manifest.name)
        if len(seen) == 1:
            replace(bundle, "renewed")
            if mixed:
                raise BundleError("encoder.onnx does not have the manifest's sha256")
        return manifest.name

    assert read_bundle(bundle, read) == "renewed"
    assert seen == ["toy", "renewed"]


def test_a_file_that_is_written_in_place_while_it_is_read_is_read_again(bundle):
    seen, file = [], bundle / "onnx/encoder.onnx"
    right = file.read_bytes()

    def read(manifest):
        seen.append(file.read_bytes() == right)
        if len(seen) == 1:
            file.write_bytes(right[::-1])  # of the same size, behind the check of its sha256
            os.utime(file, ns=(0, 0))  # a clock of files may be too coarse to tell
        elif len(seen) == 2:
            file.write_bytes(right)
        return len(seen)

    assert read_bundle(bundle, read) == 3
    assert seen == [True, False, True]


def test_a_bundle_that_keeps_changing_is_given_up(bundle, monkeypatch):
    monkeypatch.setattr(files, "PAUSES", 3 * (0,))
    names = iter("abcde")
    with refused(bundle, "it changed while it was read"):
        read_bundle(bundle, lambda manifest: replace(bundle, next(names)))


@pytest.mark.parametrize(
    ("reasons", "places", "text"),
    [
        (("a", "b"), {"where": "dir", "subject": "file", "advice": "Do."}, "dir: file: a; b. Do."),
        (("a",), {"where": "dir"}, "dir: a."),
        (("a",), {"advice": "Do."}, "a. Do."),
        (("It says so.",), {"where": "dir"}, "dir: It says so."),
    ],
)
def test_a_refusal_is_one_line(reasons, places, text):
    refusal = Refusal(*reasons, **places)
    assert str(refusal) == text
    assert refusal.reasons == reasons


def test_a_refusal_is_the_same_in_another_process():
    refusal = pickle.loads(pickle.dumps(BundleError("a", "b", where="dir", subject="file")))
    assert str(refusal) == "dir: file: a; b. Export the bundle again."
    assert (refusal.reasons, refusal.advice) == (("a", "b"), "Export the bundle again.")
