"""Random programs of what the abstract machine follows, and their real executions with a kernel that only records."""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from shapecheck.contracts.paged_attention import PAGED_ATTENTION
from shapecheck.observe import geometry_of

PATH = "program.py"
KERNEL = "jax.experimental.pallas.ops.tpu.paged_attention"
VALUES = (1, 2, 3, 4, 5, 6, 7, 8, 16, 17, True, False)
HEADER = f"""\
import contextlib
import enum
import functools
import dataclasses
import math
from functools import partial
import jax.numpy as jnp
from {KERNEL} import paged_attention
K = jnp.zeros((2, 8, 4, 128), jnp.float32)
def kernel(pages, block, heads=4, mode=None):
    return paged_attention(jnp.zeros((2, heads, 128)), K, K, jnp.zeros((2,), jnp.int32), jnp.zeros((2, pages), jnp.int32), \
pages_per_compute_block=block, megacore_mode=mode)
@dataclasses.dataclass
class Config:
    pages: int
    block: int = 2
    sizes: list = dataclasses.field(default_factory=list)
    @property
    def twice(self):
        return self.pages * 2
    @property
    def half(self):
        return self.pages // 2
    @half.setter
    def half(self, value):
        self.pages = value * 2
    def grow(self, by=1):
        self.pages += by
        return self.pages
class Size(enum.Enum):
    SMALL = 2
    BIG = 4
class Box:
    count = 3
    def __init__(self, size, *rest, **more):
        self.size = size
        self.rest = rest
        self.more = more
    def add(self, value):
        self.size = self.size + value
        return self
    def put(self, value):
        self.size = value
        return value
    def __setitem__(self, index, value):
        self.size = value
    def __add__(self, other):
        self.size -= other
        return other
    def __eq__(self, other):
        self.size += 1
        return self.size > 3
class Swallow:
    def __enter__(self):
        return self
    def __exit__(self, *why):
        return True
@contextlib.contextmanager
def changed(values):
    values.append(3)
    try:
        yield
    finally:
        values.append(5)
"""


# Execution


@dataclass(frozen=True)
class Stub:
    """An array of which there is only the shape and the dtype."""

    shape: tuple[int, ...]
    dtype: str = "float32"

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def reshape(self, *shape: Any) -> Stub:
        sizes = list(shape[0]) if isinstance(shape[0], tuple | list) else list(shape)
        if -1 in sizes:  # an inexact division is found below
            known = -math.prod(sizes)
            sizes[sizes.index(-1)] = math.prod(self.shape) // known if known > 0 else -1
        made = zeros(tuple(sizes))
        if math.prod(made.shape) != math.prod(self.shape):
            raise ValueError(shape)
        return Stub(made.shape, self.dtype)

    def __getitem__(self, index: Any) -> Stub:
        parts = index if isinstance(index, tuple) else (index,)
        sizes: list[int] = []
        for size, part in zip(self.shape, parts, strict=False):
            if isinstance(part, slice):
                sizes.append(len(range(size)[part]))
        return Stub((*sizes, *self.shape[len(parts) :]), self.dtype)


def zeros(shape: Any, dtype: str = "float32") -> Stub:
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(isinstance(size, int) and size >= 0 for size in sizes):
        raise ValueError(shape)
    return Stub(tuple(map(int, sizes)), dtype)


Record = tuple[int, dict[str, Any]]


