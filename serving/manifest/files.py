"""A bundle's manifest and files, read, written and verified."""

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO, TypeVar

from .format import COPY_AGAIN, MANIFEST, MOST_BYTES, BundleError, FileEntry, Manifest

MOST_SHOWN = 300  # characters of a missing folder's name
Result = TypeVar("Result")
PAUSES = 20 * (0.05,)  # seconds between the attempts to read a bundle that is being replaced


def read_manifest(folder: str | os.PathLike[str]) -> Manifest:
    """Return the manifest of the bundle in `folder`; other files are not read.

    Args:
        folder: the bundle.

    Returns:
        A `Manifest`.

    Raises:
        BundleError: if the manifest is missing, or can not be read.

    Example:
        >>> from seqkeras.serving.manifest import read_manifest
        >>> manifest = read_manifest("bundles/reviews")
        >>> manifest.pipeline, manifest.tokenizers
        ('Classify', {'text': 'tokenizer/text.json'})
    """
    folder = Path(folder)
    try:
        with open_file(folder / MANIFEST) as stream:
            text = stream.read(MOST_BYTES + 1)  # a longer one is refused
    except (OSError, ValueError) as error:
        raise BundleError(_missing(folder, error), advice="") from error
    try:
        return Manifest.from_json(text)
    except BundleError as error:
        error.where = folder
        raise


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a file to read its bytes.

    Raises:
        OSError: if the file is missing, or is a folder, a pipe or a device, which may be endless.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    stream = os.fdopen(os.open(path, flags), "rb")  # does not wait for the writer of a pipe
    if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
        stream.close()
        raise OSError(errno.EINVAL, "it is a pipe or a device; expected a file", str(path))
    return stream


def write_manifest(folder: str | os.PathLike[str], manifest: Manifest) -> None:
    """Write `manifest` into `folder`, after checking that serving can read it.

    Args:
        folder: a folder that exists.
        manifest: a `Manifest`.

    Raises:
        BundleError: if serving would refuse it.

    Example:
        >>> import dataclasses
        >>> from seqkeras.serving.manifest import read_manifest, write_manifest
        >>> manifest = dataclasses.replace(read_manifest("bundles/reviews"), name="opinions")
        >>> write_manifest(".", manifest)
        >>> read_manifest(".").name
        'opinions'
    """
    text = manifest.to_json()
    Manifest.from_json(text)
    (Path(folder) / MANIFEST).write_text(text, encoding="utf-8")


def describe_files(folder: str | os.PathLike[str]) -> dict[str, FileEntry]:
    """Return the `FileEntry` of every file in `folder` but its manifest.

    Args:
        folder: a folder that exists.

    Returns:
        A dictionary: path -> `FileEntry`, sorted by path.

    Example:
        >>> import pathlib
        >>> from seqkeras.serving.manifest import describe_files
        >>> pathlib.Path("notes").mkdir()
        >>> _ = pathlib.Path("notes", "a.txt").write_bytes(b"abc")
        >>> describe_files("notes")["a.txt"].bytes
        3
    """
    folder = Path(folder)
    files = {file.relative_to(folder).as_posix(): file for file in folder.rglob("*")}
    return {
        path: _entry(file)
        for path, file in sorted(files.items())
        if file.is_file() and path != MANIFEST
    }


def verify_files(
    folder: str | os.PathLike[str], manifest: Manifest, names: Iterable[str] | None = None
) -> None:
    """Verify files against the manifest by size and sha256.

    Args:
        folder: the bundle.
        manifest: its `Manifest`.
        names: paths of the files to verify, of `manifest.files`; None: all.

    Raises:
        BundleError: naming every file that is missing, truncated or altered.

    Example:
        >>> from seqkeras.serving.manifest import read_manifest, verify_files
        >>> manifest = read_manifest("bundles/reviews")
        >>> verify_files("bundles/reviews", manifest)  # silent, as every file is whole
        >>> verify_files("bundles/dates", manifest, ["tokenizer/text.json"])
        Traceback (most recent call last):
            ...
        seqkeras.serving.manifest.format.BundleError: bundles/dates: ...
    """
    names = manifest.files if names is None else names
    problems = [_file_problem(Path(folder) / name, name, manifest.files[name]) for name in names]
    problems = [problem for problem in problems if problem]
    if problems:
        raise BundleError(*problems, where=folder, advice=COPY_AGAIN)


