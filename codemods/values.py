"""What an expression of the scanned source may evaluate to.

A constant is the Python object itself (int, float, str, bool, None, bytes, Ellipsis), a tuple a tuple of values, an
unknown integer a `Term`. The classes here are the rest. All are immutable: what a list, a dict or an object holds is in
the cells of the state (`codemods.evaluate.state`), under the `id` that the value carries.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from codemods import terms
from codemods.formulas import Formula
from codemods.terms import Int, Symbol, Term


@dataclass(frozen=True)
class Reason:
    """Why something is unknown, in words for the user, and the line where knowledge ended."""

    text: str
    path: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.text} ({self.path}:{self.line})" if self.line else self.text


@dataclass(frozen=True)
class Opaque:
    """An unknown value; equal keys are the same value.

    Attributes:
        key: its identity.
        text: the source expression that it stands for.
        reason: why it is unknown.
        at_least: a lower bound, if it is an integer: 0 for the size of an axis.
        pure: whether it comes from a library, so that calling it changes nothing of ours.
        default: the constant that it is unless a user says otherwise, as with an option; None where there is none.
        kind: what number it certainly is: `int`, `float`, or `number` for either; empty where it may be something else.
        shaped: an unknown array that has its shape; `dtype` is then its dtype, if that is known.
        numbers: the attributes that are numbers, each with its `kind`: those of a class that an annotation names.
    """

    key: Hashable
    text: str
    reason: Reason = field(compare=False)
    at_least: int | None = None
    pure: bool = field(default=False, compare=False)
    default: Any = field(default=None, compare=False)
    kind: str = field(default="", compare=False)
    shaped: Opaque | None = field(default=None, compare=False)
    dtype: DType | None = field(default=None, compare=False)
    numbers: tuple[tuple[str, str], ...] = field(default=(), compare=False)

    def attribute(self, name: str, epoch: int = 0) -> Opaque | DType:
        """Return the attribute `name`; `epoch` tells apart reads between which it may have changed."""
        if name == "dtype" and self.dtype is not None:
            return self.dtype
        if self.shaped is not None and name in ("shape", "ndim", "size"):
            return self.shaped.attribute(name, epoch)
        kind = dict(self.numbers).get(name, "")
        return Opaque((self.key, ".", name, epoch), f"{self.text}.{name}", self.reason, pure=self.pure, kind=kind)

    def item(self, index: Any) -> Opaque:
        sized = isinstance(self.key, tuple) and len(self.key) == 4 and self.key[2] == "shape" and not isinstance(index, Slice)
        shown = repr(index) if isinstance(index, str) else describe(index)
        return Opaque((self.key, "[]", index), f"{self.text}[{shown}]", self.reason, 0 if sized else None, self.pure)

    @property
    def shape(self) -> Opaque:
        """What it has for a shape, if it is an array."""
        return (
            self.shaped.shape
            if self.shaped is not None
            else Opaque((self.key, ".", "shape", 0), f"{self.text}.shape", self.reason, pure=self.pure)
        )

    @property
    def rank(self) -> Opaque:
        """How many axes it has, if it is an array."""
        return (
            self.shaped.rank
            if self.shaped is not None
            else Opaque((self.key, ".", "ndim", 0), f"{self.text}.ndim", self.reason, pure=self.pure)
        )

    @property
    def length(self) -> Opaque | None:
        """How many elements it has, if it is the shape of an array."""
        match self.key:
            case (key, ".", "shape", _):
                return Opaque(key, self.text.removesuffix(".shape"), self.reason, pure=self.pure).rank
            case _:
                return None

    def symbol(self) -> Symbol:
        """Return it as an integer."""
        usual = self.default if type(self.default) is int else None
        return Symbol(self.key, self.text, self.at_least, self.reason, usual)


@dataclass(frozen=True)
class Choice:
    """One of several values, each under its condition; exactly one condition holds."""

    alternatives: tuple[tuple[Formula, Value], ...]


@dataclass(frozen=True)
class DType:
    """A dtype by its numpy name, e.g. `bfloat16`; as the source wrote it, before jit narrows it."""

    name: str


@dataclass(frozen=True)
class Array:
    """An array of known rank.

    Attributes:
        shape: its sizes.
        dtype: its dtype, None where unknown.
        library: who made it: `jax`, `numpy` or `torch`; they promote and default differently. `unknown` where it may be any.
        contents: for a small integer array whose elements are known, its elements as nested tuples; else None.
        weak: whether a Python scalar gave it its dtype, as JAX's promotion has it.
    """

    shape: tuple[Int, ...]
    dtype: DType | None
    library: str = "jax"
    contents: Any = None
    weak: bool = False


@dataclass(frozen=True)
class At(Array):
    """`x.at[index]` of JAX: the array, about to be updated there."""


@dataclass(frozen=True)
class Quantized:
    """JAX's `QuantizedTensor(weight, scales)`: pages in int8."""

    weight: Array
    scales: Array


