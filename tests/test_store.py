"""The store: its keys know the code, the parameters and the setting; damage is noticed; tables are whole or refused."""

import functools
import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from xorlib import claims, data, longrun, measure, network, parameters, store, sweep, train

LOCAL = """
from dataclasses import dataclass
from xorlib import data

FACTOR = 2  # a comment
TABLE = {"twice": lambda value: 2 * value}


@dataclass
class Weight:
    '''A docstring.'''
    value: float

    def heavier(self) -> float:
        return self.value + 1


def helper(value, bias=0.5):
    return FACTOR * value + bias


def experiment(seed):
    rng = data.streams(seed)
    return {"value": helper(rng.data.random()) + Weight(1.0).heavier() + TABLE["twice"](1)}
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A function that writes a module beside the caller's and imports it afresh."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(text, name="own_experiment"):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
        try:
            module = importlib.import_module(name)
        finally:
            sys.dont_write_bytecode = before
        import linecache

        linecache.checkcache()
        return module

    return write


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR = 2", "FACTOR = 3"),
        ("bias=0.5", "bias=0.6"),
        ("self.value + 1", "self.value + 2"),
        ("2 * value", "3 * value"),
        ('["twice"](1)', '["twice"](2)'),
        ("value: float", "value: float = 1.0"),
    ],
)
def test_a_change_of_anything_reached_changes_the_digest(written, old, new):
    before = store.code_digest(written(LOCAL).experiment)
    assert before == store.code_digest(written(LOCAL).experiment)
    assert old in LOCAL
    assert store.code_digest(written(LOCAL.replace(old, new)).experiment) != before


def test_comments_docstrings_annotations_and_layout_change_nothing(written):
    before = store.code_digest(written(LOCAL).experiment)
    other = LOCAL.replace("# a comment", "# another").replace("A docstring.", "Words.").replace(" -> float", "")
    other = other.replace("    return FACTOR * value + bias", "    return (FACTOR * value\n            + bias)")
    assert store.code_digest(written(other).experiment) == before


def test_closures_partials_and_decorators_count():
    def made(value):
        return lambda seed: {"value": seed + value}

    assert store.code_digest(made(1)) != store.code_digest(made(2)) == store.code_digest(made(2))
    base = made(1)
    assert store.code_digest(functools.partial(base, seed=1)) != store.code_digest(functools.partial(base, seed=2))
    assert "xorlib.claims.ledger" not in reached(claims.verdict)  # judging is not computing


def reached(function):
    walk = store._Reach()
    walk.all([function])
    return walk.parts


class Some(parameters.NotebookParameters):
    notebook = "99_some"
    paper_scale = {"num_seeds": (2, 4)}
    noise_rate: float
    num_seeds: int


p = Some(preset="quick", seed=1, noise_rate=0.1, num_seeds=2)


def reads_the_noise(seed):
    return {"value": p.noise_rate * seed}


def test_only_the_parameters_that_are_read_count(monkeypatch, tmp_path):
    before = store.code_digest(reads_the_noise)
    monkeypatch.setitem(globals(), "p", p.model_copy(update={"num_seeds": 3}))
    assert store.code_digest(reads_the_noise) == before
    sweep.run(reads_the_noise, [{"seed": 1}], store=tmp_path)
    sweep.run(reads_the_noise, [{"seed": 1}, {"seed": 2}], store=tmp_path)
    assert len(list(tmp_path.iterdir())) == 2  # one more seed is one more record
    monkeypatch.setitem(globals(), "p", p.model_copy(update={"noise_rate": 0.2}))
    assert store.code_digest(reads_the_noise) != before


place = {"store": Path("here")}


def says_where(seed):
    return {"value": seed, "place": str(place["store"])}


def test_where_something_is_stored_does_not_count(monkeypatch):
    before = store.code_digest(says_where)
    monkeypatch.setitem(place, "store", Path("there"))
    assert store.code_digest(says_where) == before
    monkeypatch.setitem(place, "jobs", 1)
    assert store.code_digest(says_where) != before


def uses_the_library(seed):
    rng = data.streams(seed)
    return {"value": float(measure.correlations(network.fixed_second_layer(4, 5, 1.0, rng.init), np.eye(2, 5)).max())}


def small_run(folder):
    rng = data.streams(3)
    points = data.xor_clusters(16, 4, 0.1, 0.15, rng.data, rng.noise, balanced=True)
    net = network.fixed_second_layer(6, 4, 1e-4, rng.init)
    return longrun.gradient_descent(
        net, points, points, record_at=[0, 4], stretch_ends=[4], store=folder, step_size=0.1)  # fmt: skip


NOTEBOOK = [
    "# Parameters\nseed: int = 1  # help: seed",
    "from xorlib import measure, network, store\nfrom xorlib.claims import at_paper_scale",
    "table = measure.correlations(net, means)\nstore.save_table(table, 'x', p)",
    "at_paper_scale(p)",
]


def test_an_edited_library_function_makes_record_checkpoint_and_table_stale(tmp_path, monkeypatch, edited_library):
    """The edit of the source is real: a copy of xorlib is changed and another process is asked."""
    first, again, changed = edited_library
    assert first == again
    for what in ("record", "checkpoint", "table"):
        assert first[what] != changed[what], what


@pytest.fixture
def edited_library(tmp_path):
    """The keys that a process sees: with the library as it is, twice, and with one constant edited in a copy."""
    import shutil
    import subprocess

    copy = tmp_path / "copy"
    shutil.copytree(Path(store.__file__).parent, copy / "xorlib", ignore=shutil.ignore_patterns("__pycache__"))
    script = copy / "keys.py"
    here = Path(__file__).read_text(encoding="utf-8")
    cells = here[here.index("NOTEBOOK = [") : here.index("def test_an_edited_library")]
    body = here[here.index("def uses_the_library") : here.index("NOTEBOOK = [")]
    script.write_text(
        "import json, sys, pathlib\nimport numpy as np\n"
        "from xorlib import data, longrun, measure, network, store, sweep, train\n" + body + cells + """
