"""Functions of the standard library and of frameworks that call what they are given, or that need the machine.

Functions that only make or reshape arrays are models (`codemods.evaluate.library`).
"""

from __future__ import annotations

import ast
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from codemods import formulas, terms
from codemods.evaluate import containers, objects
from codemods.evaluate.calls import Arguments, call, call_unknown
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies, Leaves
from codemods.values import (
    Array,
    Class,
    DictRef,
    External,
    Filtered,
    Instance,
    ListRef,
    Opaque,
    Partial,
    Transformed,
    Value,
    as_int,
    is_constant,
)

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

Interpreted: TypeAlias = "Callable[[Machine, Arguments], Value]"

INTERPRETED: dict[str, Interpreted] = {}

TRANSPARENT = ("pytest.", "absl.testing.", "typing.", "unittest.", "functools.lru_cache", "functools.cache", "functools.wraps",
               "jax._src.test_util.", "hypothesis.", "contextlib.", "beartype.", "jaxtyping.", "shapecheck.", "torch.no_grad",
               "torch.inference_mode", "abc.", "atexit.")  # fmt: skip
"""Where decorators come from that leave a function's arguments and result as they are."""

_FAILURES = frozenset({"raises", "assertRaises", "assertRaisesRegex", "assertRaisesWithLiteralMatch", "suppress",
                       "assertRaisesWithPredicateMatch", "xfail", "expectedFailure"})  # fmt: skip


def interprets(*paths: str) -> Callable[[Interpreted], Interpreted]:
    """Register what a function does by its dotted paths."""

    def register(function: Interpreted) -> Interpreted:
        INTERPRETED.update(dict.fromkeys(paths, function))
        return function

    return register


