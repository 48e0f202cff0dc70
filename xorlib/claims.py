"""The ledger of claims and their verdicts. `python -m xorlib.claims` prints the table of both."""

import argparse
import html
import json
import math
import sys
from functools import cache
from pathlib import Path

import yaml

from .outputs import short

MIME = "application/vnd.xorlib.claim+json"
NOTEBOOKS = Path(__file__).parent.parent / "notebooks"
KINDS = ("exact", "bound", "scaling", "figure", "qualitative", "erratum", "open-question")
REPRODUCED = ("reproduced", "reproduced with practical constants", "reproduced after correction")
VERDICTS = (*REPRODUCED, "not reproduced", "out of reach")
SYMBOLS = {"at_least": ">=", "at_most": "<="}
_GIVEN: dict[str, dict] = {}  # the verdicts of this process, for at_paper_scale


@cache
def ledger() -> dict[str, dict]:
    """The entries of claims.yml by id, each with paper, where, statement, kind, rule, bounds, notebook, if_passed.

    `bounds` maps each measured quantity to {at_least: number} and/or {at_most: number}: the rule, for a
    machine. Raises ValueError for an entry that is not well formed or stands twice.
    """
    entries = {}
    for entry in yaml.safe_load((Path(__file__).parent / "claims.yml").read_text(encoding="utf-8")):
        name = entry.get("id")
        needed = {"id", "where", "statement", "kind", "rule", "bounds", "notebook"}
        if missing := needed - set(entry):
            raise ValueError(f"claims.yml: {name} lacks {', '.join(sorted(missing))}")
        if unknown := set(entry) - needed - {"paper", "if_passed"}:
            raise ValueError(f"claims.yml: {name} has the unknown key {', '.join(sorted(map(str, unknown)))}")
        if name in entries:
            raise ValueError(f"claims.yml: {name} stands twice")
        entry = {"paper": name.split(".")[0].upper(), "if_passed": REPRODUCED[0], **entry}
        tests = [test for bound in entry["bounds"].values() for test in bound.items()]
        if entry["kind"] not in KINDS or entry["if_passed"] not in REPRODUCED:
            raise ValueError(f"claims.yml: {name} has an unknown kind or if_passed")
        if any(op not in SYMBOLS or not isinstance(limit, int | float) for op, limit in tests):
            raise ValueError(f"claims.yml: {name} has a bound that is not at_least or at_most with a number")
        entries[name] = entry
    return entries


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4g}"


class Verdict:
    """A verdict as a notebook output: one line of text, a card in HTML, and the record as JSON."""

    def __init__(self, record: dict):
        self.record = record
        self.id, self.verdict = record["id"], record["verdict"]

    def __str__(self) -> str:
        r = self.record
        measured = ", ".join(
            f"{name} {_number(value)}"
            + "".join(f" ({SYMBOLS[op]} {limit:g})" for op, limit in r["bound"].get(name, {}).items())
            for name, value in r["measured"].items()
        )
        seeds = f" | {r['num_seeds']} seed{'s' * (r['num_seeds'] != 1)}" if r["num_seeds"] else ""
        reason = f" | {r['reason']}" if "reason" in r else ""
        return f"{r['id']} | {r['verdict']} | {measured}{seeds}{reason}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        entry, r = ledger()[self.id], self.record
        rows = "".join(
            f"<tr><td>{html.escape(name.replace('_', ' '))}</td><td>{_number(value)}</td><td>"
            + html.escape(", ".join(f"{SYMBOLS[op]} {b:g}" for op, b in r["bound"].get(name, {}).items()))
            + "</td></tr>"
            for name, value in r["measured"].items()
        )
        seeds = f"<p>Seeds: {r['num_seeds']}</p>" if r["num_seeds"] else ""
        reason = f"<p>Reason: {html.escape(r['reason'])}</p>" if "reason" in r else ""
        card = (
            f'<div class="xor-verdict" data-verdict="{r["verdict"]}">'
            f"<p><strong>{r['verdict']}</strong> · <code>{r['id']}</code> · {html.escape(entry['where'])}</p>"
            f"<p>Rule, fixed beforehand: {html.escape(entry['rule'])}</p>"
            f"<table><thead><tr><th>quantity</th><th>measured</th><th>bound</th></tr></thead>"
            f"<tbody>{rows}</tbody></table>{seeds}{reason}</div>"
        )
        return {MIME: r, "text/html": card, "text/plain": str(self)}


