"""Rules about the elements of arrays that are traced: judged on the host, by the program that computes them.

Under `checkify` a broken rule is its error, with the words of a `ContractError`. Elsewhere the program fails while it runs, and
what JAX raises holds these words. Which of the two it is, is not known before the program is functionalized or lowered: hence
a primitive.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shapecheck.measure import Arrays

if TYPE_CHECKING:
    from shapecheck.values import Look


def judged_when_run(look: Look, arrays: Arrays, carrier: str) -> Any:
    """Return the array called `carrier`, which there is only in a program that judges the rules."""
    jax: Any = import_module("jax")  # it is partly untyped, here and below
    jnp = jax.numpy
    still = jax.tree.map(jax.lax.stop_gradient, dict(arrays))
    numbers = look.numbers(jnp, still)
    described = jax.eval_shape(dict, still)
    plan = _Plan(replace(look, shapes=described), tuple(len(each) for each in numbers))
    leaves, structure = jax.tree.flatten(arrays[carrier])
    leaves[-1] = _primitive().bind(leaves[-1], *(jnp.asarray(number) for each in numbers for number in each), plan=plan)
    return jax.tree.unflatten(structure, leaves)


class _Plan:
    """What the primitive is given besides arrays: how to judge the numbers, and how many there are of each measure."""

    def __init__(self, look: Look, counts: tuple[int, ...]) -> None:
        self.look = look
        self.counts = counts

    def grouped(self, numbers: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        groups: list[tuple[Any, ...]] = []
        for count in self.counts:
            groups.append(numbers[:count])
            numbers = numbers[count:]
        return groups

    def judge(self, *numbers: Any) -> Any:
        import numpy as np

        self.look.judge(self.grouped(numbers))
        return np.int32(0)

    def holds(self, *numbers: Any) -> Any:
        import numpy as np

        return np.bool_(not self.look.violations(self.grouped(numbers)))


class _Told(str):
    """The message of a check of `checkify`, which formats it with the numbers once these are known."""

    plan: _Plan

    def format(self, *numbers: Any, **_: Any) -> str:
        look = self.plan.look
        return str(look.error(look.violations(self.plan.grouped(numbers))))


@functools.cache
def _primitive() -> Any:
    jax: Any = import_module("jax")
    jnp = jax.numpy
    checkify: Any = import_module("jax.experimental.checkify")
    checkify_internals: Any = import_module("jax._src.checkify")  # there is no public way to say what it makes of a primitive
    ad, batching, mlir = (import_module(f"jax.interpreters.{each}") for each in ("ad", "batching", "mlir"))

    def on_the_host(plan: _Plan, carrier: Any, *numbers: Any) -> Any:
        failed = jax.pure_callback(plan.judge, jax.ShapeDtypeStruct((), jnp.int32), *numbers)
        return jnp.where(failed == 0, carrier, jnp.zeros_like(carrier))

    def under_checkify(plan: _Plan, carrier: Any, *numbers: Any) -> Any:
        told = _Told(plan.look.contract.name)
        told.plan = plan
        holds = jax.pure_callback(plan.holds, jax.ShapeDtypeStruct((), jnp.bool_), *numbers)
        checkify.check(holds, told, *numbers)
        return carrier

    primitive: Any = import_module("jax.extend.core").Primitive("shapecheck_values")

    def judged(carrier: Any, *numbers: Any, plan: _Plan) -> Any:
        plan.judge(*numbers)
        return carrier

    def abstract(carrier: Any, *numbers: Any, plan: _Plan) -> Any:
        return carrier

    def lowered(*operands: Any, plan: _Plan) -> Any:
        return on_the_host(plan, *operands)

    def batched(operands: Any, axes: Any, *, plan: _Plan) -> Any:
        size = next(each.shape[axis] for each, axis in zip(operands, axes, strict=True) if axis is not None)
        spread = [
            jnp.broadcast_to(each, (size, *each.shape)) if axis is None else jnp.moveaxis(each, axis, 0)
            for each, axis in zip(operands, axes, strict=True)
        ]

        def one(each: tuple[Any, ...]) -> Any:
            return primitive.bind(*each, plan=plan)

        return jax.lax.map(one, tuple(spread)), 0

    def differentiated(primals: Any, tangents: Any, *, plan: _Plan) -> Any:
        return primitive.bind(*primals, plan=plan), tangents[0]

    def functionalized(*operands: Any, plan: _Plan) -> Any:
        at = next(index for index, each in enumerate(operands) if isinstance(each, checkify.Error))
        context, (error, enabled, *arrays) = operands[:at], operands[at:]  # since JAX 0.11, a context comes first
        jaxpr = jax.make_jaxpr(functools.partial(under_checkify, plan))(*arrays)
        return _only_result(checkify_internals.checkify_jaxpr(*context, jaxpr, enabled, error, *arrays))

    primitive.def_impl(judged)
    primitive.def_abstract_eval(abstract)
    mlir.register_lowering(primitive, mlir.lower_fun(lowered, multiple_results=False))
    batching.primitive_batchers[primitive] = batched
    ad.primitive_jvps[primitive] = differentiated
    checkify_internals.error_checks[primitive] = functionalized
    return primitive


def _only_result(outcome: Any) -> Any:
    error, (result,) = outcome
    return error, result