@contextlib.contextmanager
def stubs(record: Callable[[types.FrameType, dict[str, Any]], object]) -> Iterator[None]:
    """Put modules in the place of `jax.numpy` and the kernel: `record` is given who calls the kernel, and its geometry."""

    def paged_attention(q: Any, k_pages: Any, v_pages: Any, lengths: Any, page_indices: Any, **parameters: Any) -> Any:
        arguments = {"q": q, "k_pages": k_pages, "v_pages": v_pages, "lengths": lengths, "page_indices": page_indices}
        defaults = {parameter.name: parameter.default for parameter in PAGED_ATTENTION.parameters}
        values = geometry_of(PAGED_ATTENTION, arguments | defaults | parameters)
        record(sys._getframe(1), values)
        return q

    names = [".".join(KERNEL.split(".")[: end + 1]) for end in range(len(KERNEL.split(".")))] + ["jax.numpy"]
    saved = {name: sys.modules.get(name) for name in names}
    made: dict[str, Any] = {name: types.ModuleType(name) for name in names}
    for name in names[1:]:
        parent, _, last = name.rpartition(".")
        setattr(made[parent], last, made[name])
    made[KERNEL].paged_attention = paged_attention
    made["jax.numpy"].__dict__.update(zeros=zeros, ones=zeros, int32="int32", float32="float32")
    try:
        sys.modules.update(made)
        yield
    finally:
        for name, module in saved.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


@dataclass(frozen=True)
class Ran:
    """What the executions of a program recorded, and whether one of them raised: what comes behind was not executed then."""

    records: list[Record]
    raised: bool


