"""What a user would write: autograd loops in PyTorch, and a jitted loop in JAX where JAX is installed."""

import os

import numpy as np
import torch

# JAX reads this when it is imported: one thread, like every other form here.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
try:
    import jax
except ImportError:
    jax = None

softplus = torch.nn.functional.softplus


def layers(net, dtype):
    """The net as two torch.nn.Linear modules without biases."""
    first = torch.nn.Linear(net.weights.shape[1], net.width, bias=False, dtype=dtype)
    second = torch.nn.Linear(net.width, 1, bias=False, dtype=dtype)
    with torch.no_grad():
        first.weight.copy_(torch.tensor(net.weights))
        second.weight.copy_(torch.tensor(net.second_layer)[None])
    return first, second


def autograd_loop(points, net, step_size, dtype):
    """One step of full-batch gradient descent on the first layer, as a closure, and a function for the weights."""
    x, y = torch.tensor(points.x, dtype=dtype), torch.tensor(points.y, dtype=dtype)
    first, second = layers(net, dtype)
    second.requires_grad_(False)
    optimiser = torch.optim.SGD(first.parameters(), lr=step_size)

    def step():
        optimiser.zero_grad()
        softplus(-y * second(torch.relu(first(x)))[:, 0]).mean().backward()
        optimiser.step()

    return step, lambda: first.weight.detach().double().numpy()


def jax_loop(points, net, step_size, dtype, num_steps):
    """`num_steps` of the same steps in one jitted loop, as a closure, and a function for the weights."""
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    kind = str(dtype).removeprefix("torch.")
    x, y, a, w = (jnp.asarray(v, dtype=kind) for v in (points.x, points.y, net.second_layer, net.weights))

    def loss(w, x, y, a):
        return jax.nn.softplus(-y * (jax.nn.relu(x @ w.T) @ a)).mean()

    @jax.jit
    def steps(w, x, y, a):
        return jax.lax.fori_loop(0, num_steps, lambda _, w: w - step_size * jax.grad(loss)(w, x, y, a), w)

    weights = [w]

    def run():
        weights[0] = steps(weights[0], x, y, a).block_until_ready()

    return run, lambda: np.asarray(weights[0], dtype=float)


def autograd_sgd(net, step_size, batch_size, dtype):
    """One step of minibatch SGD on both layers (FTT), data drawing included, as a closure, and the two layers."""
    first, second = layers(net, dtype)
    optimiser = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=step_size)

    def step():
        x = (2 * torch.randint(0, 2, (batch_size, first.in_features)) - 1).to(dtype)
        y = -x[:, 0] * x[:, 1]
        optimiser.zero_grad()
        loss = 2 * softplus(-y * second(torch.relu(first(x)))[:, 0] * net.scale).mean()
        (net.width * loss).backward()  # the paper's gradients are those of each neuron, width times the loss's
        optimiser.step()

    return step, (first, second)
