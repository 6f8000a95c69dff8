import dataclasses
import json
import os
import time

import numpy as np
import pyopencl as cl
import pytest

from lift_egraph.codegen.devices import describe
from lift_egraph.codegen.plans.arrays import join_outputs, load_plan, save_plan, split_inputs
from lift_egraph.codegen.plans.kernel import Argument, BufferInfo, Kernel, Launch, Plan, ScalarInfo
from lift_egraph.codegen.running import worker
from lift_egraph.codegen.running.opencl import build
from lift_egraph.codegen.running.run import Runner, check_limits, find_device, list_devices, run_directory
from lift_egraph.errors import BuildProblem, DeviceProblem, InputProblem, OutputProblem, RunProblem
from lift_egraph.process.child import End, Ended
from tests.codegen.devices.test_devices import INFO
from tests.command import SOON
from tests.depth import in_turn

N = 1000
SCALE = "kernel void scale(global const float *x, global float *out, float a) { BODY }"
BODY = "int i = get_global_id(0); out[i] = a * x[i];"

DEVICE = dataclasses.replace(
    INFO,
    max_work_group=256,
    max_work_items=(256, 256, 64),
    local_memory=1 << 15,
    global_memory=1 << 20,
    max_allocation=1 << 19,
    supports_f64=False,
)


def kernel(name, buffers, global_size, local_size=None, *, scalars=(), local_bytes=0):
    arguments = (*(Argument("buffer", b) for b in buffers), *(Argument("scalar", s) for s in scalars))
    return Kernel(name, "", arguments, Launch(global_size, local_size), local_bytes)


def scale(body=BODY, *, n=N, local=None, source=SCALE, global_size=None, local_bytes=0):
    return Plan(
        "scale",
        "generic",
        source.replace("BODY", body),
        (kernel("scale", ("x", "out"), global_size or (n, 1, 1), local, scalars="a", local_bytes=local_bytes),),
        (BufferInfo("x", "input", "f32", n, "x"), BufferInfo("out", "output", "f32", n, "result")),
        (ScalarInfo("a", "f32", "a"),),
        ("-cl-mad-enable",),
    )


def of_other_names():
    """The same with other names of its kernel and of what that writes."""
    plan = scale(source=SCALE.replace("scale", "other").replace("BODY", BODY).replace("out", "y"))
    written = dataclasses.replace(plan.buffers[1], name="y")
    launched = kernel("other", ("x", "y"), (N, 1, 1), scalars="a")
    return dataclasses.replace(plan, kernels=(launched,), buffers=(plan.buffers[0], written))


def inputs(n=N):
    return {"x": np.arange(n, dtype=np.float32), "a": 3.0}


EXPECTED = 3 * np.arange(N, dtype=np.float32)

# --- without a device -------------------------------------------------------------------------------------


class TestLimits:
    @pytest.mark.parametrize(
        ("plan", "message"),
        [
            (scale(n=1 << 18), "the buffer x has 1048576 bytes, one allocation may have 524288"),
            (scale(n=(1 << 17) + 2), "one allocation may have 524288"),
            (scale(n=1024, local=(512, 1, 1)), "work-groups of 512 work-items, the device allows 256"),
            (scale(local_bytes=40000), "needs 40000 bytes of local memory, the device has 32768"),
            (scale(global_size=(2, 2, 128), local=(1, 1, 128)), "the device allows"),
        ],
    )
    def test_each_names_value_and_limit(self, plan, message):
        with pytest.raises(DeviceProblem, match=message):
            check_limits(plan, DEVICE)

    def test_the_sum_of_all_buffers(self):
        with pytest.raises(DeviceProblem, match="1048576 bytes together, the device has 1048575"):
            check_limits(scale(n=1 << 17), dataclasses.replace(DEVICE, global_memory=(1 << 20) - 1))

    def test_f64_must_be_supported(self):
        plan = dataclasses.replace(scale(), buffers=(BufferInfo("x", "input", "f64", 2, "x"),))
        with pytest.raises(DeviceProblem, match="has no f64"):
            check_limits(plan, DEVICE)

    def test_a_plan_that_fits(self):
        check_limits(scale(local=(100, 1, 1)), DEVICE)
        gpu = dataclasses.replace(DEVICE, kind="gpu", platform="NVIDIA CUDA", name="NVIDIA H100", local_memory=49152)
        check_limits(scale(local_bytes=60000), gpu)  # OpenCL reports less than fixed arrays may have