folder = pathlib.Path(sys.argv[1])
sweep.run(uses_the_library, [{"seed": 1}], store=folder / "sweep")
small_run(folder / "run")
print(json.dumps({"record": sorted(p.name for p in (folder / "sweep").iterdir()),
    "checkpoint": sorted(p.name for p in (folder / "run").iterdir()),
    "table": store.cells_digest(NOTEBOOK, "save_table(")}))
""", encoding="utf-8")  # fmt: skip

    def keys(name):
        done = subprocess.run([sys.executable, script, tmp_path / name], cwd=copy, capture_output=True, timeout=120,
                              env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(copy)}, encoding="utf-8")  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    first, again = keys("1"), keys("2")
    for module, old, new in (
        ("measure", "keepdims=True)\n    return net.weights @ units.T / ",
         "keepdims=True)\n    return 2 * net.weights @ units.T / "),
        ("train", "torch.sigmoid(-y * output)", "torch.sigmoid(-2 * y * output)"),
    ):  # fmt: skip
        path = copy / "xorlib" / f"{module}.py"
        text = path.read_text(encoding="utf-8")
        assert text.count(old) == 1
        path.write_text(text.replace(old, new), encoding="utf-8")
    return first, again, keys("3")


def test_a_record_from_elsewhere_runs_no_code(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("code of a record was run",))

    records = store.Records(tmp_path, {"code": "x"})
    np.savez(tmp_path / f"{records.key({})}.npz", record=np.array([Bomb()], dtype=object))
    assert records.get({}) is None


@pytest.fixture
def tables(tmp_path, monkeypatch):
    """save_table and load_table in a folder of their own, as if NOTEBOOK ran."""
    monkeypatch.setattr(store, "RESULTS", tmp_path / "results")
    monkeypatch.setattr(store, "RECORDS", tmp_path / "records")
    cells = list(NOTEBOOK)
    monkeypatch.setattr(store, "_code_of_this_notebook",
                        lambda name, p: store.cells_digest(cells, store._marker(name, p.notebook)))  # fmt: skip
    paper = p.at_paper_scale()
    path = store.save_table(pd.DataFrame({"size": [1, 2], "value": [0.1, 1 / 3]}), "x", paper)
    return path, paper, cells


def test_a_table_stands_where_its_parameters_and_code_are_this_runs(tables):
    path, paper, cells = tables
    assert paper.num_seeds == 4
    loaded = store.load_table("x", p)
    assert loaded.rows.to_dict("list") == {"size": [1, 2], "value": [0.1, 1 / 3]} and "this run's" in loaded.line
    other = store.load_table("x", p.model_copy(update={"noise_rate": 0.3}))
    assert other.rows is None and "noise_rate" in other.line
    assert store.stale(path, NOTEBOOK) is None
    cells[2] = cells[2].replace("net,", "2 * net,")
    assert store.load_table("x", p).rows is None and "code has changed" in store.load_table("x", p).line
    assert store.stale(path, cells) == "x.csv was made by other code; renew it with: make paper ONLY=99_some"
    assert store.load_table("absent", p).line == "No paper-scale run is stored; make paper ONLY=99_some."


def test_a_readers_own_table_does_not_replace_the_books(tables):
    path, paper, _ = tables
    before = path.read_bytes()
    own = paper.model_copy(update={"noise_rate": 0.3})
    own._given = frozenset({"preset", "noise_rate"})
    written = store.save_table(pd.DataFrame({"size": [7]}), "x", own)
    assert written != path and path.read_bytes() == before
    assert store.load_table("x", own).rows.to_dict("list") == {"size": [7]}
    assert store.load_table("x", p).rows["size"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda text: text[: text.rindex("2,")], "has 1 rows where 2 were written"),
        (lambda text: text.replace("0.1\n", "0.2\n"), "was edited"),
        (lambda text: text.partition("\n")[2], "no header"),
        (lambda text: "", "no header"),
    ],
)
def test_a_table_that_was_cut_or_edited_is_refused_in_one_line(tables, damage, words):
    path, _, _ = tables
    text = path.read_text(encoding="utf-8")
    assert damage(text) != text
    path.write_text(damage(text), encoding="utf-8")
    with pytest.raises(store.TableError, match=words) as caught:
        store.load_table("x", p)
    line = str(caught.value)
    assert "x.csv" in line and "make paper" in line and "\n" not in line
    assert store.stale(path, NOTEBOOK) == line


def test_training_records_what_it_says():
    points = data.xor_clusters(16, 4, 0.1, 0.0, *(np.random.default_rng(k) for k in (0, 1)))
    net = network.fixed_second_layer(6, 4, 1e-4, np.random.default_rng(2))
    online = network.both_layers(6, 4, 0.1, np.random.default_rng(2))
    full = functools.partial(train.gradient_descent, net, points, step_size=0.1, num_steps=10)
    mini = functools.partial(
        train.minibatch_sgd, online, step_size=0.1, batch_size=8, num_steps=10, rng=np.random.default_rng(3))
    for run in (full, mini):
        assert run().history.step.tolist() == [0, 10]
        assert run(record_at=[7, 3]).history.step.tolist() == [3, 7]
        for wrong, words in (([0, 500], "500"), ([-1], "-1"), ([], "empty")):
            with pytest.raises(ValueError, match=words):
                run(record_at=wrong)
    with pytest.raises(ValueError, match="must be from 5 to"):
        full(start=5, record_at=[0, 7])
    assert run(record_at=[3]).num_updates == 10
