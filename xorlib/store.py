"""The one store: what was computed, kept under a key of the code, the parameters and the setting that made it.

Sweeps, long runs and tables use it alike. Files are JSON, npz and CSV, never pickle: a record from elsewhere must
not run code.
"""

import ast
import dis
import functools
import hashlib
import importlib.util
import inspect
import io
import json
import logging
import os
import sys
import sysconfig
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from zipfile import BadZipFile

import joblib
import numpy as np
import pandas as pd

from .network import Network

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
RESULTS = NOTEBOOKS / "results"  # small tables of paper-scale runs, part of the repository
RECORDS = NOTEBOOKS / ".cache"  # one file a finished setting, not part of it
# What draws, checks, judges, maps or keeps changes no number. The parameters' values stand beside each digest, and a
# verdict is given anew from the stored measurement.
NOT_COMPUTING = ("xorlib", *(f"xorlib.{name}" for name in (
    "claims", "cluster", "outputs", "parameters", "plots", "store", "sweep")))  # fmt: skip
_INSTALLED = tuple(sysconfig.get_path(kind) for kind in ("stdlib", "platstdlib", "purelib", "platlib"))
_LOG = logging.getLogger(__name__)


class TableError(ValueError):
    """A stored table that was cut or edited: one line with the file and the command that renews it."""

    def _render_traceback_(self) -> list[str]:
        return [f"TableError: {self}"]  # Jupyter and papermill ask for this: the reader needs the line


