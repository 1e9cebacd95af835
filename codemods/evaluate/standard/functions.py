"""Functions that call the functions they are given: partial, jit, vmap, shard_map, cond."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codemods.evaluate.arguments import Arguments
from codemods.evaluate.calls import call
from codemods.evaluate.externals import call_unknown
from codemods.evaluate.interpreted import Interpreted, interprets, text_of, unfollowed
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.transforms import any_round, call_traced, one_of
from codemods.values import Array, External, Opaque, Partial, Transformed, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


@interprets("functools.partial", "jax.tree_util.Partial")
def _partial(machine: Machine, arguments: Arguments) -> Value:
    if arguments.spread:
        raise Unmodelled("what is spread into the partial is not known")
    rest = arguments.without_first()
    return Partial(arguments.positional[0], rest.positional, tuple(rest.keywords.items()), tuple(rest.nodes.items()))


@interprets(
    "jax.jit", "jax.pjit", "jax.experimental.pjit.pjit", "jax.checkpoint", "jax.remat", "jax.ad_checkpoint.checkpoint",
    "jax.named_call", "jax.custom_vjp", "jax.custom_jvp", "torch.compile", "torch.jit.script", "flax.nnx.jit",
    "equinox.filter_jit", "jax.export.export", "jax.block_until_ready", "flax.linen.jit", "chex.chexify",
)  # fmt: skip
def _transparent(machine: Machine, arguments: Arguments) -> Value:
    """What these give sees its arguments as the function itself does."""
    function = _function(arguments)
    return Partial(External("jax.jit"), (), ()) if function is None else function  # with options only: a decorator


_FUNCTION = ("fun", "f", "func")


def _function(arguments: Arguments) -> Value:
    """Return the function that is to be transformed, None where only options are given."""
    given = (arguments.keywords.get(name) for name in _FUNCTION)
    return arguments.positional[0] if arguments.positional else next((each for each in given if each is not None), None)


def _transforming(name: str, *options: str) -> Interpreted:
    """A transformation whose options may follow the function by position, in this order."""

    def transform(machine: Machine, arguments: Arguments) -> Value:
        function = _function(arguments)
        given = dict(zip(options, arguments.positional[1:], strict=False)) | dict(arguments.keywords)
        if function is None or arguments.spread:
            return Partial(External(f"jax.{name}"), (), tuple(given.items()))
        kept = tuple((option, value) for option, value in given.items() if option in options)
        return Transformed(name, function, kept)

    return transform


interprets("jax.vmap", "torch.vmap", "equinox.filter_vmap")(_transforming("vmap", "in_axes", "out_axes"))
interprets("jax.pmap")(_transforming("pmap"))
interprets("jax.make_jaxpr")(_transforming("make_jaxpr"))
interprets("jax.grad", "jax.value_and_grad", "jax.jacfwd", "jax.jacrev")(_transforming("grad"))
interprets("jax.shard_map", "jax.experimental.shard_map.shard_map")(_transforming("shard_map", "mesh", "in_specs", "out_specs"))


@interprets("jax.eval_shape", "equinox.filter_eval_shape", "flax.nnx.eval_shape")
def _eval_shape(machine: Machine, arguments: Arguments) -> Value:
    function = _function(arguments)
    if function is None:
        raise Unmodelled(unfollowed(arguments))
    keywords = {name: value for name, value in arguments.keywords.items() if arguments.positional or name not in _FUNCTION}
    return call_traced(machine, function, replace(arguments.without_first(), keywords=keywords))


@interprets("torchax.interop.call_jax", "torch_xla2.interop.call_jax")
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


@interprets("jax.lax.scan")
def _scan(machine: Machine, arguments: Arguments) -> Value:
    """One step stands for any: the carry keeps its shapes, and each of `xs` loses its first axis."""
    given = _given(arguments, "f", "init", "xs")
    carry = any_round(machine, given["init"], arguments.node)
    call(machine, given["f"], Arguments((carry, one_of(machine, given.get("xs"), arguments.node)), node=arguments.node))
    stacked = machine.unknown(text_of(arguments), "what a scan stacks is not followed", arguments.node, pure=True)
    return carry, stacked


@interprets("jax.lax.map")
def _lax_map(machine: Machine, arguments: Arguments) -> Value:
    given = _given(arguments, "f", "xs")
    call(machine, given["f"], Arguments((one_of(machine, given["xs"], arguments.node),), node=arguments.node))
    return machine.unknown(text_of(arguments), "what a map stacks is not followed", arguments.node, pure=True)


@interprets("jax.lax.while_loop")
def _lax_while_loop(machine: Machine, arguments: Arguments) -> Value:
    given = _given(arguments, "cond_fun", "body_fun", "init_val")
    carry = any_round(machine, given["init_val"], arguments.node)
    for name in ("cond_fun", "body_fun"):
        call(machine, given[name], Arguments((carry,), node=arguments.node))
    return carry


@interprets("jax.lax.fori_loop")
def _fori_loop(machine: Machine, arguments: Arguments) -> Value:
    given = _given(arguments, "lower", "upper", "body_fun", "init_val")
    carry = any_round(machine, given["init_val"], arguments.node)
    step = machine.unknown("the step", "it counts the rounds of a loop", arguments.node)
    call(machine, given["body_fun"], Arguments((Opaque(step.key, step.text, step.reason, 0), carry), node=arguments.node))
    return carry


def _given(arguments: Arguments, *names: str) -> dict[str, Value]:
    given = dict(zip(names, arguments.positional, strict=False)) | dict(arguments.keywords)
    if arguments.spread or not set(names) - {"xs"} <= set(given):
        raise Unmodelled(unfollowed(arguments))
    return given
