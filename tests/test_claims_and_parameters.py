"""The ledger's rules, the command, and the refusal of bad parameters."""

import json
import re

import pytest

from xorlib import claims, parameters, store

GOOD = dict(
    preset="quick", seed=0, num_train=100, num_test=100, dimension=2, width=10, noise_rate=0.1, cluster_variance=0.1,
    law="gaussian", init_variance=1e-3, step_size=0.1, num_steps=10, num_seeds=5)  # fmt: skip


def checked(**changes):
    return parameters.DecisionBoundary.from_notebook(GOOD | changes)


@pytest.fixture
def small_ledger(monkeypatch):
    entry = dict(id="rfa.x", paper="RFA", where="here", statement="s", kind="bound", rule="r", notebook="01_x",
                 if_passed="reproduced", bounds={"size": {"at_least": 1, "at_most": 2}})  # fmt: skip
    monkeypatch.setattr(claims, "ledger", lambda: {"rfa.x": entry})


def notebook(path, *verdicts):
    outputs = [{"data": {claims.MIME: v.record}} for v in verdicts]
    path.write_text(json.dumps({"cells": [{"outputs": outputs}]}), encoding="utf-8")


def test_a_verdict_applies_the_rule(small_ledger):
    words = {x: claims.verdict("rfa.x", size=x).verdict for x in (1, 2, 0.999, 2.001, float("nan"))}
    assert [word == "reproduced" for word in words.values()] == [True, True, False, False, False]
    with pytest.raises(ValueError, match="size must be measured"):
        claims.verdict("rfa.x", length=1)
    with pytest.raises(KeyError, match=r"rfa\.y is not in"):
        claims.verdict("rfa.y", size=1)
    assert str(claims.verdict("rfa.x", size=1.23456, num_seeds=2)) == (
        "rfa.x | reproduced | size 1.235 (>= 1) (<= 2) | 2 seeds"
    )


def test_the_command_fails_for_a_missing_a_second_and_an_unknown_verdict(small_ledger, tmp_path, monkeypatch, capsys):
    run = lambda: claims.main(["--notebooks", str(tmp_path)])  # noqa: E731
    assert run() == 1
    assert "no verdict in any notebook" in capsys.readouterr().err
    good = claims.verdict("rfa.x", size=1)
    notebook(tmp_path / "01_x.ipynb", good)
    assert run() == 0
    notebook(tmp_path / "01_x.ipynb", good, good)
    assert run() == 1
    notebook(tmp_path / "01_x.ipynb", good)
    notebook(tmp_path / "02_x.ipynb", good)
    assert run() == 1
    (tmp_path / "02_x.ipynb").unlink()
    monkeypatch.setattr(claims, "ledger", dict)
    assert run() == 1


def test_an_entry_with_an_unknown_key_is_refused(monkeypatch):
    entry = claims.ledger()["rfa.figure-1"]
    claims.ledger.__wrapped__()  # every key that claims.yml uses is known
    monkeypatch.setattr(claims.yaml, "safe_load", lambda _: [entry | {"if_pased": "reproduced after correction"}])
    with pytest.raises(ValueError, match=r"^claims\.yml: rfa\.figure-1 has the unknown key if_pased$"):
        claims.ledger.__wrapped__()


def test_verdicts_stand_beside_those_of_the_stored_paper_run(small_ledger, tmp_path, monkeypatch):
    monkeypatch.setattr(store, "RESULTS", tmp_path)
    monkeypatch.setattr(store, "_code_of_this_notebook", lambda name, p: "a digest")
    monkeypatch.setattr(claims, "_GIVEN", {})
    claims.verdict("rfa.x", size=1)
    assert claims.at_paper_scale(checked()).line.startswith("No paper-scale run is stored")
    claims.verdict("rfa.x", size=3.5, num_seeds=7)
    at_paper = claims.at_paper_scale(checked(preset="paper"))
    assert "1 of 1 verdicts are those of this run." in at_paper.line
    claims.verdict("rfa.x", size=1.5)
    quick = claims.at_paper_scale(checked())
    assert "0 of 1 verdicts are those of this run; rfa.x: not reproduced." in quick.line and "num_seeds 5" in quick.line
    assert quick.table.iloc[0].tolist() == ["rfa.x", "size", "1.5", "3.5"]
    del claims._GIVEN["rfa.x"]
    assert "0 of 1 verdicts are those of this run; rfa.x has no verdict in this run." in (
        claims.at_paper_scale(checked()).line)  # fmt: skip
    assert "other values of noise_rate" in claims.at_paper_scale(checked(noise_rate=0.3)).line


def test_preset_paper_replaces_no_value_that_the_reader_gave(capsys):
    given = {"preset": "paper", "num_seeds": 60}
    assert checked(**given).num_seeds == 120
    assert "preset paper: num_seeds = 120, not 60" in capsys.readouterr().out
    own = checked(**given, In=["num_seeds: int = 60  # help: seeds", "# Parameters\npreset = 'paper'\nnum_seeds = 60"])
    assert own.num_seeds == 60 and not own.is_the_books() and capsys.readouterr().out == ""
    assert checked(num_seeds=60, In=["# Parameters\nseed = 1"]).at_paper_scale().num_seeds == 120


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("noise_rat", 0.2, "did you mean noise_rate"),
        ("noise_rate", 0.7, "from 0 and below 0.5"),
        ("width", -5, "a whole number from 2"),
        ("num_train", "abc", "a whole number from 40"),
        ("num_train", True, "a whole number from 40"),
        ("num_train", 100.5, "a whole number from 40"),
        ("step_size", float("nan"), "a finite number above 0"),
        ("step_size", "inf", "a finite number above 0"),
        ("num_train", 1_000_000_000, "to 10000000"),
        ("law", "cauchy", "'gaussian', 'uniform', 'laplace'"),
        ("preset", "fast", "'quick', 'paper'"),
    ],
)
def test_a_refusal_names_parameter_value_and_what_is_allowed(name, value, allowed):
    with pytest.raises(parameters.ParameterError) as refusal:
        checked(**{name: value})
    line = str(refusal.value)
    assert "\n" not in line
    assert line.startswith(f"{name} = ") and re.search(re.escape(str(value).strip("'")), line) and allowed in line


def test_a_size_that_exhausts_memory_is_refused_with_an_estimate():
    with pytest.raises(parameters.ParameterError, match=r"= 10000000: num_train x dimension needs about .* GiB"):
        checked(num_train=10_000_000, dimension=1000)


def test_papermills_string_forms_are_read_and_the_preset_fills_in_what_was_left():
    p = checked(num_train=1e5, step_size="1e-3", noise_rate="0.2", width="64")
    assert (p.num_train, p.step_size, p.noise_rate, p.width) == (100_000, 1e-3, 0.2, 64)
    quick, paper = parameters.DecisionBoundary.paper_scale["num_seeds"]
    assert checked(preset="paper", num_seeds=quick).num_seeds == paper
    assert checked(preset="paper", num_seeds=quick + 1).num_seeds == quick + 1
