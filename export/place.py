"""Where a bundle may be written, so that nothing is lost but another bundle."""

from export.checking import ExportError
from seqkeras.runs import RECORD
from serving.manifest import MANIFEST, BundleError, read_manifest


def require_free(bundle, overwrite, run):
    """Raise an ExportError unless a bundle may take that place.

    Args:
        bundle: the folder to make.
        overwrite: whether a bundle that is there may be replaced.
        run: the folder of the run, which must stay.
    """
    place, of_run = bundle.resolve(), run.resolve()
    if place in of_run.parents:
        raise ExportError(f"{bundle}: the run {run} lies in it; choose another folder.")
    if of_run in (place, *place.parents):
        where = "is" if place == of_run else "lies in"
        raise ExportError(f"{bundle}: {where} the run {run}; choose another folder.")
    if not bundle.exists():
        return
    if (bundle / RECORD).is_file():
        raise ExportError(f"{bundle}: is a run; the order is: python -m export RUN BUNDLE.")
    if not (bundle / MANIFEST).is_file():
        raise ExportError(
            f"{bundle}: exists, and is no bundle ({MANIFEST} is missing), so it is never replaced; "
            "choose another folder."
        )
    if not overwrite:
        raise ExportError(f"{bundle}: exists already; replace it with --overwrite.")
    if stranger := _stranger(bundle):
        raise ExportError(
            f"{bundle}: would be replaced as a whole, and {stranger}; move that away, or choose "
            "another folder."
        )


def _stranger(bundle):
    """The first thing in a bundle that its manifest does not know, in words, or None."""
    try:
        own = {*read_manifest(bundle).files, MANIFEST}
    except BundleError:
        return f"{MANIFEST} is no bundle's, so that nothing tells which files are its own"
    for path in sorted(bundle.rglob("*")):  # hidden ones too; an empty folder holds nothing to lose
        is_file = path.is_symlink() or not path.is_dir()
        if is_file and path.relative_to(bundle).as_posix() not in own:
            return f"{path.relative_to(bundle)} is none of its files"
    return None
