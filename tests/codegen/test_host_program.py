"""A kernel that was written out runs from C, as `codegen/launch_json.md` says."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lift_egraph import codegen
from lift_egraph.api import parse_program, print_program
from lift_egraph.codegen.compiler import compile_open
from lift_egraph.codegen.devices import POCL
from lift_egraph.codegen.plans.arrays import save_plan
from tests.codegen.opencl import needs_opencl

TEXT = Path(codegen.__file__).parent / "launch_example.c"
Host = Callable[[int], "subprocess.CompletedProcess[str]"]


def beside_pyopencl(pattern: str) -> Path | None:
    """A library that came with PyOpenCL, or with PoCL for it."""
    import pyopencl

    here = Path(pyopencl.__file__).parent
    return next((f for folder in (here / ".libs", here.parent / "pyopencl.libs") for f in folder.glob(pattern)), None)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Host:
    """The host program, run on the kernels of the LIFT program in its first comment."""
    directory = tmp_path_factory.mktemp("host")
    compiler, library, driver = shutil.which("cc"), beside_pyopencl("libOpenCL*"), beside_pyopencl("libpocl*.so")
    if compiler is None:
        pytest.skip("there is no C compiler")
    if not Path("/usr/include/CL/cl.h").exists():
        pytest.skip("there are no OpenCL headers (Debian: opencl-c-headers)")
    if library is None or driver is None:
        pytest.skip("there is no OpenCL loader or no PoCL beside PyOpenCL")
    text = TEXT.read_text()
    program = text[text.index("program dot") : text.index("lift-egraph compile")]
    plan = compile_open(parse_program(program), POCL, term_text=print_program(parse_program(program)))
    save_plan(plan, directory)
    command = [compiler, "-Wall", "-Wextra", "-Werror", str(TEXT), str(library), f"-Wl,-rpath,{library.parent}"]
    built = subprocess.run([*command, "-o", str(directory / "dot")], check=False, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    (directory / "pocl.icd").write_text(f"{driver}\n")

    def run(length: int) -> subprocess.CompletedProcess[str]:
        command = [directory / "dot", directory / "kernel.cl", str(length)]
        variables = {**os.environ, "OCL_ICD_VENDORS": str(directory)}
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=variables)
        if "unknown target CPU" in done.stderr:
            pytest.skip("PoCL's LLVM does not know this CPU, and a program in C does not tell it of another")
        return done

    return run


@needs_opencl
@pytest.mark.parametrize("length", [0, 4, 1000, 65536])
def test_the_host_program_computes_what_numpy_does(host: Host, length: int) -> None:
    done = host(length)
    assert done.returncode == 0, done.stderr
    i = np.arange(length)
    assert float(done.stdout) == pytest.approx(float(np.dot(i % 7, i % 5)), rel=1e-4)


@needs_opencl
def test_the_host_program_refuses_other_sizes(host: Host) -> None:
    done = host(1001)
    assert (done.returncode, done.stdout) == (1, "")
    assert "split(4) does not divide" in done.stderr
