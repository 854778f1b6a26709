"""Change the library's source in one place at a time, and count what its tests notice.

    python -m tests.mutants --seed 0 --count 200 --jobs 2

The seed, the function and the text of a change rank it, so that neither tests nor changes of other
functions matter. Docstrings, words of errors, decorators, annotations and imports stay.
"""

import argparse
import ast
import copy
import functools
import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

LINKED = {"training", "export", "serving"}
COMPARISONS = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult}
SKIPPED = (ast.Raise, ast.Import, ast.ImportFrom, ast.JoinedStr)


class Mutant(NamedTuple):
    path: str  # in the checkout
    function: str
    line: int
    start: int  # bytes of the source
    end: int
    old: str
    new: str


def changed(node):
    """Return a copy of a node of the syntax tree with one change, or None."""
    other = copy.deepcopy(node)
    match node:
        case ast.Compare(ops=[operator]):
            other.ops = [COMPARISONS[type(operator)]()]
        case ast.BinOp() if type(node.op) in OPERATORS:
            other.op = OPERATORS[type(node.op)]()
        case ast.BoolOp():
            other.op = ast.And() if isinstance(node.op, ast.Or) else ast.Or()
        case ast.UnaryOp(op=ast.Not()):
            return other.operand
        case ast.Constant(value=int() | float()):
            other.value = not node.value if isinstance(node.value, bool) else node.value + 1
        case ast.Return(value=ast.expr()) if ast.unparse(node.value) != "None":
            other.value = ast.Constant(None)
        case ast.Call() if node.args or node.keywords:
            (other.keywords or other.args).pop()
        case _:
            return None
    return other


def mutants_of(path):
    """Return the mutants of one module."""
    source = Path(path).read_bytes()
    begins = [0, *itertools.accumulate(map(len, source.splitlines(keepends=True)))]

    def walk(node, function):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}"
        if other := changed(node):
            start = begins[node.lineno - 1] + node.col_offset
            end = begins[node.end_lineno - 1] + node.end_col_offset
            new = ast.unparse(other) if isinstance(node, ast.stmt) else f"({ast.unparse(other)})"
            yield Mutant(path, function, node.lineno, start, end, ast.unparse(node), new)
        for field, value in ast.iter_fields(node):
            if field not in {"decorator_list", "returns", "annotation"}:
                for child in value if isinstance(value, list) else [value]:
                    if isinstance(child, ast.AST) and not isinstance(child, SKIPPED):
                        yield from walk(child, function)

    return list(walk(ast.parse(source), ""))


def draw(seed, count, paths):
    """Return the mutants of the library's modules, in files or folders, with the first ranks."""
    found = []

    def rank(mutant):
        text = f"{seed}|{mutant.path}|{mutant.function}|{mutant.old}|{mutant.new}"
        return hashlib.sha256(text.encode()).digest()

    for path in map(Path, paths):
        for each in sorted(path.rglob("*.py")) or [path]:
            if each.name != "__main__.py" and each.parts[1] not in LINKED:
                found += mutants_of(each.as_posix())
    ranked = {rank(mutant): mutant for mutant in found}  # one of several that read alike
    return [ranked[rank] for rank in sorted(ranked)[:count]]


@functools.cache
def imports(path):
    """Return the modules and names that a file imports."""
    nodes = [*ast.walk(ast.parse(path.read_bytes()))]
    names = {each.name for each in nodes if isinstance(each, ast.alias)}
    return names | {each.module for each in nodes if isinstance(each, ast.ImportFrom)}


def tests_of(module):
    """Return tests of a module and its folder, of what imports it, and all properties of layers."""
    path, statements = Path(module), ast.parse(Path(module).read_bytes()).body
    names = {each.name for each in statements if isinstance(each, ast.FunctionDef | ast.ClassDef)}
    names = {".".join(path.with_suffix("").parts), *(name for name in names if name[0] != "_")}
    found = [Path("tests", path.parent, f"test_{path.name}")]
    if len(path.parts) > 2:
        found += sorted(found[0].parent.glob("test_*.py"))
    for folder in ("tests/seqkeras", "tests/training", "tests/export"):
        found += [each for each in sorted(Path(folder).rglob("test_*.py")) if names & imports(each)]
    users = [each for each in sorted(Path().glob("seqkeras/**/*.py")) if names & imports(each)]
    found += [Path("tests", each.parent, f"test_{each.name}") for each in users]
    if any(names & imports(each) for each in Path("tests/catalogue").glob("*.py")):
        found += sorted(Path("tests/properties").glob("test_*.py"))
    return [str(each) for each in dict.fromkeys(found) if each.exists()]


def run(mutant, options, folders):
    """Return "died" of which test, "survived" or "took too long", in a copy that is free."""
    tests = tests_of(mutant.path) if options.tests == ["auto"] else options.tests
    folder = folders.pop()
    source = Path(mutant.path).read_bytes()
    parts = source[: mutant.start], mutant.new.encode(), source[mutant.end :]
    (folder / mutant.path).write_bytes(b"".join(parts))
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:xdist", "-m", "not long"]
    limits = {"timeout": options.seconds, "capture_output": True, "text": True}
    try:
        done = subprocess.run([*pytest, *tests], cwd=folder, **limits)
        test = "".join(re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M))
        return "survived" if done.returncode in (0, 5) else f"died of {test}"  # 5: there is no test
    except subprocess.TimeoutExpired:
        return "took too long"
    finally:
        (folder / mutant.path).write_bytes(source)
        folders.append(folder)


def left_out(folder, names):
    """Return what of the checkout no test reads: hidden files, and runs and bundles of a user."""
    if folder != ".":
        return {"node_modules"} & {*names}
    return [name for name in names if name[0] == "." or name in ("runs", "bundles")]


def main():
    """Print the fate of each mutant, the counts, and the survivors."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="Seed of the draw.")
    parser.add_argument("--count", type=int, default=200, help="Number of mutants.")
    parser.add_argument("--paths", nargs="+", default=["seqkeras"], help="Modules or folders.")
    parser.add_argument("--tests", nargs="+", default=["auto"], help="Tests, or auto.")
    parser.add_argument("--seconds", type=float, default=1200, help="Time limit of one mutant.")
    parser.add_argument("--jobs", type=int, default=1, help="Mutants at a time.")
    options = parser.parse_args()
    os.chdir(Path(__file__).parents[1])
    drawn = draw(options.seed, options.count, options.paths)
    counts, survivors = Counter(), []
    with tempfile.TemporaryDirectory() as copies, ThreadPoolExecutor(options.jobs) as pool:
        folders = []
        for job in range(options.jobs):
            folders.append(shutil.copytree(".", Path(copies) / str(job), True, left_out))
        fates = pool.map(lambda mutant: run(mutant, options, folders), drawn)
        for mutant, fate in zip(drawn, fates):
            text = f"{mutant.path}:{mutant.line}: {mutant.old}  ->  {mutant.new}"
            print(f"{text}: {fate}", flush=True)
            counts[fate.split()[0]] += 1
            survivors += [text] if fate == "survived" else []
    print(*(f"{fate}: {count}" for fate, count in counts.items()), sep=", ")
    print("survivors:", *survivors, sep="\n  ")


if __name__ == "__main__":
    main()
