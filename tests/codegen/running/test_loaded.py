"""A written kernel as a function on the caller's own context and queue."""

import numpy as np
import pytest

import lift_egraph
from lift_egraph.api import parse_program, specialise
from lift_egraph.codegen.compiler import compile_open, compile_program
from lift_egraph.codegen.devices import POCL
from lift_egraph.codegen.plans.arrays import save_plan
from lift_egraph.codegen.running.loaded import LoadedKernel
from lift_egraph.errors import InputProblem, SizeProblem
from lift_egraph.language.scalar import NUMPY_TYPES
from tests.codegen.low_level import with_caches

cl = pytest.importorskip("pyopencl")
cl_array = pytest.importorskip("pyopencl.array")

AXPY = parse_program("program axpy(a: f32, x: [f32]N, y: [f32]N) where N = 64 = "
                     "mapGlb(0, fun (e, f) => a * e + f, zip(x, y))")  # fmt: skip
PAIRS = parse_program("program pairs(up: bool, ps: [(f32, i32)]N) where N = 8 = "
                      "mapGlb(0, fun (x, i) => (select(up, i + 1, i), x * 2.0), ps)")  # fmt: skip
SUM = parse_program("program sum(x: [f32]N) where N = 64 = "
                    "reduceSeq(add, 0.0, mapGlb(0, reduceSeq(add, 0.0), split(8, x)))")  # fmt: skip
X, Y = np.arange(64, dtype=np.float32), np.ones(64, dtype=np.float32)


@pytest.fixture
def load(queue, tmp_path):
    def load(program, *, is_open=False):
        plan = compile_open(program, POCL) if is_open else compile_program(specialise(program), POCL)
        save_plan(plan, tmp_path)
        return lift_egraph.load(tmp_path, queue)

    return load


def on_device(queue, array):
    return cl_array.to_device(queue, array)


def test_memory_of_the_host_is_written_around_the_caches_line_by_line(queue, tmp_path):
    program = parse_program("""program twice(x: [f32]64) = toStream(asScalar(mapGlb(0,
                                 vectorize(16, fun v => v * 2.0), asVector(16, x))))""")
    save_plan(compile_program(program, with_caches(POCL, 64)), tmp_path)
    twice, own = lift_egraph.load(tmp_path, queue), np.zeros(96, np.float32)
    first = -own.ctypes.data % 64 // 4
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
    lines, between = (cl.Buffer(queue.context, flags, hostbuf=own[k : k + 64]) for k in (first, first + 4))
    twice.enqueue(x=X, out=lines).wait()
    assert np.array_equal(lines.get_host_array((64,), np.float32), 2 * X)
    with pytest.raises(InputProblem, match="must begin at a multiple of 64 bytes; this begins 16 after one"):
        twice.enqueue(x=X, out=between)


def test_results_have_memory_of_their_own(load, queue):
    axpy, x = load(AXPY), on_device(queue, X)
    with pytest.raises(InputProblem, match="the result needs memory of its own: it was given that of the input x"):
        axpy(a=2.0, x=x, y=Y, out=x)
    with pytest.raises(InputProblem, match="it was given that of the input y"):
        axpy.enqueue(a=2.0, x=X, y=x.base_data, out=x.base_data)
    assert np.array_equal(axpy(a=2.0, x=x, y=x).get(), 3 * X)


@pytest.mark.parametrize("k", [1.5, np.float32(1.5), np.nan, np.float32(np.nan), -np.float32(1e-45), np.array(2, "f4")])
def test_numbers_outside_of_their_range_are_refused(load, k):
    scaled = load(parse_program("program scaled(k: f32 in 0..1, x: [f32]64 in 0..64) = mapGlb(0, fun e => k * e, x)"))
    assert np.array_equal(scaled(k=np.float32(1), x=X), X)
    with pytest.raises(InputProblem, match=r"the input k: it is .*, outside of the range 0\.\.1"):
        scaled(k=k, x=X)
    with pytest.raises(InputProblem, match=r"the input x: element 0 is -1\.0, outside of the range 0\.\.64"):
        scaled(k=1, x=X - 1)


