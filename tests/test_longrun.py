"""Long runs in stretches: breaks, damaged checkpoints and other settings change no row; a run can be continued."""

import numpy as np
import pandas as pd
import pytest

from xorlib import data, longrun, network, train


def problem(num_train, dimension):
    rng = data.streams(3)
    cloud = {"dimension": dimension, "cluster_variance": dimension**-1.2, "noise_rate": 0.15}
    points = data.xor_clusters(num_train, rng=rng.data, noise_rng=rng.noise, **cloud)
    fresh = data.xor_clusters(50, rng=rng.test, noise_rng=rng.test, **cloud)
    return network.fixed_second_layer(20, dimension, 1e-4, rng.init), points, fresh


def stretches(store=None, largest_step=8.0, size=(40, 60)):
    return longrun.gradient_descent(
        *problem(*size), record_at=[0, 1, 7, 300, 500, 1000], stretch_ends=[300, 600, 1000], store=store,
        step_size=0.1, growth=0.1, largest_step=largest_step)  # fmt: skip


@pytest.mark.parametrize("size", [(40, 60), (60, 10)])  # the Gram form and the plain one
def test_a_killed_run_goes_on_and_gives_the_rows_of_an_unbroken_one(size, tmp_path, monkeypatch):
    whole = stretches(size=size)
    real = train.gradient_descent

    class Log:  # a list of its own would be something that the run reads, so part of its key
        begun = []

    def killed_in_the_third(*args, **options):
        Log.begun.append(options["start"])
        if len(Log.begun) == 3:
            raise KeyboardInterrupt
        return real(*args, **options)

    monkeypatch.setattr(train, "gradient_descent", killed_in_the_third)
    with pytest.raises(KeyboardInterrupt):
        stretches(tmp_path, size=size)
    resumed = stretches(tmp_path, size=size)
    assert Log.begun == [0, 300, 600, 600]  # the finished stretches were not repeated
    pd.testing.assert_frame_equal(resumed.history, whole.history, check_exact=True)
    assert np.array_equal(resumed.network.weights, whole.network.weights)
    assert resumed.num_updates == whole.num_updates
    assert whole.history.step.tolist() == [0, 1, 7, 300, 500, 1000]
    stretches(tmp_path, size=size)
    assert len(Log.begun) == 4  # a finished run is only read


def test_a_damaged_checkpoint_is_noticed_and_other_options_have_their_own(tmp_path, caplog):
    whole = stretches(tmp_path)
    (path,) = tmp_path.glob("*.npz")
    content = bytearray(path.read_bytes())
    for damaged in (content[:100], content[:300] + bytes([content[300] ^ 1]) + content[301:], b""):
        path.write_bytes(damaged)
        caplog.clear()
        pd.testing.assert_frame_equal(stretches(tmp_path).history, whole.history, check_exact=True)
        assert "damaged" in caplog.text
    assert stretches(tmp_path, largest_step=4.0).num_updates > whole.num_updates
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("form", ["plain", "gram"])
@pytest.mark.parametrize("growth", [0.0, 0.05])
def test_a_run_continued_at_a_recorded_step_is_the_whole_run(form, growth):
    net, points, _ = problem(40, 60)
    options = {"step_size": 0.1, "growth": growth, "largest_step": 5.0, "form": form}
    whole = train.gradient_descent(net, points, num_steps=400, record_at=[150, 400], **options)
    first = train.gradient_descent(net, points, num_steps=150, **options)
    second = train.gradient_descent(first.network, points, start=150, num_steps=400, **options)
    assert second.history.step.tolist() == [150, 400]
    assert first.num_updates + second.num_updates == whole.num_updates
    np.testing.assert_allclose(second.network.weights, whole.network.weights, rtol=0, atol=1e-12)


def test_both_criteria_count_what_they_say():
    points = problem(40, 6)[1]
    run = stretches(size=(40, 6))
    outputs, row = run.network(points.x), run.history.iloc[-1]
    assert row.train_accuracy == pytest.approx(100 * np.mean(np.sign(outputs) == points.y))
    assert row.train_accuracy_half == pytest.approx(100 * np.mean(np.where(outputs > 0.5, 1, -1) == points.y))
