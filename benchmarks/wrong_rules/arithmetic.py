"""Wrong laws of scalar arithmetic: for negative, extreme and overflowing integers, rounding, NaN and signed zeros."""

from __future__ import annotations

from lift_egraph.dsl import Ex, Ty, call1, call2, call3, eq, rewrite, rule, ty

F32, I32 = Ty.scalar("f32"), Ty.scalar("i32")


@rule("a · (b / c) = (a · b) / c on i32")
def quotient_of_product(a: Ex, b: Ex, c: Ex):
    yield rewrite(call2("mul", a, call2("div", b, c))).to(call2("div", call2("mul", a, b), c), eq(I32).to(ty(a)))


@rule("(a + b) - b = a on f32")
def sum_less_summand(a: Ex, b: Ex):
    yield rewrite(call2("sub", call2("add", a, b), b)).to(a, eq(F32).to(ty(a)))


@rule("(a · b) / b = a on i32")
def product_by_factor(a: Ex, b: Ex):
    yield rewrite(call2("div", call2("mul", a, b), b)).to(a, eq(I32).to(ty(a)))


@rule("abs (-x) = x")
def absolute_of_negative(x: Ex):
    yield rewrite(call1("abs", call1("neg", x))).to(x)


@rule("min a (max a b) = b")
def absorption_of_the_other(a: Ex, b: Ex):
    yield rewrite(call2("min", a, call2("max", a, b))).to(b)


@rule("max a b = select (a > b) a b")
def greatest_by_choice(a: Ex, b: Ex):
    yield rewrite(call2("max", a, b)).to(call3("select", call2("gt", a, b), a, b))


@rule("a <= b = not (b < a)")
def not_greater(a: Ex, b: Ex):
    yield rewrite(call2("le", a, b)).to(call1("not", call2("lt", b, a)))


@rule("a - b = -(b - a)")
def difference_turned(a: Ex, b: Ex):
    yield rewrite(call2("sub", a, b)).to(call1("neg", call2("sub", b, a)))


@rule("floor (a + b) = floor a + floor b")
def floor_of_sum(a: Ex, b: Ex):
    yield rewrite(call1("floor", call2("add", a, b))).to(call2("add", call1("floor", a), call1("floor", b)))


@rule("sqrt a · sqrt b = sqrt (a · b)")
def root_of_product(a: Ex, b: Ex):
    yield rewrite(call2("mul", call1("sqrt", a), call1("sqrt", b))).to(call1("sqrt", call2("mul", a, b)))


@rule("exp (log x) = x")
def exponential_of_logarithm(x: Ex):
    yield rewrite(call1("exp", call1("log", x))).to(x)


@rule("(a + b) mod c = (a mod c + b mod c) mod c")
def remainder_of_sum(a: Ex, b: Ex, c: Ex):
    yield rewrite(call2("mod", call2("add", a, b), c)).to(
        call2("mod", call2("add", call2("mod", a, c), call2("mod", b, c)), c)
    )


@rule("select c a b = select (not c) a b")
def choice_turned(c: Ex, a: Ex, b: Ex):
    yield rewrite(call3("select", c, a, b)).to(call3("select", call1("not", c), a, b))


@rule("abs (a + b) = abs a + abs b")
def absolute_of_sum(a: Ex, b: Ex):
    yield rewrite(call1("abs", call2("add", a, b))).to(call2("add", call1("abs", a), call1("abs", b)))


@rule("min a b + max a b = a + b")
def least_and_greatest(a: Ex, b: Ex):
    yield rewrite(call2("add", call2("min", a, b), call2("max", a, b))).to(call2("add", a, b))


@rule("to_i32 (to_f32 x) = x,  x an i32")
def there_and_back(x: Ex):
    yield rewrite(call1("to_i32", call1("to_f32", x))).to(x, eq(I32).to(ty(x)))


@rule("abs (x · x) = x · x on i32")
def squares_are_positive(x: Ex):
    yield rewrite(call1("abs", call2("mul", x, x))).to(call2("mul", x, x), eq(I32).to(ty(x)))


@rule("ceil x = floor x + 1")
def ceiling_above_floor(x: Ex):
    yield rewrite(call1("ceil", x)).to(call2("add", call1("floor", x), Ex.literal("1.0", F32)), eq(F32).to(ty(x)))


@rule("a / b = a · (1 / b) on f32")
def division_by_reciprocal(a: Ex, b: Ex):
    yield rewrite(call2("div", a, b)).to(call2("mul", a, call2("div", Ex.literal("1.0", F32), b)), eq(F32).to(ty(a)))


@rule("not (a and b) = not a and not b")
def de_morgan_half(a: Ex, b: Ex):
    yield rewrite(call1("not", call2("and", a, b))).to(call2("and", call1("not", a), call1("not", b)))


@rule("a < b and b < c = a < c")
def the_middle_is_lost(a: Ex, b: Ex, c: Ex):
    yield rewrite(call2("and", call2("lt", a, b), call2("lt", b, c))).to(call2("lt", a, c))


@rule("a · (b + c) = a · b + a · c on f32, bit for bit")
def distribution_unflagged(a: Ex, b: Ex, c: Ex):
    yield rewrite(call2("mul", a, call2("add", b, c))).to(
        call2("add", call2("mul", a, b), call2("mul", a, c)), eq(F32).to(ty(a))
    )


@rule("to_i32 (floor x) = to_i32 x")
def truncation_as_floor(x: Ex):
    yield rewrite(call1("to_i32", call1("floor", x))).to(call1("to_i32", x))


@rule("abs x >= 0 = true on i32")
def absolute_is_positive(x: Ex):
    yield rewrite(call2("ge", call1("abs", x), Ex.literal("0", I32))).to(Ex.literal("true", Ty.scalar("bool")))