def digest(content) -> str:
    """Thirty-two hexadecimal digits that stand for JSON-able content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


# --- the digest of code ------------------------------------------------------------------------------------------


def code_digest(*functions: Callable) -> str:
    """A digest of all own code that the functions reach, and of the values they read on the way.

    Own code is xorlib and whatever is neither installed nor of the standard library: a notebook, a script, modules
    beside it. Followed are globals, attributes of modules, closures, defaults, decorators, classes with their
    methods and bases, and containers of functions. Of checked parameters only the ones that are read count.
    Comments, docstrings, annotations and layout do not count.
    """
    return _Reach().all(functions)


def cells_digest(cells: Iterable[str], marker: str) -> str | None:
    """The same for a notebook's code cells, up to the first that holds `marker`; None when no cell holds it.

    The cells' own text counts, and what they reach in xorlib. Cells of parameters are left out: their values stand
    beside the digest.
    """
    kept = []
    for cell in cells:
        kept.append(cell)
        if marker in cell:
            return _Reach().text([text for text in kept if not _is_parameters(text)])
    return None


def _is_parameters(cell: str) -> bool:
    """Whether a cell is the parameters cell (annotated literals with a help comment) or the one papermill adds."""
    if not (cell.lstrip().startswith("# Parameters") or "# help:" in cell):
        return False
    return all(isinstance(node, ast.Assign | ast.AnnAssign) for node in ast.parse(cell).body)


class _Reach:
    """Walks from functions to the code and the values they depend on; `parts` holds a text for each, by its name."""

    def __init__(self):
        self.parts: dict[str, str] = {}
        self.seen: set[int] = set()

    def all(self, functions: Iterable[Callable]) -> str:
        for function in functions:
            self.visit(f"{getattr(function, '__qualname__', function)}", function)
        return digest(self.parts)

    def text(self, cells: list[str]) -> str:
        trees = [ast.parse(cell) for cell in cells]
        imports = [
            node for tree in trees for node in ast.walk(tree)
            if (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "xorlib")
            or (isinstance(node, ast.Import) and any(name.name.split(".")[0] == "xorlib" for name in node.names))
        ]  # fmt: skip
        names: dict = {}
        exec(compile(ast.Module(imports, []), "<imports>", "exec"), names)
        for number, tree in enumerate(trees):
            self.parts[f"cell {number}"] = ast.unparse(_bare(tree))
            self.names(compile(tree, "<cell>", "exec"), names | {"__name__": "notebook"})
        return digest(self.parts)

    def visit(self, name: str, value) -> None:
        if id(value) in self.seen:
            return
        if isinstance(value, FunctionType | type):  # these live on, so that no other object gets their id
            self.seen.add(id(value))
        if isinstance(value, MethodType):
            self.visit(name, value.__func__)
        elif isinstance(value, functools.partial):
            self.visit(name, value.func)
            self.value(f"{name} arguments", (value.args, value.keywords))
        elif isinstance(value, property | staticmethod | classmethod | functools.cached_property):
            for inner in ("fget", "fset", "__func__", "func"):
                if isinstance(f := getattr(value, inner, None), FunctionType):
                    self.visit(name, f)
        elif isinstance(value, FunctionType):
            self.function(value)
        elif isinstance(value, type):
            self.type(value)
        elif isinstance(f := getattr(value, "__wrapped__", None), FunctionType):  # functools.cache and the like
            self.visit(name, f)
        elif isinstance(value, dict | list | tuple | set | frozenset):
            self.value(name, value)
        elif not isinstance(value, ModuleType) and not callable(value):
            self.value(name, value)
        elif callable(value) and _is_own(type(value).__module__, inspect.getmodule(type(value))):
            self.visit(name, type(value))
            self.value(name, value)

    def value(self, name: str, value) -> None:
        items = list(value.values()) if isinstance(value, dict) else value
        if isinstance(items, list | tuple | set | frozenset) and any(map(callable, items)):
            for number, item in enumerate(items):
                self.visit(f"{name}[{number}]", item)
            value = [str(key) for key in value] if isinstance(value, dict) else len(items)
        self.parts[f"value {name}"] = str(joblib.hash(_without_places(value)))

    def function(self, f: FunctionType) -> None:
        if f.__module__ in NOT_COMPUTING or not _is_own(f.__module__, f.__code__.co_filename):
            return
        name = f"{f.__module__}.{f.__qualname__}"
        while name in self.parts:  # two lambdas of one line have one name
            name += "'"
        self.parts[name] = _source(f)
        if defaults := [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()]:
            self.value(f"{name} defaults", defaults)
        cells = {}
        for free, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            try:
                cells[free] = cell.cell_contents
            except ValueError:  # not bound yet: a function that refers to itself
                continue
        if isinstance(inner := getattr(f, "__wrapped__", None), FunctionType):
            self.visit(name, inner)
        self.names(f.__code__, f.__globals__ | cells)

    def type(self, cls: type) -> None:
        if cls.__module__ in NOT_COMPUTING or not _is_own(cls.__module__, inspect.getmodule(cls)):
            return
        self.parts[f"{cls.__module__}.{cls.__qualname__}"] = _source(cls)
        for base in cls.__bases__:
            self.visit(base.__qualname__, base)
        for name, member in vars(cls).items():
            inner = member.__func__ if isinstance(member, staticmethod | classmethod) else member
            # Methods that dataclass writes have no source of their own; the class has.
            if isinstance(inner, FunctionType) and inspect.unwrap(inner).__code__.co_filename != "<string>":
                self.visit(f"{cls.__qualname__}.{name}", inner)
            elif isinstance(inner, property | functools.cached_property):
                self.visit(f"{cls.__qualname__}.{name}", inner)

    def names(self, code: CodeType, scope: dict) -> None:
        """Visit what a code object reads by name, in `scope`."""
        for name, item in _imports(code, scope.get("__package__")):
            if name not in scope:  # imported inside a function, where its attributes cannot be followed
                self.module(item) if isinstance(item, ModuleType) else self.visit(name, item)
        for chain in _chains(code):
            if chain[0] not in scope:
                continue
            label, value, rest = f"{scope.get('__name__')}.{chain[0]}", scope[chain[0]], list(chain[1:])
            while rest:
                if isinstance(value, ModuleType) and _is_own(value.__name__, value):
                    if not hasattr(value, rest[0]):
                        break
                elif not hasattr(type(value), "model_fields"):  # checked parameters: only what is read counts
                    break
                label, value = f"{label}.{rest[0]}", getattr(value, rest.pop(0), None)
            else:
                if isinstance(value, ModuleType) and _is_own(value.__name__, value):
                    self.module(value)
                    continue
            self.visit(label, value)

    def module(self, module: ModuleType) -> None:
        """A module that is used as a whole: all its text."""
        if _is_own(module.__name__, module) and module.__name__ not in NOT_COMPUTING:
            self.parts[f"module {module.__name__}"] = ast.unparse(_bare(ast.parse(inspect.getsource(module))))


def _without_places(value):
    """A value with its paths blanked, since where something is stored changes no number, and scipy's laws as words.

    A frozen law holds a random state, so its pickle differs from process to process.
    """
    if isinstance(value, dict):
        return {key: _without_places(item) for key, item in value.items()}
    if hasattr(value, "dist") and hasattr(value, "kwds"):
        return f"{value.dist.name} {value.args} {value.kwds}"
    return None if isinstance(value, Path) else value


def _is_own(module: str | None, place) -> bool:
    if (module or "").split(".")[0] == "xorlib":
        return True
    place = place if isinstance(place, str) else getattr(place, "__file__", None)
    if module == "__main__" or place is None:
        return module == "__main__"
    return not place.startswith(("<frozen", *_INSTALLED)) and place != "<string>"


def _imports(code: CodeType, package: str | None) -> Iterator[tuple[str, object]]:
    """What a code object imports from xorlib."""
    constants: list = [None, None]
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_CONST":
            constants = [constants[-1], step.argval]
        elif step.opname == "IMPORT_NAME":
            level, wanted = constants
            name = importlib.util.resolve_name("." * level + step.argval, package) if level else step.argval
            if name.split(".")[0] == "xorlib" and wanted:
                module = importlib.import_module(name)
                yield from ((item, getattr(module, item)) for item in wanted)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _imports(constant, package)


def _chains(code: CodeType) -> Iterator[tuple[str, ...]]:
    """Every name that a code object reads from around it, with the attributes that follow."""
    chain: list[str] = []
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD") and chain:
            chain.append(step.argval)
            continue
        if chain:
            yield tuple(chain)
        chain = [step.argval] if step.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF") else []
    if chain:
        yield tuple(chain)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _chains(constant)


class _Bare(ast.NodeTransformer):
    """Drops docstrings and annotations, which change no result."""

    def generic_visit(self, node):
        super().generic_visit(node)
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(
                    first.value.value, str):  # fmt: skip
                node.body = node.body[1:] or [ast.Pass()]
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        return node


def _bare(tree: ast.AST) -> ast.AST:
    return ast.fix_missing_locations(_Bare().visit(tree))


def _source(thing: FunctionType | type) -> str:
    try:
        text = textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):  # made by exec or typed at a prompt: its instructions stand for it
        return repr((thing.__code__.co_code, thing.__code__.co_consts)) if isinstance(thing, FunctionType) else ""
    try:
        return ast.unparse(_bare(ast.parse(text)))
    except SyntaxError:  # a lambda in the middle of a longer expression
        return text


# --- records: sweeps and long runs -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Records:
    """A folder of results, one file a setting, each under a key made of `origin` (who computed it) and the setting.

    A file that is damaged, or not of this origin and setting, is logged and counts as absent.
    """

    folder: Path
    origin: dict

    def key(self, setting: dict) -> str:
        """The name of a setting's file, without its ending."""
        return digest({"origin": self.origin, "setting": setting})

    def get(self, setting: dict):
        """The stored result of a setting, or None."""
        for path in (self.folder / f"{self.key(setting)}{ending}" for ending in (".json", ".npz")):
            if not path.exists():
                continue
            try:
                record, arrays = _read(path)
                checksum = record.pop("checksum")
                if checksum == _checksum(record, arrays) and record["setting"] == setting and (
                        record["origin"] == self.origin):  # fmt: skip
                    return _unpacked(record["result"], arrays)
            except (ValueError, KeyError, TypeError, AttributeError, OSError, EOFError, BadZipFile):
                pass
            _LOG.warning("record %s is damaged: %s is computed again", path.name, json.dumps(setting))
        return None

    def put(self, setting: dict, result) -> None:
        """Store a result: numbers, strings, lists, dicts, arrays, tables and nets; in one piece, or not at all.

        Raises TypeError for anything else.
        """
        arrays: list[np.ndarray] = []
        record = {"origin": self.origin, "setting": setting, "result": _packed(result, arrays)}
        text = json.dumps(record | {"checksum": _checksum(record, arrays)})
        path = self.folder / f"{self.key(setting)}.json"
        if not arrays:
            return replace_file(path, text)
        content = io.BytesIO()
        np.savez(content, record=np.array(text), **{f"a{number}": array for number, array in enumerate(arrays)})
        return replace_file(path.with_suffix(".npz"), content.getvalue())


