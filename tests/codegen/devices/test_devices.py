import dataclasses

import pytest

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices import Cpu, Gpu, describe

INFO = DeviceInfo(
    index="0:0",
    platform="Portable Computing Language",
    platform_version="OpenCL 3.0",
    name="pthread-AMD EPYC",
    driver_version="3.0",
    opencl_c_version="OpenCL C 1.2",
    kind="cpu",
    compute_units=8,
    clock_mhz=2500,
    max_work_group=4096,
    max_work_items=(4096, 4096, 4096),
    local_memory=1 << 20,
    local_memory_is_dedicated=False,
    global_memory=1 << 33,
    max_allocation=1 << 31,
    cache=1 << 25,
    vector_width=8,
    supports_f64=True,
    address_alignment=128,
)


def described(**facts):
    return describe(dataclasses.replace(INFO, **facts))


def test_opencl_knows_the_machine_and_the_description_the_rest():
    device = described()
    assert (device.compute_units, device.clock_mhz, device.vector_width, device.cache) == (8, 2500, 8, 1 << 25)
    assert (device.name, device.local_memory_is_cheap) == ("pocl", False)


def test_a_group_has_what_opencl_and_the_description_allow():
    device = described(max_work_group=1 << 20, local_memory=1 << 20)
    assert (device.max_work_group, device.local_memory) == (4096, 1 << 20)


@pytest.mark.parametrize(("name", "most"), [("NVIDIA H100 80GB", 231424), ("GeForce", 49152)])
def test_arrays_of_fixed_sizes_may_have_more_local_memory_than_opencl_reports(name, most):
    device = described(kind="gpu", platform="NVIDIA CUDA", name=name, local_memory=49152)
    assert (device.local_memory, device.most_local) == (49152, most)


def test_what_opencl_does_not_say_is_as_described():
    device = described(platform="Intel(R) OpenCL", clock_mhz=0, cache=0)
    assert (device.clock_mhz, device.cache) == (3000, 32 << 20)


@pytest.mark.parametrize(
    ("platform", "kind", "name"),
    [
        ("Portable Computing Language", "cpu", "pocl"),
        ("Intel(R) OpenCL", "cpu", "intel"),
        ("Another", "cpu", "cpu"),
        ("NVIDIA CUDA", "gpu", "nvidia"),
        ("Another", "gpu", "generic"),
        ("Another", "other", "generic"),
        ("Portable Computing Language", "gpu", "generic"),
    ],
)
def test_families(platform, kind, name):
    device = described(platform=platform, kind=kind)
    assert device.name == name
    assert isinstance(device.throughput, Cpu if kind == "cpu" else Gpu)


@pytest.mark.parametrize(("name", "bandwidth"), [("NVIDIA H200", 4000), ("NVIDIA H100 80GB", 3000), ("GeForce", 500)])
def test_bandwidth_of_gpus(name, bandwidth):
    assert described(kind="gpu", name=name).bandwidth == bandwidth
