"""Homes that cannot be written and locales without UTF-8: notebooks and the ledger work in them too."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from xorlib import claims, outputs

ROOT = Path(__file__).parent.parent
C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def run(*command, **more):
    """A Python module in a process of its own, without the caller's folders, with these environment variables."""
    own = ("XDG_", "JUPYTER", "IPYTHON", "MPL", "PYTHONIOENCODING")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(own)}
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, env=kept | more, capture_output=True,
                          encoding="utf-8", timeout=120)  # fmt: skip


def test_a_notebook_is_quiet_where_home_cannot_be_written(tmp_path):
    chapter = nbformat.read(ROOT / "notebooks" / "13_scorecard.ipynb", as_version=4)
    first = next(cell for cell in chapter.cells if cell.cell_type == "code")
    drawing = nbformat.v4.new_code_cell("figure, ax = plt.subplots()\nax.plot([1, 2])\nplt.show()")
    tiny = nbformat.v4.new_notebook(cells=[first, drawing], metadata={"kernelspec": chapter.metadata.kernelspec})
    nbformat.write(tiny, tmp_path / "tiny.ipynb")
    done = run("papermill", tmp_path / "tiny.ipynb", tmp_path / "out.ipynb", HOME="/proc/nowhere")
    assert done.returncode == 0, done.stderr
    cells = nbformat.read(tmp_path / "out.ipynb", as_version=4).cells
    assert cells[0].outputs == []
    assert [set(output.data) for output in cells[1].outputs] == [{"text/plain", "image/png", outputs.FIGURE_MIME}]


def test_the_ledger_is_printed_in_the_c_locale():
    done = run("xorlib.claims", **C_LOCALE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == len(claims.ledger()) + 1


def test_a_reason_with_an_accent_is_printed_in_the_c_locale(tmp_path):
    name = next(iter(claims.ledger()))
    record = {"id": name, "verdict": "hors de portée", "measured": {}}
    cells = [{"outputs": [{"data": {claims.MIME: record}}]}]
    path = tmp_path / f"{claims.ledger()[name]['notebook']}.ipynb"
    path.write_text(json.dumps({"cells": cells}, ensure_ascii=False), encoding="utf-8")
    done = run("xorlib.claims", "--notebooks", tmp_path, **C_LOCALE)
    assert "hors de port\\xe9e" in done.stdout, done.stderr


@pytest.mark.parametrize("locale", [C_LOCALE, {}], ids=["C", "own"])
def test_papermill_refuses_a_misspelt_parameter_in_any_locale(locale, tmp_path):
    done = run("papermill", ROOT / "notebooks/01_decision_boundary.ipynb", tmp_path / "out.ipynb",
               "-p", "noise_rat", "0.2", **locale)  # fmt: skip
    assert done.returncode != 0 and "noise_rat = 0.2: no such parameter; did you mean noise_rate?" in done.stderr
