"""manifest.json: the description of a bundle's content.

The dataclasses of `format` define the format: reading checks JSON against their fields and types
(`fields`), and one error lists every reason to refuse a manifest. Export writes manifests, serving
reads them. `files` verifies a bundle's files by size and sha256.
"""

from .files import (
    describe_files,
    read_bundle,
    read_manifest,
    read_verified,
    verify_files,
    write_manifest,
)
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
    NoFiniteNumber,
    Precision,
    SignatureSpec,
    StateEntry,
    TensorSpec,
    TextPrefix,
)
from .pipelines import PIPELINE_TEXTS
from .refusal import OverLimit, Refusal

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
    "NoFiniteNumber",
    "OverLimit",
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
    "read_verified",
    "verify_files",
    "write_manifest",
]
