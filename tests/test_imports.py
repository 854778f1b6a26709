"""Who may import what: the table of the layout, its layers, and no circle, from the syntax tree.

Here `seqkeras.training`, `seqkeras.export` and `seqkeras.serving` have the names of their folders.
"""

import ast
import functools
import re
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
LINKED = ("training", "export", "serving")  # folders of the checkout that are packages of seqkeras
IMPORTS = ast.Import | ast.ImportFrom
OURS = {"seqkeras", *LINKED, "tests", "benchmarks"}
NUMERIC = {"keras", "tensorflow", "numpy"}

# Where (the first that fits): which modules of ours | which packages from outside. `save_run` of
# export/saving.py runs without TensorFlow.
TABLE = """
serving/text/: serving.parsing serving.text | numpy sentencepiece tokenizers
serving/manifest/: serving.manifest serving.parsing |
serving/beam.py: serving | apache_beam
serving/http/: serving | httptools numpy prometheus_client starlette uvicorn
serving/: serving | numpy onnxruntime
seqkeras/data/date: seqkeras.data | NUMERIC babel rapidfuzz
seqkeras/data/series.py: seqkeras.data serving.categories serving.rows serving.times
    serving.written_numbers | numpy
seqkeras/data/time_steps.py: serving.times | numpy
seqkeras/data/conll.py: seqkeras.data serving.entities |
seqkeras/data/token_records.py: seqkeras.data seqkeras.files seqkeras.folders
    seqkeras.tokenizers.encode_all serving.text | numpy
seqkeras/data/token_streams.py: seqkeras.data seqkeras.tokenizers.encode_all serving.text | numpy
seqkeras/data/: seqkeras.data seqkeras.targets serving.categories serving.parsing
    serving.text | NUMERIC
seqkeras/tokenizers/learn_pieces.py: serving.text | sentencepiece
seqkeras/tokenizers/varied.py: serving.text seqkeras.tokenizers | sentencepiece
seqkeras/tokenizers/: seqkeras.tokenizers serving.text | NUMERIC
seqkeras/composites/checking.py: seqkeras.composites | NUMERIC jax torch
seqkeras/composites/consistency.py: seqkeras.composites | NUMERIC jax
seqkeras/composites/: seqkeras.composites seqkeras.gradients seqkeras.masks seqkeras.values |
    NUMERIC
seqkeras/optimizers.py: seqkeras.gradients | NUMERIC
seqkeras/recurrent/: seqkeras.composites seqkeras.recurrent seqkeras.shapes seqkeras.values |
    NUMERIC
seqkeras/masks.py: seqkeras.values | NUMERIC
seqkeras/attention/: seqkeras.attention seqkeras.composites seqkeras.masks seqkeras.shapes
    seqkeras.values | NUMERIC
seqkeras/decoding/compiled.py: | NUMERIC jax
seqkeras/decoding/constraint.py: serving.text | NUMERIC
seqkeras/decoding/: seqkeras.decoding seqkeras.values | NUMERIC
seqkeras/embeddings/: seqkeras.embeddings seqkeras.shapes seqkeras.values | NUMERIC
seqkeras/metrics/error_rates.py: seqkeras.metrics | rapidfuzz
seqkeras/metrics/texts.py: seqkeras.metrics | sacrebleu
seqkeras/metrics/rouge.py: seqkeras.metrics serving.text | rouge_score
seqkeras/metrics/squad.py: seqkeras.metrics serving.text | NUMERIC
seqkeras/metrics/tagging.py: seqkeras.metrics serving.entities |
seqkeras/metrics/: seqkeras.metrics | NUMERIC
seqkeras/models/: seqkeras.attention seqkeras.composites seqkeras.decoding seqkeras.embeddings
    seqkeras.masks seqkeras.models seqkeras.recurrent seqkeras.schedules seqkeras.shapes
    seqkeras.tokenizers.special seqkeras.transformer seqkeras.values | NUMERIC
seqkeras/pretrained/folders.py: seqkeras.files seqkeras.folders seqkeras.pretrained | NUMERIC
    safetensors
seqkeras/pretrained/tokenizer_files.py: serving.text |
seqkeras/pretrained/: seqkeras.models seqkeras.pretrained seqkeras.values | NUMERIC
seqkeras/transformer/: seqkeras.attention seqkeras.composites seqkeras.decoding seqkeras.shapes
    seqkeras.transformer seqkeras.values | NUMERIC
seqkeras/streams/: seqkeras.attention seqkeras.composites seqkeras.models.forecaster
    seqkeras.models.rnn_cells seqkeras.recurrent seqkeras.runs.reference seqkeras.streams | keras
    numpy
seqkeras/analysis/: seqkeras serving.text | NUMERIC PIL arabic_reshaper bidi matplotlib
seqkeras/files.py: serving.parsing serving.replacing |
seqkeras/folders.py: seqkeras.exchanging seqkeras.locking |
seqkeras/runs/reference.py: seqkeras.files seqkeras.runs | keras numpy
seqkeras/runs/: seqkeras.files seqkeras.runs seqkeras.tokenizers.special
    serving.manifest serving.text | numpy
seqkeras/locking.py: | filelock
seqkeras/__main__.py: export seqkeras serving training |
seqkeras/preprocessors.py: seqkeras.tokenizers | NUMERIC
seqkeras/quiet.py: | jax keras tensorflow
seqkeras/losses.py: seqkeras.targets seqkeras.values | NUMERIC
seqkeras/callbacks.py: seqkeras.spreading seqkeras.terminal | NUMERIC
seqkeras/keras_pipeline.py: serving.manifest serving.opening serving.pipelines | keras
seqkeras/__init__.py: seqkeras.registration |
seqkeras/: | NUMERIC
training/events.py: | tensorboard
training/parts/baselines/forecasts.py: seqkeras training | numpy statsmodels
training/parts/baselines/: serving training | numpy sklearn threadpoolctl
training/parts/linear_ngrams.py: seqkeras training | keras numpy scipy sklearn threadpoolctl
training/tuning/: seqkeras training | click keras numpy optuna rich
training/strategies.py: seqkeras training | keras tensorflow
training/parts/pretrained.py: seqkeras training | keras keras_nlp
training/: seqkeras serving training | click keras numpy rich
export/saving.py: export.checks seqkeras serving.manifest | keras
export/checks/given.py: seqkeras serving.manifest serving.text | keras
export/text_graphs/sentence_pieces.py: export serving | NUMERIC sentencepiece tensorflow_text
export/: export seqkeras serving | NUMERIC onnx onnxruntime tensorflow_text tf2onnx
"""
RULES = {}
for line in re.split(r"\n(?! )", TABLE.strip()):  # a line that is indented goes on
    where, _, allowed = line.replace("NUMERIC", " ".join(NUMERIC)).partition(": ")
    ours, outside = ({*part.split()} for part in allowed.split("|"))
    RULES[where] = ours, outside
