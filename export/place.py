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
    if bundle.resolve() in run.resolve().parents:
        raise ExportError(f"{bundle}: the run {run} lies in it; choose another folder.")
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
            f"{bundle}: would be replaced as a whole, and {stranger} is none of its files; move "
            "that away, or choose another folder."
        )


def _stranger(bundle):
    """The first file that lies in a bundle and is not the bundle's, or None."""
    try:
        own = {*read_manifest(bundle).files, MANIFEST}
    except BundleError:  # it is damaged, and does not say which are
        return None
    paths = (each for each in sorted(bundle.rglob("*")) if not each.name.startswith("."))
    files = (each.relative_to(bundle).as_posix() for each in paths if not each.is_dir())
    return next((each for each in files if each not in own), None)
