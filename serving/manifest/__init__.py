"""manifest.json: the one description of what is in a bundle.

The dataclasses of `format` are the format: reading checks JSON against their fields and their types
(`fields`), and every reason to refuse a manifest comes in one error. Export writes manifests,
serving reads them. The files themselves are held against the manifest by size and sha256 (`files`).
"""

from .files import describe_files, read_bundle, read_manifest, verify_files, write_manifest
from .format import (
    COPY_AGAIN,
    MANIFEST,
    SCHEMA_VERSION,
    UPGRADE,
    BundleError,
    DecodingDefaults,
    FileEntry,
    GraphFile,
    Limits,
    Manifest,
    Precision,
    SignatureSpec,
    StateEntry,
    TensorSpec,
    TextPrefix,
)
from .pipelines import PIPELINE_TEXTS
from .refusal import Refusal

__all__ = [
    "COPY_AGAIN",
    "MANIFEST",
    "PIPELINE_TEXTS",
    "SCHEMA_VERSION",
    "BundleError",
    "DecodingDefaults",
    "FileEntry",
    "GraphFile",
    "Limits",
    "Manifest",
    "Precision",
    "Refusal",
    "SignatureSpec",
    "StateEntry",
    "TensorSpec",
    "TextPrefix",
    "UPGRADE",
    "describe_files",
    "read_bundle",
    "read_manifest",
    "verify_files",
    "write_manifest",
]
