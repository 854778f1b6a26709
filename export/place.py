"""A check of a bundle's folder: only another bundle can be overwritten."""

from pathlib import Path

from seqkeras.export.checks import ExportError
from seqkeras.runs import RECORD
from seqkeras.serving.manifest import MANIFEST, BundleError, read_manifest


def require_free(bundle: Path, overwrite: bool, run: Path) -> None:
    """Raise an ExportError unless a bundle of the run may be written there."""
    target, of_run = bundle.resolve(), run.resolve()
    if target in of_run.parents:
        raise ExportError(f"{bundle}: the run {run} lies in it; choose another folder.")
    if of_run in (target, *target.parents):
        where = "is" if target == of_run else "lies in"
        raise ExportError(f"{bundle}: {where} the run {run}; choose another folder.")
    if not bundle.exists():
        return
    if (bundle / RECORD).is_file():
        raise ExportError(f"{bundle}: is a run; the order is: seqkeras export RUN BUNDLE.")
    if not (bundle / MANIFEST).is_file():
        raise ExportError(
            f"{bundle}: exists, and is no bundle ({MANIFEST} is missing), so it is never replaced; "
            "choose another folder."
        )
    if not overwrite:
        raise ExportError(f"{bundle}: exists already; replace it with --overwrite.")
    if unknown_file := _unknown_file(bundle):
        raise ExportError(
            f"{bundle}: would be replaced as a whole, and {unknown_file}; move that away, or "
            "choose another folder."
        )


def _unknown_file(bundle):
    """Return the first file in a bundle that its manifest does not list, in words, or None."""
    try:
        known = {*read_manifest(bundle).files, MANIFEST}
    except BundleError:
        return f"{MANIFEST} is not a bundle's, so which files are its own is unknown"
    for path in sorted(bundle.rglob("*")):  # hidden files too; empty folders do not matter
        is_file = path.is_symlink() or not path.is_dir()
        if is_file and path.relative_to(bundle).as_posix() not in known:
            return f"{path.relative_to(bundle)} is not in its manifest"
    return None