class TestInputs:
    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"y": np.zeros(3)}, "scale uses no input 'y'; it uses x, a"),
            ({"x": np.zeros(N)}, r"the input x must have elements of type float32 \(f32\), got float64"),
            ({"x": np.zeros(3, np.float32)}, r"the input x must have .*1000.* got the shape \(3,\)"),
            ({"a": np.zeros(1, np.float32)}, r"the input a must have the shape \(\)"),
            ({"a": "text"}, "the input a must have elements of type float32"),
        ],
    )
    def test_what_does_not_fit(self, changes, message):
        with pytest.raises(InputProblem, match=message):
            split_inputs(scale(), {**inputs(), **changes})

    def test_a_missing_input(self):
        with pytest.raises(InputProblem, match="the input a of scale is missing"):
            split_inputs(scale(), {"x": inputs()["x"]})

    def test_tuples(self):
        plan = Plan(
            "pairs",
            "generic",
            "",
            (),
            (
                BufferInfo("x_0", "input", "f32", 2, "x", (0,)),
                BufferInfo("x_1", "input", "i32", 2, "x", (1,)),
                BufferInfo("out_0", "output", "f32", 2, "result", (0,)),
                BufferInfo("out_10", "output", "i32", 2, "result", (1, 0)),
                BufferInfo("out_11", "output", "bool", 1, "result", (1, 1), (1,)),
            ),
            (),
        )
        first, second = np.ones(2, np.float32), np.arange(2, dtype=np.int32)
        arrays = split_inputs(plan, {"x": (first, second)})
        assert np.shares_memory(arrays["x_0"], first)
        assert np.shares_memory(arrays["x_1"], second)
        result = join_outputs(plan, {"out_0": first, "out_10": second, "out_11": np.array([True])})
        assert [result[0].tolist(), result[1][0].tolist(), result[1][1].tolist()] == [[1, 1], [0, 1], [True]]
        with pytest.raises(InputProblem, match="expected a tuple of two values, got ndarray"):
            split_inputs(plan, {"x": first})