# Not part of a public interface, so a new version may move it.
PRIVATE = {
    "keras.src": {
        "seqkeras/composites/cudnn.py",
        "seqkeras/composites/recurrent.py",
        "seqkeras/embeddings/ids.py",
        "seqkeras/streams/walk.py",
        "seqkeras/values.py",
        "export/keras_layers.py",
        "export/onnx_graphs.py",
        "export/policies.py",
    },
    "tensorflow.python": {
        "export/freezing.py",
        "export/keras_layers.py",
        "seqkeras/analysis/operations.py",
        "seqkeras/gradients.py",
        "seqkeras/composites/nodes.py",
        "training/strategies.py",
    },
}
# The layers, the lowest first: a file imports from its own layer and those below. The one command
# line, which names all packages, is the top.
LAYERS = ("serving/", "seqkeras/", "export/", "training/", "seqkeras/__main__.py")
SOURCES = sorted(
    path.relative_to(CHECKOUT).as_posix()
    for folder in ("seqkeras", "training", "export", "serving")
    for path in (CHECKOUT / folder).rglob("*.py")
    if "build" not in path.parts
)


@functools.cache
def nodes(source):
    """The statements of a file that import, anywhere in it."""
    return [node for node in ast.walk(tree_of(source)) if isinstance(node, IMPORTS)]


@functools.cache
def nodes_of_types(source):
    """The statements under `if TYPE_CHECKING`, which import nothing.

    Beside a `__getattr__` they name what it imports at the first use.
    """
    tree = tree_of(source)
    if any(getattr(node, "name", None) == "__getattr__" for node in tree.body):
        return []
    return [
        node
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
        if isinstance(node, IMPORTS)
    ]


@functools.cache
def tree_of(source):
    return ast.parse((CHECKOUT / source).read_text(encoding="utf-8"))


def imports(source):
    """Every module that a file imports, anywhere in it; `from a import b` is a.b where that is a
    module of ours, else a."""
    for name in full_names(source):
        first, _, others = name.partition(".")
        yield others if first == "seqkeras" and others.split(".")[0] in LINKED else name


def full_names(source):
    """Every module that a file imports, by the name that stands there, or by its folder."""
    package = source.removesuffix(".py").split("/")[:-1]
    for node in nodes(source):
        if node in nodes_of_types(source):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            above = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                name = f"{module}.{alias.name}"
                yield name if is_module(name) else module


def is_module(name):
    path = CHECKOUT / name.replace(".", "/")
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def is_within(module, allowed):
    return any(module == name or module.startswith(f"{name}.") for name in allowed)


def rule(source):
    return next(rule for place, rule in RULES.items() if source.startswith(place))


def test_a_file_imports_only_what_its_folder_may():
    forbidden = set()
    for source in SOURCES:
        ours, outside = rule(source)
        ours = (*ours, "seqkeras.tensors")  # which names a type alone
        forbidden |= {
            (source, module)
            for module in imports(source)
            if not is_within(module, ours if module.split(".")[0] in OURS else outside)
            and module.split(".")[0] not in sys.stdlib_module_names
        }
    assert forbidden == set()