def test_numpy_arrays(load):
    axpy, out = load(AXPY), np.empty_like(X)
    assert np.array_equal(axpy(a=2.0, x=X, y=Y), 2 * X + 1)
    assert axpy({"a": np.float32(3), "x": X}, y=Y, out=out) is out
    assert np.array_equal(out, 3 * X + 1)


def test_arrays_and_buffers_of_pyopencl(load, queue):
    axpy, x, y = load(AXPY), on_device(queue, X), on_device(queue, Y)
    result = axpy(a=2, x=x, y=y)
    assert isinstance(result, cl_array.Array)
    assert result.events
    assert np.array_equal(result.get(), 2 * X + 1)
    buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, X.nbytes)
    begin = cl.UserEvent(queue.context)
    done = axpy.enqueue(a=3.0, x=x.base_data, y=Y, out=buffer, wait_for=[begin])
    assert done.command_execution_status != cl.command_execution_status.COMPLETE
    begin.set_status(cl.command_execution_status.COMPLETE)
    out = np.empty_like(X)
    cl.enqueue_copy(queue, out, buffer, wait_for=[done])
    assert np.array_equal(out, 3 * X + 1)


def test_kernels_after_each_other_on_any_queue(load, queue):
    total, out_of_order = load(SUM), cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    results = [total(x=on_device(queue, k * X), queue=cl.CommandQueue(queue.context, properties=out_of_order))
               for k in range(8)]  # fmt: skip
    assert [float(r.get()) for r in results] == [k * 2016.0 for k in range(8)]


def test_large_inputs_are_kept_until_the_kernels_have_read_them(load, queue):
    n = 1 << 21  # so many bytes are memory of the host, on CPUs
    double = load(parse_program(f"program double(x: [f32]{n}) = mapGlb(0, fun e => e * 2.0, x)"))
    x, begin, out = np.ones(n, np.float32), cl.UserEvent(queue.context), cl_array.empty(queue, n, np.float32)
    done = double.enqueue(x=x, out=out, wait_for=[begin])
    others = [np.zeros(n, np.float32) for _ in range(8)]
    begin.set_status(cl.command_execution_status.COMPLETE)
    done.wait()
    assert (out.get() == 2).all()
    assert not any(o.any() for o in others)


def test_tuples_and_flags(load, queue):
    pairs, x, i = load(PAIRS), np.arange(8, dtype=np.float32), np.arange(8, dtype=np.int32)
    first, second = pairs(up=True, ps=(x, i))
    assert (first.tolist(), second.tolist()) == ((i + 1).tolist(), (2 * x).tolist())
    out = cl_array.empty(queue, 8, np.int32), np.empty(8, np.float32)
    assert pairs(up=False, ps=(on_device(queue, x), i), out=out) is out
    assert (out[0].get().tolist(), out[1].tolist()) == (i.tolist(), (2 * x).tolist())


@pytest.mark.parametrize(("element", "fits", "beyond"), [("u8", 255, -1), ("i32", -3, 2**40), ("f16", 7, 1e6)])
def test_numbers_are_of_the_types_that_hold_them(load, element, fits, beyond):
    shifted = load(parse_program(f"program shifted(k: {element}, x: [{element}]4) = mapGlb(0, fun v => v + k, x)"))
    x = np.zeros(4, NUMPY_TYPES[element])
    assert shifted(k=fits, x=x).tolist() == [fits] * 4
    with pytest.raises(InputProblem, match=f"the input k: {beyond} is beyond the range of {element}"):
        shifted(k=beyond, x=x)


def test_results_are_the_arrays_that_were_made(load, queue, monkeypatch):
    pairs = load(PAIRS)
    monkeypatch.setattr(cl_array.Array, "reshape", None)  # it makes another array, which takes longer than a launch
    first, _ = pairs(up=True, ps=(on_device(queue, X[:8]), on_device(queue, np.arange(8, dtype=np.int32))))
    assert first.get().tolist() == list(range(1, 9))


