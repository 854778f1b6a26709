"""`import seqkeras` is enough to load what was saved, and costs nothing before Keras is there."""

import ast

import pytest

from seqkeras.models import GPT
from tests.conftest import CHECKOUT, others_long, run_python

REGISTERED = sorted(
    node.name
    for path in (CHECKOUT / "seqkeras").rglob("*.py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.ClassDef | ast.FunctionDef)
    and any("register_keras_serializable" in ast.unparse(each) for each in node.decorator_list)
)


IMPORTS = [
    """
import sys, seqkeras
assert not {"keras", "tensorflow", "numpy"} & set(sys.modules)
assert "recurrent" in dir(seqkeras) and not hasattr(seqkeras, "nothing")
import keras
assert seqkeras.recurrent.LSTM.__name__ == "LSTM"
""",
    "import seqkeras, keras",
    "import keras, seqkeras",
    "import seqkeras.recurrent, keras",
]


@pytest.mark.parametrize("imports", others_long(IMPORTS), ids=["nothing else", *IMPORTS[1:]])
def test_a_file_is_loaded_by_whoever_imports_seqkeras(imports, tmp_path):
    model = GPT(11, 6, 1, 2, 7, 5)
    model.build()
    model.save(tmp_path / "model.keras")
    code = f"""
import sys
{imports}
print(type(keras.models.load_model(sys.argv[1])).__name__)
print(*(n.removeprefix("seqkeras>") for n in keras.saving.get_custom_objects() if ">" in n))
"""
    finished = run_python("-c", code, tmp_path / "model.keras")
    assert finished.returncode == 0, finished.stderr
    name, *known = finished.stdout.split()
    assert name == "GPT"
    assert "LSTM" in REGISTERED and "span_loss" in REGISTERED
    assert set(REGISTERED) <= set(known)
