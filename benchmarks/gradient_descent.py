"""Gradient descent against what a user would write, as ratios in one run: `python -m benchmarks.gradient_descent`.

The peer is nn.Linear twice, softplus and torch.optim.SGD, in the same precision and with one thread. Both are timed in
turn, so that a slow moment of the machine hits both, and the median of the ratios is printed, with the share of the peak
of a plain matrix product (GEMM) measured in the same run.
"""

import statistics
import time

import numpy as np
import torch

import xorlib
from xorlib import data, network, train

SIZES = {"Figure 1: n=5000, d=2, m=500": (5000, 2, 500, 30), "n=100, d=10000, m=100": (100, 10_000, 100, 30)}


def autograd_loop(points, net, step_size, dtype):
    """One step of the plain loop, as a closure."""
    x, y = torch.tensor(points.x, dtype=dtype), torch.tensor(points.y, dtype=dtype)
    first = torch.nn.Linear(net.weights.shape[1], net.width, bias=False, dtype=dtype)
    second = torch.nn.Linear(net.width, 1, bias=False, dtype=dtype)
    with torch.no_grad():
        first.weight.copy_(torch.tensor(net.weights))
        second.weight.copy_(torch.tensor(net.second_layer)[None])
    optimiser = torch.optim.SGD(first.parameters(), lr=step_size)

    def step():
        optimiser.zero_grad()
        torch.nn.functional.softplus(-y * second(torch.relu(first(x)))[:, 0]).mean().backward()
        optimiser.step()

    return step, first.weight


def seconds(run, repeats):
    """Wall time of one of `repeats` calls."""
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def gemm_peak(dtype, size=1024):
    """Floating-point operations a second of a square matrix product."""
    a = torch.randn(size, size, dtype=dtype)
    return 2 * size**3 / min(seconds(lambda: a @ a, 1) for _ in range(8))


def main():
    """Print a table of ratios for both sizes and both precisions."""
    xorlib.start()
    print(f"{'setting':32} {'type':8} {'form':6} {'plain loop':>11} {'xorlib':>9} {'ratio':>7} {'of GEMM peak':>13} {'difference':>11}")
    for name, (n, d, m, repeats) in SIZES.items():
        rng = data.streams(0)
        points = data.xor_clusters(n, d, 1 / (50 if d == 2 else d), 0.15, rng.data, rng.noise)
        net = network.fixed_second_layer(m, d, 1 / (32 * m * d), rng.init)
        for dtype in ("float64", "float32"):
            tensor_type = getattr(torch, dtype)
            engine_class = train._Gram if d > n else train._Plain
            engine = engine_class(net, points.x, points.y, None, 0.0, lambda v, t=tensor_type: torch.tensor(v, dtype=t))
            step, weights = autograd_loop(points, net, 0.05, tensor_type)
            for _ in range(5):
                step()
                engine.step(0.05)
            times = [(seconds(step, repeats), seconds(lambda: engine.step(0.05), repeats)) for _ in range(7)]  # noqa: B023
            plain, ours = (statistics.median(column) for column in zip(*times, strict=True))
            ratio = statistics.median(a / b for a, b in times)
            flops = 2 * n * n * m if d > n else 4 * n * d * m
            share = flops / ours / gemm_peak(tensor_type)
            difference = np.abs(engine.weights() - weights.detach().double().numpy()).max()
            form = "gram" if d > n else "plain"
            print(f"{name:32} {dtype:8} {form:6} {plain * 1e3:8.2f} ms {ours * 1e3:6.2f} ms {ratio:6.1f}x {share:12.0%} {difference:11.1e}")


if __name__ == "__main__":
    main()
