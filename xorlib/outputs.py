"""Numbers as the notebooks store them: few digits, so that any processor gives the same ones."""

from numbers import Integral, Real


def short(value: float) -> float:
    """At most four significant digits; what is below 1e-12 is rounding noise and counts as zero."""
    return 0.0 if abs(value) < 1e-12 else float(f"{value:.4g}")


def glue(name: str, value) -> None:
    """Store a number or word under a name for the prose; a number that is not whole is shortened first."""
    from myst_nb import glue as store  # here: who prints the ledger need not have the book's tools

    rounded = isinstance(value, Real) and not isinstance(value, Integral)
    store(name, short(value) if rounded else value, display=False)
