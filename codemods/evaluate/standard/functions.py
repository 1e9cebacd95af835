"""Functions that call the functions they are given: partial, jit, vmap, shard_map, cond."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codemods.evaluate.calls import Arguments, call, call_unknown
from codemods.evaluate.interpreted import Interpreted, interprets, text_of
from codemods.evaluate.library import Unmodelled
from codemods.values import Array, External, Partial, Transformed, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


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
    function = _function(arguments)
    return Partial(External("jax.jit"), (), ()) if function is None else function  # with options only: a decorator


def _function(arguments: Arguments) -> Value:
    """Return the function that is to be transformed, None where only options are given."""
    given = (arguments.keywords.get(name) for name in ("fun", "f", "func"))
    return arguments.positional[0] if arguments.positional else next((each for each in given if each is not None), None)


def _transforming(name: str) -> Interpreted:
    def transform(machine: Machine, arguments: Arguments) -> Value:
        function = _function(arguments)
        if function is None:
            return Partial(External(f"jax.{name}"), (), tuple(arguments.keywords.items()))
        return Transformed(name, function)

    return transform


for _name, _paths in {
    "vmap": ("jax.vmap", "torch.vmap", "equinox.filter_vmap"),
    "pmap": ("jax.pmap",),
    "grad": ("jax.grad", "jax.value_and_grad", "jax.jacfwd", "jax.jacrev"),
    "shard_map": ("jax.shard_map", "jax.experimental.shard_map.shard_map", "jax.sharding.shard_map"),
}.items():
    interprets(*_paths)(_transforming(_name))


@interprets("jax.eval_shape", "torchax.interop.call_jax", "torch_xla2.interop.call_jax")
def _call_with_the_rest(machine: Machine, arguments: Arguments) -> Value:
    return call(machine, arguments.positional[0], arguments.without_first())


@interprets("torch_xla.experimental.custom_kernel.trace_pallas")
def _trace_pallas(machine: Machine, arguments: Arguments) -> Value:
    rest = arguments.without_first()
    options = ("static_argnames", "static_argnums", "use_cache")
    kept = {name: value for name, value in rest.keywords.items() if name not in options}
    call(machine, arguments.positional[0], replace(rest, keywords=kept))
    return machine.unknown(text_of(arguments), "what tracing gives is not followed", arguments.node)


@interprets("jax.lax.cond")
def _cond(machine: Machine, arguments: Arguments) -> Value:
    if len(arguments.positional) < 3 or arguments.keywords:
        return call_unknown(machine, External("jax.lax.cond"), arguments)
    predicate, yes, no, *operands = arguments.positional
    condition = machine.truth(predicate) if not isinstance(predicate, Array) else machine.coin("the predicate holds")
    made = Arguments(tuple(operands), node=arguments.node)
    return machine.part(condition, (lambda: call(machine, yes, made), lambda: call(machine, no, made)))
