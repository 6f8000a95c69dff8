"""What OpenCL says about a device. Bundles take this module along: it needs PyOpenCL alone."""

from __future__ import annotations

from typing import Any

import pyopencl as cl

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.running.host_cpu import largest_cache, most_lanes


def facts_of(index: str, platform: cl.Platform, device: cl.Device) -> DeviceInfo:
    """The facts of one device; `index` is its place among all, ``platform:device``."""

    def kind() -> Any:
        if device.type & cl.device_type.GPU:
            return "gpu"
        return "cpu" if device.type & cl.device_type.CPU else "other"

    reported = device.global_mem_cache_size
    items = [*device.max_work_item_sizes, 1, 1, 1]
    return DeviceInfo(
        index=index,
        platform=platform.name.strip(),
        platform_version=platform.version.strip(),
        name=device.name.strip(),
        driver_version=device.driver_version.strip(),
        opencl_c_version=device.opencl_c_version.strip(),
        kind=kind(),
        compute_units=device.max_compute_units,
        clock_mhz=device.max_clock_frequency,
        max_work_group=device.max_work_group_size,
        max_work_items=(items[0], items[1], items[2]),
        local_memory=device.local_mem_size,
        local_memory_is_dedicated=device.local_mem_type == cl.device_local_mem_type.LOCAL,
        global_memory=device.global_mem_size,
        max_allocation=device.max_mem_alloc_size,
        cache=largest_cache(reported) if kind() == "cpu" else reported,
        vector_width=most_lanes(device, device.native_vector_width_float),
        supports_f64="cl_khr_fp64" in device.extensions,
        address_alignment=device.mem_base_addr_align // 8,
    )
