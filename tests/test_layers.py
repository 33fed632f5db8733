"""Imports point downwards, as in `docs/architecture.md`, and a library is used only in the packages of its subject."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parents[1] / "metastore"

LAYERS = (
    {"cli", "app", "testing"},
    {"transfer", "shadow"},
    {"spark", "streaming"},
    {"acid"},
    {"client"},
    {"client_connections"},
    {"client_login"},
    {"wire", "jobs"},
    {"console"},
    {"telemetry"},
    {"methods"},
    {"service"},
    {"listeners"},
    {"rules", "store", "warehouse"},
    {"binary", "config", "errors", "hidden", "idl", "log", "places", "call_time"},
    {"idl_reader", "secrecy"},
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
SIDEWAYS = {("cli", "app")}

HOME_OF = {
    "sqlalchemy": {"store", "transfer"},
    "alembic": {"store"},
    "cronsim": {"rules"},
    "sqlite3": {"store"},
    "psycopg": {"store"},
    "pymysql": {"store"},
    "fsspec": {"warehouse", "acid", "streaming"},
    "pyorc": {"acid"},
    "pyspark": {"spark"},
    "py4j": {"spark"},
    "s3fs": {"warehouse"},
    "gssapi": {"wire", "client_login"},
    "socket": {"wire", "client_connections", "service", "shadow"},
    "h11": {"wire"},
    "starlette": {"console"},
    "jinja2": {"console"},
    "joserfc": {"wire"},
    "opentelemetry": {"telemetry"},
    "ldap3": {"wire"},
    "thriftpy2": {"binary", "methods", "telemetry", "wire", "client", "idl_reader", "cli", "shadow"},
    "httpx": {"service"},
    "typer": {"cli"},
    "rich": {"cli"},
}


def part(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


class Module(NamedTuple):
    """The checked facts of a module. Its tree is not kept, since garbage collections in later tests would have to visit all trees."""

    docstring: str | None
    imports: list[tuple[int, str, tuple[str, ...]]]
    """All imports, also within functions: the line, the imported module, and the names from it, none for the module itself."""


@cache
def parsed(path: Path) -> Module:
    tree = ast.parse(path.read_text())
    imports: list[tuple[int, str, tuple[str, ...]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [(node.lineno, alias.name, ()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write the whole name of the module"
            assert node.module is not None
            imports.append((node.lineno, node.module, tuple(alias.name for alias in node.names)))
    return Module(ast.get_docstring(tree), imports)


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """Every module that a file imports, wherever it does so: functions and TYPE_CHECKING blocks too."""
    for line, module, names in parsed(path).imports:
        if module == "metastore" and names:
            yield from ((line, f"metastore.{name}") for name in names)
        else:
            yield line, module


MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def violations(path: Path) -> Iterator[str]:
    own = part(path)
    for line, module in imported(path):
        top, _, rest = module.partition(".")
        if top == "metastore" and rest:
            other = rest.split(".")[0]
            if other != own and LEVEL[other] <= LEVEL[own] and (own, other) not in SIDEWAYS:
                yield f"{path.relative_to(PACKAGE)}:{line}: {own} imports {module}, which is not below it"
        elif own not in HOME_OF.get(top, {own}):
            yield f"{path.relative_to(PACKAGE)}:{line}: {top} belongs into {' or '.join(sorted(HOME_OF[top]))}"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_downwards(path: Path) -> None:
    assert list(violations(path)) == []


def name_of(path: Path) -> str:
    """Return the whole name of a module or package."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def dependencies() -> dict[str, set[str]]:
    """Return by module the modules that it imports; `from package import name` means the module of that name if there is one."""
    names = {name_of(path) for path in MODULES}
    found: dict[str, set[str]] = {}
    for path in MODULES:
        own = found.setdefault(name_of(path), set())
        for _, module, taken in parsed(path).imports:
            modules = {f"{module}.{name}" for name in taken}
            own |= names.intersection(modules)
            if not taken or modules - names:
                own |= names.intersection({module})
    return found


def test_no_modules_import_each_other() -> None:
    """No circle of modules imports each other, also not inside functions or for types alone."""
    left = dict(dependencies())
    while free := {name for name, needs in left.items() if not needs & left.keys() - {name}}:
        for name in free:
            del left[name]
    assert sorted(left) == []


SUBJECTS = ("acid", "cli", "methods", "rules", "service", "spark", "store", "wire")
"""Packages whose folders are subjects. The subfolders in the catalog's folder do not count: they only group modules for readers."""
MOST_MODULES = 15
"""The most modules of one folder."""


def subject(module: str) -> str:
    """Return the folder of a module of such a package, or the package for a module directly in it."""
    path = PACKAGE.parent.joinpath(*module.split("."))
    folder = path if path.is_dir() else path.parent
    return "/".join(folder.relative_to(PACKAGE).parts[:2])


@pytest.mark.parametrize("package", SUBJECTS)
def test_subjects_know_each_other_in_one_direction(package: str) -> None:
    left: dict[str, set[str]] = {}
    for name, needs in dependencies().items():
        if name.startswith(f"metastore.{package}."):
            others = {subject(each) for each in needs if each.startswith(f"metastore.{package}.")}
            left.setdefault(subject(name), set()).update(others - {subject(name)})
    while free := {name for name, needs in left.items() if not needs & left.keys()}:
        for name in free:
            del left[name]
    assert left == {}


@pytest.mark.parametrize("package", [*SUBJECTS, "transfer"])
def test_a_folder_holds_few_modules(package: str) -> None:
    folders = Counter(path.parent for path in MODULES if part(path) == package and path.name != "__init__.py")
    assert {str(folder.relative_to(PACKAGE)): count for folder, count in folders.items() if count > MOST_MODULES} == {}


def test_the_base_modules_know_only_errors() -> None:
    base = LAYERS[-2]
    found = {
        (part(path), module.split(".")[1])
        for path in MODULES
        if part(path) in base
        for _, module in imported(path)
        if module.startswith("metastore.") and module.split(".")[1] != part(path)
    }
    assert found <= {("config", "errors"), ("log", "errors"), ("idl", "idl_reader"), ("config", "secrecy"), ("log", "secrecy")}


def exists(name: str) -> bool:
    """Return whether a name is a module's, or of something in a module, such as `service.changes.deletion.Taken.put_back`."""
    path, parts = PACKAGE, name.split(".")
    while parts and (path / parts[0]).is_dir():
        path /= parts.pop(0)
    module = path / (f"{parts[0]}.py" if parts and (path / f"{parts[0]}.py").exists() else "__init__.py")
    rest = parts[1:] if module.name != "__init__.py" else parts
    return module.exists() and all(re.search(rf"\b{word}\b", module.read_text()) for word in rest)


def test_modules_that_texts_name_exist() -> None:
    """Names that begin with `spark.` are not read: they are Spark's own too."""
    packages = "|".join(sorted(LEVEL.keys() - {"spark"}))
    named = re.compile(rf"`((?:{packages})(?:\.\w+)+|metastore\.spark(?:\.\w+)+)`")
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line}: {name}"
        for path in MODULES
        for line, text in enumerate(path.read_text().splitlines(), 1)
        for name in named.findall(text)
        if not name.endswith((".py", ".json")) and not exists(name.removeprefix("metastore."))
    ]
    assert wrong == []


def test_every_module_has_a_layer() -> None:
    assert {part(path) for path in MODULES} == set(LEVEL)


def test_a_module_has_a_docstring() -> None:
    silent = [str(path) for path in MODULES if path.stat().st_size and parsed(path).docstring is None]
    assert silent == []