def _read(path: Path) -> tuple[dict, list[np.ndarray]]:
    if path.suffix == ".json":
        return json.loads(path.read_text(encoding="utf-8")), []
    with np.load(path, allow_pickle=False) as stored:
        record = json.loads(str(stored["record"]))
        return record, [stored[f"a{number}"] for number in range(len(stored.files) - 1)]


def _checksum(record: dict, arrays: list[np.ndarray]) -> str:
    return digest({"record": record, "arrays": [joblib.hash(array) for array in arrays]})


def _packed(value, arrays: list[np.ndarray]):
    """A value as JSON, its arrays moved to the list; what is no plain JSON becomes {"kind": .., "is": ..}."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list):
        return [_packed(item, arrays) for item in value]
    if isinstance(value, tuple):
        return {"kind": "tuple", "is": _packed(list(value), arrays)}
    if isinstance(value, dict) and "kind" not in value and all(isinstance(key, str) for key in value):
        return {key: _packed(item, arrays) for key, item in value.items()}
    if isinstance(value, dict):
        return {"kind": "dict", "is": [[_packed(key, arrays), _packed(item, arrays)] for key, item in value.items()]}
    if isinstance(value, np.ndarray) and value.dtype != object:
        arrays.append(value)
        return {"kind": "array", "is": len(arrays) - 1}
    if isinstance(value, Network):
        return {"kind": "net", "is": _packed({name: getattr(value, name) for name in asdict(value)}, arrays)}
    if isinstance(value, pd.DataFrame):
        columns = {name: _column(value[name], arrays) for name in value}
        index = {"name": value.index.name, "values": _packed(value.index.to_numpy(), arrays)}
        return {"kind": "frame", "is": _packed(columns, arrays), "index": index}
    raise TypeError(f"a result holds a {type(value).__name__}, which the store cannot keep")


def _column(column: pd.Series, arrays: list[np.ndarray]):
    return column.to_numpy() if column.dtype != object and column.dtype.kind in "biuf" else column.tolist()


def _unpacked(value, arrays: list[np.ndarray]):
    if isinstance(value, list):
        return [_unpacked(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if "kind" not in value:
        return {key: _unpacked(item, arrays) for key, item in value.items()}
    inside = value["is"] if value["kind"] == "array" else _unpacked(value["is"], arrays)
    if value["kind"] == "frame":
        index = pd.Index(_unpacked(value["index"]["values"], arrays), name=value["index"]["name"])
        return pd.DataFrame({name: pd.Series(column, index) for name, column in inside.items()})
    return {
        "tuple": tuple, "dict": dict, "array": lambda number: arrays[number], "net": lambda fields: Network(**fields),
    }[value["kind"]](inside)  # fmt: skip


# --- tables of paper-scale runs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stored:
    """A stored table where it is this run's: `rows`, else None; `line` says in a sentence what stands, or why not."""

    rows: pd.DataFrame | None
    line: str


