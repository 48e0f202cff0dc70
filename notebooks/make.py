"""Make and execute notebooks from their text: `python notebooks/make.py [NAME ...]`, all of them by default.

Goes one way, NN_name.md to NN_name.ipynb, then runs the notebook in this folder and stores its outputs, without
times. A notebook that raises is left as it was, and the exit status is 1. With --paper the committed notebooks are
run by papermill at preset "paper" into notebooks/.cache/paper/, and leave their tables in notebooks/results/.
"""

import argparse
import os
import sys
from pathlib import Path

import jupytext
import nbformat
import papermill
from jupytext.config import load_jupytext_config
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from papermill.exceptions import PapermillExecutionError

HERE = Path(__file__).parent


def make(text: Path) -> None:
    """Convert one text notebook, execute it and write the .ipynb beside it in one piece."""
    notebook = jupytext.read(text, config=load_jupytext_config(str(text)))
    for number, cell in enumerate(notebook.cells):
        cell["id"] = f"{text.stem[:2]}-{number:02d}"  # fixed, so that a re-run changes only what changed
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"}}
    client = NotebookClient(notebook, timeout=3600, record_timing=False, resources={"metadata": {"path": HERE}})
    client.execute()
    notebook.metadata["language_info"] = {"name": "python"}  # the kernel's answer names its Python version
    target, partial = text.with_suffix(".ipynb"), text.with_suffix(".ipynb.tmp")
    nbformat.write(notebook, partial)
    os.replace(partial, target)


def run_paper(notebook: Path) -> None:
    """Run a committed notebook at the published scale, with its progress on the terminal."""
    target = HERE / ".cache" / "paper" / notebook.name  # not in _build, which `make book` empties
    target.parent.mkdir(parents=True, exist_ok=True)
    papermill.execute_notebook(notebook, target, parameters={"preset": "paper"}, cwd=HERE, stderr_file=sys.stderr)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="notebooks such as 01_decision_boundary; all by default")
    parser.add_argument("--paper", action="store_true", help="run at the published scale instead")
    args = parser.parse_args()
    names = [Path(name).stem for name in args.names] or sorted(path.stem for path in HERE.glob("[0-9]*.md"))
    failed = 0
    for name in names:
        print(f"{name} ...", flush=True)
        try:
            if not args.paper:
                make(HERE / f"{name}.md")
            elif "preset" in papermill.inspect_notebook(HERE / f"{name}.ipynb"):
                run_paper(HERE / f"{name}.ipynb")
        except (CellExecutionError, PapermillExecutionError) as error:
            failed += 1
            print(error, file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
