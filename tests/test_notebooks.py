"""The rules for notebooks: text and .ipynb equal, executed, clean outputs, figures described, parameters alive."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import jupytext
import nbformat
import papermill
import pytest
import yaml
from jupytext.config import load_jupytext_config

from xorlib import claims, outputs, parameters, store

HERE = Path(__file__).parent
NOTEBOOKS = sorted((HERE.parent / "notebooks").glob("[0-9]*.ipynb"))
TEXTS = sorted((HERE.parent / "notebooks").glob("[0-9]*.md"))
SMALL = yaml.safe_load((HERE / "small_runs.yml").read_text(encoding="utf-8"))
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def load(path):
    return nbformat.read(path, as_version=4)


def code_cells(path):
    return [cell for cell in load(path).cells if cell.cell_type == "code"]


def test_every_text_has_its_notebook():
    assert [path.stem for path in TEXTS] == [path.stem for path in NOTEBOOKS]


@each
def test_text_and_notebook_are_one(path):
    text = jupytext.read(path.with_suffix(".md"), config=load_jupytext_config(str(path)))

    def kept(cell):
        return cell.cell_type, cell.source.rstrip(), cell.metadata.get("tags", []), cell.metadata.get("mystnb")

    for number, (ours, theirs) in enumerate(zip(text.cells, load(path).cells, strict=True)):
        assert kept(ours) == kept(theirs), f"cell {number} differs: edit the .md, then make notebooks"


@each
def test_executed_in_order_without_errors_or_noise(path):
    cells = code_cells(path)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        for output in cell.outputs:
            assert output.output_type != "error"
            assert output.get("name") != "stderr", output.get("text")
        assert not re.search(r"^\s*[%!]", cell.source, re.M), "a magic or shell line"
        assert not cell.source.rstrip().endswith(";")
    assert load(path).metadata.kernelspec.name == "python3"


@each
def test_outputs_hold_no_machine_facts_and_few_digits(path):
    for cell in code_cells(path):
        for output in cell.outputs:
            data = {mime: value for mime, value in output.get("data", {}).items() if not mime.startswith("image/")}
            if claims.MIME in data:  # in the record and on the card the ledger's own bounds stand too
                data = {claims.MIME: data[claims.MIME]["measured"]}
            text = output.get("text", "") + " ".join(map(str, data.values()))
            assert not re.search(r"/(home|work|root|tmp|Users)/|ipykernel_\d|0x[0-9a-f]{6,}", text), text[:200]
            assert not re.search(r"\b\d{2}:\d{2}:\d{2}\b|\bseconds\b|\d it/s", text), text[:200]
            for number in re.findall(r"(?<![\w.#-])\d+\.\d+(?:e[+-]?\d+)?", re.sub(r"<[^>]+>", " ", text)):
                digits = number.split("e")[0].rstrip("0").replace(".", "").strip("0")
                assert len(digits) <= 4, f"{number} has more than 4 significant digits"


@each
def test_parameters_cell_is_literal_checked_and_explained(path):
    cells = code_cells(path)
    tagged = [i for i, cell in enumerate(cells) if "parameters" in cell.metadata.get("tags", [])]
    if path.stem not in parameters.MODELS:
        assert not tagged
        return
    model = parameters.MODELS[path.stem]
    assert len(tagged) == 1
    values = {}
    for node in ast.parse(cells[tagged[0]].source).body:
        assert isinstance(node, ast.AnnAssign), "only annotated literals stand in the parameters cell"
        values[node.target.id] = ast.literal_eval(node.value)
    assert values.keys() == model.model_fields.keys()
    explained = papermill.inspect_notebook(path)  # papermill passes over a line that it cannot read, one with two "="
    assert explained.keys() == values.keys() and all(info["help"] for info in explained.values()), "# help is missing"
    expected = f"p = xorlib.parameters.{model.__name__}.from_notebook(globals())"
    assert cells[tagged[0] + 1].source.strip() == expected
    for name, (quick, _) in model.paper_scale.items():
        assert parameters._same(values[name], quick), f"paper_scale's quick value of {name} is not the cell's"
    assert values["preset"] == "quick"


def test_every_stored_table_is_whole_and_of_the_present_code():
    """A stale table would stand beside fresh numbers; each line names the command that renews it."""
    wrong = []
    for path in sorted(store.RESULTS.glob("*.csv")):
        notebook = re.match(r"# .*?\"notebook\": \"(\w+)\"", path.read_text(encoding="utf-8").partition("\n")[0])
        cells = code_cells(HERE.parent / "notebooks" / f"{notebook[1]}.ipynb") if notebook else []
        wrong.append(store.stale(path, [cell.source for cell in cells]))
    assert not any(wrong), "\n".join(filter(None, wrong))


@pytest.mark.parametrize("table", sorted(path.stem for path in store.RESULTS.glob("*.csv")))
def test_a_stored_paper_run_is_of_the_present_parameters_and_claims(table):
    """A table that nobody made anew after a change of defaults or of the ledger would stand beside fresh numbers."""
    rows, header = store.read_table(store.RESULTS / f"{table}.csv")
    owner, made_by = header["notebook"], header["parameters"]
    cells = code_cells(HERE.parent / "notebooks" / f"{owner}.ipynb")
    cell = next(cell for cell in cells if "parameters" in cell.metadata.get("tags", []))
    given = {node.target.id: ast.literal_eval(node.value) for node in ast.parse(cell.source).body}
    present = parameters.MODELS[owner].from_notebook(given | {"preset": "paper"}).model_dump(mode="json")
    assert made_by == present, f"{table}.csv is of other parameters: make paper ONLY={owner}"
    if table == owner:
        ruled = {(claim, quantity) for claim, entry in claims.ledger().items() if entry["notebook"] == table
                 for quantity in entry["bounds"]}  # fmt: skip
        assert ruled <= set(zip(rows.claim, rows.quantity, strict=True))


def test_every_chapter_has_a_stored_paper_run():
    assert parameters.MODELS.keys() <= {path.stem for path in store.RESULTS.glob("*.csv")}


@each
def test_every_figure_is_described(path):
    for cell in code_cells(path):
        if any("image/png" in output.get("data", {}) for output in cell.outputs):
            meta = cell.metadata.get("mystnb", {})
            assert len(meta.get("figure", {}).get("caption", "")) > 20, cell.source[:80]
            assert meta["figure"]["name"].startswith("fig-")
            assert len(meta.get("image", {}).get("alt", "")) > 40, cell.source[:80]
            # nbval compares these numbers, since pixels differ from one processor to another
            assert all(outputs.FIGURE_MIME in o.data for o in cell.outputs if "image/png" in o.get("data", {}))


def test_the_ledger_is_complete():
    assert claims.collect()[1] == []


_PROBE = """
import hashlib, json, sys
import hypothesis, matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from traitlets.config import Config
from xorlib import claims, plots
spec, settings = json.load(sys.stdin), hypothesis.settings
# The property searches have their own place in the executed notebooks; 30 examples show here what a parameter does.
hypothesis.settings = lambda max_examples, **more: settings(max_examples=min(max_examples, 30), **more)
config = Config({"HistoryManager": {"hist_file": ":memory:"}})
shell = InteractiveShell.instance(config=config)
digest = lambda content: hashlib.sha256(json.dumps(content).encode()).hexdigest()
for name, values in spec["runs"].items():
    shell.reset(new_session=False)
    shell.history_manager.input_hist_parsed[:] = [""]  # a notebook's In, which the store and the parameters read
    shell.execution_count = 1  # it stands in what is printed
    report, lines = {}, []
    for tag, figure_name, source in spec["cells"]:
        with capture_output() as captured:
            result = shell.run_cell(source, store_history=True)
            if tag:
                given = "\\n".join(f"{k} = {v!r}" for k, v in values.items())
                shell.run_cell(f"# Parameters\\n{given}", store_history=True)
        if not result.success:
            sys.exit(f"{name}: {result.error_before_exec or result.error_in_exec}")
        lines.append(captured.stdout)
        if isinstance(result.result, claims.Verdict):
            report[result.result.id] = digest(result.result.record)
        for output in captured.outputs:
            data = output.data
            if not any(mime.startswith("application/papermill.record") for mime in data):
                lines.append(str(data.get("text/plain")))
        for number in plt.get_fignums():
            figure = plt.figure(number)
            figure.set_layout_engine("none")  # finding room for labels is most of the work of drawing
            figure.canvas.draw()
            report[figure_name] = digest(plots.describe(figure))
        plt.close("all")
    report["all"] = digest(lines + sorted(report.values()))
    print(json.dumps([name, report]), file=sys.__stdout__, flush=True)
