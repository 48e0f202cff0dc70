"""A step of the summary-statistics dynamics against a real SGD step as d grows: `python -m benchmarks.population`.

Both at step size 0.1 and kappa = step_size * dimension / batch_size = 0.1, so the real step's batch is d.
"""

import numpy as np
import torch

import xorlib
from benchmarks import timing
from xorlib import data, network, population, train

DIMENSIONS, WIDTH, STEP_SIZE, NOISE, INIT_SCALE = (100, 400, 1600, 6400), 200, 0.1, 0.1, 0.3


def main():
    """Print the ratios, with and without the minibatch's noise."""
    xorlib.start()
    rows, last = [], None
    for dimension in DIMENSIONS:
        rng = data.streams(0)
        net = network.both_layers(WIDTH, dimension, INIT_SCALE, rng.init)
        engine = train._Online(net, round(STEP_SIZE * dimension / NOISE), rng.batch, True, torch.float32, "cpu")
        neurons = population.summarise(net)
        times = timing.in_turn({
            "real": lambda e=engine: e.step(STEP_SIZE),
            "noiseless": lambda n=neurons: population.step(n, STEP_SIZE),
            "noisy": lambda n=neurons, d=dimension, r=rng.batch: population.step(n, STEP_SIZE, NOISE, d, r),
        })  # fmt: skip
        ratio = timing.median_ratio(times.real, times.noisy)
        rows.append({
            "d": dimension, "batch": engine.batch_size, "real over population": timing.factor(ratio),
            "without noise": timing.factor(timing.median_ratio(times.real, times.noiseless)),
            "exponent in d": "" if last is None else f"{np.log(ratio / last) / np.log(4):.2f}",
        })  # fmt: skip
        last = ratio
    timing.show(f"One step, width {WIDTH}, kappa {NOISE}: real SGD in float32 over the population's in float64", rows)
    print("A population step is a few dozen operations on arrays of the width, whatever d is; a real one grows as\n"
          "batch * d = d^2. Both cover the same training time.")  # fmt: skip


if __name__ == "__main__":
    main()
