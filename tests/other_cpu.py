"""Run a command as on other processors: `python tests/other_cpu.py COMMAND ...`; without one, only check the settings.

The libraries choose their kernels by the processor, and other kernels add in another order. Their own switches turn
off what a newer processor has, so one machine can stand for others. Each of the settings is asserted to take effect.
"""

import json
import os
import platform
import subprocess
import sys

_SHOW = """
import json
import scipy.linalg, threadpoolctl, torch
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__
blas = {i["architecture"] for i in threadpoolctl.threadpool_info() if i["internal_api"] == "openblas"}
print(json.dumps({"numpy": [name for name in __cpu_dispatch__ if __cpu_features__[name]],
                  "torch": torch.backends.cpu.get_cpu_capability(), "openblas": sorted(blas)}))
"""
# OpenBLAS's name of the processor -> the names of numpy's kernels that it has, and the settings of the other libraries.
# MKL (in torch) has no switch that can be read back: of its modes these two gave different last digits.
PROCESSORS = {
    "Nehalem": ([], {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}),
    "Haswell": (["X86_V3"], {"ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}),
    "SkylakeX": (["X86_V3", "X86_V4"], {"ATEN_CPU_CAPABILITY": "avx512", "MKL_CBWR": "AVX2"}),
}


def in_use(settings: dict) -> dict:
    """What numpy, torch and OpenBLAS use in a process with these environment variables."""
    done = subprocess.run([sys.executable, "-c", _SHOW], env=os.environ | settings, stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def main(command: list[str]) -> int:
    if platform.machine() != "x86_64":
        print("other_cpu.py knows the processors of x86_64 only: nothing to do")
        return 0
    usual = in_use({"NPY_DISABLE_CPU_FEATURES": ""})  # numpy: all that the processor has
    print("as it is:", usual)
    for name, (features, settings) in PROCESSORS.items():
        if usual["openblas"] == [name] or not set(features) <= set(usual["numpy"]):
            continue  # the plain run is of this kind, or this processor cannot do it
        off = [feature for feature in usual["numpy"] if feature not in features]
        settings = settings | {"OPENBLAS_CORETYPE": name, "NPY_DISABLE_CPU_FEATURES": " ".join(off)}
        found = in_use(settings)
        wanted = {"numpy": features, "torch": settings["ATEN_CPU_CAPABILITY"].upper(), "openblas": [name]}
        print(f"as {name}:", found, flush=True)
        if found != wanted:
            print(f"the settings of {name} had no effect: wanted {wanted}", file=sys.stderr)
            return 1
        if command and (status := subprocess.run(command, env=os.environ | settings).returncode):
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
