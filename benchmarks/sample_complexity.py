"""The sweep of chapter 09, reduced, against a plain script, end to end: `python -m benchmarks.sample_complexity`.

Both train the net with the theorem's batch at each dimension, one seed, judge it on the same schedule of steps and stop
by the same rule. The plain script draws integers, uses nn.Linear, softplus and torch.optim.SGD, and judges in the
precision it trains in; xorlib always judges in float64. Then the same steps are taken without judging.
"""

import numpy as np
import torch

import xorlib
from benchmarks import peers, timing
from xorlib import data, network, sweep, train

DIMENSIONS, WIDTH, THETA, NUM_TEST = [16, 32, 64, 128, 256], 128, 0.3, 2000
LEAST_ACCURACY, LOW_LOSS = 0.95, 0.02


def sizes(dimension, only_steps):
    """Batch, number of steps and steps at which the net is judged, as in chapter 09; none with `only_steps`."""
    if only_steps:
        return round(dimension / THETA), only_steps, []
    num_steps = int(40 * np.log(dimension) / THETA)
    return round(dimension / THETA), num_steps, np.unique(np.geomspace(1, num_steps, 400).astype(int)).tolist()


def by_xorlib(dimension, seed, dtype, only_steps=0):
    """Steps until the stopping rule is met, by train.minibatch_sgd."""
    rng, (batch_size, num_steps, record_at) = data.streams(seed), sizes(dimension, only_steps)
    test = data.boolean_xor(NUM_TEST, dimension, rng.test)

    def record(state):
        margin = test.y * state.network(test.x)
        return {"accuracy": np.mean(margin > 0), "loss": 2 * np.logaddexp(0, -margin).mean()}

    def stop(row):
        return not only_steps and row["loss"] < LOW_LOSS and row["accuracy"] >= LEAST_ACCURACY

    run = train.minibatch_sgd(
        network.both_layers(WIDTH, dimension, THETA, rng.init), step_size=THETA, batch_size=batch_size,
        num_steps=num_steps, rng=rng.batch, dtype=dtype, record=record, record_at=record_at, stop=stop)  # fmt: skip
    return {"steps": run.num_updates}


def by_script(dimension, seed, dtype, only_steps=0):
    """The same by an autograd loop, judged in its own precision."""
    torch.manual_seed(seed)
    kind, (batch_size, num_steps, record_at) = getattr(torch, dtype), sizes(dimension, only_steps)
    net = network.both_layers(WIDTH, dimension, THETA, np.random.default_rng(seed))
    step, (first, second) = peers.autograd_sgd(net, THETA, batch_size, kind)
    x = (2 * torch.randint(0, 2, (NUM_TEST, dimension)) - 1).to(kind)
    for count in range(num_steps):
        if count in record_at:
            with torch.no_grad():
                margin = -x[:, 0] * x[:, 1] * second(torch.relu(first(x)))[:, 0] * net.scale
            if 2 * peers.softplus(-margin).mean() < LOW_LOSS and (margin > 0).double().mean() >= LEAST_ACCURACY:
                break
        step()
    return {"steps": count}


def main():
    """Print end-to-end ratios in both precisions, those of training alone, and the steps that each needed."""
    xorlib.start()
    ratios = []
    for dtype in ("float64", "float32"):
        whole = [{"dimension": d, "seed": 0, "dtype": dtype} for d in DIMENSIONS]
        steps = sweep.run(by_xorlib, whole).steps
        theirs = [by_script(**setting)["steps"] for setting in whole]
        timing.show(f"Steps until the rule is met, {dtype}", {"d": DIMENSIONS, "xorlib": steps, "plain script": theirs})
        given = [setting | {"only_steps": int(count)} for setting, count in zip(whole, steps, strict=True)]
        times = timing.in_turn({
            "ours": lambda s=whole: sweep.run(by_xorlib, s),
            "theirs": lambda s=whole: [by_script(**setting) for setting in s],
            "we train": lambda s=given: sweep.run(by_xorlib, s),
            "they train": lambda s=given: [by_script(**setting) for setting in s],
        }, rounds=3)  # fmt: skip
        ratios.append({
            "type": dtype, "plain script over xorlib": f"{timing.median_ratio(times['theirs'], times['ours']):.2f}x",
            "training alone": f"{timing.median_ratio(times['they train'], times['we train']):.2f}x",
            "xorlib's share in judging": f"{1 - timing.median_ratio(times['we train'], times['ours']):.0%}",
        })  # fmt: skip
    timing.show(f"The sweep end to end, d = {DIMENSIONS[0]} to {DIMENSIONS[-1]}", ratios)


if __name__ == "__main__":
    main()
