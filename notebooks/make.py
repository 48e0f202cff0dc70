"""Make and execute notebooks from their text: `python notebooks/make.py [NAME ...]`, all of them by default.

Goes one way, NN_name.md to NN_name.ipynb, then runs the notebook in this folder and stores its outputs, without
times. A notebook that raises is left as it was, and the exit status is 1. With --paper the committed notebooks are
run by papermill at preset "paper" into notebooks/.cache/paper/, and leave their tables in notebooks/results/.
With --seeds they are run at preset "quick" and those seeds, and the verdicts that differ from the book's are listed:
a report, so the exit status is 1 only when a run failed. Chapters take means over seed, seed + 1, ...: seeds that
lie closer than 1000 share runs.
"""

import argparse
import json
import os
import sys
from pathlib import Path

from xorlib import claims, parameters, sweep

import joblib
import jupytext
import nbformat
import papermill
from jupytext.config import load_jupytext_config
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from papermill.exceptions import PapermillExecutionError
from tqdm import tqdm

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


def records(notebook: Path) -> dict[str, dict]:
    """The records of the verdicts in a notebook's outputs, by claim."""
    outputs = [o for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] for o in cell.get("outputs", [])]
    found = [o["data"][claims.MIME] for o in outputs if claims.MIME in o.get("data", {})]
    return {record["id"]: record for record in found}


def broken(record: dict) -> list[str]:
    """The measured quantities of a verdict that break a bound; a value that is not finite is stored as None."""
    tests = [(name, record["measured"].get(name), op, limit)
             for name, bound in record["bound"].items() for op, limit in bound.items()]  # fmt: skip
    return [name for name, value, op, limit in tests
            if value is None or (value < limit if op == "at_least" else value > limit)]  # fmt: skip


def difference(claim: str, book: dict | None, here: dict | None) -> str | None:
    """One line on a claim whose verdict here is not the book's, None where it is; either may lack the verdict."""
    words = ["no verdict" if record is None else record["verdict"] for record in (book, here)]
    if words[0] == words[1]:
        return None
    both = [record for record in (book, here) if record is not None]
    bound = {name: test for record in both for name, test in record["bound"].items()}
    # Stored values have four digits: a quantity that breaks its bound by less shows none, so all are shown.
    names = dict.fromkeys(name for record in both for name in broken(record)) or bound
    values = [
        f"{name} {claims._number(both[-1]['measured'].get(name))} ("
        + ", ".join(f"{claims.SYMBOLS[op]} {limit:g}" for op, limit in bound[name].items())
        + (f"; book {claims._number(both[0]['measured'].get(name))})" if len(both) == 2 else ")")
        for name in names
    ]
    return " | ".join([claim, f"book: {words[0]}", f"here: {words[1]}", *([", ".join(values)] if values else [])])


def compare(book: Path, here: Path) -> tuple[int, list[str]]:
    """The number of verdicts in two runs of one chapter, and a line for each that is not the book's."""
    theirs, ours = records(book), records(here)
    every = dict.fromkeys([*theirs, *ours])
    lines = [difference(claim, theirs.get(claim), ours.get(claim)) for claim in every]
    return len(every), [line for line in lines if line]


def run_seed(name: str, seed: int) -> tuple[str, int, str | None]:
    """Run a committed notebook at another seed; the chapter, the seed, and one line on what went wrong or None."""
    target = HERE / ".cache" / "seeds" / f"{name[:2]}-{seed}.ipynb"
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        papermill.execute_notebook(HERE / f"{name}.ipynb", target, parameters={"seed": seed}, cwd=HERE,
                                   progress_bar=False)  # fmt: skip
    except PapermillExecutionError as error:
        return name, seed, f"{error.ename}: {error.evalue}".splitlines()[0]
    except Exception as error:  # a kernel that died, say; the other runs go on
        return name, seed, f"{type(error).__name__}: {error}".splitlines()[0]
    return name, seed, None


def report_seeds(names: list[str], seeds: list[int]) -> int:
    """Run chapters at other seeds, on all cores, and print what differs from the book; 1 when a run failed."""
    tasks = [(name, seed) for name in names for seed in seeds]
    with joblib.parallel_config("loky", inner_max_num_threads=1):
        arriving = joblib.Parallel(n_jobs=-1, batch_size=1, return_as="generator_unordered")(
            joblib.delayed(run_seed)(*task) for task in tasks
        )
        done = sorted(tqdm(arriving, total=len(tasks), unit="run"))
    total, differing, failed = 0, 0, 0
    for name, seed, problem in done:
        if problem:
            failed += 1
            print(f"{name} at seed {seed} failed: {problem}")
            continue
        count, lines = compare(HERE / f"{name}.ipynb", HERE / ".cache" / "seeds" / f"{name[:2]}-{seed}.ipynb")
        total, differing = total + count, differing + len(lines)
        print(*(f"seed {seed} | {line}" for line in lines), sep="\n", end="\n" if lines else "")
    print(f"{differing} of {total} verdicts differ" + (f"; {failed} of {len(tasks)} runs failed" if failed else ""))
    return 1 if failed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="notebooks such as 01_decision_boundary; all by default")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--paper", action="store_true", help="run at the published scale instead")
    parser.add_argument("--dask", metavar="ADDRESS", help="with --paper: a Dask scheduler for the sweeps")
    instead.add_argument("--seeds", type=int, nargs="+", help="run at these seeds instead, compare the verdicts")
    args = parser.parse_args()
    if args.dask:
        os.environ[sweep.CLUSTER] = args.dask  # read by each chapter's sweep.options
    names = [Path(name).stem for name in args.names] or sorted(path.stem for path in HERE.glob("[0-9]*.md"))
    if args.seeds:
        if unknown := [name for name in names if args.names and name not in parameters.MODELS]:
            parser.error(f"no chapter with a seed: {', '.join(unknown)}")
        return report_seeds([name for name in names if name in parameters.MODELS], list(dict.fromkeys(args.seeds)))
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