@dataclass(frozen=True)
class Slice:
    """`lower:upper:step` in a subscript; None where it is left out."""

    lower: Value
    upper: Value
    step: Value


@dataclass(frozen=True)
class External:
    """Something of a module outside the scanned tree, by its dotted path, e.g. `jax.numpy.zeros`."""

    path: str


COUNTER = External("collections.Counter")
"""What a missing key is given by a counter: 0, and it stays missing."""


@dataclass(frozen=True)
class Module:
    """A module of the scanned tree."""

    name: str


@dataclass(frozen=True)
class Function:
    """A function or lambda of the scanned tree; `scope` is where its free names are looked up."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda = field(repr=False)
    path: str
    name: str
    scope: int
    defaults: tuple[tuple[str, Value], ...] = ()
    kind: str = "function"  # or staticmethod, classmethod, property: what its class makes of it


@dataclass(frozen=True)
class Class:
    """A class of the scanned tree; its attributes are in the cells of `scope`."""

    name: str
    scope: int
    bases: tuple[Value, ...]
    kind: str = "plain"  # or dataclass, namedtuple, enum, dict (a TypedDict): what makes its constructor
    members: tuple[str, ...] = ()  # of an enum, by name
    parameters: tuple[Any, ...] = ()  # of a constructor that a library writes: the `Field`s

    @property
    def fields(self) -> tuple[str, ...]:
        """The attributes that such a constructor sets."""
        return tuple(each.name for each in self.parameters if each.stored)

    @property
    def positional(self) -> tuple[str, ...]:
        """Those that can be given, and matched, by position."""
        taken = (each for each in self.parameters if each.argument is not None and not each.keyword_only)
        return tuple(each.name for each in taken if each.stored)


@dataclass(frozen=True)
class Instance:
    """An object of a class of the scanned tree; its attributes are in the cells of `id`."""

    id: int
    cls: Class
    plain: Value = None  # of an enum's member, the number or the string that it is besides


@dataclass(frozen=True)
class Super:
    """`super()`: an object seen from behind one of its classes, that whose attributes are in the cells of `behind`."""

    of: Instance
    behind: int


@dataclass(frozen=True)
class ListRef:
    """A list; its elements are in the cells of `id`."""

    id: int


@dataclass(frozen=True)
class SetRef(ListRef):
    """A set: a list without the methods of a list."""


@dataclass(frozen=True)
class DictRef:
    """A dict with constant keys; its items are in the cells of `id`.

    `missing` is what makes the value of a key that is not there, if anything does: of `defaultdict(list)` it is `list`.
    """

    id: int
    missing: Value = None


@dataclass(frozen=True)
class Parser:
    """An `argparse.ArgumentParser`; its options, each with its name, value and default, are in the cells of `id`."""

    id: int


@dataclass(frozen=True)
class Iterator:
    """What gives its elements once, one after the other; those left are in the cells of `id`.

    `sources` are the cells of the containers that it walks through, with what they held when it was made: once they hold
    something else, what it gives is not known.
    """

    id: int
    sources: tuple[tuple[tuple[int, str], Value], ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class View:
    """The `keys`, `values` or `items` of a dict, whatever it holds at the time."""

    of: DictRef
    kind: str


@dataclass(frozen=True)
class Names:
    """The dict of the names of a module or a class, or of the attributes of an object: `globals()`, `vars(x)`."""

    owner: int


@dataclass(frozen=True)
class Filtered:
    """The elements of a sequence that pass an unknown filter: each with the condition under which it is there."""

    elements: tuple[tuple[Formula, Value], ...]


@dataclass(frozen=True)
class Bound:
    """A method together with its object: of ours (`function` is a value) or of a builtin type (it is a name)."""

    receiver: Value
    function: Value


@dataclass(frozen=True)
class Partial:
    """`functools.partial`, with the expressions that its arguments were written as."""

    function: Value
    positional: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]
    nodes: tuple[tuple[int | str, ast.expr], ...] = field(default=(), repr=False)


@dataclass(frozen=True)
class Contracted:
    """A function of the scanned tree under `@shapecheck.contract`: a callee with a contract of its own (a `Callee`)."""

    function: Function
    callee: Any = field(compare=False, repr=False)

    @property
    def kind(self) -> str:
        """What its class makes of the function."""
        return self.function.kind


@dataclass(frozen=True)
class Transformed:
    """A function under a transformation that changes what it sees of its arguments: `vmap`, `shard_map`, `grad`.

    `options` are the arguments of the transformation, by name.
    """

    transformation: str
    function: Value
    options: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True)
class Spec:
    """A `PartitionSpec`: for each axis of an array None, the name of a mesh axis, or a tuple of names."""

    parts: tuple[Value, ...]


@dataclass(frozen=True)
class Mesh:
    """A mesh of devices: its axes with their sizes, an `Opaque` where a size is unknown."""

    axes: tuple[tuple[str, Value], ...]


Value: TypeAlias = Any
"""One of the classes above, a `Term`, or a plain constant. (A union type would name them all and check nothing more.)"""


def lineage(cls: Class) -> list[Class]:
    """Return a class and its bases in the scanned tree, in the order in which attributes are looked up."""
    return [base for base in ancestry(cls) if isinstance(base, Class)]


PLAIN_BASES = frozenset({"builtins.object", "abc.ABC", "typing.Protocol", "typing.Generic"})
"""Bases outside the scanned tree that define nothing of interest."""


def ancestry(cls: Class) -> list[Value]:
    """Return a class and all of its bases in the order in which attributes are looked up: a common base comes behind what
    shares it. Of those outside the scanned tree the bases are not known."""
    depth_first: list[Value] = [cls]
    for base in cls.bases:
        if isinstance(base, Class):
            depth_first += ancestry(base)
        elif not (isinstance(base, External) and base.path in PLAIN_BASES):
            depth_first.append(base)
    identities = [base.scope if isinstance(base, Class) else base for base in depth_first]
    last = {identity: position for position, identity in enumerate(identities)}
    return [base for position, base in enumerate(depth_first) if last[identities[position]] == position]


def is_constant(value: Value) -> bool:
    return value is None or value is Ellipsis or isinstance(value, bool | int | float | str | bytes)


def same(left: Value, right: Value) -> bool:
    """Say whether two values are equal and of one type: `1`, `1.0` and `True` are three values."""
    if type(left) is not type(right):
        return False
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float):
        return repr(left) == repr(right)  # NaN is NaN here, and -0.0 is not 0.0
    return bool(left == right)


def plain_of(value: Value) -> Value:
    """Return the number or the string that a member of an enum is besides; any other value as it is."""
    return value.plain if isinstance(value, Instance) and value.plain is not None else value


def as_int(value: Value) -> Int | None:
    """Return a value as an integer, known or unknown; None for what is no integer."""
    value = plain_of(value)
    if isinstance(value, int | Term):
        return int(value) if isinstance(value, bool) else value
    if isinstance(value, Opaque):
        return terms.of(value.symbol())
    return None


def describe(value: Value) -> str:
    """Return a value for a message."""
    match value:
        case Opaque(_, text):
            return text
        case Term():
            return str(value)
        case Array(shape, dtype):
            return f"{dtype.name if dtype else 'array'}[{', '.join(map(str, shape))}]"
        case External(path):
            return path
        case Slice(lower, upper, step):
            bounds = ["" if bound is None else describe(bound) for bound in (lower, upper)]
            return ":".join(bounds if step is None else [*bounds, describe(step)])
        case tuple():
            return ", ".join(map(describe, value))
        case Choice(alternatives):
            return " or ".join(describe(each) for _, each in alternatives)
        case ListRef() | DictRef() | Filtered():
            return "a dict" if isinstance(value, DictRef) else "a list"
        case Instance(cls=cls):
            return f"an object of {cls.name}"
        case Function(name=name) | Class(name) | Module(name):
            return name
        case _:
            return repr(value)
