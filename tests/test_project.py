"""What the project says about itself: the list of make's targets, what the wheel asks for."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODULE_OF = {"scikit-learn": "sklearn", "PyYAML": "yaml"}  # where a package's module has another name
# Imported within functions that only notebooks call, in the book's environment, or sweeps on a cluster (an extra).
LATE = {"IPython", "myst_nb", "cloudpickle", "distributed"}


def test_make_help_lists_every_target():
    targets = re.search(r"^\.PHONY:(.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)[1].split()
    command = ["make", "--no-print-directory", "help"]
    lines = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout.splitlines()
    listed = [line.split(maxsplit=2) for line in lines]
    assert sorted(name for _, name, *_ in listed) == sorted(targets)
    assert all(words[2:] for words in listed), "a target without a word on what it does"


def test_the_wheel_asks_for_what_the_library_imports():
    imported = set()
    for path in (ROOT / "xorlib").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(node.module.split(".")[0])
    asked = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    assert {MODULE_OF.get(name, name) for name in asked} == imported - LATE - set(sys.stdlib_module_names)


def test_every_package_has_one_pin():
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and line[0] not in "#-"]
    assert all(re.fullmatch(r"[\w.-]+==[\w.]+", pin) for pin in pins)
    assert len({pin.split("==")[0].lower() for pin in pins}) == len(pins)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["optional-dependencies"]["cluster"]) <= set(pins), "the extra and the tests differ"


def test_the_example_of_the_library_page_runs(capsys):
    exec(re.search(r"```python\n(.*?)```", (ROOT / "book/api.md").read_text(encoding="utf-8"), re.S)[1], {})
    assert "test_accuracy" in capsys.readouterr().out
