"""The OpenCL implementations that kernels are checked on: PoCL, Intel's runtime and Oclgrind."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.running.run import list_devices
from lift_egraph.errors import LiftError

PLATFORMS = {"pocl": "Portable Computing Language", "intel": "Intel(R) OpenCL", "oclgrind": "Oclgrind"}
_LIBRARIES = {"intel": "libintelocl.so", "oclgrind": "liboclgrind-rt-icd.so"}
_PLACES = (Path(sys.prefix, "lib"), Path("/usr/lib/oclgrind"), Path("/usr/lib"), Path("/usr/local/lib"), Path("/opt"))


@cache
def environment() -> dict[str, str]:
    """The variables with which OpenCL finds all implementations on this machine."""
    folder = Path(tempfile.mkdtemp(prefix="vendors"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    known = Path(os.environ.get("OCL_ICD_VENDORS", "/etc/OpenCL/vendors"))
    for file in known.glob("*.icd"):
        shutil.copy(file, folder)
    present = "".join(file.read_text() for file in folder.glob("*.icd"))
    for name, library in _LIBRARIES.items():
        if library not in present and (found := _find(library)):
            (folder / f"{name}.icd").write_text(f"{found}\n")
    return {"OCL_ICD_VENDORS": str(folder)}


def _find(library: str) -> Path | None:
    for place in _PLACES:
        for found in (place / library, *place.glob(f"*/{library}"), *place.glob(f"*/*/{library}")):
            if found.is_file():
                return found
    return None


@cache
def found() -> dict[str, DeviceInfo]:
    """The implementations that are here, by short name."""
    devices = list_devices(environment())
    return {name: d for name, platform in PLATFORMS.items() for d in devices if d.platform == platform}


def missing(name: str) -> str:
    """Why an implementation cannot be used; empty where it can."""
    try:
        if name in found():
            return ""
    except LiftError as problem:
        return f"OpenCL cannot be asked for its devices: {problem}"
    how = {"pocl": "pip install pocl-binary-distribution", "intel": "pip install intel-opencl-rt intel-cmplr-lib-rt"}
    return f"{PLATFORMS[name]} is not installed ({how.get(name, 'apt-get install oclgrind')})"