def run(source: str, values: Sequence[Any] = VALUES, calls: int = 60) -> Ran:
    """Execute a program, then each of its functions `f...` for all values of its parameters."""
    records: list[Record] = []
    record: Callable[[types.FrameType, dict[str, Any]], None] = lambda frame, values: records.append((frame.f_lineno, values))  # noqa: E731
    with stubs(record), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code = compile(source, PATH, "exec", dont_inherit=True)
        space, raised = _execute(code)
        functions = [name for name, held in space.items() if name[0] == "f" and name[1:].isdigit() and callable(held)]
        for name in functions:
            count = space[name].__code__.co_argcount
            for case in itertools.islice(itertools.product(values, repeat=count), 0, None, max(1, len(values) ** count // calls)):
                raised |= _call(_execute(code)[0], name, case)
        for case in (1, 4, 5, False):  # one after the other, in one program
            for name in functions * 2:
                raised |= _call(space, name, [case] * space[name].__code__.co_argcount)
    return Ran(records, raised)


def _execute(code: Any) -> tuple[dict[str, Any], bool]:
    space: dict[str, Any] = {"__name__": "program"}
    module: Any = types.ModuleType("program")
    module.__dict__.update(space)
    sys.modules["program"] = module  # dataclasses look for it
    try:
        exec(code, module.__dict__)
    except Exception:
        return module.__dict__, True
    finally:
        del sys.modules["program"]
    return module.__dict__, False


def _call(space: dict[str, Any], name: str, arguments: Sequence[Any]) -> bool:
    """Call a function of a program; say whether it raised."""
    try:
        space[name](*arguments)
    except Exception:
        return True
    return False


# Programs


@dataclass
class Writer:
    """Writes one program; `numbers`, `lists` and so on are the names that hold such values where it writes."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    lines: list[str] = field(default_factory=list)
    depth: int = 0
    made: int = 0
    budget: int = 14
    numbers: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    dicts: list[str] = field(default_factory=list)
    objects: list[str] = field(default_factory=list)
    boxes: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    globals: list[str] = field(default_factory=list)
    fixed: set[str] = field(default_factory=set)
    in_loop: bool = False
    in_function: bool = False

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def pick(self, options: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def name(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}{self.made}"

    def number(self, deep: int = 2) -> str:
        """An integer expression."""
        plain = [lambda: str(self.pick(range(1, 10)))]
        if self.numbers:
            plain += [lambda: self.pick(self.numbers)] * 3
        if deep == 0:
            return self.pick(plain)()
        inner = lambda: self.number(deep - 1)  # noqa: E731
        options = [
            *plain * 2,
            lambda: f"({inner()} {self.pick('+-**')} {inner()})".replace("**", "*"),
            lambda: f"({inner()} {self.pick(['//', '%'])} {inner()})",
            lambda: f"{self.pick(['min', 'max'])}({inner()}, {inner()})",
            lambda: f"abs({inner()})",
            lambda: f"({inner()} if {self.test()} else {inner()})",
            lambda: f"({inner()} {self.pick(['or', 'and'])} {inner()})",
            lambda: f"max([b for b in range(1, 9) if {inner()} % b == 0], default={inner()})",
            lambda: f"max(b for b in range(1, 9) if {inner()} % b == 0)",
            lambda: f"next(b for b in (8, 4, 2, 1) if {inner()} % b == 0)",
            lambda: f"sum([{inner()} for _ in range(2)])",
            lambda: f"(lambda a, b={inner()}: a + b)({inner()})",
            lambda: f"jnp.zeros(({inner()}, 4)).reshape(4, -1).shape[1]",
            lambda: f"jnp.zeros(({inner()}, 4))[:{inner()}].shape[0]",
            lambda: f"({inner()}, {inner()})[{self.test()}]",
            lambda: f"({inner()} {self.pick(['& -4', '& 7', '>> 1', '<< 2', '** 2'])})",
            lambda: f"{self.pick(['math.ceil', 'math.floor', 'int'])}({inner()} / {inner()})",
            lambda: f"int({inner()} * {self.pick(['1.0', '0.5'])})",
            lambda: f"divmod({inner()}, {inner()})[{self.pick([0, 1])}]",
            lambda: f"functools.reduce(math.gcd, [{inner()}, {inner()}], 8)",
            lambda: f"{self.pick(['max', 'min'])}(({inner()}, {inner()}, 3), key=lambda b: {self.pick(['-b', 'b % 3'])})",
            lambda: f"{{1: {inner()}, 4: 3}}.get({inner()}, {inner()})",
            lambda: f"{self.pick(['Size(2)', '[*Size][-1]', 'Size.BIG', 'Size[str(Size.SMALL.name)]'])}.value",
            lambda: f"({inner()} + ({self.test()}))",
            lambda: f"[b for b in range(1, 9) if {inner()} % b == 0][{self.pick([0, -1])}]",
            lambda: f"dataclasses.replace(Config({inner()}), block={inner()}).{self.pick(['pages', 'block', 'twice'])}",
        ]
        if self.lists:
            name = self.pick(self.lists)
            options += [
                lambda: f"{name}[{self.pick([0, -1, 1])}]",
                lambda: f"len({name})",
                lambda: f"sum({name})",
                lambda: f"{name}.pop()",
                lambda: f"len([x for x in {name} if x > {inner()}])",
                lambda: f"max({name}[:{inner()}], default=1)",
            ]
        if self.dicts:
            name = self.pick(self.dicts)
            options += [
                lambda: f"{name}['a']",
                lambda: f"{name}.get({self.pick(['a', 'b', 'c'])!r}, {inner()})",
                lambda: f"sum({name}.values())",
            ]
        if self.objects:
            name = self.pick(self.objects)
            options += [lambda: f"{name}.{self.pick(['pages', 'block', 'twice', 'grow()', 'grow(2)', 'sizes[0]'])}"] * 2
        if self.boxes:
            name = self.pick(self.boxes)
            options += [lambda: f"{name}.{self.pick(['size', 'count', 'add(1).size', 'rest[0]', 'more.get(str(1), 2)'])}"] * 2
        return self.pick(options)()

    def test(self) -> str:
        """A condition: known, or unknown where it speaks of a parameter."""
        left = self.pick(self.unknown) if self.unknown and self.draw(st.booleans()) else self.number(0)
        return self.pick(
            [
                f"{left} {self.pick(['<', '<=', '>', '==', '!='])} {self.number(0)}",
                f"{left} % {self.pick([2, 3, 4])} == {self.pick([0, 1])}",
                f"not {left}",
                f"1 < {left} <= {self.number(0)}",
                f"{left} in (1, 2, {self.number(0)})",
                f"{left} is True",
                f"{left}",
            ]
        )

    def statement(self) -> None:
        self.budget -= 1
        options = [self.assign] * 3 + [self.change] * 4 + [self.call] * 3 + [self.oddity] * 2
        if self.budget > 0 and self.depth < 4:
            options += [self.branch] * 3 + [self.loop] * 3 + [self.shrink, self.match] + [self.attempt] * 2 + [self.function] * 2
            options += [self.managed, self.generator, self.match_numbers, self.mutating_loop]
        options += [self.guard]
        if self.in_loop:
            options += [self.jump] * 2
        self.pick(options)()

    def block(self, least: int = 1, *, loop: bool | None = None) -> None:
        """An indented block; what it binds may be unbound behind it, and is not used there."""
        saved = {key: list(getattr(self, key)) for key in ("numbers", "lists", "dicts", "objects", "boxes")}
        self.depth += 1
        before, self.in_loop = self.in_loop, self.in_loop if loop is None else loop
        for _ in range(self.draw(st.integers(least, 3))):
            self.statement()
        self.in_loop = before
        self.depth -= 1
        for key, held in saved.items():
            setattr(self, key, held)

    def assign(self) -> None:
        kind = self.pick(["number", "number", "list", "dict", "object", "box", "alias", "unpack", "walrus"])
        if kind == "number":
            settable = [name for name in self.numbers if name not in self.fixed]
            name = self.pick(settable) if settable and self.draw(st.booleans()) else self.name("n")
            self.line(f"{name} = {self.number()}")
            self.numbers.append(name)
        elif kind == "list":
            self.line(f"{self.bind('lists', 'l')} = [{self.number(1)}, {self.number(1)}]")
        elif kind == "dict":
            self.line(f"{self.bind('dicts', 'd')} = {{'a': {self.number(1)}, 'b': {self.number(1)}}}")
        elif kind == "object":
            self.line(f"{self.bind('objects', 'o')} = Config({self.number(1)}, sizes=[{self.number(1)}])")
        elif kind == "box":
            self.line(f"{self.bind('boxes', 'x')} = Box({self.number(1)}, *({self.number(0)},), **{{'1': {self.number(0)}}})")
        elif kind == "alias":
            group = self.pick(["lists", "dicts", "objects", "boxes"])
            if held := getattr(self, group):
                other, also = self.pick(held), self.pick(held)
                text = f"{other} if {self.test()} else {also}" if self.draw(st.booleans()) else other
                self.line(f"{self.bind(group, group[0] + 'x')} = {text}")
            else:
                self.line("pass")
        elif kind == "unpack":
            first, second = self.name("n"), self.name("n")
            self.line(f"{first}, *{second} = {self.number(1)}, {self.number(0)}, {self.number(0)}")
            self.numbers.append(first)
            self.lists.append(second)
        else:
            name = self.name("n")
            self.line(f"if any(({name} := b) > {self.number(0)} for b in (1, 2, {self.number(0)})): pass")
            self.numbers.append(name)

    def bind(self, group: str, prefix: str) -> str:
        name = self.name(prefix)
        getattr(self, group).append(name)
        return name

    def change(self) -> None:
        """Change something in place."""
        options = ["pass"]
        if settable := [name for name in self.numbers if name not in self.fixed]:
            options.append(f"{self.pick(settable)} {self.pick(['+=', '-=', '*='])} {self.number(0)}")
        if self.lists:
            name = self.pick(self.lists)
            options += [
                f"{name}.append({self.number(1)})",
                f"{name}[{self.pick([0, -1])}] = {self.number(1)}",
                f"{name} += [{self.number(0)}]",
                f"{name}.pop()",
                f"del {name}[0]",
                f"{name}.insert(0, {self.number(0)})",
                f"{name}.sort()",
                f"{name}.reverse()",
            ]
        if self.dicts:
            name = self.pick(self.dicts)
            options += [
                f"{name}[{self.pick(['a', 'c'])!r}] = {self.number(1)}",
                f"{name}.update(a={self.number(0)})",
                f"{name}.setdefault('c', {self.number(0)})",
                f"{name}['a'] += {self.number(0)}",
            ]
        if self.objects:
            name = self.pick(self.objects)
            options += [
                f"{name}.{self.pick(['pages', 'block'])} {self.pick(['=', '+='])} {self.number(1)}",
                f"{name}.sizes.append({self.number(0)})",
                f"{name}.sizes[0] = {self.number(0)}",
                f"{name}.grow({self.number(0)})",
            ]
        if self.boxes:
            name = self.pick(self.boxes)
            options += [f"{name}.size = {self.number(1)}", f"{name}.add({self.number(0)})", f"Box.count = {self.number(0)}"]
        self.line(self.pick(options))

    def arguments(self) -> str:
        text = f"{self.number(1)}, {self.number(1)}"
        return self.pick([text, text, f"{text}, {self.pick([1, 2, 4, 6])}", f"*({text})"])

    def call(self) -> None:
        pages, block = self.number(1), self.number(1)
        direct = (
            "paged_attention(jnp.zeros((2, 4, 8)), K, K, jnp.zeros((2,), jnp.int32), "
            f"jnp.zeros((2, {pages}), jnp.int32), pages_per_compute_block={block})"
        )
        indirect = [
            f"kernel({self.arguments()})",
            f"partial(kernel, {pages})({block})",
            f"(lambda b: kernel({pages}, b))({block})",
        ]
        self.line(self.pick([direct, direct, *indirect]))

    def branch(self) -> None:
        self.line(f"if {self.test()}:")
        self.block()
        if self.draw(st.booleans()):
            if self.draw(st.booleans()):
                self.line(f"elif {self.test()}:")
                self.block()
            self.line("else:")
            self.block()

    def shrink(self) -> None:
        """A number that is made smaller until it divides another."""
        name, whole = self.name("n"), self.number(0)
        self.line(f"{name} = {self.number(1)}")
        self.line(f"while {self.pick(['', f'{name} > 1 and '])}{whole} % {name}{self.pick(['', ' != 0'])}:")
        self.line(f"    {name} {self.pick(['-= 1', '//= 2'])}")
        self.numbers.append(name)

    def match(self) -> None:
        name = self.name("n")
        subject = self.pick([f"({self.number(1)}, {self.number(0)})", f"Config({self.number(1)})", f"{{'a': {self.number(1)}}}"])
        self.line(f"match {subject}:")
        self.numbers.append(name)
        self.depth += 1
        cases = [
            f"({name}, 2)",
            f"[1, *_, {name}]",
            f"Config(pages={name}, block=2)",
            f"{{'a': {name}}}",
            f"(4 | 5 as {name}, _)",
        ]
        for _ in range(2):
            self.line(f"case {self.pick(cases)}:")
            self.block()
        self.line("case _:")
        self.line(f"    {name} = {self.number(0)}")
        self.depth -= 1

    def loop(self) -> None:
        kind = self.pick(["literal", "range", "list", "while", "forever", "down"])
        name = self.name("i")
        if kind in ("literal", "range", "list", "down"):
            over = f"range({self.number(0)} % 5)" if kind == "range" else f"({self.number(0)}, {self.number(0)}, 4)"
            if kind == "down":
                over = self.pick([f"range({self.number(0)}, 0, -1)", f"range(1, {self.number(0)})"])
            if kind == "list" and self.lists:
                over = f"{self.pick(self.lists)}[:4]"
            self.line(f"for {name} in {over}:")
            self.numbers.append(name)
            self.block(loop=True)
        else:
            self.line(f"{name} = 0")
            self.fixed.add(name)
            self.numbers.append(name)
            self.line(f"while {name} < {self.number(0)} % 5:" if kind == "while" else "while True:")
            self.depth += 1
            self.line(f"{name} += 1")
            if kind == "forever":
                self.line(f"if {name} > {self.number(0)} % 5: break")
            self.depth -= 1
            self.block(loop=True)
        if self.draw(st.booleans()):
            self.line("else:")
            self.block()

    def effect(self) -> str:
        """An expression that changes something, and gives a number."""
        options = [self.number(1)]
        if self.lists:
            name = self.pick(self.lists)
            options += [f"({name}.append({self.number(0)}) or len({name}))", f"{name}.pop()"]
        if self.objects:
            options.append(f"{self.pick(self.objects)}.grow({self.number(0)})")
        if self.boxes:
            options.append(f"{self.pick(self.boxes)}.put({self.number(0)})")
        return self.pick(options)

    def managed(self) -> None:
        """A block under a context manager that may swallow what it raises, or changes something at its end."""
        manager = self.pick(["contextlib.suppress(Exception)", "Swallow()", f"changed([{self.number(0)}])"])
        if self.lists:
            manager = self.pick([manager, f"changed({self.pick(self.lists)})"])
        self.line(f"with {manager}:")
        self.block()

    def generator(self) -> None:
        """A generator function, or what is evaluated late, and something that consumes it, now or later."""
        made, element = self.name("it"), self.name("e")
        if self.draw(st.booleans()):
            function = self.name("y")
            saved = {key: list(getattr(self, key)) for key in ("numbers", "lists", "dicts", "objects", "boxes")}
            inside, self.in_function = self.in_function, False
            self.line(f"def {function}():")
            self.numbers = [each for each in self.numbers if each[0] != "n"]
            self.block(loop=False)
            self.line(f"    yield {self.number(1)}")
            self.depth += 1
            self.line(self.pick(["pass", f"kernel({self.number(0)}, {self.number(0)})", f"yield {self.effect()}"]))
            self.depth -= 1
            self.in_function = inside
            for key, held in saved.items():
                setattr(self, key, held)
            self.line(f"{made} = {function}()")
        else:
            over = self.pick([*self.lists, "(1, 2)", f"range({self.number(0)} % 4)"])
            late = f"({self.effect()} + {element} for {element} in {over} if {self.test()})"
            mapped = [f"map(lambda {element}: {self.effect()}, {over})", f"enumerate({over})", f"zip({over}, (3, 4))"]
            self.line(f"{made} = {self.pick([late, late, *mapped[:1], f'iter({over})'])}")
        self.line(self.pick(["pass", f"{made} = list({made})"]))
        if self.draw(st.booleans()):
            self.change()
        result = self.name("n")
        self.line(f"{result} = {self.pick([f'sum({made})', f'max({made}, default=1)', f'len(list({made}))'])}")
        self.numbers.append(result)

    def match_numbers(self) -> None:
        name = self.name("n")
        self.line(f"match ({self.number(0)}, {self.number(0)}):")
        self.depth += 1
        for pattern in (f"({name}, {self.pick([1, 2, 3])})", f"({self.pick([1, 2])}, {name})", f"[*_, {name}]"):
            self.line(f"case {pattern}{self.pick(['', f' if {self.test()}'])}:")
            self.numbers.append(name)
            self.block()
            self.numbers.remove(name)
        self.depth -= 1

    def mutating_loop(self) -> None:
        """A loop that changes what it walks through."""
        if not self.lists:
            return self.line("pass")
        name, index = self.pick(self.lists), self.name("i")
        over = self.pick(
            [f"for {index} in {name}:", f"for {index}, _ in zip({name}, (1, 2, 3)):", f"for _, {index} in enumerate({name}):"]
        )
        self.line(over)
        self.numbers.append(index)
        self.depth += 1
        self.line(f"if len({name}) > 5: break")
        self.depth -= 1
        self.block(loop=True)
        change = [f"{name}.append({self.number(0)})", f"{name}[0] = {self.number(0)}", f"{name}.pop()", f"{name}.clear()"]
        self.line(f"    {self.pick(change)}")
        return None

    def oddity(self) -> None:
        """What changes something under another name, or runs code where none is seen."""
        options = ["pass", f"[{self.effect()} for _ in range({self.number(0)} % 4) if {self.test()}]"]
        if self.lists:
            name, other = self.pick(self.lists), self.pick(self.lists)
            options += [
                f"any({self.effect()} > {self.number(0)} for _ in {name}[:3])",
                f"[{name}, {other}][{self.test()}].append({self.number(0)})",
                f"[{name}, {other}][{self.number(0)} % 2][0] = {self.number(0)}",
                f"sorted({name}, key=lambda e: {self.effect()})",
                f"{{1: {name}}}.get({self.number(0)}, {other}).append({self.number(0)})",
                f"[y.append({self.number(0)}) for y in ({name}, {other})[:{self.number(0)}]]",
                f"{name}[:] = [{self.effect()}, {self.number(0)}]",
            ]
        if self.objects:
            name = self.pick(self.objects)
            options += [
                f"vars({name})['pages'] = {self.number(0)}",
                f"{name}.__dict__.update(block={self.number(0)})",
                f"setattr({name}, {self.pick(['pages', 'block'])!r}, {self.number(0)})",
                f"{name}.half = {self.number(0)}",
            ]
        if self.boxes:
            name = self.pick(self.boxes)
            options += [
                f"{name}[{self.number(0)}] = {self.number(0)}",
                f"{name} + {self.number(0)}",
                f"if {name} == {self.number(0)}: pass",
                f"type({name}).count = {self.number(0)}",
            ]
        if self.globals and not self.in_function:
            options.append(f"globals()[{self.pick(self.globals)!r}] = {self.number(0)}")
        self.line(self.pick(options))

    def jump(self) -> None:
        self.line(f"if {self.test()}: {self.pick(['break', 'continue'])}")

    def guard(self) -> None:
        options = [f"assert {self.test()}", f"if {self.test()}: raise ValueError"]
        if self.in_function:
            options += [f"if {self.test()}: return {self.number(0)}", f"return {self.number(0)}"]
        self.line(self.pick(options))

    def attempt(self) -> None:
        self.line("try:")
        self.block()
        kind = self.pick(["except", "finally", "both"])
        if kind != "finally":
            self.line(f"except {self.pick(['ValueError', 'Exception', '(AssertionError, ZeroDivisionError)'])}:")
            self.block()
            if self.draw(st.booleans()):
                self.line("else:")
                self.block()
        if kind != "except":
            self.line("finally:")
            self.block(loop=False)

    def function(self, name: str | None = None, parameters: int | None = None) -> None:
        """A function, nested or not, and a call of it."""
        made = name or self.name("g")
        count = self.draw(st.integers(0, 2)) if parameters is None else parameters
        names = [self.name("p") for _ in range(count)]
        saved = {key: list(getattr(self, key)) for key in ("numbers", "lists", "dicts", "objects", "boxes", "unknown")}
        outer = [each for each in self.numbers if each not in self.fixed and each[0] == "n"]
        default = f"={self.number(0)}" if names and name is None and self.draw(st.booleans()) else ""
        self.line(f"def {made}({', '.join(names)}{default}):")
        inside, self.in_function = self.in_function, True
        self.depth += 1
        if self.globals and self.draw(st.booleans()):
            shared = self.pick(self.globals)
            self.line(f"global {shared}")
            self.numbers = [each for each in self.numbers if each[0] != "n"] + [shared]
        elif outer and inside and self.draw(st.booleans()) and outer[-1] not in self.globals and outer[-1] in saved["numbers"]:
            self.line(f"nonlocal {outer[-1]}")
        self.depth -= 1
        self.numbers += names
        self.fixed.update(names)
        if name is not None:
            self.unknown += names
        self.block(loop=False)
        self.in_function = inside
        self.line(f"    return {self.number(1)}")
        for key, held in saved.items():
            setattr(self, key, held)
        if name is None:
            given = ", ".join(self.number(0) for _ in names)
            result = self.name("n")
            self.line(f"{result} = {self.pick([f'{made}({given})', f'partial({made}, {given})()'])}")
            self.numbers.append(result)


@st.composite
def programs(draw: Any) -> str:
    """Random programs: a top level, and functions with parameters of which nothing is known."""
    writer = Writer(draw, lines=[*HEADER.splitlines()])
    for _ in range(draw(st.integers(1, 3))):
        name = writer.name("n")
        writer.line(f"{name} = {writer.number(1)}")
        writer.numbers.append(name)
        writer.globals.append(name)
    for _ in range(draw(st.integers(0, 3))):
        writer.statement()
    for index in range(draw(st.integers(1, 2))):
        writer.function(f"f{index}", draw(st.integers(0, 2)))
    if draw(st.booleans()):
        writer.statement()
    return "\n".join(writer.lines) + "\n"
