"""One SGD step of both layers (FTT), drawing included, against an autograd step: `python -m benchmarks.minibatch_sgd`.

The peer draws integers, and uses nn.Linear, softplus and torch.optim.SGD. The share of the peak counts the two matrix
products of a step only, against the fastest square product of the same run; the table also says where the time goes.
"""

import numpy as np
import torch

import xorlib
from benchmarks import peers, timing
from xorlib import data, network, train

SIZES = ((100, 200), (400, 200), (1000, 400), (2000, 400))  # d, width; the batch is 4 d, as in chapters 06 and 07
STEP_SIZE = 0.01


def parts(engine):
    """The drawing of a batch alone, and its two products alone, block by block as in a step."""
    points = engine.points[:, : engine.w.shape[1]]
    starts = range(0, engine.batch_size, engine.block)
    counts = [min(engine.block, engine.batch_size - start) for start in starts]

    def draw():
        rows = np.frombuffer(engine.rng.bytes(engine.batch_size * engine.bytes_a_row), np.uint8)
        rows = rows.reshape(-1, engine.bytes_a_row)
        for start, count in zip(starts, counts, strict=True):
            engine._points(rows[start : start + count])

    def products():
        for count in counts:
            torch.mm(points[:count], engine.w.T, out=engine.pre[:count])
            torch.mm(engine.act[:count].T, points[:count], out=engine.gradient)

    return {"drawing": draw, "products": products}


def main():
    """Print a table for four sizes, in float32."""
    xorlib.start()
    size, square = timing.best_square(torch.float32)
    rows = []
    for dimension, width in SIZES:
        rng, batch_size = data.streams(0), 4 * dimension
        net = network.both_layers(width, dimension, 0.3, rng.init)
        engine = train._Online(net, batch_size, rng.batch, True, torch.float32, "cpu")
        user, _ = peers.autograd_sgd(net, STEP_SIZE, batch_size, torch.float32)
        run = {"user": user, "ours": lambda e=engine: e.step(STEP_SIZE), "square": square, **parts(engine)}
        times = timing.in_turn(run, rounds=11)
        share = {part: timing.median_ratio(times[part], times.ours) for part in ("drawing", "products")}
        peak = {form: timing.share_of_peak(4 * batch_size * dimension * width, times[form], times.square, size)
                for form in ("ours", "products")}  # fmt: skip
        rows.append({
            "d": dimension, "width": width, "batch": batch_size,
            "ratio": f"{timing.median_ratio(times.user, times.ours):.1f}x",
            "of GEMM peak": f"{peak['ours']:.0%}", "its products alone": f"{peak['products']:.0%}",
            "time in drawing": f"{share['drawing']:.0%}", "in products": f"{share['products']:.0%}",
            "in the rest": f"{1 - sum(share.values()):.0%}",
        })  # fmt: skip
    timing.show("SGD step of both layers, float32, drawing included: autograd over xorlib", rows)
    a = torch.randn(2, size, size).numpy()
    others = timing.in_turn({"numpy": lambda: np.matmul(a[0], a[0], out=a[1]), "square": square})
    numpys = timing.median_ratio(others.square, others.numpy)
    print(f"""Peak: torch's {size} x {size} product (numpy's runs at {numpys:.2f} times its speed here).
What bounds the rest: the step's two products are thin, a block of samples by d by the width, and alone reach the share
in their own column. Drawing and the passes over the activations count no operations; they grow as batch (d + width),
the products as batch d width, so they matter where d and the width are small.""")


if __name__ == "__main__":
    main()
