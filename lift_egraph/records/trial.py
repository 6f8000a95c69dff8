"""The process that tries the candidates of a bundle, one after the other. Bundles take this module along."""

from __future__ import annotations

import json
import os
import platform
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lift_egraph.errors import DeviceProblem, LiftError
from lift_egraph.records.opened import Bundle, leaf_name

REPEATS, LEAST_SECONDS, MOST_SECONDS, CUT_OFF, MOST_RUNS = 5, 0.05, 2.0, 4.0, 10_000
MOST_SAMPLES = 50
GUARD, GUARD_PATTERN = 4096, 0xAB  # bytes behind each buffer that kernels write
UNWRITTEN = 0xFF, 0x54  # bytes of what no kernel wrote, in one run and in another
ELEMENTS = {
    "f32": "float32", "f64": "float64", "f16": "float16", "i32": "int32", "i64": "int64", "u32": "uint32",
    "u8": "uint8", "bool": "bool",
}  # fmt: skip
PASSED = {"bool": "int32", "f16": "float32"}  # kernels have no arguments of these types


def work(path: str, device: str) -> None:
    """Measure the candidates whose numbers come as a line of JSON; each that begins and ends is told as another."""
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a driver prints must not mix with it

    def say(**message: Any) -> None:
        channel.write(json.dumps(message) + "\n")
        channel.flush()

    try:
        worker = _Worker(Bundle(Path(path)), device)
    except (LiftError, ImportError) as problem:
        say(problem=str(problem))
        return
    say(device=worker.facts, versions=worker.versions)
    todo = json.loads(sys.stdin.readline())

    def watch() -> None:
        sys.stdin.read()  # the parent is gone
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    for number in todo:
        say(begin=number)
        say(end=number, outcome=worker.outcome(number))
    channel.close()
    os._exit(0)  # some drivers crash at their end


class _Failed(Exception):
    """What became of a candidate, in a word, and why."""


