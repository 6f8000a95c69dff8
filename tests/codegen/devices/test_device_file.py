import dataclasses
import pickle
import re
from pathlib import Path

import pytest

from lift_egraph.codegen.compiler import compile_program
from lift_egraph.codegen.devices import DEVICES, NVIDIA, POCL, load_device
from lift_egraph.codegen.devices.device_file import FOLDER
from lift_egraph.errors import DeviceProblem
from lift_egraph.extract.analytical import predict
from lift_egraph.language.check import specialise
from tests.codegen import low_level as low
from tests.codegen.devices.test_devices import INFO

RTX = dataclasses.replace(INFO, platform="NVIDIA CUDA", name="NVIDIA GeForce RTX 4090", kind="gpu")

POCL_TEXT = (FOLDER / "pocl.toml").read_text()
SLOW = '[[levels]]\nname = "grid"\nbandwidth = 1\n[[levels]]\nname = "group"\nbandwidth = 1'
GROUP, SUB = 'like = "pocl"\n[[levels]]\nname = "group"\n', 'name = "sub_group"\n'
NVIDIA_TEXT = (FOLDER / "nvidia.toml").read_text()


@pytest.fixture
def described(tmp_path):
    """From the text of a file to the description in it."""

    def load(text: str, name: str = "mine.toml"):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return load_device(tmp_path / name)

    return load