def read_verified(folder: str | os.PathLike[str]) -> Manifest:
    """Return the manifest of a bundle, after verifying every file.

    Args:
        folder: the bundle.

    Returns:
        A `Manifest`.

    Raises:
        BundleError: if the bundle can not be read, or a file is missing or altered.

    Example:
        >>> from seqkeras.serving.manifest import read_verified
        >>> read_verified("bundles/reviews").name
        'reviews'
    """

    def verified(manifest):
        verify_files(folder, manifest)
        return manifest

    return read_bundle(folder, verified)


def read_bundle(folder: str | os.PathLike[str], read: Callable[[Manifest], Result]) -> Result:
    """Return `read(manifest)` of a bundle that did not change meanwhile.

    An exporter that replaces a bundle exchanges the two folders' names in a single step. If the
    file system can not do that, it renames the old folder to its sibling `.NAME.replaced-…`, then
    the new one to its place. A reader that finds no bundle between the two renames, or files of
    both, or a file that was just written, tries again for up to a second. A bundle that is missing
    or damaged for another reason is refused at once.

    Args:
        folder: the bundle.
        read: takes the `Manifest`, and reads the files that it needs.

    Returns:
        What `read` returns.

    Raises:
        BundleError: if the bundle can not be read, or still changes after a second.

    Example:
        >>> from seqkeras.serving.manifest import read_bundle
        >>> read_bundle("bundles/reviews", lambda manifest: len(manifest.files) > 3)
        True
    """
    folder = Path(folder)
    failure: Exception
    for pause in (*PAUSES, None):
        before = _seen(folder)
        try:
            manifest = read_manifest(folder)
            files = _states(folder, manifest)
            result = read(manifest)
            if _seen(folder) == before and _states(folder, manifest) == files:
                return result
            failure = BundleError("it changed while it was read", where=folder, advice="Try again.")
        except (OSError, ValueError) as error:
            if pause is None or not _is_being_replaced(folder, before):
                raise
            failure = error
        if pause is not None:
            time.sleep(pause)
    raise failure


def _is_being_replaced(folder, before):
    # Old folders first, manifest second: this detects a replacement that ends in between.
    try:
        folder_itself = folder.resolve()
        siblings = os.listdir(folder_itself.parent)
    except (OSError, ValueError):
        folder_itself, siblings = folder, []
    aside = any(name.startswith(f".{folder_itself.name}.replaced-") for name in siblings)
    return aside or _seen(folder) != before


def _seen(folder):
    """Return the manifest's bytes and its file's identity, or None if it can not be read."""
    try:  # after two replacements the manifest may be equal again
        with open_file(folder / MANIFEST) as stream:
            status = os.fstat(stream.fileno())
            return stream.read(MOST_BYTES + 1), status.st_ino, status.st_mtime_ns
    except (OSError, ValueError):  # a path that holds NUL is a ValueError
        return None


def _states(folder, manifest):
    """Return the size, identity and age of each file; None for a missing one."""
    states = []
    for name in manifest.files:
        try:
            status = os.stat(folder / name)
            states.append((status.st_size, status.st_ino, status.st_mtime_ns))
        except OSError:
            states.append(None)
    return states


def _missing(folder, error):
    if not os.path.exists(folder):  # Path.exists raises for some paths
        return (
            f"{_shown(folder)}: there is no such folder; expected a bundle, as seqkeras export "
            "makes it."
        )
    if not folder.is_dir():
        return f"{folder} is a file; expected a bundle's folder, as seqkeras export makes it."
    if isinstance(error, FileNotFoundError):
        return f"{folder} has no {MANIFEST}; expected a bundle, as seqkeras export makes it."
    return f"{folder / MANIFEST} can not be read: {error.strerror}."


def _shown(folder):
    text = ascii(str(folder))[1:-1] if not str(folder).isprintable() else str(folder)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def _file_problem(file, name, expected):
    try:
        with open_file(file) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size != expected.bytes:
                return f"{name} has {size} bytes, expected {expected.bytes}: truncated or altered"
            if _sha256(stream) != expected.sha256:
                return f"{name} does not have the manifest's sha256: altered"
    except FileNotFoundError:
        return f"{name} is missing"
    except OSError as error:
        return f"{name} can not be read: {error.strerror}"
    return None


def _entry(file):
    with open_file(file) as stream:
        return FileEntry(bytes=os.fstat(stream.fileno()).st_size, sha256=_sha256(stream))


def _sha256(stream):
    return hashlib.file_digest(stream, "sha256").hexdigest()
