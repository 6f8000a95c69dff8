"""Devices: each is described in one file, ``NAME.toml`` in this folder or a user's own.

`Device` is all that is known of one: whether it fits what OpenCL reports, how kernels are spelled for it (`Dialect`),
its limits, and the figures that cost models count with (`Cpu`, `Gpu`). `describe` finds the description of an OpenCL
device, `load_device` reads one from elsewhere.
"""

from __future__ import annotations

from lift_egraph.codegen.device_info import DeviceInfo
from lift_egraph.codegen.devices.description import REGISTER, Cpu, Device, Dialect, Gpu, registers_of
from lift_egraph.codegen.devices.device_file import built_in, load_device, names

DEVICES = {name: built_in(name) for name in names()}
GENERIC, INTEL, NVIDIA, POCL = (DEVICES[name] for name in ("generic", "intel", "nvidia", "pocl"))


def describe(info: DeviceInfo) -> Device:
    """The built-in description of an OpenCL device; of those that fit, one that says more of whom it fits."""
    fitting = [d for d in DEVICES.values() if d.fits(info)]
    return max(fitting, key=lambda d: (bool(d.named), bool(d.platform))).on(info)


def is_called(info: DeviceInfo, text: str) -> bool:
    """Whether a text is the name of a device's description, or a part of its platform's or its own name."""
    return text.lower() == describe(info).name or text.lower() in f"{info.platform} / {info.name}".lower()


__all__ = [
    "DEVICES", "GENERIC", "INTEL", "NVIDIA", "POCL", "REGISTER", "Cpu", "Device", "Dialect", "Gpu", "describe",
    "is_called", "load_device", "registers_of"
]  # fmt: skip
