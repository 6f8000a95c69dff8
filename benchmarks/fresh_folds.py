"""Forty more folds, with the types and the ranges of their inputs.

They were written from the page of the language alone, when all before were settled: 25 that can be taken apart, and 15
that look as if they could, and cannot. 22 of the 25 were recognised then.
"""

from __future__ import annotations

#  name, inputs, fold

PARALLEL = (
    (
        "shift register",
        "xs: [u32]16",
        "reduceSeq(fun (s, x) => bit_xor(bit_xor(shift_right(s, 1), select(bit_and(s, 1) == 1, 3988292384u32, "
        "0u32)), x), 1u32, xs)",
    ),
    (
        "CRC-16 by bits",
        "xs: [u32]16 in 0..2",
        "reduceSeq(fun (c, x) => let top = bit_and(bit_xor(shift_right(c, 15), x), 1) in let moved = "
        "bit_and(shift_left(c, 1), 65535) in if top == 1 then bit_xor(moved, 4129) else moved, 65535u32, xs)",
    ),
    (
        "depth with a floor, and the deepest",
        "xs: [i32]16 in -3..4",
        "reduceSeq(fun ((d, deepest), x) => let e = max(d + x, 0) in (e, max(deepest, e)), (0, 0), xs)",
    ),
    (
        "branch predictor of two bits",
        "xs: [i32]16 in 0..2",
        "reduceSeq(fun ((c, miss), x) => (if x == 1 then min(c + 1, 3) else max(c - 1, 0), miss + (if (c >= "
        "2) == (x == 1) then 0 else 1)), (1, 0), xs)",
    ),
    (
        "second largest of distinct",
        "xs: [i32]16 in -1000000..1000000",
        "reduceSeq(fun ((a, b), x) => if x > a then (x, a) else (if x < a && x > b then (a, x) else (a, b)), "
        "(-2147483648, -2147483648), xs)",
    ),
    (
        "range as a tuple",
        "xs: [f32]16",
        "let (low, high) = reduceSeq(fun ((low, high), x) => (if x < low then x else low, if x > high then x "
        "else high), (inf, -inf), xs) in high - low",
    ),
    (
        "identifiers in a text",
        "text: [i32]16 in 32..128",
        "reduceSeq(fun ((s, n), c) => let letter = (c >= 65 && c <= 90) || (c >= 97 && c <= 122) || c == 95 "
        "in let digit = c >= 48 && c <= 57 in let t = (if s == 0 then (if letter then 1 else (if digit then 2 "
        "else 0)) else (if s == 1 then (if letter || digit then 1 else 0) else (if letter || digit then 2 "
        "else 0))) in (t, n + (if t == 1 && s != 1 then 1 else 0)), (0, 0), text)",
    ),
    (
        "Viterbi, three states",
        "xs: [f32]16",
        "reduceSeq(fun ((a, b, c), x) => (max(max(a - 0.1, b - 2.3), c - 3.0) - x * x, max(max(a - 2.3, b - "
        "0.1), c - 2.3) - (x - 1.0) * (x - 1.0), max(max(a - 3.0, b - 2.3), c - 0.1) - (x + 1.0) * (x + "
        "1.0)), (0.0, -1.0, -2.0), xs)",
    ),
    (
        "smoothing with missing values",
        "xs: [f32]16 in -0.2..1",
        "scanSeq(fun (s, x) => if x < 0.0 then s else s * 0.9 + 0.1 * x, 0.0, xs)",
    ),
    (
        "account with interest and a floor",
        "xs: [f32]16 in -1..0.9",
        "scanSeq(fun (b, x) => max(b * 1.0001 + x, -5.0), 0.0, xs)",
    ),
    (
        "longest staircase",
        "xs: [i32]16 in 0..1000",
        "reduceSeq(fun ((prev, n, best), x) => let m = (if x > prev then n + 1 else 1) in (x, m, max(best, "
        "m)), (1000000, 0, 0), xs)",
    ),
    (
        "longest alternating run",
        "xs: [f32]16",
        "let (up, n, best) = reduceSeq(fun ((up, n, best), x) => let m = (if (x > 0.0) != up then n + 1 else "
        "1) in (x > 0.0, m, max(best, m)), (true, 0, 0), xs) in (n, best)",
    ),
    (
        "two kinds of brackets, one deep",
        "text: [i32]16 in 38..96",
        "scanSeq(fun (s, c) => let opens = c == 40 || c == 91 in let closes = c == 41 || c == 93 in if s == "
        "0 then (if c == 40 then 1 else (if c == 91 then 2 else (if closes then 3 else 0))) else (if s == 1 "
        "then (if c == 41 then 0 else (if opens || c == 93 then 3 else 1)) else (if s == 2 then (if c == 93 "
        "then 0 else (if opens || c == 41 then 3 else 2)) else 3)), 0, text)",
    ),
    (
        "Gray code",
        "xs: [u8]16",
        "scanSeq(fun (s, x) => bit_xor(s, bit_xor(x, shift_right(x, 1))), 0u8, xs)",
    ),
    (
        "two parities",
        "xs: [f32]16",
        "reduceSeq(fun ((p, q), x) => (p != (x > 0.25), q != (p && x > -0.5)), (false, true), xs)",
    ),
    (
        "log-sum-exp, online",
        "xs: [f32]16 in -20..20",
        "reduceSeq(fun ((m, s), x) => let n = max(m, x) in (n, s * exp(m - n) + exp(x - n)), (-1000.0, 0.0), "
        "xs)",
    ),
    (
        "mean and squares by Welford, in f64",
        "xs: [f64]16 in 0..3",
        "reduceSeq(fun ((n, mean, m2), x) => let k = n + 1.0 in let d = x - mean in let next = mean + d / k "
        "in (k, next, m2 + d * (x - next)), (0.0, 0.0, 0.0), xs)",
    ),
    (
        "continuants",
        "xs: [i32]16 in 1..9",
        "reduceSeq(fun ((a, b, c, d), x) => (a * x + b, a, c * x + d, c), (1, 0, 0, 1), xs)",
    ),
    (
        "polynomial modulo a prime",
        "xs: [u8]16",
        "reduceSeq(fun (s, x) => (s * 31u32 + to_u32(x)) % 1009u32, 7u32, xs)",
    ),
    (
        "largest sum that starts anew by flags",
        "xs: [f32]16, fs: [i32]16 in 0..50",
        "reduceSeq(fun ((s, best), (x, f)) => let t = (if f == 0 then x else s + x) in (t, max(best, t)), "
        "(0.0, -inf), zip(xs, fs))",
    ),
    (
        "last of the largest whole numbers",
        "xs: [i32]16 in 0..5000",
        "reduceSeq(fun ((m, k), (x, i)) => if x >= m then (x, i) else (m, k), (-1, -1), zip(xs, generate(16, "
        "fun i => i)))",
    ),
    (
        "sum that is clipped by choices",
        "xs: [f32]16",
        "reduceSeq(fun (s, x) => let t = s + x in if t > 3.0 then 3.0 else (if t < -2.0 then -2.0 else t), "
        "0.0, xs)",
    ),
    (
        "run lengths",
        "xs: [i32]16 in 0..3",
        "reduceSeq(fun ((prev, runs, n), x) => if x == prev then (prev, runs, n + 1) else (x, runs + 1, 1), "
        "(-1, 0, 0), xs)",
    ),
    (
        "segment with one element left out",
        "xs: [f32]16",
        "let (keep, gone, best) = reduceSeq(fun ((keep, gone, best), x) => let k = max(keep + x, x) in let g "
        "= max(keep, gone + x) in (k, g, max(best, max(k, g))), (-inf, -inf, -inf), xs) in best",
    ),
    (
        "two machines, one after the other",
        "ps: [f32]16 in 0..1, qs: [f32]16 in 0..1",
        "reduceSeq(fun ((a, b), (p, q)) => let s = a + p in (s, max(s, b) + q), (0.0, 0.0), zip(ps, qs))",
    ),
)

