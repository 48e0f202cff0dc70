"""The samplers against the definitions they implement."""

import numpy as np
import pytest

from xorlib import data


def clusters(num=40_000, **changes):
    rng = data.streams(0)
    options = dict(dimension=5, cluster_variance=0.3, noise_rate=0.15, rng=rng.data, noise_rng=rng.noise)
    return data.xor_clusters(num, **options | changes)


@pytest.mark.parametrize("law", data.LAWS)
def test_clusters_have_their_mean_covariance_and_label(law):
    directions = np.linalg.qr(np.random.default_rng(1).standard_normal((5, 2)))[0].T
    sample = clusters(law=law, directions=directions)
    means = data.xor_means(5, directions)
    for c in range(4):
        noise = sample.x[sample.cluster == c] - means[c]
        assert np.abs(noise.mean(axis=0)).max() < 0.03
        assert np.abs(np.cov(noise.T) - 0.3 * np.eye(5)).max() < 0.03
        assert set(sample.clean_y[sample.cluster == c]) == {data.CLUSTER_LABELS[c]}


def test_the_three_laws_differ_in_their_fourth_moment():
    noise = {law: data.cluster_noise(law, (400_000,), 1.0, np.random.default_rng(0)) for law in data.LAWS}
    kurtosis = {law: np.mean(values**4) for law, values in noise.items()}
    assert kurtosis == pytest.approx({"gaussian": 3.0, "uniform": 1.8, "laplace": 6.0}, rel=0.05)


def test_flips():
    iid = clusters()
    assert iid.noisy.mean() == pytest.approx(0.15, abs=0.01)
    exact = clusters(1200, flips="per-cluster", balanced=True)
    assert [int(exact.noisy[exact.cluster == c].sum()) for c in range(4)] == [45] * 4
    assert [int(np.sum(exact.cluster == c)) for c in range(4)] == [300] * 4


def test_exact_flips_are_the_same_number_in_each_cluster_or_refused():
    for num, options in ((41, {"noise_rate": 0.1}), (42, {"noise_rate": 0.4}), (203, {})):
        equal = clusters(num, flips="per-cluster", balanced=True, **options)
        assert len({int(equal.noisy[equal.cluster == c].sum()) for c in range(4)}) == 1
    with pytest.raises(ValueError, match=r"^noise_rate = 0.15 .*\[11, 10, 10, 10\].*\[74, 73, 73, 73\]") as no:
        clusters(293, flips="per-cluster", balanced=True)
    assert "balanced=True with num a multiple of 4" in str(no.value) and "\n" not in str(no.value)
    with pytest.raises(ValueError, match="not the same number in each"):
        clusters(1200, flips="per-cluster")
    assert clusters(1200, flips="per-cluster", noise_rate=0.0).noisy.sum() == 0


def test_one_size_does_not_move_the_other_draws():
    small, large = clusters(100, dimension=3), clusters(100, dimension=4)
    assert np.array_equal(small.cluster, large.cluster)
    assert np.array_equal(small.noisy, large.noisy)
    a, b = data.streams(7), data.streams(7)
    a.data.random(10)
    assert a.init.random() == b.init.random()


def test_hypercube_sample_is_uniform_and_labelled_by_xor():
    sample = data.boolean_xor(20_000, 11, np.random.default_rng(0))
    assert set(np.unique(sample.x)) == {-1.0, 1.0}
    assert np.abs(sample.x.mean(axis=0)).max() < 0.03
    assert np.abs(sample.x.T @ sample.x / 20_000 - np.eye(11)).max() < 0.03
    assert np.array_equal(sample.y, -sample.x[:, 0] * sample.x[:, 1])
    mu = np.array([[1, -1], [-1, 1], [1, 1], [-1, -1]])
    assert np.array_equal(mu[sample.cluster], sample.x[:, :2])
    assert len(np.unique(data.hypercube(6), axis=0)) == 64


def test_bad_input_is_named():
    with pytest.raises(ValueError, match="law = 'cauchy'"):
        clusters(law="cauchy")
    with pytest.raises(ValueError, match="not orthonormal"):
        data.xor_means(2, np.ones((2, 2)))