def save_table(table: pd.DataFrame, name: str, parameters) -> Path:
    """Write a table of a notebook's paper-scale run in one piece; the first line says what made it.

    A run with the book's own parameters writes notebooks/results/NAME.csv; one with others stays beside the records,
    so that it cannot replace the book's.
    """
    body = table.to_csv(index=False, lineterminator="\n")
    header = {
        "notebook": parameters.notebook, "parameters": parameters.model_dump(mode="json"),
        "code": _code_of_this_notebook(name, parameters), "rows": len(table),
        "content": hashlib.sha256(body.encode()).hexdigest()[:32],
    }  # fmt: skip
    path = _places(name, parameters)[0 if parameters.is_the_books() else 1]
    replace_file(path, f"# {json.dumps(header)}\n{body}")
    return path


def read_table(path: Path) -> tuple[pd.DataFrame, dict]:
    """A table and its header: notebook, parameters, code, rows, content.

    Raises TableError when it was cut or edited.
    """
    first, _, body = path.read_text(encoding="utf-8").partition("\n")
    try:
        header = json.loads(first.removeprefix("# "))
        renew = f"renew it with: make paper ONLY={header['notebook']}"
        whole = header["content"] == hashlib.sha256(body.encode()).hexdigest()[:32]
        rows = pd.read_csv(io.StringIO(body))
    except (ValueError, KeyError, TypeError):
        raise TableError(f"{path.name} has no header that can be read; renew it with: make paper") from None
    if len(rows) != header["rows"]:
        raise TableError(f"{path.name} has {len(rows)} rows where {header['rows']} were written; {renew}")
    if not whole:
        raise TableError(f"{path.name} was edited after it was written; {renew}")
    return rows, header


