"""Outputs as the notebooks store them, in few digits, and how a fresh run is compared with what is stored."""

import re
from numbers import Integral, Real

FIGURE_MIME = "application/vnd.xorlib.figure+json"
TINY = 1e-12  # what is smaller is rounding noise, and counts as zero
# One unit of the fourth digit. Another processor adds in another order; the last digit kept may then fall on the other
# side of an edge. A number that shows three digits or fewer has, in effect, to be equal.
TOLERANCE = 1e-3
_NUMBER = re.compile(r"(?<![\w.#])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?!\w)")


def short(value: float) -> float:
    """At most four significant digits; what is tiny counts as zero."""
    return 0.0 if abs(value) < TINY else float(f"{value:.4g}")


def glue(name: str, value) -> None:
    """Store a number or word under a name for the prose; a number that is not whole is shortened first."""
    from myst_nb import glue as store  # here: who prints the ledger need not have the book's tools

    rounded = isinstance(value, Real) and not isinstance(value, Integral)
    store(name, short(value) if rounded else value, display=False)


def difference(stored, fresh, scale: float = 0.0, where: str = "output") -> str | None:
    """Where and how two outputs differ, None when they do not: words exactly, numbers up to TOLERANCE.

    Takes what a notebook's JSON is made of. Whole numbers are counts and must be equal. `scale` is the size that the
    tolerance of a number refers to where that is larger than the number itself.
    """
    if isinstance(stored, dict) and isinstance(fresh, dict):
        if stored.keys() != fresh.keys():
            return f"{where}: {sorted(stored)} stored, {sorted(fresh)} now"
        pairs = [(stored[key], fresh[key], f"{where}, {key}") for key in stored if not _drawn(key, stored)]
        return next(filter(None, (difference(a, b, scale, name) for a, b, name in pairs)), None)
    if isinstance(stored, list) and isinstance(fresh, list):
        if len(stored) != len(fresh):
            return f"{where}: {len(stored)} stored, {len(fresh)} now"
        # A figure's row of numbers was rounded by its largest.
        scale = max((abs(value) for value in stored if isinstance(value, float)), default=0.0)
        pairs = [(a, b, f"{where} {number}") for number, (a, b) in enumerate(zip(stored, fresh, strict=True))]
        return next(filter(None, (difference(a, b, scale, name) for a, b, name in pairs)), None)
    if isinstance(stored, str) and isinstance(fresh, str):
        same = _text_is_same(stored, fresh)
    elif {type(stored), type(fresh)} <= {int, float}:
        same = _number_is_same(str(stored), str(fresh), scale)
    else:
        same = type(stored) is type(fresh) and stored == fresh
    return None if same else f"{where}: {stored!r} stored, {fresh!r} now"


def _drawn(key: str, data: dict) -> bool:
    """Images differ in single pixels; they may be passed over only where the figure's data stand beside them."""
    return key == "image/png" and FIGURE_MIME in data


def _text_is_same(stored: str, fresh: str) -> bool:
    if stored == fresh:
        return True
    # Tables are padded with blanks, one fewer where a number got a minus sign or a digit.
    between = [re.sub(" +", " ", _NUMBER.sub("0", text)) for text in (stored, fresh)]
    numbers = [_NUMBER.findall(text) for text in (stored, fresh)]
    return between[0] == between[1] and all(_number_is_same(a, b) for a, b in zip(*numbers, strict=True))


def _number_is_same(stored: str, fresh: str, scale: float = 0.0) -> bool:
    if stored == fresh or not re.search("[.en]", stored + fresh):  # the "n" of nan and inf
        return stored == fresh
    a, b = float(stored), float(fresh)
    size = max(abs(a), abs(b), scale)
    return size < TINY or abs(a - b) <= TOLERANCE * size * (1 + TINY)  # 1.001 - 1.0 is a little more than 0.001
