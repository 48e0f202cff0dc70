"""Training: full-batch gradient descent on the first layer (RFA), minibatch SGD on both layers (FTT)."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from .data import SIGNS_OF_BYTE, Sample
from .network import Network


@dataclass(frozen=True)
class State:
    """What a recording function sees: the step, outputs on the training points (n,) and on the test points.

    SGD has no training points: there both outputs are None and a recording function looks at the net.
    """

    step: float
    train_output: np.ndarray | None
    test_output: np.ndarray | None
    _weights: Callable[[], np.ndarray]
    _initial: Network

    @property
    def network(self) -> Network:
        """The net at this step; in the Gram form its weights are computed only when asked for."""
        return replace(self._initial, weights=self._weights())


@dataclass(frozen=True)
class Run:
    """A finished run: the trained net, one row a recorded step, and the number of gradient steps taken."""

    network: Network
    history: pd.DataFrame
    num_updates: int


def _active(pre, subgradient: float, out):
    """phi'(pre) into `out`; the comparison alone is three times as fast as heaviside."""
    if subgradient == 0.0:
        return torch.gt(pre, 0, out=out)
    return torch.heaviside(pre, pre.new_tensor(subgradient), out=out)


class _Plain:
    """One gradient step in blocks of samples that stay in cache, every buffer allocated once."""

    def __init__(self, net, x, y, test_x, subgradient, tensor):
        self.x, self.y, self.test_x = tensor(x), tensor(y), None if test_x is None else tensor(test_x)
        self.w, self.a, self.scale = tensor(net.weights), tensor(net.second_layer), net.scale
        self.kink = subgradient
        # Two buffers of this size fit a second-level cache of 1-2 MB in float64.
        self.block = max(16, min(len(y), 2**16 // net.width))
        self.pre = self.x.new_empty(self.block, net.width)
        self.act = torch.empty_like(self.pre)
        self.gradient = torch.empty_like(self.w.T)  # (d, m): the faster orientation for small d

    def step(self, size: float) -> None:
        self.gradient.zero_()
        for start in range(0, len(self.y), self.block):
            x, y = self.x[start : start + self.block], self.y[start : start + self.block]
            pre, act = self.pre[: len(y)], self.act[: len(y)]
            torch.mm(x, self.w.T, out=pre)
            output = torch.clamp(pre, min=0, out=act) @ self.a * self.scale
            weight = (y * torch.sigmoid(-y * output))[:, None]
            active = _active(pre, self.kink, out=pre)
            if x.shape[1] < len(self.a):
                self.gradient.addmm_((x * weight).T, active)
            else:
                self.gradient.addmm_(x.T, active.mul_(weight))
        self.w.addcmul_(self.gradient.T, self.a[:, None], value=size * self.scale / len(self.y))

    def _outputs(self, x) -> np.ndarray:
        parts = [torch.clamp(part @ self.w.T, min=0) @ self.a for part in x.split(self.block)]
        return self.scale * torch.cat(parts).cpu().double().numpy()

    def train_output(self) -> np.ndarray:
        return self._outputs(self.x)

    def test_output(self) -> np.ndarray | None:
        return None if self.test_x is None else self._outputs(self.test_x)

    def weights(self) -> np.ndarray:
        return self.w.cpu().double().numpy().copy()


class _Gram:
    """The same steps on the pre-activations X W^T: weights stay in W(0) + span(X), so d drops out.

    With coefficients A (n, m), W(t) = W(0) + A^T X and X W(t)^T = X W(0)^T + K A, K = X X^T: one (n, n, m)
    product a step in place of two of (n, d, m).
    """

    def __init__(self, net, x, y, test_x, subgradient, tensor):
        self.x, self.y, self.w0, self.a, self.scale = (
            tensor(x), tensor(y), tensor(net.weights), tensor(net.second_layer), net.scale)  # fmt: skip
        self.kink = subgradient
        self.gram = self.x @ self.x.T
        self.start = self.x @ self.w0.T
        self.pre = self.start.clone()
        # What was gained since the start is kept apart: late in a float32 run a step is below the last digit of pre.
        self.gained = torch.zeros_like(self.pre)
        self.coefficients = torch.zeros_like(self.pre)
        self.act = torch.empty_like(self.pre)
        if test_x is not None:
            test = tensor(test_x)
            self.test_pre, self.test_gram = test @ self.w0.T, test @ self.x.T
        else:
            self.test_pre = None

    def step(self, size: float) -> None:
        output = torch.clamp(self.pre, min=0, out=self.act) @ self.a * self.scale
        weight = self.y * torch.sigmoid(-self.y * output) * (size * self.scale / len(self.y))
        change = _active(self.pre, self.kink, out=self.act).mul_(weight[:, None]).mul_(self.a)
        self.coefficients += change
        torch.add(self.start, self.gained.addmm_(self.gram, change), out=self.pre)

    def train_output(self) -> np.ndarray:
        return self.scale * (torch.clamp(self.pre, min=0) @ self.a).cpu().double().numpy()

    def test_output(self) -> np.ndarray | None:
        if self.test_pre is None:
            return None
        pre = torch.addmm(self.test_pre, self.test_gram, self.coefficients)
        return self.scale * (pre.clamp_(min=0) @ self.a).cpu().double().numpy()

    def weights(self) -> np.ndarray:
        return (self.w0 + self.coefficients.T @ self.x).cpu().double().numpy()


def accuracy_record(train: Sample, test: Sample | None = None) -> Callable[[State], dict]:
    """The usual recording function: loss, and accuracies on the given samples, as shares of 1."""

    def record(state: State) -> dict:
        row = {
            "loss": float(np.logaddexp(0.0, -train.y * state.train_output).mean()),
            "train_accuracy": float(np.mean(np.sign(state.train_output) == train.y)),
        }
        if test is not None:
            row["test_accuracy"] = float(np.mean(np.sign(state.test_output) == test.y))
        return row

    return record


def _recorded(record_at: Iterable[float] | None, start: float, num_steps: float) -> list[float]:
    """The steps to record, in order: the first and the last by default.

    Raises ValueError for an empty list and for a step that the run does not pass.
    """
    steps = sorted({start, num_steps} if record_at is None else set(record_at))
    if not steps:
        raise ValueError(f"record_at is empty: steps from {start:g} to {num_steps:g} are allowed, None for both ends")
    for step in (steps[0], steps[-1]):
        if not start <= step <= num_steps:
            raise ValueError(f"record_at has step {step:g}: must be from {start:g} to num_steps = {num_steps:g}")
    return steps


def gradient_descent(
    net: Network,
    train: Sample,
    *,
    step_size: float,
    num_steps: int,
    record_at: Iterable[float] | None = None,
    record: Callable[[State], dict] | None = None,
    test_x: np.ndarray | None = None,
    start: float = 0.0,
    growth: float = 0.0,
    largest_step: float = np.inf,
    subgradient: float = 0.0,
    form: str = "auto",
    dtype: str = "float64",
    device: str = "cpu",
    progress: bool = False,
) -> Run:
    """Full-batch gradient descent on the first layer with the logistic loss log(1 + e^-z) (RFA, Section 2).

    `record` maps a State to a dict and is called at each step of `record_at` (first and last by default); step 0 is
    the net as given. `start` is the step that `net` has already reached, for a run that goes on from an earlier
    one's net.
    `growth` > 0 lengthens steps with training time: a step covers max(1, growth * t) of the published steps,
    up to the step size `largest_step`, and always lands on the steps to record. `form` is "plain" (blocks of
    samples), "gram" (pre-activations only, for d > n) or "auto". `subgradient` is phi'(0) in [0, 1].
    Raises ValueError for an unknown form or a step of `record_at` outside the run, and FloatingPointError when the
    outputs stop being finite.
    """
    if form not in ("auto", "plain", "gram"):
        raise ValueError(f"form = {form!r} is unknown: one of auto, plain, gram")
    engine_class = _Gram if form == "gram" or (form == "auto" and train.x.shape[1] > len(train)) else _Plain
    dtype = getattr(torch, dtype)
    engine = engine_class(net, train.x, train.y, test_x, subgradient,
                          lambda values: torch.tensor(values, dtype=dtype, device=device))  # fmt: skip
    record = record or accuracy_record(train)
    targets = _recorded(record_at, start, num_steps)
    rows, clock, num_updates = [], start, 0
    with tqdm(total=num_steps, initial=start, disable=not progress, unit="step", unit_scale=True) as bar:
        for target in (*targets, *([num_steps] if targets[-1] < num_steps else [])):
            while clock < target:
                covers = min(max(1.0, growth * clock), max(1.0, largest_step / step_size), target - clock)
                engine.step(step_size * covers)
                clock += covers
                num_updates += 1
                bar.update(covers)
            if target <= targets[-1]:
                output = engine.train_output()
                if not np.all(np.isfinite(output)):
                    raise FloatingPointError(
                        f"gradient descent diverged by step {target:g}: step_size = {step_size:g} is too large "
                        f"for width {net.width}, dimension {train.x.shape[1]}"
                    )
                state = State(target, output, engine.test_output(), engine.weights, net)
                rows.append({"step": target, **record(state)})
    return Run(replace(net, weights=engine.weights()), pd.DataFrame(rows), num_updates)


ONLINE_BLOCK = 2**19  # entries of the three buffers of a block together: 2 MiB in float32


class _Online:
    """One SGD step of both layers on fresh Boolean samples, in blocks that stay in cache, buffers allocated once."""

    def __init__(self, net, batch_size, rng, train_second_layer, dtype, device):
        self.w = torch.tensor(net.weights, dtype=dtype, device=device)
        self.a = torch.tensor(net.second_layer, dtype=dtype, device=device)
        self.scale, self.batch_size, self.rng, self.both = net.scale, batch_size, rng, train_second_layer
        width, dimension = net.weights.shape
        self.bytes_a_row = -(-dimension // 8)
        self.block = max(64, min(batch_size, ONLINE_BLOCK // (8 * self.bytes_a_row + 2 * width)))
        self.signs = SIGNS_OF_BYTE.astype(str(dtype).removeprefix("torch."))
        self.on_cpu = self.w.device.type == "cpu"
        if not self.on_cpu:
            self.signs = torch.tensor(self.signs, device=device)
        self.points = self.w.new_empty(self.block, 8 * self.bytes_a_row)
        self.pre, self.act = self.w.new_empty(2, self.block, width)
        self.gradient = torch.empty_like(self.w)

    def _bytes(self, count):
        """The bytes of rng.bytes(count); as whole raw words, without its copies, where those are the same."""
        generator = self.rng.bit_generator
        if count % 8 or sys.byteorder == "big" or generator.state.get("has_uint32", 1):
            return np.frombuffer(self.rng.bytes(count), np.uint8)
        return generator.random_raw(count // 8).view(np.uint8)

    def _points(self, packed):
        if self.on_cpu:
            out = self.points[: len(packed)]
            # mode="clip" lets numpy write into `out` directly; a byte is always a valid index.
            np.take(self.signs, packed, axis=0, out=out.numpy().reshape(len(packed), -1, 8), mode="clip")
        else:
            index = torch.from_numpy(packed.astype(np.int64)).to(self.signs.device)
            out = self.signs[index].view(len(packed), -1)
        return out[:, : self.w.shape[1]]

    def step(self, size: float) -> float:
        """Take one step; return the mean loss of the first block before it."""
        rows = self._bytes(self.batch_size * self.bytes_a_row).reshape(-1, self.bytes_a_row)
        for start in range(0, self.batch_size, self.block):
            x = self._points(rows[start : start + self.block])
            pre, act = self.pre[: len(x)], self.act[: len(x)]
            torch.mm(x, self.w.T, out=pre)
            minus_y = x[:, 0] * x[:, 1]  # once: a column of x is spread over as many cache lines as there are rows
            margin = (torch.clamp(pre, min=0, out=act) @ self.a).mul_(minus_y).mul_(self.scale)  # -y f
            if start == 0:
                loss = 2 * float(torch.nn.functional.softplus(margin).mean())
            weight = torch.sigmoid(margin).mul_(minus_y).mul_(2 / self.batch_size)  # l' / batch
            active = torch.gt(pre, 0, out=pre).mul_(weight[:, None])
            torch.addmm(self.gradient, active.T, x, beta=float(start > 0), out=self.gradient)
        # relu is homogeneous, so <w, grad_w> = a grad_a (FTT, B.71): no third product over the samples.
        second = torch.linalg.vecdot(self.w, self.gradient)
        self.w.addcmul_(self.gradient, self.a[:, None], value=-size)
        if self.both:
            self.a.sub_(second, alpha=size)
        return loss

    def network(self, net) -> Network:
        w, a = (values.cpu().double().numpy().copy() for values in (self.w, self.a))
        return replace(net, weights=w, second_layer=a)


def minibatch_sgd(
    net: Network,
    *,
    step_size: float,
    batch_size: int,
    num_steps: int,
    rng: np.random.Generator,
    record_at: Iterable[int] | None = None,
    record: Callable[[State], dict] | None = None,
    train_second_layer: bool = True,
    stop: Callable[[dict], bool] | None = None,
    dtype: str = "float32",
    device: str = "cpu",
    progress: bool = False,
) -> Run:
    """Minibatch SGD of both layers on Boolean XOR with the loss -2 log sigmoid(y f) (FTT, Section 2.2).

    Each step draws `batch_size` fresh points, the same as data.random_signs(batch_size, dimension, rng), and uses
    the gradients scaled by the width of (2.8) and (2.9). `net` comes from network.both_layers. `record` maps a
    State to a dict and is called at each step of `record_at` (first and last by default); step 0 is the net as
    given. The run ends early when `stop` of the newest row is true. `train_second_layer=False` is Remark 4.3's
    algorithm. Raises ValueError for a step of `record_at` outside the run and FloatingPointError when the run
    diverges (noise step_size * dimension / batch_size of about 4).
    """
    engine = _Online(net, batch_size, rng, train_second_layer, getattr(torch, dtype), device)
    targets, rows, step, limit = set(_recorded(record_at, 0, num_steps)), [], 0, None
    with tqdm(total=num_steps, disable=not progress, unit="step") as bar:
        while True:
            if step in targets:
                now = engine.network(net)
                state = State(step, None, None, lambda now=now: now.weights, now)
                rows.append({"step": step, **(record(state) if record else {})})
                if stop is not None and stop(rows[-1]):
                    break
            if step == num_steps:
                break
            loss = engine.step(step_size)
            # A run that learns keeps its loss below a few times 2 log 2; one that diverges multiplies it every step.
            limit = limit or 1e3 * max(1.0, loss)
            if not loss < limit or (step + 1 == num_steps and not torch.isfinite(engine.w).all()):
                raise FloatingPointError(
                    f"minibatch SGD diverged by step {step + 1}: step_size = {step_size:g} with batch_size = "
                    f"{batch_size} is too large for dimension {net.weights.shape[1]} (step_size * dimension / "
                    f"batch_size = {step_size * net.weights.shape[1] / batch_size:.3g}; above about 1 is unsafe)"
                )
            step += 1
            bar.update()
    return Run(engine.network(net), pd.DataFrame(rows), step)