def test_the_table_allows_only_what_is_imported():
    unused = set()
    for where, (ours, outside) in RULES.items():
        sources = [source for source in SOURCES if rule(source) is RULES[where]]
        imported = {module for source in sources for module in imports(source)}
        allowed = {*ours, *outside - NUMERIC} if sources else {"any file"}
        unused |= {
            (where, name)
            for name in allowed
            if not any(is_within(module, {name}) for module in imported)
        }
    assert unused == set()


def test_serving_runs_under_any_name():
    serving = [source for source in SOURCES if source.startswith("serving/")]
    assert serving
    for source in serving:
        for node in nodes(source):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [] if node.level else [node.module]
            assert not {name.split(".")[0] for name in names} & OURS, source


def test_every_import_has_one_name():
    folders = (CHECKOUT / "tests", CHECKOUT / "benchmarks")
    others = [path for folder in folders for path in folder.rglob("*.py")]
    others.remove(CHECKOUT / "tests/journeys/edge.py")  # has the folder serving/ alone
    for source in [*SOURCES, *(path.relative_to(CHECKOUT).as_posix() for path in others)]:
        for node in nodes(source):
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [] if node.level else [node.module]
            assert not {name.split(".")[0] for name in names} & {*LINKED}, source


def test_no_module_is_named_after_a_package_it_imports():
    for source in SOURCES:
        path = Path(source)
        name = path.parent.name if path.name == "__init__.py" else path.stem
        assert name not in {module.split(".")[0] for module in imports(source)} - OURS, source


@pytest.mark.parametrize("private, places", PRIVATE.items(), ids=PRIVATE)
def test_private_interfaces_are_used_in_few_places(private, places):
    found = {source for source in SOURCES if any(is_within(m, {private}) for m in imports(source))}
    assert found <= places


def test_the_references_import_nothing_of_ours():
    for path in (CHECKOUT / "tests" / "references").glob("*.py"):
        for module in imports(path.relative_to(CHECKOUT).as_posix()):
            assert is_within(module, {"numpy", "tests.references", *sys.stdlib_module_names}), path


def test_the_reader_sees_every_kind_of_import():
    assert {"tensorflow", "json"} <= set(imports("seqkeras/composites/nodes.py"))
    assert "keras.src.backend" in set(imports("seqkeras/composites/recurrent.py"))
    assert "serving.text" in set(imports("serving/pipelines/translate.py"))
    assert "seqkeras.files" in set(imports("seqkeras/runs/record.py"))


def layer(source):
    """The index of the last of `LAYERS` that holds a file."""
    return max(place for place, start in enumerate(LAYERS) if source.startswith(start))


@functools.cache
def arrows(folders):
    """Each file of the folders -> the files of ours that it imports, anywhere in it."""
    sources = {
        path.relative_to(CHECKOUT).as_posix()
        for folder in folders
        for path in (CHECKOUT / folder).rglob("*.py")
        if "build" not in path.parts
    }
    return {source: {*map(file_of, imports(source))} & sources - {source} for source in sources}


def file_of(module):
    path = module.replace(".", "/")
    return f"{path}.py" if (CHECKOUT / f"{path}.py").is_file() else f"{path}/__init__.py"


def circles(targets):
    """The sets of nodes that reach each other along the arrows node -> nodes."""

    def reached(node):
        found, ways = set(), [node]
        while ways:
            new = targets.get(ways.pop(), set()) - found
            found |= new
            ways += new
        return found

    reach = {node: reached(node) for node in targets}
    return {
        frozenset(other for other in reach[node] if node in reach.get(other, ()))
        for node in targets
        if node in reach[node]
    }


def within(package, targets):
    """The arrows between the files and folders that lie in a folder, by their names."""
    found = {}
    for source, others in targets.items():
        own, *names = (
            path.removeprefix(f"{package}/").split("/")[0]
            for path in (source, *others)
            if path.startswith(f"{package}/") or path == source
        )
        if source.startswith(f"{package}/"):
            found.setdefault(own, set()).update({*names} - {own})
    return found


def test_no_arrow_runs_up():
    targets = arrows(("serving", "seqkeras", "export", "training"))
    up = [(a, b) for a, others in targets.items() for b in others if layer(a) < layer(b)]
    assert up == []


def test_no_modules_and_no_folders_import_each_other():
    targets = arrows(("serving", "seqkeras", "export", "training", "benchmarks"))
    assert circles(targets) == set()
    for package in {Path(source).parent.as_posix() for source in targets}:
        assert circles(within(package, targets)) == set(), package


def test_a_circle_is_found():
    targets = {"a/b/c.py": {"a/d/e.py"}, "a/d/e.py": {"a/f.py"}, "a/d/g.py": {"a/b/h.py"}}
    assert circles(targets) == set()
    assert circles(within("a", targets)) == {frozenset({"b", "d"})}
    assert circles(targets | {"a/f.py": {"a/b/c.py"}}) == {
        frozenset({"a/b/c.py", "a/d/e.py", "a/f.py"})
    }
