"""xorlib: how gradient descent learns XOR. The library behind the executable book on RFA and FTT."""

import atexit
import os
import shutil
import tempfile
from importlib import import_module

from .version import __version__

# Matplotlib warns where it cannot write to the home folder, and a warning would stand among a notebook's outputs.
# Notebooks import xorlib first for this.
if "MPLCONFIGDIR" not in os.environ and not os.access(os.path.expanduser("~"), os.W_OK):
    os.environ["MPLCONFIGDIR"] = tempfile.mkdtemp(prefix="xorlib-matplotlib-")
    atexit.register(shutil.rmtree, os.environ["MPLCONFIGDIR"], ignore_errors=True)

_MODULES = (
    "claims", "data", "invariance", "kernels", "longrun", "measure", "network", "outputs", "parameters",
    "plots", "population", "store", "sweep", "theory", "train",
)  # fmt: skip
__all__ = ["__version__", "start", *_MODULES]


def __getattr__(name: str):
    # Modules load when first used: `python -m xorlib.claims` and a refused parameter need not wait for torch.
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def start() -> None:
    """What every notebook and test begins with: one thread, whatever OMP_NUM_THREADS says, and one figure style.

    One thread makes sums come out in one order, so that printed digits repeat. In a notebook each figure is stored
    with a description of its data, which can be compared where an image cannot.
    """
    import sys

    import numpy
    import threadpoolctl
    import torch

    threadpoolctl.threadpool_limits(1)
    torch.set_num_threads(1)
    numpy.set_printoptions(legacy="1.25")  # a glued numpy number is stored as 0.5, not as np.float64(0.5)
    plots = import_module(".plots", __name__)
    plots.use_style()
    if (ipython := sys.modules.get("IPython")) and (shell := ipython.get_ipython()):
        plots.describe_shown_figures(shell)
