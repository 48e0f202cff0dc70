"""What the memory guard accepts keeps to the limit: measured on a scale model with a limit of 32 MiB.

Each helper below repeats the allocations of one step of a chapter at the sizes of accepted parameters; where the step
is a long training run it only makes the arrays that the run keeps. What is measured is the growth of the resident
memory of this process (Linux only), so torch counts too. Covered are the largest products of each chapter, one at a
time and in one process, not whole notebooks and not the workers of preset "paper". A product estimates one group
of arrays, and a step may hold two or three of them and python's own objects: hence FACTOR.
Not covered: chapter 10, whose fixed sizes exceed this limit, and what freed blocks below 32 MiB leave of holes in the
heap, which glibc bounds whatever the parameters.
"""

import ctypes
import gc
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.svm import LinearSVC
from test_invalid_parameters import defaults

from xorlib import data, kernels, measure, network, parameters, population, theory, train

LIMIT, FACTOR = 32 * 2**20, 3
M_MMAP_THRESHOLD = -3  # of malloc.h
SMALL = yaml.safe_load((Path(__file__).parent / "small_runs.yml").read_text())
RNG = np.random.default_rng(0)
CLUSTERS = dict(cluster_variance=0.1, noise_rate=0.1, rng=RNG, noise_rng=RNG)


def peak(work):
    """Growth of the resident memory while `work` runs, in bytes."""
    gc.collect()
    libc = ctypes.CDLL(None)
    # Freed arrays leave the heap, as those of a run near 8 GiB do; small ones leave holes in it.
    libc.mallopt(M_MMAP_THRESHOLD, 2**16)
    libc.malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the high-water mark begins anew

    def resident(name):
        return 1024 * int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))[1])

    before = resident("VmRSS")
    try:
        kept = work()
        growth = resident("VmHWM") - before
        del kept
        return growth
    finally:
        libc.mallopt(M_MMAP_THRESHOLD, 2**25)  # the largest that glibc would come to by itself


def descend(n, d, width, steps=1, num_test=None, **options):
    points = data.xor_clusters(n, d, **CLUSTERS)
    fresh = data.xor_clusters(num_test, d, **CLUSTERS) if num_test else None
    net = network.fixed_second_layer(width, d, 1e-3, RNG)
    run = train.gradient_descent(net, points, step_size=0.1, num_steps=steps, test_x=fresh and fresh.x, **options)
    return points, fresh, net, run


def kept_nets(steps):
    return dict(record_at=range(steps + 1), record=lambda state: {"net": state.network})


def sgd(width, d, steps, record, batch=30):
    net = network.both_layers(width, d, 0.1, RNG)
    return train.minibatch_sgd(net, step_size=0.01, batch_size=batch, num_steps=steps, rng=RNG, record=record,
                               record_at=range(steps + 1), dtype="float64").history  # fmt: skip


def boundary_nets(p):
    return descend(p.num_train, p.dimension, p.width, 49, p.num_test, **kept_nets(49))


def boundary_samples(p):
    draw = lambda: [data.xor_clusters(n, p.dimension, **CLUSTERS) for n in (p.num_train, p.num_test)]  # noqa: E731
    main = draw()
    for _ in range(2):
        points, fresh = draw()
        LinearRegression(fit_intercept=False).fit(points.x, points.y)
        LinearSVC(fit_intercept=False, dual=False, max_iter=20).fit(points.x, points.y)
    return main, fresh


def one_step(p):
    points, _, net, run = descend(p.num_train, p.dimension, p.width)
    means = data.xor_means(p.dimension)
    measure.good_run(net, points, means, cluster_variance=0.1, noise_rate=0.1, init_variance=1e-3, delta=0.1, C0=2)
    end = run.network
    before = np.linalg.norm(net.features(points.x), axis=1)
    np.linalg.norm(end.features(points.x) - net.features(points.x), axis=1) / np.maximum(before, 1e-300)
    return theory.first_step(net, points, means, 0.1)


def alignment(p):
    steps = parameters._theorem_steps(p.step_size)
    long_run = descend(p.num_train, p.dimension, p.width, steps + 14, **kept_nets(steps + 14))
    return long_run, descend(p.num_train, p.dimension, p.width, steps, **kept_nets(steps))