"""


def effects(name: str) -> dict[str, list[str]]:
    """For each figure and verdict of a chapter, and for "all" it reports, the parameters that change it."""
    small, other = SMALL[name]["small"], SMALL[name]["other"]
    cells = [("parameters" in cell.metadata.get("tags", []),
              cell.metadata.get("mystnb", {}).get("figure", {}).get("name", "figure"), cell.source)
             for cell in code_cells(HERE.parent / "notebooks" / f"{name}.ipynb")]  # fmt: skip
    runs = {"small": small} | {key: small | {key: value} for key, value in other.items()} | {"small again": small}
    done = subprocess.run(
        [sys.executable, "-c", _PROBE], input=json.dumps({"cells": cells, "runs": runs}), capture_output=True,
        encoding="utf-8", cwd=HERE.parent / "notebooks", timeout=900)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    reports = dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith('["'))
    usual = reports["small"]
    assert reports["small again"] == usual, "two equal runs differ, so a parameter's effect cannot be seen"
    return {item: [key for key in other if reports[key].get(item) != usual[item]] for item in usual}


@pytest.mark.parametrize("name", sorted(SMALL))
def test_every_parameter_moves_what_depends_on_it(name):
    """Each parameter changes what the notebook reports, and each figure and verdict follows its own parameters.

    small_runs.yml names under `moves` the parameters of each figure and verdict, and under `fixed` those that no
    parameter can move at these values, with the reason; for chapters that have these lists they must be complete.
    """
    chapter = SMALL[name]
    assert set(chapter["other"]) == set(parameters.MODELS[name].model_fields) - {"preset"}
    moved, moves, fixed = effects(name), chapter.get("moves", {}), chapter.get("fixed", {})
    assert not (silent := set(chapter["other"]) - set(moved.pop("all"))), f"no effect on what is reported: {silent}"
    assert not (unknown := (moves.keys() | fixed.keys()) - moved.keys()), f"no such figure or verdict: {unknown}"
    still = {item: sorted(set(keys) - set(moved[item])) for item, keys in moves.items()}
    assert not any(still.values()), f"not moved by: { {item: keys for item, keys in still.items() if keys} }"
    missing = sorted(moved.keys() - moves.keys() - fixed.keys()) if moves else []
    assert not missing, f"without parameters in small_runs.yml: {missing}"
