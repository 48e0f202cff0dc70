"""Timings taken in turn, so that a slow moment of the machine hits every form alike, and what is made of them."""

import statistics
import time

import pandas as pd
import torch

SQUARES = (512, 1024, 2048)  # sizes of the square products among which the peak is looked for


def seconds(run, repeats=1):
    """Processor time of one of `repeats` calls: with one thread, the wall time on a machine with nothing else to do."""
    start = time.process_time()
    for _ in range(repeats):
        run()
    return (time.process_time() - start) / repeats


def in_turn(forms, rounds=7, least=0.05):
    """Seconds a call of each form (a dict of closures), one row a round; short calls are repeated for `least` s."""
    repeats = {}
    for name, run in forms.items():
        run()  # the first call warms up
        repeats[name] = max(1, round(least / seconds(run)))
    return pd.DataFrame([{name: seconds(run, repeats[name]) for name, run in forms.items()} for _ in range(rounds)])


def best_square(dtype):
    """The square matrix product with most operations a second: its size and one call of it."""
    products = {}
    for size in SQUARES:
        a, out = torch.randn(2, size, size, dtype=dtype)
        products[size] = lambda a=a, out=out: torch.mm(a, a, out=out)
    speed = {size: size**3 / min(seconds(run) for _ in range(5)) for size, run in products.items()}
    size = max(speed, key=speed.get)
    return size, products[size]


def median_ratio(slow, fast):
    """Median over the rounds of the ratio of two columns of `in_turn`."""
    return statistics.median(slow / fast)


def share_of_peak(operations, times, square_times, size):
    """Median over the rounds of the speed of a form, as a share of the square product's in the same round."""
    return statistics.median(operations / times / (2 * size**3 / square_times))


def factor(ratio):
    """A ratio to two digits, such as 0.97x or 230x."""
    return f"{float(f'{ratio:.2g}'):g}x"


def words(duration):
    """Seconds as days, hours, minutes or seconds."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if duration >= length:
            return f"{duration / length:.1f} {unit}"
    return f"{duration:.0f} seconds"


def show(title, rows):
    """Print rows (dicts) as a table under a title."""
    print(f"\n{title}\n{pd.DataFrame(rows).fillna('').to_string(index=False)}", flush=True)