class _Worker:
    def __init__(self, bundle: Bundle, text: str) -> None:
        import numpy as np
        import pyopencl as cl

        from lift_egraph.codegen.running.facts import facts_of
        from lift_egraph.codegen.running.host_cpu import name_host_cpu

        self.cl, self.np, self.bundle = cl, np, bundle
        found: list[tuple[str, Any, Any]] = []
        with suppress(cl.LogicError):  # there is no platform
            for p, known in enumerate(cl.get_platforms()):
                with suppress(cl.Error):  # a platform without a device
                    found += [(f"{p}:{d}", known, device) for d, device in enumerate(known.get_devices())]
        index, known, device = _chosen(found, text)
        self.facts = asdict(facts_of(index, known, device))
        self.versions = {"pyopencl": cl.VERSION_TEXT, "numpy": np.__version__, "python": platform.python_version()}
        name_host_cpu(device)
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context, properties=cl.command_queue_properties.PROFILING_ENABLE)
        self._inputs: dict[tuple[str, str], Any] = {}
        self._best = float("inf")

    def outcome(self, number: int) -> dict[str, Any]:
        """What becomes of a candidate."""
        times: list[float] = []
        try:
            validity, reason = "valid", self._measured(self.bundle.launch(number), self.bundle.source(number), times)
        except _Failed as failed:
            validity, reason = failed.args
        except self.cl.Error as problem:
            validity, reason = "refused", str(problem)
        valid = validity == "valid"
        median = float(self.np.median(times)) if valid else None
        samples = [times[i * len(times) // MOST_SAMPLES] for i in range(MOST_SAMPLES)] if len(times) > 50 else times
        if median is not None:
            self._best = min(self._best, median)
        facts = {"samples": samples if valid else [], "runs": len(times) if valid else 0, "median": median}
        return {"validity": validity, "reason": reason, **facts}

    def _measured(self, launch: dict[str, Any], source: str, times: list[float]) -> str:
        """How its results were compared; its times are added to the list."""
        try:
            program = self.cl.Program(self.context, source).build(launch["build_options"])
        except self.cl.Error as problem:
            raise _Failed("failed to build", str(problem)[:2000]) from None
        messages = [f"on {kind}: {self._checked(launch, program, kind)}" for kind in self.bundle.head["kinds"]]
        buffers, run = self._prepared(launch, program, self.bundle.head["kinds"][-1])
        run()
        self.queue.finish()
        began = time.perf_counter()
        while True:
            events = run()
            self.queue.finish()
            times.append(1e-9 * sum(e.profile.end - e.profile.start for e in events))
            spent = time.perf_counter() - began
            enough = len(times) >= REPEATS and spent >= LEAST_SECONDS
            if enough or spent >= MOST_SECONDS or times[0] > CUT_OFF * self._best or len(times) >= MOST_RUNS:
                break
        self._check_guards(buffers)
        return "; ".join(messages)

    def _prepared(
        self, launch: dict[str, Any], program: Any, kind: str, byte: int = UNWRITTEN[0]
    ) -> tuple[dict[str, Any], Any]:
        """The buffers that the kernels write, by their names, full of a byte, and a function that runs all kernels."""
        cl, np = self.cl, self.np
        values: dict[str, Any] = {s["name"]: np.int32(s["value"]) for s in launch["sizes"]}
        for s in launch["scalars"]:
            value = self.bundle.array(f"inputs/{kind}/{leaf_name(s)}")
            values[s["name"]] = np.dtype(PASSED.get(s["element"], ELEMENTS[s["element"]])).type(value[()])
        written: dict[str, Any] = {}
        for b in launch["buffers"]:
            if b["role"] == "input":
                values[b["name"]] = self._input(kind, b)
                continue
            size = b["length"] * np.dtype(ELEMENTS[b["element"]]).itemsize
            made = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size + GUARD)
            pattern = np.full(size + GUARD, byte, np.uint8)
            pattern[size:] = GUARD_PATTERN
            cl.enqueue_copy(self.queue, made, pattern)
            written[b["name"]] = values[b["name"]] = made
        prepared: list[tuple[Any, Any, Any]] = []
        for k in launch["kernels"]:
            kernel = cl.Kernel(program, k["name"])
            kernel.set_args(*(values[a["name"]] for a in k["arguments"]))
            prepared.append((kernel, tuple(k["global_size"]), k["local_size"] and tuple(k["local_size"])))

        def run() -> list[Any]:
            return [cl.enqueue_nd_range_kernel(self.queue, *one) for one in prepared]

        return written, run

    def _input(self, kind: str, buffer: dict[str, Any]) -> Any:
        cl, np = self.cl, self.np
        key = kind, leaf_name(buffer)
        if key not in self._inputs:
            block = self.bundle.array(f"inputs/{kind}/{key[1]}").reshape(-1)
            array = np.resize(block, buffer["length"]) if block.size else block  # a large one repeats itself
            flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
            held = array if array.nbytes else np.zeros(8, np.uint8)
            self._inputs[key] = cl.Buffer(self.context, flags, hostbuf=np.ascontiguousarray(held))
        return self._inputs[key]

    def _check_guards(self, buffers: dict[str, Any]) -> None:
        np = self.np
        for name, buffer in buffers.items():
            zone = np.empty(GUARD, np.uint8)
            self.cl.enqueue_copy(self.queue, zone, buffer, src_offset=buffer.size - GUARD)
            if (zone != GUARD_PATTERN).any():
                raise _Failed("wrong", f"wrote outside: the memory behind the buffer {name} has changed")

    def _results(
        self, launch: dict[str, Any], program: Any, kind: str, byte: int
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The outputs of a run, by their names, and which elements hold the byte that was there before."""
        np = self.np
        buffers, run = self._prepared(launch, program, kind, byte)
        run()
        self.queue.finish()
        self._check_guards(buffers)
        results: dict[str, Any] = {}
        untouched: dict[str, Any] = {}
        for b in launch["buffers"]:
            if b["role"] == "output" and b["length"]:
                results[b["name"]] = result = np.empty(b["length"], ELEMENTS[b["element"]])
                self.cl.enqueue_copy(self.queue, result.view(np.uint8), buffers[b["name"]])
                untouched[b["name"]] = (result.view(np.uint8).reshape(result.size, -1) == byte).all(axis=1)
        return results, untouched

    def _checked(self, launch: dict[str, Any], program: Any, kind: str) -> str:
        """What was compared, of the results on one set of inputs."""
        from lift_egraph.codegen.running.comparing import element_errors

        np = self.np
        results, untouched = self._results(launch, program, kind, UNWRITTEN[0])
        if any(places.any() for places in untouched.values()):  # these may be results
            _, still = self._results(launch, program, kind, UNWRITTEN[1])
            for name, places in untouched.items():
                if count := int((places & still[name]).sum()):
                    raise _Failed("wrong", f"left {count} of {places.size} elements of {name} unwritten")
        compared = total = 0
        largest = 0.0
        for b in launch["buffers"]:
            if b["name"] not in results:
                continue
            result = results[b["name"]]
            positions, values, bounds = self.bundle.checks(kind, leaf_name(b))
            taken = result[positions]
            error, failed = element_errors(taken, values, bounds)
            if failed.any():
                at = int(failed.argmax())
                where = f"{b['name']}[{positions[at]}] is {taken[at]}, not {values[at]}"
                within = f" within {bounds[at]:.3g}" if bounds[at] else ""
                counts = f"{int(failed.sum())} of {failed.size} elements are wrong"
                raise _Failed("wrong", f"on {kind}: {where}{within}; {counts}")
            compared += int(np.isfinite(bounds).sum())
            total += result.size
            largest = max(largest, float(error.max(initial=0.0)))
        if total and not compared:
            raise _Failed("wrong", f"on {kind}: no element can be compared: none has a finite error bound")
        return f"{compared} of {total} elements within their error bounds (largest error {largest:.3g})"


def _chosen(found: list[tuple[str, Any, Any]], text: str) -> tuple[str, Any, Any]:
    """The device that a text means: an index, or a part of a name; without one PYOPENCL_CTX counts, then PoCL."""
    wanted = text or os.environ.get("PYOPENCL_CTX") or "Portable Computing Language"
    index = wanted if ":" in wanted else f"{wanted}:0"
    named = [d for d in found if wanted.lower() in f"{d[1].name} / {d[2].name}".lower()]
    chosen = [d for d in found if d[0] == index] + named + ([] if text else found)
    if not chosen:
        there = "; ".join(f"{i} {p.name.strip()} / {d.name.strip()}" for i, p, d in found) or "none"
        raise DeviceProblem(f"no OpenCL device fits {text!r}; there are {there}")
    return chosen[0]