def verdict(claim: str, *, num_seeds: int | None = None, **measured: float) -> Verdict:
    """The verdict on a claim from measured quantities, by the ledger's bounds; show it as a cell's last value.

    Every quantity that has a bound must be measured; others are recorded beside them. A quantity that is not
    finite fails. Raises KeyError for an unknown claim and ValueError for a missing quantity.
    """
    entry = _entry(claim)
    bounds = entry["bounds"]
    if missing := set(bounds) - set(measured):
        raise ValueError(f"{claim}: {', '.join(sorted(missing))} must be measured, the rule bounds it")
    measured = {name: float(value) for name, value in measured.items()}
    return _record(claim, _word(entry, measured), measured, bounds, num_seeds)


def _word(entry: dict, measured: dict[str, float]) -> str:
    passed = all(
        math.isfinite(value := measured.get(name, math.nan))
        and (value >= limit if op == "at_least" else value <= limit)
        for name, bound in entry["bounds"].items()
        for op, limit in bound.items()
    )
    return entry["if_passed"] if passed else "not reproduced"


def out_of_reach(claim: str, reason: str, *, num_seeds: int | None = None, **nearest: float) -> Verdict:
    """The verdict on a claim that cannot be tested here: why, and the nearest quantities measured."""
    _entry(claim)
    return _record(claim, "out of reach", nearest, {}, num_seeds, reason=reason)


def _entry(claim: str) -> dict:
    if claim not in ledger():
        raise KeyError(f"{claim} is not in claims.yml")
    return ledger()[claim]


def _record(claim, word, measured, bounds, num_seeds, **more) -> Verdict:
    measured = {name: short(value) if math.isfinite(value) else None for name, value in measured.items()}
    record = {"id": claim, "verdict": word, "measured": measured, "bound": bounds, "num_seeds": num_seeds, **more}
    _GIVEN[claim] = record
    return Verdict(record)


class PaperScale:
    """A chapter's verdicts in this run and in the stored run at preset "paper": a line, and a table or None."""

    def __init__(self, line: str, table):
        self.line, self.table = line, table

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict:
        if self.table is None:
            return {"text/html": f"<p>{html.escape(self.line)}</p>", "text/plain": self.line}
        unfold = f"<details><summary>{html.escape(self.line)}</summary>{self.table.to_html(index=False)}</details>"
        return {"text/html": unfold, "text/plain": f"{self.line}\n{self.table.to_string(index=False)}"}