SEQUENTIAL = (
    (
        "logistic map",
        "xs: [f32]16 in 0..0.1",
        "reduceSeq(fun (s, x) => 2.8 * s * (1.0 - s) + 0.1 * x, 0.5, xs)",
    ),
    (
        "half a square",
        "xs: [f32]16 in 0..0.4",
        "reduceSeq(fun (s, x) => 0.5 * s * s + x, 0.0, xs)",
    ),
    (
        "one by a square",
        "xs: [f32]16 in 0..1",
        "reduceSeq(fun (s, x) => x / (1.0 + s * s), 0.0, xs)",
    ),
    (
        "roots of sums",
        "xs: [f32]16 in 0..1",
        "reduceSeq(fun (s, x) => sqrt(abs(s) + x), 1.0, xs)",
    ),
    (
        "product of two components",
        "xs: [f32]16",
        "reduceSeq(fun ((a, b), x) => (0.5 * a * b + 0.5 * x, 0.5 * (a - b)), (0.5, 0.5), xs)",
    ),
    (
        "overdraft that is refused",
        "xs: [i32]16 in -100..100",
        "reduceSeq(fun (s, x) => if s + x < 0 then s else s + x, 0, xs)",
    ),
    (
        "up or down at a threshold",
        "xs: [f64]16 in 0..1",
        "reduceSeq(fun (s, x) => if s > 0.5 then s - x else s + x, 0.0, xs)",
    ),
    (
        "halves and triples",
        "xs: [i32]16 in 0..5",
        "reduceSeq(fun (s, x) => if s % 2 == 0 then s / 2 + x else 3 * s + 1, 27, xs)",
    ),
    (
        "sine of a sum",
        "xs: [f32]16",
        "reduceSeq(fun (s, x) => 0.7 * sin(s + x), 0.0, xs)",
    ),
    (
        "distance, of f64",
        "xs: [f64]16 in 0..1",
        "reduceSeq(fun (s, x) => abs(s - x), 0.0, xs)",
    ),
    (
        "exclusive or, and sum",
        "xs: [u32]16",
        "reduceSeq(fun (s, x) => bit_xor(s, shift_left(s, 13)) + x, 1u32, xs)",
    ),
    (
        "bins that are filled",
        "xs: [f64]16 in 0..0.7",
        "reduceSeq(fun ((bins, full), x) => if full + x > 1.0 then (bins + 1, x) else (bins, full + x), (1, "
        "0.0), xs)",
    ),
    (
        "FNV-1a",
        "xs: [u8]16",
        "reduceSeq(fun (s, x) => bit_xor(s, to_u32(x)) * 16777619u32, 2166136261u32, xs)",
    ),
    (
        "square root by Newton",
        "xs: [f32]16 in 1..2",
        "reduceSeq(fun (s, x) => 0.5 * (s + x / s), 1.0, xs)",
    ),
    (
        "squares modulo a prime",
        "xs: [u32]16 in 0..1000",
        "reduceSeq(fun (s, x) => (s * s + x) % 100003u32, 5u32, xs)",
    ),
)
