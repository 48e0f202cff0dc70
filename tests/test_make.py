"""Chapters at other seeds: which verdicts are listed as not the book's, and how."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from xorlib import claims

SCRIPT = Path(__file__).parent.parent / "notebooks" / "make.py"
spec = importlib.util.spec_from_file_location("make", SCRIPT)
make = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make)

BOUND = {"accuracy": {"at_least": 0.9}, "error": {"at_least": 0.1, "at_most": 0.2}}


def record(claim, verdict, **measured):
    return {"id": claim, "verdict": verdict, "measured": measured, "bound": BOUND, "num_seeds": 3}


def write(path, *records):
    outputs = [{"output_type": "execute_result", "data": {claims.MIME: r}} for r in records]
    cells = [{"cell_type": "markdown"}, {"cell_type": "code", "outputs": [{"output_type": "stream"}, *outputs]}]
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    return path


def test_only_verdicts_that_differ_are_listed_with_what_breaks_its_bound(tmp_path):
    book = write(
        tmp_path / "book.ipynb",
        record("same", "reproduced", accuracy=0.95, error=0.15),
        record("lost", "reproduced", accuracy=0.95, error=0.15),
        record("won", "not reproduced", accuracy=0.85, error=0.15),
        record("diverged", "reproduced", accuracy=0.95, error=0.15),
        record("by a hair", "reproduced", accuracy=0.95, error=0.15),
        record("gone", "reproduced", accuracy=0.95, error=0.15),
    )
    here = write(
        tmp_path / "here.ipynb",
        record("same", "reproduced", accuracy=0.91, error=0.2),
        record("lost", "not reproduced", accuracy=0.93, error=0.05),
        record("won", "reproduced", accuracy=0.92, error=0.15),
        record("diverged", "not reproduced", accuracy=None, error=0.15),
        record("by a hair", "not reproduced", accuracy=0.9, error=0.15),
    )
    assert make.compare(book, book) == (6, [])
    total, lines = make.compare(book, here)
    assert total == 6 and lines == [
        "lost | book: reproduced | here: not reproduced | error 0.05 (>= 0.1, <= 0.2; book 0.15)",
        "won | book: not reproduced | here: reproduced | accuracy 0.92 (>= 0.9; book 0.85)",
        "diverged | book: reproduced | here: not reproduced | accuracy not finite (>= 0.9; book 0.95)",
        "by a hair | book: reproduced | here: not reproduced | "
        "accuracy 0.9 (>= 0.9; book 0.95), error 0.15 (>= 0.1, <= 0.2; book 0.15)",
        "gone | book: reproduced | here: no verdict | accuracy 0.95 (>= 0.9), error 0.15 (>= 0.1, <= 0.2)",
    ]


def test_a_failed_run_is_listed_and_the_rest_go_on(tmp_path, monkeypatch, capsys):
    book = record("some", "reproduced", accuracy=0.95, error=0.15)
    write(tmp_path / "01_a.ipynb", book)
    write(tmp_path / "02_b.ipynb", book)

    def execute(source, target, parameters, **_):
        if source.stem == "01_a" and parameters["seed"] == 7:
            raise RuntimeError("Kernel died\nand a long story")
        write(Path(target), book | ({"verdict": "not reproduced"} if parameters["seed"] == 8 else {}))

    monkeypatch.setattr(make, "HERE", tmp_path)
    monkeypatch.setattr(make.papermill, "execute_notebook", execute)
    monkeypatch.setattr(make.joblib, "delayed", lambda f: lambda *task: task)  # in this process: it has the patches
    monkeypatch.setattr(make.joblib, "Parallel", lambda **_: lambda tasks: (make.run_seed(*task) for task in tasks))
    assert make.report_seeds(["01_a", "02_b"], [7, 8]) == 1
    printed = capsys.readouterr().out.splitlines()
    assert printed[0] == "01_a at seed 7 failed: RuntimeError: Kernel died"
    assert [line.split(" | ")[:2] for line in printed[1:3]] == [["seed 8", "some"]] * 2
    assert printed[3] == "2 of 3 verdicts differ; 1 of 4 runs failed"
    assert make.report_seeds(["01_a", "02_b"], [8]) == 0  # it reports, and does not judge


@pytest.mark.parametrize("wrong", [["13_scorecard", "--seeds", "1"], ["--seeds", "x"], ["--paper", "--seeds", "1"]])
def test_a_wrong_call_is_refused_before_any_run(wrong):
    done = subprocess.run([sys.executable, SCRIPT, *wrong], capture_output=True, encoding="utf-8")
    assert done.returncode == 2 and done.stdout == "" and "error" in done.stderr.splitlines()[-1]