def at_paper_scale(parameters) -> PaperScale:
    """This run's verdicts beside those of the stored run at preset "paper"; such a run stores its own first.

    The stored table holds a row a measured quantity. It stands only where its parameters and code are this run's.
    Its verdicts are given anew from its measurements, by the present rules.
    """
    import pandas as pd

    from .store import load_table, save_table

    rows = [(r["id"], r["verdict"], r["num_seeds"], name, value)
            for r in _GIVEN.values() for name, value in r["measured"].items()]  # fmt: skip
    here = pd.DataFrame(rows, columns=["claim", "verdict", "num_seeds", "quantity", "measured"])
    if parameters.preset == "paper":
        save_table(here, parameters.notebook, parameters)
    stored = load_table(parameters.notebook, parameters)
    if stored.rows is None:
        return PaperScale(stored.line, None)
    there = {name: _judged(name, rows) for name, rows in stored.rows.groupby("claim", sort=False)}
    both = [name for name in _GIVEN if name in there]
    differ = [f"{name}: {there[name]}" for name in both if there[name] != _GIVEN[name]["verdict"]]
    absent = [f"{name} has no verdict {where}" for where, names in (
        ("there", _GIVEN.keys() - there.keys()), ("in this run", there.keys() - _GIVEN.keys()))
        for name in sorted(names)]  # fmt: skip
    scale = ", ".join(f"{name} {getattr(parameters.at_paper_scale(), name)}" for name in parameters.paper_scale)
    total = len(_GIVEN.keys() | there.keys())
    line = "; ".join([f"At preset paper ({scale}) {len(both) - len(differ)} of {total} verdicts are those of this run",
                      *differ, *absent]) + "."  # fmt: skip
    table = here.merge(stored.rows, on=["claim", "quantity"], how="outer", suffixes=("", "_stored"), sort=False)
    table = table[["claim", "quantity", "measured", "measured_stored"]].map(
        lambda v: v if isinstance(v, str) else _number(None if pd.isna(v) else v))  # fmt: skip
    return PaperScale(line, table.rename(columns={"measured": "this run", "measured_stored": "preset paper"}))


def _judged(claim: str, rows) -> str:
    """The verdict on a claim from the rows of a stored table: quantity, measured, and the verdict of that day."""
    if rows.verdict.iloc[0] == "out of reach":
        return "out of reach"
    measured = dict(zip(rows.quantity, rows.measured, strict=True))
    return _word(_entry(claim), measured)


def collect(notebooks: Path = NOTEBOOKS) -> tuple[dict[str, dict], list[str]]:
    """The verdicts in the notebooks' stored outputs, by id, and what is wrong: missing, unknown, twice, misplaced."""
    found, problems = {}, []
    for path in sorted(notebooks.glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            for record in (o["data"][MIME] for o in cell.get("outputs", []) if MIME in o.get("data", {})):
                name = record["id"]
                if name not in ledger():
                    problems.append(f"{name}: a verdict in {path.stem}, no entry in the ledger")
                elif name in found:
                    problems.append(f"{name}: a second verdict, in {path.stem}")
                elif ledger()[name]["notebook"] != path.stem:
                    problems.append(f"{name}: a verdict in {path.stem}, the ledger says {ledger()[name]['notebook']}")
                found.setdefault(name, record)
    problems += [f"{name}: no verdict in any notebook" for name in ledger() if name not in found]
    return found, problems


def table(notebooks: Path = NOTEBOOKS) -> list[dict]:
    """The ledger's entries with their verdicts, in the ledger's order; verdict None where there is none."""
    found, _ = collect(notebooks)
    blank = {"verdict": None, "measured": {}, "num_seeds": None}
    return [entry | {"bound": entry["bounds"]} | blank | found.get(name, {}) for name, entry in ledger().items()]


def main(argv: list[str] | None = None) -> int:
    """Print the table; 1 when a claim has no verdict or two, or a verdict no claim."""
    parser = argparse.ArgumentParser(prog="python -m xorlib.claims", description="Claims and their verdicts.")
    parser.add_argument("--json", action="store_true", help="print a list of objects instead of a table")
    parser.add_argument("--notebooks", type=Path, default=NOTEBOOKS, help="folder of executed notebooks")
    args = parser.parse_args(argv)
    sys.stdout.reconfigure(errors="backslashreplace")  # in the C locale a reason with an accent must not end the table
    rows, (found, problems) = table(args.notebooks), collect(args.notebooks)
    if args.json:
        print(json.dumps(rows, indent=1))
    else:
        for row in rows:
            print(f"{row['id']:34} {row['verdict'] or 'NO VERDICT':38} {row['where']} ({row['notebook']})")
        print(f"{len(found)} verdicts on {len(rows)} claims")
    print(*problems, sep="\n", end="\n" if problems else "", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
