"""RFA's Figure 2 by each form of gradient descent: seconds a step as ratios, and the projected time to step 10^7.

`python -m benchmarks.figure_2`. Settings as in notebooks/05_interpolation.md. Growing steps are those of
`train.gradient_descent(growth=0.005, largest_step=64)`; how many reach 10^7 is counted by running it on one point.
"""

import numpy as np
import torch

import xorlib
from benchmarks import timing
from benchmarks.gradient_descent import forms, operations
from xorlib import data, network, train

WIDTH, STEP_SIZE, LAST = 400, 0.1, 10**7
PANELS = {"high": (300, 5000), "low": (5000, 300)}  # n, d
JAX_STEPS = 3
DTYPES = (torch.float64, torch.float32)


def draw(n, d, m):
    """Training points and initial net of the figure at the given sizes."""
    rng = data.streams(0)
    points = data.xor_clusters(n, d, d**-1.2, 0.15, rng.data, rng.noise, flips="per-cluster", balanced=True)
    return points, network.fixed_second_layer(m, d, 0.01 / (m * d), rng.init)


def growing_steps():
    """How many growing steps reach step 10^7: a real run, of one point in one dimension."""
    one = data.Sample(np.ones((1, 1)), np.ones(1), np.ones(1), np.zeros(1, int))
    net = network.Network(np.zeros((1, 1)), np.ones(1))
    return train.gradient_descent(
        net, one, step_size=STEP_SIZE, num_steps=LAST, growth=0.005, largest_step=64
    ).num_updates


def panel_rows(panel, num_growing):
    """One row a form and precision."""
    (n, d), rows = PANELS[panel], []
    points, net = draw(n, d, WIDTH)
    for dtype in DTYPES:
        run, _ = forms(["autograd", "jax", "blocked", "gram"], points, net, dtype, STEP_SIZE, JAX_STEPS)
        size, square = timing.best_square(dtype)
        times = timing.in_turn(run | {"square": square})
        if "jax" in times:
            times["jax"] /= JAX_STEPS
        for form in run:
            step, flops = times[form].median(), operations(form, n, d, WIDTH)
            growing = form in ("blocked", "gram")
            rows.append({
                "panel": f"n={n}, d={d}", "type": str(dtype)[6:], "form": form,
                "ratio": timing.factor(timing.median_ratio(times.autograd, times[form])),
                "of GEMM peak": f"{timing.share_of_peak(flops, times[form], times.square, size):.0%}",
                "square": size, "to step 10^7": timing.words(step * LAST),
                "with growing steps": timing.words(step * num_growing) if growing else "",
            })  # fmt: skip
    return rows


def growth_rows(panel, form):
    """The exponents with which a step's time grows: n, d and m doubled, each in turn."""
    n, d = PANELS[panel]
    sizes = {"base": (n, d, WIDTH), "n": (2 * n, d, WIDTH), "d": (n, 2 * d, WIDTH), "m": (n, d, 2 * WIDTH)}
    run = {key: forms([form], *draw(*size), torch.float32, STEP_SIZE)[0][form] for key, size in sizes.items()}
    times = timing.in_turn(run)
    exponents = {f"in {key}": f"{np.log2(timing.median_ratio(times[key], times.base)):.2f}" for key in ("n", "d", "m")}
    return {"panel": f"n={n}, d={d}", "form": form, **exponents}


def main():
    """Print the steps of both panels, and how the cost of a step grows."""
    xorlib.start()
    num_growing = growing_steps()
    for panel in PANELS:
        title = "one step, over the autograd loop of the same precision; projected time on one core"
        timing.show(f"Figure 2, m={WIDTH}: {title}", panel_rows(panel, num_growing))
    print(f"Growing steps to 10^7: {num_growing}. They are an approximation; chapter 05 measures it.")
    print("Peak: torch's product of the size in the column `square`, the fastest of several in the same run.\n"
          "JAX brings a product of its own, which may be faster: its share can pass 100 %.")  # fmt: skip
    cases = [("high", "autograd"), ("high", "blocked"), ("high", "gram"), ("low", "autograd"), ("low", "blocked")]
    timing.show("Exponent of a step's time, float32, each size doubled", [growth_rows(*case) for case in cases])


if __name__ == "__main__":
    main()