def test_inputs_with_the_names_of_parameters_are_given_in_a_mapping(load):
    text = "program scaled(sizes: [f32]N, out: f32) where N = 64 = mapGlb(0, fun x => out * x, sizes)"
    scaled = load(parse_program(text))
    message = r"inputs of scaled have names of other parameters: give them in a mapping, \{'out': …, 'sizes': …\}"
    with pytest.raises(InputProblem, match=message):
        scaled(sizes=X, out=2.0)
    assert np.array_equal(scaled({"sizes": X, "out": 2.0}), 2 * X)


def test_open_sizes_are_those_of_the_arrays(load, queue):
    axpy = load(AXPY, is_open=True)
    for n in (5, 64, 5):
        assert np.array_equal(axpy(a=2.0, x=on_device(queue, X[:n]), y=Y[:n]).get(), 2 * X[:n] + 1)
    with pytest.raises(SizeProblem, match="needs a value for the size N"):
        axpy(a=2.0, x=on_device(queue, X).base_data, y=on_device(queue, Y).base_data)
    buffers = {name: on_device(queue, array).base_data for name, array in (("x", X), ("y", Y))}
    assert np.array_equal(axpy(buffers, a=2.0, sizes={"N": 7}).get(), 2 * X[:7] + 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": X[:-1]}, r"the input x must have the shape \(64,\), got the shape \(63,\)"),
        ({"x": X.astype(np.float64)}, r"the input x must have elements of type float32 \(f32\), got float64"),
        ({"x": 3.0}, r"the input x must have the shape \(64,\)"),
        ({"b": X}, "axpy uses no input 'b'; it uses x, y, a"),
        ({"a": "2"}, "the input a must have elements of type float32"),
        ({"out": np.empty(63, np.float32)}, r"the result must have the shape \(64,\)"),
        ({"out": np.empty(128, np.float32)[::2]}, "the result must go to a writeable array of NumPy, row by row"),
        ({"out": [0.0] * 64}, "the result must go to a writeable array"),
    ],
)
def test_what_does_not_fit(load, change, message):
    axpy = load(AXPY)
    with pytest.raises(InputProblem, match=message):
        axpy(**{"a": 2.0, "x": X, "y": Y, **change})


def test_what_does_not_fit_on_the_device(load, queue):
    axpy, x = load(AXPY), on_device(queue, np.concatenate([X, X]))
    for wrong, message in (
        (x, r"the input x must have the shape \(64,\), got the shape \(128,\)"),
        (x[64:], "the input x must be a whole array, row by row: copy it"),
        (x[::2], "the input x must be a whole array"),
        (on_device(queue, X.astype(np.int32)), "must have elements of type float32"),
        (cl.Buffer(queue.context, cl.mem_flags.READ_ONLY, 8), "needs a buffer of 256 bytes, got one of 8"),
    ):
        with pytest.raises(InputProblem, match=message):
            axpy(a=2.0, x=wrong, y=Y)
    with pytest.raises(InputProblem, match="the result must lie on the device, not in a ndarray"):
        axpy.enqueue(a=2.0, x=X, y=Y, out=np.empty_like(X))
    with pytest.raises(InputProblem, match=r"axpy takes its inputs by name, as \w+=…, or in a mapping"):
        axpy(X)
    with pytest.raises(InputProblem, match="load takes a pyopencl"):
        LoadedKernel(axpy.plan, queue.context)
    with pytest.raises(InputProblem, match="the input y of axpy is missing"):
        axpy(a=2.0, x=X)


def test_a_queue_whose_context_is_gone_is_told(queue):
    class Orphan(cl.CommandQueue):
        @property
        def context(self):
            raise cl.LogicError("clRetainContext failed: INVALID_CONTEXT")

    with pytest.raises(InputProblem, match="keep it in a variable as long as the queue"):
        LoadedKernel(compile_program(specialise(AXPY), POCL), Orphan(queue.context))
