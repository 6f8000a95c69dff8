"""More folds as users write them, as reductions whose elements may have another type than the accumulator.

They were written from the page of the language after the first table was complete, without sight of what recognises
them. Whole numbers that wrap around in between, before a remainder or a clamp, are among those that cannot be taken
apart, and so is a compensated sum, which adds up what rounding loses in its own order.
"""

from __future__ import annotations

#  name, operator, initial value, array
PARALLEL = (
    ("larger, chosen", "fun (a, b) => if a > b then a else b", "-inf", "xs"),
    (
        "last of the largest",
        "fun ((v, i), (w, j)) => if w >= v then (w, j) else (v, i)",
        "(-inf, 0)",
        "zip(xs, generate(16, id))",
    ),
    (
        "least pair, component by component",
        "fun ((a, b), (c, d)) => if c < a || (c == a && d < b) then (c, d) else (a, b)",
        "(inf, inf)",
        "zip(xs, ys)",
    ),
    ("complex product", "fun ((a, b), (c, d)) => (a * c - b * d, a * d + b * c)", "(1.0, 0.0)", "zip(xs, ys)"),
    (
        "product of quaternions",
        "fun ((a1, b1, c1, d1), (a2, b2, c2, d2)) => (a1 * a2 - b1 * b2 - c1 * c2 - d1 * d2, a1 * b2 + b1 * "
        "a2 + c1 * d2 - d1 * c2, a1 * c2 - b1 * d2 + c1 * a2 + d1 * b2, a1 * d2 + b1 * c2 - c1 * b2 + d1 * "
        "a2)",
        "(1.0, 0.0, 0.0, 0.0)",
        "map(fun q => (0.5, get(0, q), get(1, q), 0.5), zip(xs, ys))",
    ),
    ("affine maps", "fun ((a, b), (c, d)) => (a * c, b * c + d)", "(1.0, 0.0)", "zip(xs, ys)"),
    (
        "mean and squares by Welford",
        "fun ((n, mean, m2), x) => let k = n + 1.0 in let delta = x - mean in let mu = mean + delta / k in "
        "(k, mu, m2 + delta * (x - mu))",
        "(0.0, 0.0, 0.0)",
        "xs",
    ),
    (
        "largest segment and where",
        "fun ((best, first, last, here, start), (x, i)) => let fresh = here < 0.0 in let h = (if fresh then "
        "x else here + x) in let s = (if fresh then i else start) in if h > best then (h, s, i, h, s) else "
        "(best, first, last, h, s)",
        "(-inf, 0, 0, 0.0, 0)",
        "zip(xs, generate(16, id))",
    ),
    (
        "balanced brackets",
        "fun ((depth, ok), c) => let d = (if c == 0 then depth + 1 else (if c == 1 then depth - 1 else "
        "depth)) in (d, ok && d >= 0)",
        "(0, true)",
        "is",
    ),
    ("rolling hash", "fun ((h, p), c) => (h + c * p, p * 31)", "(0, 1)", "is"),
    (
        "longest run of equals",
        "fun ((best, run, last), x) => let r = (if x == last then run + 1 else 1) in (max(best, r), r, x)",
        "(0, 0, -1)",
        "is",
    ),
    (
        "two largest",
        "fun ((a, b), x) => if x > a then (x, a) else (if x > b then (a, x) else (a, b))",
        "(-inf, -inf)",
        "xs",
    ),
    (
        "two largest and where",
        "fun ((a, i, b, j), (x, k)) => if x > a then (x, k, a, i) else (if x > b then (a, i, x, k) else (a, "
        "i, b, j))",
        "(-inf, -1, -inf, -1)",
        "zip(xs, generate(16, id))",
    ),
    ("bounded queue", "fun (q, (a, s)) => min(max(q + a - s, 0.0), 16.0)", "0.0", "zip(xs, ys)"),
    (
        "CRC, bit by bit",
        "fun (crc, b) => let c = bit_xor(crc, b) in if bit_and(c, 1u32) == 1u32 then bit_xor(shift_right(c, "
        "1u32), 3988292384u32) else shift_right(c, 1u32)",
        "4294967295u32",
        "map(to_u32, is)",
    ),
    (
        "rotated and mixed",
        "fun (h, c) => bit_xor(bit_or(shift_left(h, 5), bit_and(shift_right(h, 27), 31)), c)",
        "0",
        "is",
    ),
    ("Möbius maps", "fun (s, (a, b)) => (a * s + 1.0) / (s + b)", "1.0", "zip(xs, ys)"),
    (
        "biquad, direct form 1",
        "fun ((x1, x2, y1, y2), x) => let y = 0.2 * x + 0.4 * x1 + 0.2 * x2 + 0.5 * y1 - 0.3 * y2 in (x, x1, "
        "y, y1)",
        "(0.0, 0.0, 0.0, 0.0)",
        "xs",
    ),
    ("exponential average and its weight", "fun ((m, w), x) => (0.999 * m + 0.001 * x, 0.999 * w)", "(0.0, 1.0)", "xs"),
    (
        "PID controller",
        "fun ((total, previous, out), (want, have)) => let e = want - have in let t = total + 0.01 * e in "
        "(t, e, 0.5 * e + 0.1 * t + 0.2 * (e - previous) / 0.01)",
        "(0.0, 0.0, 0.0)",
        "zip(xs, ys)",
    ),
    (
        "largest drawdown",
        "fun ((peak, worst), x) => let p = max(peak, x) in (p, max(worst, p - x))",
        "(-inf, 0.0)",
        "xs",
    ),
    (
        "softmax, online",
        "fun ((m, s), x) => let n = max(m, x) in (n, s * exp(m - n) + exp(x - n))",
        "(-inf, 0.0)",
        "xs",
    ),
    ("house robber", "fun ((take, skip), x) => (skip + x, max(skip, take))", "(-inf, 0.0)", "xs"),
    ("is it sorted", "fun ((ok, last), x) => (ok && last <= x, x)", "(true, -inf)", "xs"),
    (
        "segment sums, merged",
        "fun ((sum, pre, suf, best), (t, p, s, b)) => (sum + t, max(pre, sum + p), max(s, t + suf), "
        "max(max(best, b), suf + p))",
        "(0.0, -inf, -inf, -inf)",
        "map(fun x => (x, x, x, x), xs)",
    ),
    (
        "segmented sum",
        "fun ((s, f), (x, g)) => if g then (x, true) else (s + x, f)",
        "(0.0, false)",
        "map(fun (x, y) => (x, y > 0.99), zip(xs, ys))",
    ),
    ("digits of a text", "fun (v, c) => if c >= 48 && c <= 57 then v * 10 + (c - 48) else v", "0", "is"),
    ("median of three", "fun (s, (x, y)) => max(min(x, y), min(max(x, y), s))", "0.0", "zip(xs, ys)"),
    ("changes of sign", "fun ((n, last), x) => (if x * last < 0.0 then n + 1 else n, x)", "(0, 0.0)", "xs"),
    (
        "box around points",
        "fun ((a, b, c, d), (x, y)) => (if x < a then x else a, if x > b then x else b, if y < c then y else "
        "c, if y > d then y else d)",
        "(inf, -inf, inf, -inf)",
        "zip(xs, ys)",
    ),
    ("buy and sell once", "fun ((low, best), x) => let l = min(low, x) in (l, max(best, x - l))", "(inf, 0.0)", "xs"),
    (
        "longest rising run, branched",
        "fun ((best, run, last), x) => if x > last then (max(best, run + 1), run + 1, x) else (max(best, 1), "
        "1, x)",
        "(0, 0, -inf)",
        "xs",
    ),
    ("buy and sell often", "fun ((hold, cash), p) => (max(hold, cash - p), max(cash, hold + p))", "(-inf, 0.0)", "xs"),
    (
        "first high water",
        "fun ((first, seen), (x, i)) => if !seen && x > 0.999 then (i, true) else (first, seen)",
        "(-1, false)",
        "zip(xs, generate(16, id))",
    ),
    ("largest step", "fun ((m, last), x) => (max(m, abs(x - last)), x)", "(0.0, 0.0)", "xs"),
    ("Schmitt trigger", "fun (on, x) => if on then x > -0.3 else x > 0.3", "false", "xs"),
    ("hash of bytes modulo a prime", "fun (h, c) => (h * 31 + to_i32(c)) % 65521", "7", "map(to_u8, is)"),
    (
        "Adler-32 of bytes",
        "fun ((a, b), c) => let s = (a + to_u32(c)) % 65521u32 in (s, (b + s) % 65521u32)",
        "(1u32, 0u32)",
        "map(to_u8, is)",
    ),
    (
        "hash of Rabin and Karp",
        "fun ((h, p), c) => ((h + to_i32(c) * p) % 65521, p * 31 % 65521)",
        "(0, 1)",
        "map(to_u8, is)",
    ),
    (
        "hashes of words",
        "fun (h, (c, x)) => if x < 0.0 then to_i32(c) else (h * 31 + to_i32(c)) % 65521",
        "0",
        "zip(map(to_u8, is), xs)",
    ),
    ("level in small steps", "fun (s, x) => max(0, min(s + x % 16, 255))", "100", "is"),
    (
        "switch without bounces",
        "fun ((c, on), x) => let k = (if x > 0.2 then min(c + 1, 3) else max(c - 1, 0)) in (k, if k == 3 then "
        "true else (if k == 0 then false else on))",
        "(0, false)",
        "xs",
    ),
)  # fmt: skip
SEQUENTIAL = (
    ("compensated sum", "fun ((s, c), x) => let y = x - c in let t = s + y in (t, (t - s) - y)", "(0.0, 0.0)", "xs"),
    ("saturating byte", "fun (s, x) => min(s + x, 255)", "0", "is"),
    ("clamped byte", "fun (s, x) => max(0, min(s + x, 255))", "100", "is"),
    ("hash modulo a prime", "fun (h, c) => (h * 31 + c) % 65521", "7", "is"),
    ("Adler-32", "fun ((a, b), c) => let s = (a + c) % 65521 in (s, (b + s) % 65521)", "(1, 0)", "is"),
    ("clock", "fun (s, x) => (s + x) % 12", "0", "is"),
    ("carry of decimals", "fun (c, (i, x)) => (i % 10 + to_i32(x) + c) / 10", "0", "zip(is, xs)"),
    ("FNV-1a of bytes", "fun (h, c) => bit_xor(h, to_u32(c)) * 16777619u32", "2166136261u32", "map(to_u8, is)"),
    ("quadratic map", "fun (s, x) => x - s * s", "0.1", "xs"),
    ("square root, step by step", "fun (s, x) => 0.5 * (s + x / s)", "1.0", "xs"),
    ("phase accumulator", "fun (s, x) => if s + x > 1.0 then s + x - 1.0 else s + x", "0.0", "xs"),
    ("Collatz", "fun (s, x) => if s % 2 == 0 then s / 2 + x else 3 * s + x", "7", "is"),
    ("exponential decay of itself", "fun (s, x) => exp(-s) + x", "0.0", "xs"),
    ("two that multiply", "fun ((a, b), x) => (0.5 * a * b + x, b + 0.001 * a)", "(0.0, 1.0)", "xs"),
    (
        "leaky spikes",
        "fun ((v, n), x) => let u = 0.9 * v + x in if u > 1.0 then (0.0, n + 1) else (u, n)",
        "(0.0, 0)",
        "xs",
    ),
    ("soft clip", "fun (s, x) => tanh(s + x)", "0.0", "xs"),
    ("halved and cut off", "fun (s, x) => floor(0.5 * s) + x", "0.0", "xs"),
    ("shifted congruences", "fun (s, x) => bit_xor(s * 1103515245 + 12345, shift_right(s, 16)) + x", "1", "is"),
    ("square of a mean", "fun (a, b) => (a + b) * (a + b) / 4.0", "0.0", "xs"),
    ("absolute difference", "fun (a, b) => if a > b then a - b else b - a", "0.0", "xs"),
    (
        "rotation, normalised",
        "fun ((a, b), (c, d)) => let re = a * c - b * d in let im = a * d + b * c in let n = sqrt(re * re + "
        "im * im) in (re / n, im / n)",
        "(1.0, 0.0)",
        "zip(xs, ys)",
    ),
    ("nested fractions", "fun (s, x) => x / (1.0 + s * s)", "0.0", "xs"),
    ("integer average", "fun (s, x) => (3 * s + x) / 4", "0", "is"),
    ("adaptive rate", "fun ((m, r), x) => let e = x - m in (m + r * e, 0.9 * r + 0.1 * abs(e))", "(0.0, 0.1)", "xs"),
    (
        "controller without windup",
        "fun ((i, out), e) => let u = out + 0.1 * i in (if u > 1.0 then i else i + e, 0.5 * u + e)",
        "(0.0, 0.0)",
        "xs",
    ),
)  # fmt: skip
