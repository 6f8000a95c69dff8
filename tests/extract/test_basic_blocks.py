"""Basic blocks: what stands in one, what it does, and which old values a new one depends on."""

from lift_egraph.codegen.c_ast import (
    Barrier,
    Block,
    Buffer,
    CExpr,
    For,
    Lane,
    Let,
    Load,
    Name,
    Operate,
    Pack,
    Statement,
    Store,
)
from lift_egraph.extract.basic_blocks import BasicBlock, block_of, blocks_in
from lift_egraph.language.ir import SEQ
from lift_egraph.language.nat import NatVar, nat
from lift_egraph.language.types import F32, Vector

XS, SUMS = Buffer("xs", "global", F32, (64,)), Buffer("sums", "private", F32, (4,))
FOUR = Vector(F32, 4)
I = NatVar("i", 0, 15)  # noqa: E741


def sum_of(a: CExpr, b: CExpr) -> Operate:
    return Operate("add", (a, b), F32)


def test_steps_of_an_unrolled_loop_are_one_block_that_barriers_and_loops_end():
    step = Block((Store(Load(SUMS, nat(0)), Load(XS, nat(I))),))
    loop = For(I, nat(16), SEQ, 1, (step, step, Barrier(("local",)), step))
    first, compound, last = blocks_in((step, step, loop, step)).parts
    assert isinstance(first, BasicBlock)
    assert isinstance(last, BasicBlock)
    assert [len(first.statements), len(last.statements)] == [2, 1]
    assert not isinstance(compound, BasicBlock)
    assert not compound.shares
    assert [isinstance(part, BasicBlock) for part in compound.parts] == [True, False, True]


def test_accesses_alike_are_one_with_the_numbers_in_their_indices_apart():
    reads = [Let(f"x{k}", Load(XS, 4 * nat(I) + k)) for k in range(4)]
    block = block_of([*reads, Let("y", Load(XS, 4 * nat(I), 4))])
    pairs = [access for access in block.accesses if isinstance(access, tuple) and len(access) == 2]
    assert [offset for _, offset in pairs] == [0, 1, 2, 3, 0]
    assert [reached.width for reached in dict(pairs)] == [1, 4]


def test_a_chain_goes_through_names_and_leaves_out_fused_products():
    old, other = Load(SUMS, nat(0)), Load(SUMS, nat(1))
    product = Operate("mul", (old, Name("x", F32)), F32)
    statements: list[Statement] = [
        Let("fused", sum_of(product, Name("x", F32))),
        Store(old, sum_of(Name("fused", F32), other)),
        Store(Load(SUMS, nat(2)), sum_of(old, other)),
    ]
    assert block_of(statements).chains == {"sums[0]": ["mul", "add"]}


def test_a_chain_begins_anew_where_a_place_gets_a_new_value_first():
    place = Load(SUMS, nat(0))
    update: Statement = Store(place, sum_of(place, Load(XS, nat(I))))
    anew, goes_on = block_of([Store(place, Load(XS, nat(0))), update]), block_of([update])
    assert anew.chains == goes_on.chains
    assert (anew.begun, goes_on.begun) == ({"sums[0]"}, set())


def test_a_computed_vector_whose_lanes_are_exchanged_is_computed_once_and_stands_in_the_text_for_each():
    made = Operate("add", (Name("a", FOUR), Name("b", FOUR)), FOUR)
    lanes = tuple(Lane(vector, nat(k)) for k in range(2) for vector in (made, Name("c", FOUR)))
    block = block_of([Let("d", Pack(lanes, FOUR))])
    assert block.shuffles == 1
    assert [operation.op for operation in block.operations] == ["add"]
    assert block.repeated is not None
    assert [operation.op for operation in block.repeated.operations] == ["add"]
