"""Docstrings and comments say plainly what is meant: some beginnings of riddles are forbidden."""

import ast
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.project.source_trees import tree

ROOT = Path(__file__).parents[2]
FOLDERS = ("api", "graph", "memory", "tests", "benchmarks")
RIDDLES = re.compile(r"The same\b|Those\b|What\b|All that\b")
NOUNS = re.compile(r"(?:The|A|An|Its?|Whose|Whether|Which)\b")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def texts(path: Path) -> list[tuple[int, ast.AST, str]]:
    """Return each docstring of the file with its line and what it belongs to."""
    nodes = [node for node in ast.walk(tree(path)) if isinstance(node, ast.Module | ast.ClassDef | Function)]
    return [(getattr(node, "lineno", 1), node, text) for node in nodes if (text := ast.get_docstring(node))]


def is_property(function: Function) -> bool:
    return any(ast.unparse(each).endswith("property") for each in function.decorator_list)


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each comment of the file that begins a line."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
                yield token.start[0], token.string.lstrip("# ")


def files() -> list[Path]:
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]


def test_no_docstring_begins_with_a_riddle() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} {text.splitlines()[0]}"
        for path in files()
        for line, node, text in texts(path)
        if RIDDLES.match(text) and not (isinstance(node, ast.ClassDef) and path.is_relative_to(ROOT / "api"))
        if path.parent.name != "graph" or not isinstance(node, ast.ClassDef)
    ]

    assert found == []


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} {text.splitlines()[0]}"
        for path in files()
        for line, node, text in texts(path)
        if isinstance(node, Function) and not is_property(node) and NOUNS.match(text)
    ]

    assert found == []


def test_no_comment_begins_with_a_riddle() -> None:
    found: list[str] = []
    for path in files():
        above = 0
        for line, text in comments(path):
            if RIDDLES.match(text) and line != above + 1:
                found.append(f"{path.relative_to(ROOT)}:{line} {text}")
            above = line

    assert found == []
