"""Appendices B and D of RFA against independent ways, and the kinds of label noise."""

import numpy as np
import pytest

from xorlib import data, theory
from xorlib.network import Network, fixed_signs


def test_cross_error_chain_agrees_with_closed_form_and_sampling():
    for variance in (0.05, 0.2, 1.0):
        error, chance, _ = theory.cross_error_chain("gaussian", variance)
        assert error == pytest.approx(theory.cross_error(variance), rel=1e-4)
        assert error < chance
    rng = np.random.default_rng(0)
    for law in data.LAWS:
        z = data.cluster_noise(law, (400_000, 2), 0.2, rng)
        wrong = np.mean(np.abs(1 + z[:, 0]) < np.abs(z[:, 1]))
        assert theory.cross_error_chain(law, 0.2)[0] == pytest.approx(wrong, abs=0.003)
        assert theory.cross_error_chain(law, 0.2)[1] == pytest.approx(np.mean(np.abs(z).max(1) > 1 / 3), abs=0.003)


def test_rademacher_supremum_in_the_plane():
    rng = np.random.default_rng(1)
    x, signs = rng.standard_normal((30, 2)), rng.choice([-1.0, 1.0], 30)
    exact = theory.rademacher_plane(x, signs)
    assert theory.rademacher_ascent(x, signs, rng) == pytest.approx(exact, rel=2e-3)
    angle = np.linspace(0, 2 * np.pi, 50_001)
    one = np.maximum(np.stack([np.cos(angle), np.sin(angle)], 1) @ x.T, 0) @ signs / 30
    assert np.hypot(one.max(), one.min()) / np.sqrt(2) == pytest.approx(exact, rel=1e-5)
    # A net of norm 1 that attains it: both signs' best neurons, norms in proportion to their values.
    best = np.stack([np.cos(angle), np.sin(angle)], 1)[[one.argmax()] * 3 + [one.argmin()] * 3]
    norms = np.repeat([one.max(), -one.min()], 3)
    net = Network(best * (norms / np.linalg.norm(norms))[:, None], fixed_signs(6))
    assert net(x) @ signs / 30 == pytest.approx(exact, rel=1e-5)
    assert exact <= theory.rademacher_bound(x)


def test_kinds_of_label_noise():
    rng = np.random.default_rng(2)
    means = data.xor_means(5)
    kinds = ("one-cluster", "boundary", "adversarial")
    sample = {kind: data.xor_clusters(200, 5, 0.02, 0.1, np.random.default_rng(3), rng, flips=kind) for kind in kinds}
    for kind in kinds:
        assert sample[kind].noisy.sum() == 20
    assert set(sample["one-cluster"].cluster[sample["one-cluster"].noisy]) == {0}
    s = sample["boundary"]
    margin = np.abs(np.abs(s.x @ means[0]) - np.abs(s.x @ means[2]))
    assert margin[s.noisy].max() < margin[~s.noisy].min()
    s = sample["adversarial"]
    victim = margin.argmin()
    like = s.x @ s.x[victim]
    others = np.arange(200) != victim
    assert not s.noisy[victim] and like[s.noisy].min() > like[~s.noisy & others].max()