def test_the_example_of_the_readme(described):
    device = described(re.search("```toml\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)[1])
    assert device.fits(RTX)
    assert not device.fits(dataclasses.replace(RTX, name="NVIDIA H100"))
    found = device.on(RTX)
    assert (found.name, found.emission, found.compute_units) == ("mine", NVIDIA.emission, RTX.compute_units)
    assert (found.bandwidth, found.throughput.resident_items, found.throughput.warp) == (900.0, 1536, 32)
    assert (found.caches, found.level("group").local_memory, found.registers) == ((98304,), 102400, 255)


def test_a_file_of_its_own_says_everything(described):
    assert described((FOLDER / "pocl.toml").read_text(), "pocl.toml") == POCL


def test_kernels_and_predictions_follow_the_file(described):
    device = described(f'like = "pocl"\n[emission]\nunroll_by = 0\n{SLOW}', "very slow.toml")
    program = specialise(low.scal(65536), {"N": 32 << 20})
    plan = compile_program(program, device)
    assert "for very_slow\n" in plan.source
    assert predict(plan, device).device_ms > 20 * predict(plan, POCL).device_ms


@pytest.mark.parametrize(("name", "bandwidth"), [("H200", 4000), ("X1 fast", 80), ("X1", 40), ("others", 500)])
def test_the_files_variants_count_before_those_it_inherits(described, name, bandwidth):
    device = described("""
        like = "nvidia"
        [[variants]]
        named = "X1 fast"
        levels = [{ name = "grid", bandwidth = 80 }]
        [[variants]]
        named = "X1"
        levels = [{ name = "grid", bandwidth = 40 }]
    """)
    assert device.on(dataclasses.replace(RTX, name=name)).bandwidth == bandwidth


def test_what_the_file_says_counts_before_inherited_variants(described):
    device = described('like = "nvidia"\nlevels = [{ name = "grid", bandwidth = 80 }]')
    assert device.on(dataclasses.replace(RTX, name="H200")).bandwidth == 80


def test_levels_of_the_same_name_are_like_those_of_the_other_file(described):
    device = described('like = "nvidia"\nmax_work_group = 128\n[[levels]]\nname = "item"\nworkers = [16]')
    assert device.level("item") == dataclasses.replace(NVIDIA.level("item"), workers=(16,))
    assert [level for level in device.levels if level.name != "item"] == [v for v in NVIDIA.levels if v.name != "item"]
    assert (device.group_sizes, device.has_groups, device.widths) == ((128, 64), True, (4,))


@pytest.mark.parametrize("device", DEVICES.values(), ids=DEVICES)
def test_child_processes_get_descriptions(device):
    assert pickle.loads(pickle.dumps(device)) == device


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda p: p.stem)
def test_figures_have_a_unit_and_a_source(path):
    figures = [line for line in path.read_text().splitlines() if re.match(r"[a-z_.0-9]+ = [0-9]", line)]
    known = ("compute_units = ", "clock_mhz = ", "unroll_by = 0", "unroll_long = 0")  # the name, or nothing, says it
    assert [line for line in figures if "#" not in line and not line.startswith(known)] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mine.toml: kind, compute_units, .*throughput, levels: missing; .*base the file on another"),
        ('like = "pocl"\nclock_mhz = ', r"mine.toml is not TOML: Invalid value \(at.*"),
        ('like = "nvidea"', "like: there is no description 'nvidea'; did you mean 'nvidia'.; there are cpu, generic"),
        ("like = 3", "like: there is no description 3; there are cpu"),
        ('like = "pocl"\nclock_mhs = 3', "clock_mhs: there is no such key; did you mean 'clock_mhz'"),
        ('like = "pocl"\n[throughput]\nwarp = 3', "throughput.warp: there is no such key"),
        ('like = "pocl"\nname = "x"', "name: there is no such key; did you mean 'named'"),
        ('like = "pocl"\ncache = 1.5', "cache: expected a whole number above 0 and below 2.63, got 1.5"),
        ('like = "pocl"\ncache = true', "cache: expected a whole number above 0 and below 2.63, got True"),
        ('like = "pocl"\ncache = 0x8000000000000000', "cache: expected a whole number above 0 and below 2.63, got 92"),
        ('like = "pocl"\nthroughput.group_ns = -3', "throughput.group_ns: expected a number of at least 0 .*, got -3"),
        (f"{GROUP}bandwidth = nan", r"levels\[1\].bandwidth: expected a number above 0 .*, got nan"),
        (f"{GROUP}caches = [1.5]", r"levels\[1\].caches: expected a list of whole numbers above 0 .*, got \[1.5\]"),
        (f"{GROUP}bandwidth = 300", "levels, group: a unit's bandwidth, 300, is more than that of all, 200"),
        (
            f"{GROUP}caches = [64, 32]",
            r"levels, group: caches \[64, 32\] must grow, and be at most the cache of all, 335",
        ),
        (f"{GROUP}caches = [64, 1000000000]", r"levels, group: caches .* must grow, and be at most the cache of all"),
        (f"{GROUP}caches = [64]", r"levels, group: 2 of a unit's own caches must be given, got \[64\]"),
        (
            f"{GROUP}local_memory = 64".replace("pocl", "nvidia"),
            "local_memory, 64, is less than one group may have, 49",
        ),
        (f"{GROUP}registers = 64".replace("pocl", "nvidia"), "levels, item: 255 registers are more than .* unit, 64"),
        ('like = "pocl"\n[[levels]]\nname = "item"\ncaches = [9]', "levels, item: caches stands at the level group"),
        (re.sub("(?m)^registers.*", "", NVIDIA_TEXT), "levels, group: registers, item: registers: missing"),
        (re.sub("(?m)^bandwidth.*", "", POCL_TEXT), "levels, grid: bandwidth: missing"),
        ('like = "pocl"\nlaunch_overhead = -1', "launch_overhead: expected a number of at least 0 .*, got -1"),
        ('like = "pocl"\nemission.unroll_by = "4"', "emission.unroll_by: expected a whole number of .*, got '4'"),
        ('like = "pocl"\nemission.sincos = 1', "emission.sincos: expected true or false, got 1"),
        ('like = "pocl"\nemission.vector_access = "load"', "expected 'cast' or 'vload', got 'load'"),
        ('like = "pocl"\nemission.options = "-w"', "emission.options: expected a list of texts, got '-w'"),
        ('like = "pocl"\nemission = "cast"', r"emission: expected a table, \[emission\], got 'cast'"),
        ('like = "pocl"\nplatform = 1', "platform: expected a text, got 1"),
        ('like = "pocl"\nkind = "gpu"', "kind: what it is based on is a cpu, got 'gpu'"),
        ('kind = "tpu"', "kind: expected 'cpu' or 'gpu', got 'tpu'"),
        ('kind = "gpu"\n[throughput]\nwarp = 32', "throughput.lanes, throughput.resident_items, .*: missing"),
        ('like = "pocl"\nlevels = 3', r"levels: expected tables, each under \[\[levels\]\], got 3"),
        ('like = "pocl"\n[[levels]]\nworkers = [3]', r"levels\[1\].name: expected 'grid' or 'group' or .*, got None"),
        ('like = "pocl"\n[[levels]]\nname = "team"', r"levels\[1\].name: expected 'grid' or 'group' or .*, got 'team'"),
        (f"{GROUP}worker = [3]", r"levels\[1\].worker: there is no such key; did you mean 'workers'"),
        (f"{GROUP}workers = 3", r"levels\[1\].workers: expected a list of numbers above 0 and below 2.63, got 3"),
        (f"{GROUP}workers = []", r"levels\[1\].workers: expected a list of numbers above 0 .*, got \[\]"),
        (f"{GROUP}workers = [0]", r"levels\[1\].workers: expected a list of numbers above 0 .*, got \[0\]"),
        (f"{GROUP}workers = [1.5]", r"levels, group: workers must be whole numbers, got \[1.5\]"),
        (f"{GROUP}workers = [8192]", "levels, group: 8192 work-items are more than max_work_group, 4096"),
        (f"{GROUP}partition = 'odd'", r"levels\[1\].partition: expected 'contiguous' or 'strided', got 'odd'"),
        ('like = "pocl"\n[[levels]]\nname = "sub_group"', r"levels\[1\].workers, levels\[1\].partition, .*: missing"),
        (f'like = "nvidia"\n[[levels]]\n{SUB}workers = [64]', r"levels, sub_group: workers are \[64\], .*warp is 32"),
        (f'like = "intel"\n[[levels]]\n{SUB}workers = [12]', r"levels, sub_group: workers must be powers of two, got"),
        ('like = "pocl"\nemission.exchange = "ptx"', "emission.exchange: there is no level sub_group"),
        ('like = "nvidia"\nthroughput.warp = 64', r"levels, sub_group: workers are \[32\], and throughput.warp is 64"),
        (f"{GROUP}workers = [48]".replace("pocl", "nvidia"), r"levels, group: \[48\] .* all whole sub-groups of 32"),
        (NVIDIA_TEXT.replace('name = "item"', 'name = "grid"'), "levels: item missing; there must be grid, group, it"),
        ('like = "pocl"\nvariants = 3', r"variants: expected tables, each under \[\[variants\]\]"),
        ('like = "pocl"\n[[variants]]\ncash = 3', r"variants\[1\].cash: there is no such key; did .*'cache'"),
        ('like = "pocl"\n[[variants]]\nkind = "gpu"', r"variants\[1\].kind: what it is based on is a cpu, got 'gpu'"),
    ],
)
def test_what_is_wrong_is_named(described, text, message):
    with pytest.raises(DeviceProblem, match=message):
        described(text)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DeviceProblem, match=r"cannot read .*none.toml: No such file or directory"):
        load_device(tmp_path / "none.toml")
    with pytest.raises(DeviceProblem, match=r"cannot read .*: Is a directory"):
        load_device(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9")
    with pytest.raises(DeviceProblem, match=r"latin.toml:1:6: this is no text in UTF-8"):
        load_device(Path(tmp_path, "latin.toml"))
