import dataclasses

import pytest

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.extract.devices import INTEL_CPU, NVIDIA, POCL, describe

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


def test_limits_come_from_the_device_and_habits_from_its_family():
    device = describe(INFO)
    assert (device.compute_units, device.local_memory, device.cache) == (8, 1 << 20, 1 << 25)
    assert (device.local_memory_is_cheap, device.dialect) == (POCL.local_memory_is_cheap, "pocl")


def test_a_cpu_with_narrower_vectors_has_a_lower_peak():
    assert describe(INFO).peak == 8 * 32 * 2.5
    assert describe(dataclasses.replace(INFO, vector_width=16)).peak == 8 * 64 * 2.5


@pytest.mark.parametrize(
    ("platform", "kind", "family"),
    [
        ("Intel(R) OpenCL", "cpu", INTEL_CPU),
        ("Another", "cpu", INTEL_CPU),
        ("NVIDIA CUDA", "gpu", NVIDIA),
        ("Another", "gpu", NVIDIA),
        ("Portable Computing Language", "gpu", NVIDIA),
    ],
)
def test_families(platform, kind, family):
    info = dataclasses.replace(INFO, platform=platform, kind=kind)
    device = describe(info)
    assert (device.kind, device.prefers_vectors) == (family.kind, family.prefers_vectors)
    assert device.dialect == (family.dialect if platform == family.platform else "generic")


def test_the_families_peaks_are_the_measured_ones():
    assert POCL.peak == pytest.approx(426, rel=0.02)
    assert NVIDIA.peak == pytest.approx(66_900, rel=0.02)


@pytest.mark.parametrize(("name", "bandwidth"), [("NVIDIA H200", 4000), ("NVIDIA H100 80GB", 3000), ("GeForce", 500)])
def test_bandwidth_of_gpus(name, bandwidth):
    assert describe(dataclasses.replace(INFO, kind="gpu", name=name)).bandwidth == bandwidth


def test_an_unknown_clock():
    assert describe(dataclasses.replace(INFO, clock_mhz=0)).clock_mhz == 3000
