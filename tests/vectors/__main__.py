"""Write every family's vectors: python -m tests.vectors"""

import numpy as np

from tests import vectors

for family in vectors.FAMILIES:
    arrays = vectors.make(family)
    path = vectors.FOLDER / f"{family}.npz"
    np.savez_compressed(path, **arrays)
    print(f"tests/vectors/{path.name}: {len(arrays)} arrays, {path.stat().st_size:,} bytes")
print(f"vectors written: {len(vectors.FAMILIES)} files; next: make parity")