def rate_bootstrap(p):
    values = np.ones((p.num_seeds_sweep, len(p.dimensions), len(p.sample_sizes)))
    return measure.bootstrap_interval(values, statistic=lambda v, axis: v.mean(axis=axis)[..., 0, 0])


def contest(p):
    d = p.kernel_dimension
    points, validation, fresh = (data.xor_clusters(n, d, **CLUSTERS) for n in (400, 400, 600))
    np.linalg.lstsq(points.x, points.y)
    outside, half = np.concatenate([validation.x, fresh.x]), RNG.standard_normal((100, d))
    net = network.Network(np.concatenate([half, half]), network.fixed_signs(200))
    return outside, train.gradient_descent(net, points, step_size=0.1, num_steps=1, test_x=outside)


def panels(p):
    for n, d in ((p.num_train_high, p.dimension_high), (p.num_train_low, p.dimension_low)):
        descend(n, d, p.width, 1, p.num_test)


def phase_1_histories(p):
    def row():
        arrays = {name: np.ones(p.width) for name in ("sig", "opp", "perp", "a")}
        masks = {name: np.ones(p.width, bool) for name in ("controlled", "weakly_controlled", "strong")}
        numbers = dict.fromkeys("abcdefgh", 1.0)
        return {**arrays, **masks, **numbers, "own": np.zeros(p.width, int), "margins": np.ones(4)}

    runs = [pd.DataFrame([row() for _ in range(p.num_steps // 2)]) for _ in range(p.num_seeds * p.num_runs)]
    return runs, [np.abs(np.stack(h.sig)) > 1 for h in runs]


def phase_1_bootstrap(p):
    return measure.bootstrap_interval(np.ones(int(0.32 * p.num_seeds * p.width)), np.median)


def phase_2_histories(p):
    def row():
        return {**{name: np.ones(4) for name in "abc"}, "squares": np.ones(p.width), **dict.fromkeys("defgh", 1.0)}

    return [pd.DataFrame([row() for _ in range(p.num_steps)]) for _ in range(p.num_seeds)]


def clean_rates(p):
    net = network.both_layers(p.width, p.dimension, 0.1, RNG)
    return measure.clean_rates(net, data.random_signs(p.num_noise, p.dimension - 2, RNG))


def identity_histories(p):
    runs = [list(sgd(p.width, p.dimension, p.num_steps, lambda state: {"net": state.network}).net)
            for _ in range(p.num_seeds)]  # fmt: skip
    first = np.array([[np.linalg.norm(net.weights, axis=1) ** 2 for net in run] for run in runs])
    second = np.array([[net.second_layer**2 for net in run] for run in runs])
    return runs, np.diff(first - second, axis=1) / second[:, :-1]


def identity_batches(p):
    def gradients(d, num):
        x = data.random_signs(num, d, RNG)
        net = network.both_layers(p.width, d, 0.1, RNG)
        theory.gradients(net, x, theory.loss_derivative(net, x, -x[:, 0] * x[:, 1]))

    gradients(p.dimension, p.batch_size)
    gradients(p.large_dimension, p.num_samples)
    theory.population_gradients(network.both_layers(p.width, p.dimension, 0.1, RNG))


def kernel_curves(p):
    d = max(p.kernel_dimensions)
    points, *tests = (data.boolean_xor(n, d, RNG) for n in (int(2.9 * d**2), p.num_test, p.num_test))
    random = kernels.random_features(int(p.features_per_square * d**2), d, RNG)
    for kernel in (kernels.ntk_both_layers, random):
        kernels.learning_curves(kernel, points, tests, [0.01])


def real_histories(p):
    def run(width):
        rows = [{"neurons": population.Neurons(*np.ones((4, width))), "loss": 1.0} for _ in range(p.real_steps)]
        return pd.DataFrame(rows)

    runs = [run(p.real_width) for _ in range(len(set(p.real_dimensions)) + 2)]  # the current one, and the path
    return runs, [np.abs([n.signal for n in h.neurons]) for h in runs[-2:]]


def online(p):
    net = network.both_layers(p.width, max(p.dimensions), 0.1, RNG)
    x = RNG.standard_normal((p.online_batch, max(p.dimensions)))
    pre = x @ net.weights.T
    active, pull = np.maximum(pre, 0.0), np.ones(len(x))
    return active, ((pre > 0) * pull[:, None]).T @ x


def resample(count):
    return lambda p: measure.bootstrap_interval(np.ones(count(p)))


# Each helper with its chapter, the parameter to stretch until it is refused, and ranges to draw others from.
STEPS = [
    (boundary_nets, "01", "width", {"dimension": (16, 300), "num_train": (40, 400)}),
    (boundary_nets, "01", "num_test", {"dimension": (41, 60), "num_train": (40, 40), "width": (200, 2000)}),
    (boundary_samples, "01", "num_train", {"dimension": (2, 50), "num_test": (100, 1000)}),
    (resample(lambda p: p.num_seeds), "01", "num_seeds", {}),
    (one_step, "02", "num_train", {"dimension": (10, 400), "width": (4, 400)}),
    (one_step, "02", "width", {"dimension": (10, 400), "num_train": (40, 400)}),
    (alignment, "03", "width", {"dimension": (10, 400), "num_steps": (200, 200), "step_size": (0.02, 0.25)}),
    (rate_bootstrap, "04", "num_seeds_sweep", {}),
    (contest, "04", "kernel_dimension", {}),
    (panels, "05", "num_test", {"dimension_high": (41, 400), "width": (4, 400)}),
    (panels, "05", "width", {"dimension_high": (41, 400), "dimension_low": (2, 100)}),
    (phase_1_histories, "06", "num_steps", {"width": (40, 2000), "num_seeds": (1, 4)}),
    (phase_1_bootstrap, "06", "width", {"num_seeds": (1, 3)}),
    (phase_2_histories, "07", "num_steps", {"width": (40, 2000), "num_seeds": (3, 6)}),
    (clean_rates, "07", "num_noise", {"width": (40, 400), "dimension": (50, 70)}),
    (identity_histories, "08", "num_steps", {"width": (40, 400), "dimension": (8, 9)}),
    (identity_batches, "08", "batch_size", {"width": (20, 400)}),
    (identity_batches, "08", "num_samples", {"width": (20, 400), "large_dimension": (50, 100)}),
    (kernel_curves, "09", "num_test", {"features_per_square": (0.6, 8.0)}),
    (kernel_curves, "09", "kernel_dimensions", {"features_per_square": (0.6, 8.0)}),
    (real_histories, "11", "real_width", {"step_size": (0.1, 0.25)}),
    (online, "12", "width", {"noise": (0.005, 0.05), "step_size": (0.1, 0.25)}),
    (resample(lambda p: p.num_seeds * p.batch_cases), "12", "num_seeds", {}),
]


def stretched(model, values, field):
    """The parameters with `field` as large as the model lets it be: its own limit, or what refusals then name."""
    largest = next(m.le for m in model.model_fields[field].metadata if hasattr(m, "le")) if field != (
        "kernel_dimensions") else 96  # fmt: skip
    at = lambda size: values | {field: [8, 10, size] if field == "kernel_dimensions" else size}  # noqa: E731
    wanted = at(largest)
    for _ in range(20):
        try:
            return model.from_notebook(wanted)
        except parameters.ParameterError as refusal:
            match = re.match(r"(\w+) = .* needs about .* at most (\d+) with", str(refusal))
            assume(match and match[1] == field)
            wanted = at(int(match[2]))
    raise AssertionError("the sizes that refusals name are refused again and again")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux to measure")
@pytest.mark.parametrize(("work", "chapter", "field", "ranges"), STEPS, ids=lambda part: getattr(part, "__name__", ""))
def test_what_is_accepted_keeps_to_the_limit(work, chapter, field, ranges, monkeypatch):
    monkeypatch.setattr(parameters, "MEMORY_LIMIT", LIMIT)
    name = next(name for name in parameters.MODELS if name.startswith(chapter))
    drawn = {key: (st.integers if isinstance(low, int) else st.floats)(low, high)
             for key, (low, high) in ranges.items()}  # fmt: skip

    @settings(max_examples=2 if ranges else 1, derandomize=True, database=None, deadline=None,
              phases=[Phase.generate], suppress_health_check=list(HealthCheck))  # fmt: skip
    @given(st.fixed_dictionaries(drawn))
    def check(values):
        p = stretched(parameters.MODELS[name], defaults(name) | SMALL[name]["small"] | values, field)
        growth = peak(lambda: work(p)) / LIMIT
        assert growth <= FACTOR, f"{growth:.2f} times the limit at {field} = {getattr(p, field)}, {values}"

    check()
