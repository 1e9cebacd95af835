"""What functions see of arrays under vmap, shard_map, scan and grad, and which of them are only traced."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import TYPE_CHECKING

from codemods import formulas, operations, terms
from codemods.evaluate import containers, iteration
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.terms import Int
from codemods.values import Array, ListRef, Mesh, Opaque, Quantized, Spec, Transformed, Value, as_int, describe

if TYPE_CHECKING:
    from codemods.evaluate.arguments import Arguments
    from codemods.evaluate.machine import Machine


def call_transformed(machine: Machine, callee: Transformed, arguments: Arguments) -> Value:
    """Call a transformed function with what it sees of these arguments; what comes out of it is not followed, but for vmap."""
    from codemods.evaluate.calls import call

    options = dict(callee.options)
    name = callee.transformation
    if name == "make_jaxpr":
        call_traced(machine, callee.function, arguments)
        return machine.unknown(arguments.text, "a jaxpr is not followed", arguments.node, pure=True)
    match name:
        case "vmap":
            inside = _under_vmap(machine, options.get("in_axes", 0), arguments)
        case "shard_map":
            inside = _under_shard_map(machine, options, arguments)
        case "grad":
            inside = arguments
        case _:
            inside = _unseen(machine, name, arguments)
    result = call(machine, callee.function, inside)
    size = _mapped_size(arguments, options) if name == "vmap" else None
    if isinstance(result, Array) and size is not None:
        return replace(result, shape=(size, *result.shape), contents=None)
    text = ast.unparse(arguments.node)[:60] if arguments.node is not None else name
    return machine.unknown(text, f"the result of `{name}` is not followed", arguments.node, pure=True)


def call_traced(machine: Machine, function: Value, arguments: Arguments) -> Value:
    """Call a function with what stands for its arguments: no kernel in it is lowered for a TPU."""
    from codemods.evaluate.calls import call

    machine.tracing += 1
    try:
        return call(machine, function, arguments)
    finally:
        machine.tracing -= 1


def _unseen(machine: Machine, name: str, arguments: Arguments) -> Arguments:
    """Return arguments of which nothing is known inside."""
    positional = tuple(_hidden(machine, value, name, arguments) for value in arguments.positional)
    keywords = {key: _hidden(machine, value, name, arguments) for key, value in arguments.keywords.items()}
    return replace(arguments, positional=positional, keywords=keywords)


def _hidden(machine: Machine, value: Value, name: str, arguments: Arguments) -> Opaque:
    inside = machine.unknown(describe(value), f"inside `{name}` it has another shape than outside", arguments.node)
    return replace(inside, reason=value.reason, dtype=value.dtype) if isinstance(value, Opaque) else inside


# vmap, scan and map


def _under_vmap(machine: Machine, in_axes: Value, arguments: Arguments) -> Arguments:
    """Each argument loses the axis that `in_axes` names; None leaves it whole."""
    count = len(arguments.positional)
    if in_axes is None or isinstance(in_axes, int):
        axes: tuple[Value, ...] = (in_axes,) * count
    else:
        try:
            axes = iteration.elements(machine, in_axes)
        except Unmodelled:
            return _unseen(machine, "vmap", arguments)
    if len(axes) != count:
        return _unseen(machine, "vmap", arguments)
    positional = tuple(
        value if axis is None else _without_axis(machine, value, axis, arguments)
        for value, axis in zip(arguments.positional, axes, strict=True)
    )
    keywords = {key: _without_axis(machine, value, 0, arguments) for key, value in arguments.keywords.items()}
    return replace(arguments, positional=positional, keywords=keywords)


def _without_axis(machine: Machine, value: Value, axis: Value, arguments: Arguments) -> Value:
    match value:
        case Array(shape) if isinstance(axis, int) and -len(shape) <= axis < len(shape):
            kept = list(shape)
            del kept[axis]
            return replace(value, shape=tuple(kept), contents=None)
        case Quantized(weight, scales):
            parts = [_without_axis(machine, part, axis, arguments) for part in (weight, scales)]
            return (
                Quantized(*parts)
                if all(isinstance(part, Array) for part in parts)
                else _hidden(machine, value, "vmap", arguments)
            )
        case tuple():
            return tuple(_without_axis(machine, part, axis, arguments) for part in value)
        case _:
            return _hidden(machine, value, "vmap", arguments)


def _mapped_size(arguments: Arguments, options: dict[str, Value]) -> Int | None:
    first = arguments.positional[0] if arguments.positional else None
    plain = options.get("in_axes", 0) == 0 and options.get("out_axes", 0) == 0
    return first.shape[0] if plain and isinstance(first, Array) and first.shape else None


def one_of(machine: Machine, values: Value, node: ast.expr | None) -> Value:
    """Return what one step of a scan sees of the values that are scanned: each array without its first axis."""
    match values:
        case None:
            return None
        case Array(shape) if shape:
            return replace(values, shape=shape[1:], contents=None)
        case tuple():
            return tuple(one_of(machine, value, node) for value in values)
        case ListRef():
            return containers.make_list(machine, [one_of(machine, each, node) for each in iteration.elements(machine, values)])
        case _:
            return machine.unknown(describe(values), "what a step sees of it is not known", node)


def any_round(machine: Machine, carry: Value, node: ast.expr | None) -> Value:
    """Return what a loop of JAX carries into any round: arrays of the same shape and dtype, and unknown elements."""
    match carry:
        case None:
            return None
        case Array():
            return replace(carry, contents=None)
        case Quantized(weight, scales):
            return Quantized(replace(weight, contents=None), replace(scales, contents=None))
        case tuple():
            return tuple(any_round(machine, part, node) for part in carry)
        case ListRef():
            return containers.make_list(machine, [any_round(machine, each, node) for each in iteration.elements(machine, carry)])
        case _:
            return machine.unknown(describe(carry), "a loop changes it", node)


# shard_map


def _under_shard_map(machine: Machine, options: dict[str, Value], arguments: Arguments) -> Arguments:
    """Each array shrinks to the shard that its spec leaves on one device."""
    mesh, specs = options.get("mesh"), options.get("in_specs")
    count = len(arguments.positional)
    if isinstance(specs, Spec):
        parts: tuple[Value, ...] = (specs,) * count
    else:
        try:
            parts = iteration.elements(machine, specs)
        except Unmodelled:
            return _unseen(machine, "shard_map", arguments)
    if len(parts) != count or arguments.keywords or arguments.spread:
        return _unseen(machine, "shard_map", arguments)
    shards = (_shard(machine, value, spec, mesh, arguments) for value, spec in zip(arguments.positional, parts, strict=True))
    return replace(arguments, positional=tuple(shards))


def _shard(machine: Machine, value: Value, spec: Value, mesh: Value, arguments: Arguments) -> Value:
    """Return one device's part of an argument; None as its spec leaves it whole."""
    if spec is None or (isinstance(spec, Spec) and all(part is None for part in spec.parts)):
        return value
    if isinstance(value, Quantized):
        parts = [_shard(machine, part, spec, mesh, arguments) for part in (value.weight, value.scales)]
        if all(isinstance(part, Array) for part in parts):
            return Quantized(*parts)
    if isinstance(value, tuple):
        inner = spec if isinstance(spec, tuple) and len(spec) == len(value) else (spec,) * len(value)
        return tuple(_shard(machine, *pair, mesh, arguments) for pair in zip(value, inner, strict=True))
    if not isinstance(value, Array) or not isinstance(spec, Spec) or len(spec.parts) > len(value.shape):
        return _hidden(machine, value, "shard_map", arguments)
    shape = list(value.shape)
    for index, part in enumerate(spec.parts):
        if part is not None:
            shape[index] = _part_of(machine, shape[index], part, mesh)
    return replace(value, shape=tuple(shape), contents=None)


def _part_of(machine: Machine, size: Int, part: Value, mesh: Value) -> Int:
    """Divide a size by those of the mesh axes; shard_map refuses a remainder."""
    for name in part if isinstance(part, tuple) else (part,):
        by = _axis_size(machine, mesh, name)
        if by == 0:
            raise Dies
        exact = formulas.both(formulas.at_most(1, by), formulas.equal(operations.mod(size, by), 0))
        assumed = machine.state.assume(exact, branch=False)
        if assumed is None:
            raise Dies
        machine.state = assumed
        size = operations.floordiv(size, by)
    return size


def _axis_size(machine: Machine, mesh: Value, name: Value) -> Int:
    """Return the size of a mesh axis; of an unknown mesh, an unknown that is the same each time."""
    match mesh:
        case Mesh(axes) if name in dict(axes) and (size := as_int(dict(axes)[name])) is not None:
            return size
        case Opaque():
            found = mesh.shape.item(name)
        case _:
            found = Opaque(
                ("mesh axis", str(name)), f"the size of mesh axis {name!r}", machine.reason("the mesh is not known"), 1
            )
    return terms.of(replace(found, at_least=1).symbol())
