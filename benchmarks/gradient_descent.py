"""Gradient descent against what a user would write, as ratios in one run: `python -m benchmarks.gradient_descent`.

The peers take the same steps in the same precision with one thread: nn.Linear twice, softplus and torch.optim.SGD, and
a jitted loop of JAX where JAX is installed. All forms are timed in turn, so that a slow moment of the machine hits
each, and medians of ratios are printed, with the share of the fastest square product (GEMM) of the same run.
"""

import numpy as np
import torch

import xorlib
from benchmarks import peers, timing
from xorlib import data, network, train

SIZES = {"Figure 1: n=5000, d=2, m=500": (5000, 2, 500, 30), "n=100, d=10000, m=100": (100, 10_000, 100, 30)}
STEP_SIZE = 0.05
ENGINES = {"autograd": None, "jax": None, "blocked": train._Plain, "gram": train._Gram}


def forms(names, points, net, dtype, step_size, jax_steps=1):
    """Closures that take one step (JAX's: `jax_steps` of them), and functions for the weights, by form."""
    run, weights = {}, {}
    for name in names:
        if name == "autograd":
            run[name], weights[name] = peers.autograd_loop(points, net, step_size, dtype)
        elif name == "jax" and peers.jax:
            run[name], weights[name] = peers.jax_loop(points, net, step_size, dtype, jax_steps)
        elif ENGINES[name]:
            engine = ENGINES[name](net, points.x, points.y, None, 0.0, lambda v: torch.tensor(v, dtype=dtype))
            run[name], weights[name] = (lambda e=engine: e.step(step_size)), engine.weights
    return run, weights


def operations(form, n, d, m):
    """Floating-point operations of the matrix products of a step."""
    return 2 * n * n * m if form == "gram" else 4 * n * d * m


def main():
    """Print a table of ratios for both sizes and both precisions."""
    xorlib.start()
    rows = []
    for name, (n, d, m, jax_steps) in SIZES.items():
        rng = data.streams(0)
        points = data.xor_clusters(n, d, 1 / (50 if d == 2 else d), 0.15, rng.data, rng.noise)
        net = network.fixed_second_layer(m, d, 1 / (32 * m * d), rng.init)
        for dtype in (torch.float64, torch.float32):
            names = ["autograd", "jax", "gram" if d > n else "blocked"]
            run, weights = forms(names, points, net, dtype, STEP_SIZE, jax_steps)
            for form in run:  # the same 30 steps by each, to compare the weights
                for _ in range(1 if form == "jax" else jax_steps):
                    run[form]()
            apart = {form: np.abs(weights[form]() - weights["autograd"]()).max() for form in run}
            size, square = timing.best_square(dtype)
            times = timing.in_turn(run | {"square": square})
            if "jax" in times:
                times["jax"] /= jax_steps
            for form in run:
                share = timing.share_of_peak(operations(form, n, d, m), times[form], times.square, size)
                rows.append({
                    "setting": name, "type": str(dtype)[6:], "form": form,
                    "ratio": timing.factor(timing.median_ratio(times.autograd, times[form])),
                    "of GEMM peak": f"{share:.0%}", "weights apart": f"{apart[form]:.0e}",
                })  # fmt: skip
    timing.show("Full-batch gradient descent: ratio of the autograd loop's time to each form's", rows)


if __name__ == "__main__":
    main()