def computes(*paths: str) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Register a function of the values of its positional arguments, none of which is a `Choice`."""

    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        def spread(machine: Machine, arguments: Arguments) -> Value:
            if arguments.keywords or arguments.spread:
                raise Unmodelled("a call with arguments that are not followed")
            return machine.spread(lambda *values: function(machine, *values), *arguments.positional, text=_text(arguments))

        interprets(*paths)(spread)
        return function

    return register


def _text(arguments: Arguments) -> str:
    return ast.unparse(arguments.node)[:60] if arguments.node is not None else "a call"


def is_failure_expected(machine: Machine, node: ast.expr) -> bool:
    """Say whether code under this context manager or decorator is expected to fail: `pytest.raises(...)`."""
    called = node.func if isinstance(node, ast.Call) else node
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in _FAILURES


# Numbers


def _integer(value: Value) -> terms.Int:
    number = as_int(value)
    if number is None:
        raise Unmodelled("it is not known to be an integer")
    return number


@computes("builtins.abs", "math.fabs")
def _abs(machine: Machine, value: Value) -> Value:
    return abs(value) if isinstance(value, float) else terms.absolute(_integer(value))


@computes("builtins.divmod")
def _divmod(machine: Machine, value: Value, divisor: Value) -> Value:
    a, b = _integer(value), _integer(divisor)
    if b == 0:
        raise Dies
    return terms.floordiv(a, b), terms.mod(a, b)


@computes("builtins.int", "operator.index")
def _int(machine: Machine, value: Value = 0, *base: Value) -> Value:
    if isinstance(value, str | float) and all(isinstance(each, int) for each in base):
        try:
            return int(value, *base)  # type: ignore[call-overload]
        except (ValueError, TypeError, OverflowError):
            raise Dies from None
    if isinstance(value, Opaque):
        return Opaque(("int", value.key), f"int({value.text})", value.reason)
    return _integer(value)


@computes("builtins.float")
def _float(machine: Machine, value: Value = 0.0) -> Value:
    if isinstance(value, int | float | str):
        try:
            return float(value)
        except (ValueError, OverflowError):
            raise Dies from None
    raise Unmodelled("an unknown float")


@computes("builtins.str", "builtins.repr")
def _str(machine: Machine, value: Value = "") -> Value:
    if isinstance(value, str | int):
        return str(value)
    raise Unmodelled("an unknown string")


@interprets("builtins.bool")
def _bool(machine: Machine, arguments: Arguments) -> Value:
    return machine.truth(arguments.positional[0]) if arguments.positional else False


@computes("math.gcd")
def _gcd(machine: Machine, *values: Value) -> Value:
    result: terms.Int = 0
    for value in values:
        result = terms.gcd(result, _integer(value)) if result != 0 else _integer(value)
    return abs(result) if isinstance(result, int) else result


@computes("math.ceil", "math.floor", "math.trunc", "builtins.round")
def _rounded(machine: Machine, value: Value) -> Value:
    if isinstance(value, float):
        raise Unmodelled("a rounded number")
    return _integer(value)


@computes("math.sqrt", "math.log2", "math.log", "math.exp")
def _real(machine: Machine, value: Value) -> Value:
    raise Unmodelled("a real number")


@computes("math.prod")
def _product(machine: Machine, values: Value) -> Value:
    result: terms.Int = 1
    for value in containers.elements(machine, values):
        result = terms.multiply(result, _integer(value))
    return result


@computes("builtins.pow")
def _pow(machine: Machine, base: Value, exponent: Value) -> Value:
    from codemods.evaluate.operators import binary

    return binary("**", base, exponent)


@computes("shapecheck.largest_divisor", "shapecheck.plan.largest_divisor")
def _largest_divisor(machine: Machine, value: Value, at_most: Value) -> Value:
    try:
        return terms.divisor(_integer(value), _integer(at_most))
    except ZeroDivisionError:
        raise Dies from None


@interprets("shapecheck.largest_divisor", "shapecheck.plan.largest_divisor")
def _largest_divisor_by_name(machine: Machine, arguments: Arguments) -> Value:
    given = dict(zip(("n", "at_most"), arguments.positional, strict=False)) | dict(arguments.keywords)
    if set(given) != {"n", "at_most"}:
        raise Unmodelled("its arguments are not followed")
    return machine.spread(lambda n, most: _largest_divisor(machine, n, most), given["n"], given["at_most"], text=_text(arguments))


@interprets("shapecheck.megacore_mode_for", "shapecheck.plan.megacore_mode_for")
def _megacore_mode_for(machine: Machine, arguments: Arguments) -> Value:
    given = dict(zip(("num_kv_heads", "batch_size"), arguments.positional, strict=False)) | dict(arguments.keywords)
    if not {"num_kv_heads", "batch_size"} <= set(given):
        raise Unmodelled("its arguments are not followed")
    two_cores = machine.coin("the device has two cores")

    def choose(heads: Value, batch: Value) -> Value:
        even = [formulas.equal(terms.mod(_integer(value), 2), 0) for value in (heads, batch)]
        return containers.first_of(
            machine, [(formulas.invert(two_cores), None), (even[0], "kv_head"), (even[1], "batch"), (True, None)]
        )

    return machine.spread(choose, given["num_kv_heads"], given["batch_size"], text=_text(arguments))


# Sequences


@computes("builtins.len")
def _len(machine: Machine, value: Value) -> Value:
    match value:
        case Array(shape) if shape:
            return shape[0]
        case Opaque():
            if machine.state.epoch == 0:  # nothing has changed since: an array's length is the size of its first axis
                size = value.attribute("shape").item(0)
                return replace(size, text=f"len({value.text})")
            return Opaque(("len", value.key, machine.state.epoch), f"len({value.text})", value.reason, 0)
        case DictRef() if (contents := machine.contents(value)) is not None:
            return len(contents)
        case range() | str() | bytes():
            return len(value)
        case _:
            return len(containers.elements(machine, value))


@computes("builtins.range")
def _range(machine: Machine, *bounds: Value) -> Value:
    if all(isinstance(bound, int) for bound in bounds):
        try:
            return range(*bounds)
        except (TypeError, ValueError):
            raise Dies from None
    raise Unmodelled("how far the range goes is not known")


@computes("builtins.tuple", "builtins.iter", "builtins.frozenset")
def _tuple(machine: Machine, value: Value = ()) -> Value:
    if isinstance(value, Opaque):
        return value
    return value if isinstance(value, Filtered) else containers.elements(machine, value)


@computes("builtins.list", "builtins.set", "collections.deque")
def _list(machine: Machine, value: Value = ()) -> Value:
    if isinstance(value, Opaque | Filtered):
        return value
    return containers.make_list(machine, containers.elements(machine, value))


@interprets("builtins.dict", "collections.OrderedDict", "types.SimpleNamespace")
def _dict(machine: Machine, arguments: Arguments) -> Value:
    items: list[tuple[Value, Value]] = []
    for value in arguments.positional:
        if isinstance(value, DictRef):
            contents = machine.contents(value)
            if contents is None:
                raise Unmodelled("the contents of the dict are not known")
            items += contents
        else:
            pairs = [containers.elements(machine, pair) for pair in containers.elements(machine, value)]
            items += [(pair[0], pair[1]) for pair in pairs]
    if arguments.spread:
        raise Unmodelled("what is spread into the dict is not known")
    return containers.make_dict(machine, [*items, *arguments.keywords.items()])


@computes("builtins.reversed")
def _reversed(machine: Machine, value: Value) -> Value:
    return containers.elements(machine, value)[::-1]


@interprets("builtins.sorted")
def _sorted(machine: Machine, arguments: Arguments) -> Value:
    parts = containers.elements(machine, arguments.positional[0])
    if "key" in arguments.keywords or not all(isinstance(part, int) for part in parts):
        raise Unmodelled("an order that is not followed")
    backwards = arguments.keywords.get("reverse", False)
    if not isinstance(backwards, bool):
        raise Unmodelled("an unknown order")
    return containers.make_list(machine, sorted(parts, reverse=backwards))


@interprets("builtins.zip")
def _zip(machine: Machine, arguments: Arguments) -> Value:
    return tuple(zip(*(containers.elements(machine, value) for value in arguments.positional), strict=False))


@interprets("builtins.enumerate")
def _enumerate(machine: Machine, arguments: Arguments) -> Value:
    start = arguments.keywords.get("start", arguments.positional[1] if len(arguments.positional) > 1 else 0)
    parts = containers.elements(machine, arguments.positional[0])
    return tuple((terms.add(_integer(start), index), part) for index, part in enumerate(parts))


@interprets("itertools.product")
def _cartesian(machine: Machine, arguments: Arguments) -> Value:
    repeat = arguments.keywords.get("repeat", 1)
    sides = [containers.elements(machine, value) for value in arguments.positional]
    if not isinstance(repeat, int) or math.prod(map(len, sides)) ** max(repeat, 0) > containers.MAX_ELEMENTS:
        raise Unmodelled("too many combinations")
    return tuple(itertools.product(*sides, repeat=repeat))


@interprets("itertools.chain")
def _chain(machine: Machine, arguments: Arguments) -> Value:
    return tuple(part for value in arguments.positional for part in containers.elements(machine, value))


@interprets("builtins.map")
def _map(machine: Machine, arguments: Arguments) -> Value:
    function, *iterated = arguments.positional
    rows = zip(*(containers.elements(machine, value) for value in iterated), strict=False)
    return tuple(call(machine, function, Arguments(tuple(row), node=arguments.node)) for row in rows)


@interprets("builtins.sum")
def _sum(machine: Machine, arguments: Arguments) -> Value:
    total: terms.Int = _integer(arguments.positional[1]) if len(arguments.positional) > 1 else 0

    def add(*values: Value) -> Value:
        result = total
        for value in values:
            result = terms.add(result, _integer(value))
        return result

    parts = containers.elements(machine, arguments.positional[0])
    return machine.spread(add, *parts, text=_text(arguments))


@interprets("builtins.any", "builtins.all")
def _quantified(machine: Machine, arguments: Arguments) -> Value:
    parts = [machine.truth(part) for part in containers.elements(machine, arguments.positional[0])]
    name = ast.unparse(arguments.node.func) if isinstance(arguments.node, ast.Call) else ""
    return formulas.either(*parts) if name == "any" else formulas.both(*parts)


def _extreme(name: str) -> Interpreted:
    backwards = name == "max"

    def pick(machine: Machine, *values: Value) -> Value:
        if not values:
            raise Dies
        if all(is_constant(value) for value in values):
            try:
                return max(values) if backwards else min(values)
            except TypeError:
                raise Dies from None
        fold = terms.maximum if backwards else terms.minimum
        result = _integer(values[0])
        for value in values[1:]:
            result = fold(result, _integer(value))
        return result

    def interpret(machine: Machine, arguments: Arguments) -> Value:
        if set(arguments.keywords) - {"default"} or arguments.spread:
            raise Unmodelled("a call with arguments that are not followed")
        values: Sequence[Value] = arguments.positional
        if len(values) == 1:
            if isinstance(values[0], Filtered):
                return _extreme_of_filtered(machine, values[0], arguments.keywords.get("default", Dies), backwards)
            values = containers.elements(machine, values[0])
            if not values and "default" in arguments.keywords:
                return arguments.keywords["default"]
        return machine.spread(lambda *each: pick(machine, *each), *values, text=_text(arguments))

    return interpret


def _extreme_of_filtered(machine: Machine, filtered: Filtered, default: Any, backwards: bool) -> Value:
    """The extreme of what passes a filter: the first, in order of size, whose condition holds."""
    if not all(isinstance(value, int) for _, value in filtered.elements):
        raise Unmodelled("the extreme of unknown elements")
    ordered = sorted(filtered.elements, key=lambda pair: pair[1], reverse=backwards)
    return containers.first_of(machine, ordered, default)


interprets("builtins.min")(_extreme("min"))
interprets("builtins.max")(_extreme("max"))


@interprets("builtins.next")
def _next(machine: Machine, arguments: Arguments) -> Value:
    source = arguments.positional[0]
    if isinstance(source, ListRef) and (contents := machine.contents(source)) is not None:
        source = Filtered(tuple((True, value) for value in contents))
    if not isinstance(source, Filtered):
        raise Unmodelled("the next of an unknown iterator")
    default = arguments.positional[1] if len(arguments.positional) > 1 else Dies
    return containers.first_of(machine, source.elements, default)


# Objects


@interprets("builtins.getattr")
def _getattr(machine: Machine, arguments: Arguments) -> Value:
    receiver, name, *default = arguments.positional
    if not isinstance(name, str) or arguments.node is None:
        raise Unmodelled("an attribute with an unknown name")
    node = arguments.node
    value = machine.spread(lambda each: objects.attribute(machine, each, name, node), receiver, text=_text(arguments))
    if default and isinstance(value, Opaque | External):
        raise Unmodelled("whether the attribute is there is not known")
    return value


@interprets("builtins.isinstance")
def _isinstance(machine: Machine, arguments: Arguments) -> Value:
    value, kinds = arguments.positional
    plain = {"int": int, "float": float, "str": str, "bool": bool, "tuple": tuple}
    wanted = kinds if isinstance(kinds, tuple) else (kinds,)
    names = [kind.path.removeprefix("builtins.") if isinstance(kind, External) else "" for kind in wanted]
    if all(name in plain for name in names) and (is_constant(value) or isinstance(value, tuple)):
        return isinstance(value, tuple(plain[name] for name in names))
    if isinstance(value, Instance) and all(isinstance(kind, Class) for kind in wanted):
        return any(kind in (value.cls, *value.cls.bases) for kind in wanted)
    return machine.coin(_text(arguments))


@interprets("builtins.super")
def _super(machine: Machine, arguments: Arguments) -> Value:
    """`super()` is the object seen as one of the class above."""
    scope = machine.frame.scope
    owner = machine.program.scopes[scope.parent] if scope.parent is not None else scope
    receiver = next((machine.state.cells.get((scope.id, name)) for name in ("self", "cls")), None)
    if isinstance(receiver, Instance):
        lineage = [cls for cls in objects.lineage(receiver.cls) if cls.scope == owner.id]
        above = [base for cls in lineage for base in cls.bases if isinstance(base, Class)]
        if above:
            return Instance(receiver.id, above[0])
    return machine.unknown("super()", "the class above is not in the scanned source", arguments.node, pure=True)


@interprets("dataclasses.replace", "copy.replace", "attrs.evolve")
def _replace(machine: Machine, arguments: Arguments) -> Value:
    receiver = arguments.positional[0]
    if not isinstance(receiver, Instance) or arguments.spread:
        raise Unmodelled("a changed copy of an unknown object")
    return objects.copy_with(machine, receiver, dict(arguments.keywords))


@interprets("copy.copy", "copy.deepcopy")
def _copy(machine: Machine, arguments: Arguments) -> Value:
    match arguments.positional[0]:
        case ListRef() as value:
            return containers.make_list(machine, containers.elements(machine, value))
        case Instance() as value:
            return objects.copy_with(machine, value, {})
        case DictRef():
            raise Unmodelled("a copied dict")
        case value:
            return value


@interprets("typing.cast")
def _cast(machine: Machine, arguments: Arguments) -> Value:
    return arguments.positional[1]


@interprets("builtins.print", "warnings.warn", "logging.info", "logging.warning", "jax.debug.print", "builtins.id")
def _nothing(machine: Machine, arguments: Arguments) -> Value:
    return None


@interprets("sys.exit", "builtins.exit", "builtins.quit", "os._exit", "pytest.fail")
def _exit(machine: Machine, arguments: Arguments) -> Value:
    raise Dies


@interprets("pytest.skip", "pytest.xfail", "pytest.importorskip")
def _skip(machine: Machine, arguments: Arguments) -> Value:
    if isinstance(arguments.node, ast.Call) and ast.unparse(arguments.node.func).endswith("importorskip"):
        name = arguments.positional[0] if arguments.positional else None
        return External(name) if isinstance(name, str) else machine.unknown("a module", "its name is not known")
    raise Leaves


# Functions that call functions


@interprets("functools.partial", "jax.tree_util.Partial", "dataclasses.field", "attrs.field", "attr.ib", "pydantic.Field")
def _partial(machine: Machine, arguments: Arguments) -> Value:
    if arguments.spread:
        raise Unmodelled("what is spread into the partial is not known")
    if not arguments.positional:  # a field of a dataclass, kept with its keywords
        return Partial(External("dataclasses.field"), (), tuple(arguments.keywords.items()))
    rest = arguments.without_first()
    return Partial(arguments.positional[0], rest.positional, tuple(rest.keywords.items()), tuple(rest.nodes.items()))


@interprets(
    "jax.jit", "jax.pjit", "jax.experimental.pjit.pjit", "jax.checkpoint", "jax.remat", "jax.ad_checkpoint.checkpoint",
    "jax.named_call", "jax.custom_vjp", "jax.custom_jvp", "torch.compile", "torch.jit.script", "flax.nnx.jit",
    "equinox.filter_jit", "jax.make_jaxpr", "jax.export.export", "jax.block_until_ready", "flax.linen.jit", "chex.chexify",
    "shapecheck.contract.contract",
)  # fmt: skip
def _transparent(machine: Machine, arguments: Arguments) -> Value:
    """What these give sees its arguments as the function itself does."""
    if arguments.positional:
        return arguments.positional[0]
    function = arguments.keywords.get("fun", arguments.keywords.get("f"))
    name = ast.unparse(arguments.node.func) if isinstance(arguments.node, ast.Call) else "jit"
    return Partial(External("jax.jit"), (), (), ()) if function is None and name else function


def _transforming(name: str) -> Interpreted:
    def transform(machine: Machine, arguments: Arguments) -> Value:
        if not arguments.positional:
            if "f" in arguments.keywords or "fun" in arguments.keywords:
                return Transformed(name, arguments.keywords.get("f", arguments.keywords.get("fun")))
            return Partial(External(f"jax.{name}"), (), tuple(arguments.keywords.items()))
        return Transformed(name, arguments.positional[0])

    return transform


for _name, _paths in {
    "vmap": ("jax.vmap", "torch.vmap", "equinox.filter_vmap"),
    "pmap": ("jax.pmap",),
    "shard_map": ("jax.shard_map", "jax.experimental.shard_map.shard_map", "jax.sharding.shard_map"),
}.items():
    interprets(*_paths)(_transforming(_name))


@interprets("jax.grad", "jax.value_and_grad", "jax.linearize", "jax.jacfwd", "jax.jacrev")
def _gradient(machine: Machine, arguments: Arguments) -> Value:
    function = arguments.positional[0] if arguments.positional else None
    if function is None:
        raise Unmodelled("what is differentiated is not known")
    return Partial(External("jax.eval_shape"), (function,), ())


@interprets("jax.eval_shape", "torchax.interop.call_jax", "torch_xla.experimental.custom_kernel.trace_pallas",
            "torch_xla2.interop.call_jax")  # fmt: skip
def _called_with_the_rest(machine: Machine, arguments: Arguments) -> Value:
    function, rest = arguments.positional[0], arguments.without_first()
    kept = {name: value for name, value in rest.keywords.items() if name not in ("static_argnames", "static_argnums", "use_cache")}
    result = call(machine, function, replace(rest, keywords=kept))
    path = ast.unparse(arguments.node.func) if isinstance(arguments.node, ast.Call) else ""
    return result if path.endswith(("eval_shape", "call_jax")) else machine.unknown(_text(arguments), "it is not followed")


@interprets("jax.lax.cond")
def _cond(machine: Machine, arguments: Arguments) -> Value:
    if len(arguments.positional) < 3 or arguments.keywords:
        return call_unknown(machine, External("jax.lax.cond"), arguments)
    predicate, yes, no, *operands = arguments.positional
    condition = machine.truth(predicate) if not isinstance(predicate, Array) else machine.coin("the predicate holds")
    made = Arguments(tuple(operands), node=arguments.node)
    return machine.part(condition, (lambda: call(machine, yes, made), lambda: call(machine, no, made)))