class TestDirectory:
    def test_a_plan_survives_being_written(self, tmp_path):
        plan = scale(local=(100, 1, 1))
        save_plan(plan, tmp_path / "new")
        assert load_plan(tmp_path / "new") == plan

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("{", "does not follow its schema: Input data was truncated"),
            ("[]", "does not follow its schema: Expected `object`, got `array`"),
            ("{}", "does not follow its schema: Object missing required field `format`"),
            ('{"format": 2}', "has the format 2, expected 4"),
        ],
    )
    def test_a_broken_description(self, tmp_path, text, message):
        save_plan(scale(), tmp_path)
        (tmp_path / "launch.json").write_text(text)
        with pytest.raises(InputProblem, match=message):
            load_plan(tmp_path)

    @pytest.mark.parametrize(
        ("place", "value", "message"),
        [
            (("buffers",), [], "the kernel scale takes the buffer x, which it lacks"),
            (("buffers", 1, "role"), "temporary", "it has no output"),
            (
                ("buffers", 1, "role"),
                "result",
                r"matching regex .* at `\$\.buffers\[\.\.\.\]\.role`|buffers\[1\]\.role",
            ),
            (("buffers", 0, "element"), "f128", "element"),
            (("buffers", 0, "length"), -1, "Expected `int` >= 0"),
            (("buffers", 0, "length"), "1 / 0", "is no launch description"),
            (("buffers", 0, "length"), "(" * 999, "is no launch description"),
            (("buffers", 0, "length"), "M", "no value is given for M"),
            (("buffers", 0, "shape"), [7], "has 1000 elements, but the shape"),
            (("buffers", 0, "components"), [1], "the components of the input 'x' are not those of a tuple"),
            (("buffers", 0, "name"), "out", "there are 2 buffers, scalars and sizes of the name out"),
            (("scalars", 0, "value"), None, "Expected `str`, got `null`"),
            (("sizes",), [{"name": "N", "size": "N", "value": 3, "low": 1}], "either a value, or low and high"),
            (("kernels", 0, "name"), "a\0b", "matching regex"),
            (("kernels", 0, "global_size"), [1, 1], "array` of length 3"),
            (("kernels", 0, "local_size"), [7, 1, 1], "the groups of a launch must divide"),
            (("kernels", 0, "free"), {"groups": [3], "local": []}, "Expected `int` <= 2"),
            (("more",), 1, "unknown field `more`"),
        ],
    )
    def test_an_edited_description(self, tmp_path, place, value, message):
        save_plan(scale(), tmp_path)
        launch = part = json.loads((tmp_path / "launch.json").read_text())
        for key in place[:-1]:
            part = part[key]
        part[place[-1]] = value
        (tmp_path / "launch.json").write_text(json.dumps(launch))
        with pytest.raises(InputProblem, match=message):
            load_plan(tmp_path)

    def test_the_text_of_another_kernel(self, tmp_path):
        save_plan(scale(), tmp_path)
        (tmp_path / "kernel.cl").write_text(scale("out[get_global_id(0)] = a;").source)
        with pytest.raises(InputProblem, match=r"launch\.json was not written for .*kernel\.cl: compile the kernel"):
            load_plan(tmp_path)

    def test_a_missing_file(self, tmp_path):
        with pytest.raises(InputProblem, match=r"kernel\.cl: No such file"):
            load_plan(tmp_path)

    def test_a_place_that_cannot_be_written(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(OutputProblem, match="cannot write to"):
            save_plan(scale(), tmp_path / "file")


# --- with one ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def device():
    try:
        return find_device()
    except DeviceProblem as problem:
        pytest.skip(str(problem))


@pytest.fixture(scope="module")
def one_runner(device):
    with Runner(device, time_limit=30) as made:
        yield made


@pytest.fixture
def runner(one_runner):
    one_runner.load_inputs("ramp", inputs())
    return one_runner


class TestDevices:
    def test_each_is_found_by_index_and_name(self, device):
        for found in list_devices():
            assert find_device(found.index).name == found.name
        assert find_device(device.platform.upper()).platform == device.platform
        assert find_device(describe(device).name.upper()).platform == device.platform

    def test_the_variable(self, device, monkeypatch):
        monkeypatch.setenv("PYOPENCL_CTX", device.index)
        assert find_device().index == device.index

    @pytest.mark.parametrize("text", ["9:9", "no such device"])
    def test_an_unknown_one_lists_the_others(self, device, text):
        with pytest.raises(DeviceProblem, match=f"no OpenCL device fits '{text}'") as problem:
            find_device(text)
        assert device.name in str(problem.value)
        with pytest.raises(DeviceProblem, match=r"fits 'mine\.toml' \(a file with a description is given by"):
            find_device("mine.toml")

    def test_one_that_a_description_fits(self, device):
        own = dataclasses.replace(describe(device), named=device.name)
        assert find_device(description=own).platform == device.platform
        with pytest.raises(DeviceProblem, match=rf"fits the description {own.name} \(.*named 'none'\); there"):
            find_device(description=dataclasses.replace(own, named="none"))
        with pytest.raises(DeviceProblem, match=f"fits '9:9' and the description {own.name}"):
            find_device("9:9", own)

    def test_none_at_all(self, monkeypatch):
        monkeypatch.setattr("lift_egraph.codegen.running.run.list_devices", list)
        with pytest.raises(DeviceProblem, match="pip install pocl-binary-distribution"):
            find_device()


class TestRun:
    @pytest.mark.parametrize("local", [None, (1, 1, 1), (100, 1, 1)])
    def test_a_good_plan(self, runner, local):
        np.testing.assert_array_equal(runner.run(scale(local=local), "ramp"), EXPECTED)

    def test_two_kernels_with_a_temporary(self, runner):
        plan = scale(source=SCALE + " kernel void add(global float *t, global float *out) { "
                     "int i = get_global_id(0); out[i] = t[i] + 1; }")  # fmt: skip
        plan = dataclasses.replace(
            plan,
            kernels=(kernel("scale", "xt", (N, 1, 1), scalars="a"), kernel("add", ("t", "out"), (N, 1, 1))),
            buffers=(*plan.buffers, BufferInfo("t", "temporary", "f32", N)),
        )
        np.testing.assert_array_equal(runner.run(plan, "ramp"), EXPECTED + 1)

    def test_plans_that_are_built_together(self, runner):
        twice = "float twice(float x) { return 2 * x; }\n"
        others = (), (scale(BODY + " no C"),), (scale(source="float twice(int x) { return x; }\n" + SCALE),)
        for number, also in enumerate(others):
            added = range(3 * number, 3 * number + 3)  # what is built already is not built again
            plans = [scale(BODY.replace("a *", f"{n} + a *"), source=twice + SCALE) for n in added]
            runner.build([*plans, *also])
            for n, plan in zip(added, plans, strict=True):
                np.testing.assert_array_equal(runner.run(plan, "ramp"), n + EXPECTED)
            if also and "no C" in also[0].source:
                with pytest.raises(BuildProblem, match="no C"):
                    runner.run(also[0], "ramp")

    def test_in_turns(self, runner):
        slow = scale(source=SCALE.replace("BODY", "for (volatile int z = 0; z < 9000; z++) {} " + BODY))
        times = runner.in_turns([scale(), slow, scale()], "ramp", rounds=7, max_time=60)
        assert [len(own) for own in times] == [7, 7, 7]
        assert all(a < b > c for a, b, c in zip(*times, strict=True))
        assert [len(own) for own in runner.in_turns([scale(), slow], "ramp", rounds=7, max_time=0)] == [1, 1]
        with pytest.raises(RunProblem, match="wrote outside"):
            runner.in_turns([scale(), scale(BODY + " out[1000] = 0;")], "ramp", rounds=1, max_time=1)

    def test_measure(self, runner):
        timing = runner.measure(scale(), "ramp", repeats=7, min_time=0)
        assert timing.runs == 7
        low, high = timing.spread_ms
        assert 0 < timing.min_ms <= low <= timing.median_ms <= high < 1000

    def test_a_build_failure_shows_log_and_line(self, runner):
        with pytest.raises(BuildProblem) as problem:
            runner.run(scale("\nout[0] = undeclared;"), "ramp")
        assert "undeclared identifier" in str(problem.value)
        assert "    2 | out[0] = undeclared; }" in str(problem.value)
        np.testing.assert_array_equal(runner.run(scale(), "ramp"), EXPECTED)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"name": "scales"}, "the kernel scales does not go with its launch: .*INVALID_KERNEL_NAME"),
            ({"arguments": (Argument("buffer", "x"),)}, "it takes 3 arguments, not 1"),
            ({"arguments": (Argument("scalar", "a"),) * 3}, "does not go with its launch: .*INVALID_ARG_SIZE"),
        ],
    )
    def test_a_launch_that_is_not_the_kernels(self, runner, change, message):
        plan = scale()
        wrong = dataclasses.replace(plan, kernels=(dataclasses.replace(plan.kernels[0], **change),))
        with pytest.raises(RunProblem, match=message) as problem:
            runner.run(wrong, "ramp")
        assert "Traceback" not in str(problem.value)

    def test_an_endless_kernel_is_killed(self, device):
        endless = scale("while (out[0] != 1) { out[1] += 1; }")
        with Runner(device, time_limit=0.8) as runner:
            runner.load_inputs("ramp", inputs())
            started = time.monotonic()
            with pytest.raises(RunProblem, match=r"ran past its 0\.8 s limit"):
                runner.run(endless, "ramp")
            assert time.monotonic() - started < SOON
            runner.time_limit = 60
            np.testing.assert_array_equal(runner.run(scale(), "ramp"), EXPECTED)

    def test_a_wild_write(self, runner):
        with pytest.raises(RunProblem):
            runner.run(scale(BODY + "for (long j = 0; j < 1L << 40; j += 1 << 20) out[j] = 1;"), "ramp")
        np.testing.assert_array_equal(runner.run(scale(), "ramp"), EXPECTED)

    @pytest.mark.parametrize(("index", "side"), [("-1", "before"), ("1000", "behind")])
    def test_a_write_just_outside(self, runner, index, side):
        for action in (runner.run, runner.measure):
            with pytest.raises(RunProblem, match=f"wrote outside: the memory {side} the buffer out has changed"):
                action(scale(BODY + f" out[{index}] = 0;"), "ramp")

    @pytest.mark.parametrize(("index", "side"), [("-1", "before"), ("1000", "behind")])
    def test_a_write_just_outside_of_an_input(self, runner, index, side):
        with pytest.raises(RunProblem, match=f"wrote outside: the memory {side} the buffer x has changed"):
            runner.run(scale(BODY + f" if (i == 0) ((global float *)x)[{index}] = 0;"), "ramp")
        np.testing.assert_array_equal(runner.run(scale(), "ramp"), EXPECTED)

    def test_what_is_read_outside_of_an_input_is_huge(self, runner):
        result = runner.run(scale("int i = get_global_id(0); out[i] = a * x[i + 1];"), "ramp")
        np.testing.assert_array_equal(result, [*EXPECTED[1:], np.inf])

    def test_a_truth_value_as_an_argument(self, runner):
        plan = Plan(
            "choose",
            "generic",
            "kernel void f(global int *out, const int flag) { out[get_global_id(0)] = flag ? 5 : 6; }",
            (kernel("f", ("out",), (3, 1, 1), scalars=("flag",)),),
            (BufferInfo("out", "output", "i32", 3, "result"),),
            (ScalarInfo("flag", "bool", "flag"),),
        )
        runner.load_inputs("yes", {"flag": np.bool_(True)})
        runner.load_inputs("no", {"flag": np.asarray(False)})
        np.testing.assert_array_equal(runner.run(plan, "yes"), [5] * 3)
        np.testing.assert_array_equal(runner.run(plan, "no"), [6] * 3)

    def test_a_changed_input(self, runner):
        plan = scale(BODY + " ((global float *)x)[0] = 7;")
        with pytest.raises(RunProblem, match="wrote outside: the input x has changed"):
            runner.run(plan, "ramp")
        np.testing.assert_array_equal(runner.run(scale(), "ramp"), EXPECTED)

    @pytest.mark.parametrize(("body", "count"), [("", 1000), ("if (get_global_id(0) != 5) {" + BODY + "}", 1)])
    def test_unwritten_output(self, runner, body, count):
        with pytest.raises(RunProblem, match=f"left {count} of 1000 elements of the output out unwritten"):
            runner.run(scale(body), "ramp")

    @in_turn(8)
    @pytest.mark.parametrize(
        ("element", "c_type", "bits"),
        [("f16", "ushort", 0xFFFF), ("f32", "uint", 0xFFFFFFFF), ("i32", "uint", 0xABABABAB), ("u8", "uchar", 0xAB)],
    )
    @pytest.mark.parametrize("left", [0, 2])
    def test_a_result_that_looks_unwritten(self, runner, element, c_type, bits, left):
        body = f"int i = get_global_id(0); if (i >= left) out[i] = {bits};"
        source = f"kernel void f(global {c_type} *out, const int left) {{ {body} }}"
        buffer = BufferInfo("out", "output", element, 5, "result")
        launched = kernel("f", ("out",), (5, 1, 1), scalars=("left",))
        plan = Plan("all_bits", "generic", source, (launched,), (buffer,), (ScalarInfo("left", "i32", "left"),))
        runner.load_inputs("some", {"left": np.int32(left)})
        if left:
            with pytest.raises(RunProblem, match=f"left {left} of 5 elements of the output out unwritten"):
                runner.run(plan, "some")
        else:
            result = runner.run(plan, "some")
            assert (result.view(f"u{result.itemsize}") == bits).all()

    @pytest.mark.parametrize(("kind", "in_batches"), [("CPU", True), ("GPU", False)])  # which kind is said to be GPUs
    def test_short_runs_of_a_gpu_follow_each_other(self, device, monkeypatch, kind, in_batches):
        monkeypatch.setattr(cl.device_type, "GPU", getattr(cl.device_type, kind))
        ask = worker.serve(device.index)
        ask(("load", "inputs", {"x": inputs()["x"], "a": np.array(3.0, np.float32)}))
        timing = ask(("measure", scale(), "inputs", 2, 0.0, 10.0, 1e9, 0.0))
        assert (timing.runs > 2) == in_batches

    def test_plans_of_one_text_are_built_once(self, device, monkeypatch):
        built = list[str]()
        monkeypatch.setattr(worker, "build", lambda context, plan: built.append(plan.source) or build(context, plan))
        ask = worker.serve(device.index)
        ask(("load", "inputs", {"x": inputs()["x"], "a": np.array(3.0, np.float32)}))
        own, other = scale(), of_other_names()
        together = own.source + "\n" + other.source
        for plan, name in ((own, "out"), (other, "y")):
            found = ask(("run", dataclasses.replace(plan, source=together), "inputs"))
            assert (found[name] == EXPECTED).all()
        assert len(built) == 1

    def test_a_kernel_that_two_plans_have_is_built_once(self, device, monkeypatch):
        built = list[str]()
        monkeypatch.setattr(worker, "build", lambda context, plan: built.append(plan.source) or build(context, plan))
        ask = worker.serve(device.index)
        ask(("load", "inputs", {"x": inputs()["x"], "a": np.array(3.0, np.float32)}))
        ask(("run", scale(source="// once\n" + SCALE), "inputs"))
        renamed = of_other_names()
        assert (ask(("run", renamed, "inputs"))["y"] == EXPECTED).all()
        more = dataclasses.replace(
            renamed,
            source=renamed.source + "\nkernel void add(global float *y) { int i = get_global_id(0); y[i] = y[i] + 1; }",
            kernels=(*renamed.kernels, kernel("add", "y", (N, 1, 1))),
        )
        assert (ask(("run", more, "inputs"))["y"] == EXPECTED + 1).all()
        assert len(built) == 2
        assert "other" not in built[1]
        with pytest.raises(BuildProblem, match=r"3 \| kernel void add.*no C"):
            ask(("run", dataclasses.replace(more, source="\n" + more.source.replace("+ 1", "+ no C")), "inputs"))

    def test_memory_that_is_filled_by_copies(self, device, monkeypatch):
        monkeypatch.setattr(worker, "_FILLED", worker.GUARD + 40)
        monkeypatch.setattr(worker, "_PIECE", 1200)
        ask = worker.serve(device.index)
        ask(("load", "inputs", {"x": inputs()["x"], "a": np.array(3.0, np.float32)}))
        assert np.array_equal(ask(("run", scale(), "inputs"))["out"], EXPECTED)
        with pytest.raises(RunProblem, match=r"left 990 of 1000 elements of the output out unwritten"):
            ask(("run", scale("int i = get_global_id(0); if (i < 10) out[i] = a * x[i];"), "inputs"))
        with pytest.raises(RunProblem, match=r"wrote outside: the memory behind the buffer out has changed"):
            ask(("run", scale("int i = get_global_id(0); out[i] = a * x[i]; if (i == 0) out[1000] = 1;"), "inputs"))

    def test_too_much_local_memory(self, runner):
        size = runner.device.local_memory
        body = f"local float t[{size}]; int i = get_global_id(0); t[i] = x[i]; barrier(1); out[i] = a * t[999 - i];"
        with pytest.raises((DeviceProblem, BuildProblem)):
            runner.run(scale(body), "ramp")

    def test_two_input_sets(self, runner):
        runner.load_inputs("ones", {"x": np.ones(N, np.float32), "a": np.float32(2)})
        np.testing.assert_array_equal(runner.run(scale(), "ones"), np.full(N, 2, np.float32))
        np.testing.assert_array_equal(runner.run(scale(), "ramp"), EXPECTED)
        runner.forget_inputs("ones")
        np.testing.assert_array_equal(runner.run(scale(), "ramp"), EXPECTED)

    def test_new_values_under_an_old_name(self, runner):
        runner.run(scale(), "ramp")
        runner.load_inputs("ramp", {"x": np.ones(N, np.float32), "a": 2})
        np.testing.assert_array_equal(runner.run(scale(), "ramp"), np.full(N, 2, np.float32))

    def test_a_worker_that_died_between_plans(self, runner):
        runner.run(scale(), "ramp")
        os.kill(runner._server._child.pid, 9)
        np.testing.assert_array_equal(runner.run(scale(), "ramp"), EXPECTED)

    def test_a_plan_is_not_blamed_for_a_crash_that_does_not_repeat(self, runner, monkeypatch):
        crash = RunProblem("crashed with SIGSEGV")
        crash.__cause__ = Ended(End("crashed", "crashed with SIGSEGV"))
        request, crashes = runner._server.request, [crash]

        def crash_once(message, time_limit):
            if message[0] == "run" and crashes:
                raise crashes.pop()
            return request(message, time_limit)

        runner.run(scale(), "ramp")
        monkeypatch.setattr(runner._server, "request", crash_once)
        np.testing.assert_array_equal(runner.run(scale(), "ramp"), EXPECTED)
        assert not crashes
        runner.close()
        crashes.append(crash)
        with pytest.raises(RunProblem, match="crashed with SIGSEGV"):
            runner.run(scale(), "ramp")

    def test_integers_and_truth_values(self, runner):
        plan = Plan(
            "compare",
            "generic",
            "kernel void f(global const int *x, global uchar *out) { int i = get_global_id(0); out[i] = x[i] > 0; }",
            (kernel("f", ("x", "out"), (7, 1, 1)),),
            (BufferInfo("x", "input", "i32", 7, "x"), BufferInfo("out", "output", "bool", 7, "result")),
            (),
        )
        runner.load_inputs("signs", {"x": np.arange(-3, 4, dtype=np.int32)})
        np.testing.assert_array_equal(runner.run(plan, "signs"), [False] * 4 + [True] * 3)


def test_run_directory(device, tmp_path):
    save_plan(scale(), tmp_path)
    np.testing.assert_array_equal(run_directory(tmp_path, inputs(), device.index), EXPECTED)


def test_a_deadline_shortens_the_limit_of_each_request():
    with Runner(DEVICE, time_limit=30) as runner:
        assert runner.left == 30
        runner.deadline = time.perf_counter() + 5
        assert 4 < runner.left <= 5
        runner.deadline = 0.0
        assert runner.left == 0.1
