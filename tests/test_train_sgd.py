"""Minibatch SGD of both layers (FTT): the hand-written step against autograd, blocks, divergence."""

import numpy as np
import pytest
import torch

from xorlib import data, network, train


def autograd_sgd(net, step_size, batch_size, num_steps, rng, both=True):
    """The same algorithm written as the paper states it: autograd of width times the batch loss."""
    w, a = (torch.tensor(v, requires_grad=True) for v in (net.weights, net.second_layer))
    for _ in range(num_steps):
        x = torch.from_numpy(data.random_signs(batch_size, w.shape[1], rng))
        y = -x[:, 0] * x[:, 1]
        loss = -2 * torch.nn.functional.logsigmoid(y * (net.scale * torch.relu(x @ w.T) @ a)).mean()
        grad_w, grad_a = torch.autograd.grad(net.width * loss, (w, a))
        with torch.no_grad():
            w -= step_size * grad_w
            a -= step_size * grad_a * both
    return w.detach().numpy(), a.detach().numpy()


@pytest.mark.parametrize("both", [True, False])
@pytest.mark.parametrize(("dimension", "batch_size"), [(13, 64), (40, 1), (24, 3000)])  # 3000 rows are several blocks
def test_sgd_agrees_with_autograd(dimension, batch_size, both, monkeypatch):
    monkeypatch.setattr(train, "ONLINE_BLOCK", 2**15)
    net = network.both_layers(32, dimension, 0.7, np.random.default_rng(1))
    run = train.minibatch_sgd(net, step_size=0.2, batch_size=batch_size, num_steps=30, rng=np.random.default_rng(2),
                              train_second_layer=both, dtype="float64")  # fmt: skip
    w, a = autograd_sgd(net, 0.2, batch_size, 30, np.random.default_rng(2), both)
    assert np.abs(w - net.weights).max() > 0.01
    np.testing.assert_allclose(run.network.weights, w, rtol=0, atol=1e-10)
    np.testing.assert_allclose(run.network.second_layer, a, rtol=0, atol=1e-10)


def test_recording_and_stopping():
    net = network.both_layers(32, 20, 0.5, np.random.default_rng(1))
    kinds = {"record_at": range(0, 100, 5), "record": lambda s: {"norm": np.linalg.norm(s.network.second_layer)}}
    run = train.minibatch_sgd(net, step_size=0.3, batch_size=80, num_steps=100, rng=np.random.default_rng(2),
                              stop=lambda row: row["norm"] > 5, **kinds)  # fmt: skip
    steps = run.history.step.tolist()
    assert steps == list(range(0, run.num_updates + 1, 5)) and run.num_updates < 100
    assert run.history.norm.iloc[-1] > 5 > run.history.norm.iloc[-2]
    assert run.history.norm.iloc[-1] == np.linalg.norm(run.network.second_layer)


def test_divergence_is_named():
    net = network.both_layers(64, 64, 0.5, np.random.default_rng(1))
    with pytest.raises(FloatingPointError, match=r"step_size = 1 with batch_size = 16 .* dimension 64 .* = 4;"):
        train.minibatch_sgd(net, step_size=1.0, batch_size=16, num_steps=400, rng=np.random.default_rng(2))
