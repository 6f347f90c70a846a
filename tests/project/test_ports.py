import ast
from collections.abc import Iterator
from pathlib import Path

from tests.project.source_trees import tree

ROOT = Path(__file__).parents[2]
FOLDERS = ("api", "graph", "memory")
Function = ast.FunctionDef | ast.AsyncFunctionDef


def classes(*folders: str) -> Iterator[tuple[str, ast.ClassDef]]:
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(tree(path)):
                if isinstance(node, ast.ClassDef):
                    yield f"{path.relative_to(ROOT)}: {node.name}", node


def methods(kind: ast.ClassDef) -> list[Function]:
    return [node for node in kind.body if isinstance(node, Function)]


def is_protocol(kind: ast.ClassDef) -> bool:
    return any(ast.unparse(base) == "Protocol" for base in kind.bases)


def marks(method: Function) -> set[str]:
    return {ast.unparse(mark) for mark in method.decorator_list}


PORTS = {where: kind for where, kind in classes("memory/ports") if is_protocol(kind)}


def test_every_method_of_a_port_is_abstract() -> None:
    # Else an implementation that forgets it answers None, because a Protocol's body is inherited.
    found = {f"{where}.{method.name}": marks(method) for where, kind in PORTS.items() for method in methods(kind)}

    assert len(found) > 150
    assert [name for name, marked in found.items() if "abstractmethod" not in marked] == []


def test_an_implementation_names_its_port() -> None:
    # One or two names alone are no port: many classes have a `turn` or a `count`.
    names = {where: {method.name for method in methods(kind)} for where, kind in PORTS.items()}
    wide = {where: port for where, port in names.items() if len(port) > 2}
    found = [
        f"{implementation} is like {port}"
        for implementation, kind in classes(*FOLDERS)
        for port, wanted in wide.items()
        if not kind.bases and wanted <= {method.name for method in methods(kind)}
    ]

    assert found == []


def test_no_docstring_only_points_elsewhere() -> None:
    found = [
        f"{where}.{method.name}"
        for where, kind in classes(*FOLDERS)
        for method in methods(kind)
        if (ast.get_docstring(method) or "").startswith("See ")
    ]

    assert found == []
