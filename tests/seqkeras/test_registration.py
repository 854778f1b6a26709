"""`import seqkeras` is enough to load what was saved, and costs nothing before Keras is there."""

import ast
import subprocess
import sys

import pytest

from seqkeras.models import GPT
from tests.conftest import CHECKOUT, others_long

REGISTERED = sorted(
    node.name
    for path in (CHECKOUT / "seqkeras").rglob("*.py")
    for node in ast.parse(path.read_text(encoding="utf-8")).body
    if isinstance(node, ast.ClassDef | ast.FunctionDef)
    and any("register_keras_serializable" in ast.unparse(each) for each in node.decorator_list)
)


def python(code, *arguments):
    command = [sys.executable, "-c", code, *map(str, arguments)]
    finished = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.split()


@pytest.mark.parametrize(
    "imports",
    others_long(
        ["import seqkeras, keras", "import keras, seqkeras", "import seqkeras.recurrent, keras"]
    ),
)
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
    name, *known = python(code, tmp_path / "model.keras")
    assert name == "GPT"
    assert "LSTM" in REGISTERED and "span_loss" in REGISTERED
    assert set(REGISTERED) <= set(known)


def test_it_imports_neither_keras_nor_tensorflow():
    code = """
import sys, seqkeras
print(*({"keras", "tensorflow", "numpy"} & set(sys.modules)))
print(seqkeras.__version__, "recurrent" in dir(seqkeras), hasattr(seqkeras, "nothing"))
print(seqkeras.recurrent.LSTM.__name__)
"""
    assert python(code) == ["0.1.0", "True", "False", "LSTM"]