def load_table(name: str, parameters) -> Stored:
    """The stored paper-scale table of a notebook, if its parameters and code are those of this run.

    Raises TableError, in one line, when the file was cut or edited.
    """
    renew, reason = f"make paper ONLY={parameters.notebook}", None
    wanted = parameters.at_paper_scale().model_dump(mode="json")
    for path in _places(name, parameters):
        if not path.exists():
            continue
        rows, header = read_table(path)
        differ = [key for key in wanted if header["parameters"].get(key) != wanted[key]]
        if differ:
            reason = reason or (
                f"The stored paper-scale run ({path.name}) does not apply: it was made with other values of "
                f"{', '.join(differ)}.")  # fmt: skip
        elif header["code"] is None or header["code"] != _code_of_this_notebook(name, parameters):
            reason = f"The stored paper-scale run ({path.name}) does not apply: the code has changed since; {renew}."
        else:
            return Stored(rows, f"The stored paper-scale run ({path.name}) has this run's parameters and code.")
    return Stored(None, reason or f"No paper-scale run is stored; {renew}.")


def stale(path: Path, cells: Iterable[str]) -> str | None:
    """What is wrong with a stored table, given its notebook's code cells, or None: cut, edited, or of other code."""
    try:
        _, header = read_table(path)
    except TableError as error:
        return str(error)
    if header["code"] != cells_digest(cells, _marker(path.stem, header["notebook"])):
        return f"{path.name} was made by other code; renew it with: make paper ONLY={header['notebook']}"
    return None


def _marker(name: str, notebook: str) -> str:
    return "at_paper_scale(p)" if name == notebook else "save_table("


def _places(name: str, parameters) -> tuple[Path, Path]:
    return RESULTS / f"{name}.csv", RECORDS / parameters.notebook / "own" / f"{name}.csv"


def _code_of_this_notebook(name: str, parameters) -> str | None:
    shell = IPython.get_ipython() if (IPython := sys.modules.get("IPython")) else None
    try:
        return cells_digest(shell.user_ns["In"][1:], _marker(name, parameters.notebook)) if shell else None
    except SyntaxError:  # a magic or shell line, typed by hand: such code has no digest
        return None


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file so that whoever reads it, or a kill at any moment, finds the old or the new content, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as partial:
        partial.write(content.encode() if isinstance(content, str) else content)
        partial.flush()
        os.fsync(partial.fileno())
    os.chmod(partial.name, 0o644)
    os.replace(partial.name, path)
