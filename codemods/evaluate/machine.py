"""The abstract machine: it runs a program of which much is unknown, and tells what reaches each kernel call.

It executes statements in order, like Python. Where a condition is unknown it executes both branches, each under its
condition, and merges what they leave behind; a call of a function of the scanned tree is executed with the values of
its arguments; a loop over known elements is executed for each of them. Whatever cannot be followed becomes an `Opaque`
with the reason. The machine never runs the scanned code, and every run ends: it counts its steps.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from codemods import formulas
from codemods.evaluate import operators
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.memory import Cell, Cells, Memory
from codemods.evaluate.state import UNBOUND, Condition, State, choose, guard, merge
from codemods.formulas import Formula, both, either
from codemods.nodes import excerpt
from codemods.terms import Term, TermError
from codemods.values import (
    Array,
    Choice,
    Class,
    DictRef,
    External,
    Filtered,
    Instance,
    ListRef,
    Names,
    Opaque,
    Reason,
    Value,
    View,
    ancestry,
    is_constant,
)
from codemods.values import (
    Iterator as IteratorRef,
)

if TYPE_CHECKING:
    from codemods.callees import Callee
    from codemods.evaluate.havoc import Deferred
    from codemods.evaluate.program import Program, Scope

Given: TypeAlias = Mapping[int | str, ast.expr]
"""The expressions of the arguments that a call writes down, by position or keyword."""

MAX_STEPS = 30_000  # of one run: an entry function with all it calls
MAX_DEPTH = 24  # of calls into the scanned tree
MAX_RECURSION = 10  # of calls of one function inside itself
MAX_COMBINATIONS = 256  # of alternatives of the operands of one operation


class Dies(Exception):
    """The execution raises an exception here, or ends the program."""


class Leaves(Exception):
    """The execution ends well here, as a skipped test does."""


class Exhausted(Exception):
    """The run has used up its steps."""


@dataclass
class Loop:
    """The executions that left the body of a loop, and those that go on with its next round."""

    breaks: list[State] = field(default_factory=list[State])
    continues: list[State] = field(default_factory=list[State])


@dataclass
class Frame:
    """A function that is being executed; `given` are the expressions of its arguments, None where nothing calls it."""

    scope: Scope
    function: ast.AST | None = None
    given: Given | None = None
    returns: list[tuple[State, Value]] = field(default_factory=list[tuple[State, Value]])
    loops: list[Loop] = field(default_factory=list[Loop])
    skipped: int = 0
    statement: ast.AST | None = None  # the one that is being executed
    yields: list[Value] | None = None  # what a generator has given, where that is asked for
    start: int = 0  # the number of conditions on the way to its call

    def exits(self) -> int:
        """Count the executions that have left by another way than the end of a block."""
        return self.skipped + len(self.returns) + sum(len(loop.breaks) + len(loop.continues) for loop in self.loops)


@dataclass(frozen=True)
class Caller:
    """A function on the way to a kernel call, None for a module, and what it was given, None where nothing calls it."""

    function: ast.AST | None
    given: Given | None


@dataclass(frozen=True)
class Arrival:
    """One execution, or one set of them, that reaches a kernel call.

    Attributes:
        source: the path of the file and the call expression.
        callee: the kernel.
        positional, keywords: the values of the arguments; `spread` says that further ones are unknown (`*args` or `**kwargs`).
        nodes: the expression of each argument that the call, or a partial, writes down, by position or keyword.
        path: the conditions under which it is reached.
        expected: whether the code around expects it to fail (`pytest.raises`).
        callers: what is being executed, the innermost last.
        case: the parameters of the test case that the execution belongs to.
        interpreted: whether Pallas' interpreter may run it, or nothing does: it is only traced.
    """

    source: tuple[str, ast.Call]
    callee: Callee
    positional: tuple[Value, ...]
    keywords: dict[str, Value]
    nodes: Given
    path: tuple[Condition, ...]
    expected: bool
    spread: bool
    callers: tuple[Caller, ...] = ()
    case: Mapping[str, Value] = field(default_factory=dict[str, Value])
    interpreted: bool = False


class Machine:
    """Runs one program; `arrivals` collects what reaches the kernels."""

    def __init__(self, program: Program, *, limit: int = MAX_STEPS, recording: bool = True) -> None:
        self.program = program
        self.recording = recording  # whether anybody wants to know of arrivals
        self.arrivals: list[Arrival] = []
        self.memory = Memory()
        self.state = State(Cells({}, self.memory), program.cells)
        self.frames: list[Frame] = []
        self.defined: set[int] = set()  # ids of the nodes of functions whose definition was executed
        self.called: set[int] = set()  # ids of the nodes of functions that were executed
        self.expected = 0  # how many `pytest.raises` surround the execution
        self.tracing = 0  # how many `jax.eval_shape` and the like surround the execution: nothing is lowered for a device
        self.escaped: set[int] = set()  # ids of objects that an unknown value may stand for
        self.called_unseen: set[object] = set()  # functions that have escaped, and were executed for it
        self.named_unseen: dict[Cell, list[Value]] = {}  # by the names in them: functions that unknown code may call
        self.deferred: list[Deferred] = []  # what may happen at any later time
        self.uncertain = 0  # how many things surround the execution that may happen any number of times
        self.steps = 0
        self.limit = limit

    # Bookkeeping

    @property
    def frame(self) -> Frame:
        return self.frames[-1]

    def new_id(self) -> int:
        return self.program.new_id()

    def step(self, cost: int = 1) -> None:
        self.steps += cost
        if self.steps > self.limit:
            raise Exhausted

    @contextmanager
    def entered(self, frame: Frame) -> Iterator[None]:
        self.frames.append(frame)
        try:
            yield
        finally:
            self.frames.pop()

    def unknown(self, text: str, why: str, node: ast.AST | None = None, *, pure: bool = False) -> Opaque:
        """Make an unknown value that differs from every other."""
        return Opaque((self.new_id(),), text, self.reason(why, node), pure=pure)

    def reason(self, why: str, node: ast.AST | None = None) -> Reason:
        return Reason(why, self.frame.scope.path, getattr(node or self.frame.statement, "lineno", 0))

    # Running

    def evaluate(self, node: ast.expr) -> Value:
        """Return the value of an expression; raises `Dies` where evaluating it raises."""
        from codemods.evaluate.expressions import evaluate

        return evaluate(self, node)

    def execute(self, statements: Sequence[ast.stmt]) -> None:
        """Execute statements; raises `Dies` where no execution gets to their end."""
        from codemods.evaluate.statements import execute

        execute(self, statements)

    def call(self, function: Value, positional: tuple[Value, ...] = (), node: ast.expr | None = None) -> Value:
        """Call a value with positional arguments."""
        from codemods.evaluate.arguments import Arguments
        from codemods.evaluate.calls import call

        return call(self, function, Arguments(positional, node=node))

    # Conditions

    def decide(self, formula: Formula) -> bool | None:
        self.step(len(self.state.path) + formulas.size(formula))  # each condition on the way is looked at
        return self.state.facts.decide(formula)

    def possible(self, formula: Formula) -> bool:
        """Say whether a condition may hold here, as far as can be told."""
        self.step(len(self.state.path) + formulas.size(formula))
        return self.state.facts.allow(formula)

    def truth(self, value: Value) -> Formula:
        """Return the condition under which a value counts as true."""
        match value:
            case _ if is_constant(value):
                return bool(value)
            case formulas.Compare() | formulas.Equals() | formulas.Truthy() | formulas.Not() | formulas.And():
                return value
            case Term():
                return formulas.invert(formulas.equal(value, 0))
            case Opaque(key, text):
                return formulas.Truthy(key, text)
            case tuple():
                return len(value) > 0
            case View(of):
                return self.truth(of)
            case Names():
                return self.coin("the truth of the names")
            case ListRef() | DictRef():
                contents = self.contents(value)
                return len(contents) > 0 if contents is not None else self.coin("the contents of a container")
            case Choice(alternatives):
                return either(*(both(formula, self.truth(each)) for formula, each in alternatives))
            case Array() | Filtered():
                return self.coin("the truth of an array")
            case Instance(plain=int() | str() as plain):
                return bool(plain)
            case Instance(cls=cls) if self._decides_its_truth(cls):
                from codemods.evaluate.objects import special

                for name in ("__bool__", "__len__"):
                    if (found := special(self, value, name)) is not UNBOUND:
                        return self.truth(found)
                return self.coin("the truth of an object")
            case _:
                return True  # a function, a class, a module; an object of ours, unless it defines __bool__ or __len__

    def _decides_its_truth(self, cls: Class) -> bool:
        from codemods.evaluate.objects import class_member

        if cls.kind in ("open", "config"):
            return True
        if any(base in (External("enum.Flag"), External("enum.IntFlag")) for base in ancestry(cls)):
            return True
        return any(class_member(self, cls, name) is not UNBOUND for name in ("__bool__", "__len__"))

    def coin(self, text: str) -> Formula:
        return formulas.Truthy((self.new_id(),), text)

    def read(self, cell: Cell) -> Value:
        """Return what a cell holds, or `UNBOUND`; executions in which it holds nothing do not get past the reading."""
        held = self.state.read(cell)
        if isinstance(held, Choice):
            bound = tuple(pair for pair in held.alternatives if pair[1] is not UNBOUND)
            held = bound[0][1] if len(bound) == 1 else Choice(bound)
        return held

    def members(self, owner: int) -> dict[str, Value]:
        """Return what the cells of a scope or an object hold, by their names."""
        names = {name for holder, name in self.state.cells if holder == owner} | self.program.names.get(owner, set())
        return {name: held for name in sorted(names) if (held := self.read((owner, name))) is not UNBOUND}

    def contents(self, container: ListRef | DictRef | IteratorRef) -> Value:
        """Return the elements of a list, those left in an iterator or the items of a dict, as pairs; None if unknown."""
        held = self.read((container.id, "contents"))
        return held if isinstance(held, tuple) else None

    # Parting and meeting

    def part(self, formula: Formula, arms: Sequence[Callable[[], Value]], branches: tuple[bool, bool] = (True, True)) -> Value:
        """Execute the first arm where `formula` holds and the second where it does not; return the value of both.

        `branches` says of each arm whether to be in it is a choice of the program: an exception is none.
        """
        outcome = self.decide(formula)
        if outcome is not None:
            return arms[0]() if outcome else arms[1]()
        base, before = self.state, self.frame.exits()
        arrived: list[tuple[State, Value]] = []
        for condition, arm, branch in zip((formula, formulas.invert(formula)), arms, branches, strict=True):
            started = base.assume(condition, branch=branch)
            if started is None:
                continue
            self.state = started
            try:
                value = arm()
            except Dies:
                continue
            except Leaves:
                self.frame.skipped += 1
                continue
            arrived.append((self.state, value))
        return self.meet(base, arrived, elsewhere=all(branches) and self.frame.exits() != before)

    def meet(self, base: State, arrived: Sequence[tuple[State, Value]], *, elsewhere: bool) -> Value:
        """Go on with the merged state of executions that parted at `base`, and return their merged value."""
        merged = merge(base, [state for state, _ in arrived], elsewhere=elsewhere)
        if merged is None:
            self.state = base
            raise Leaves if elsewhere and self.frame.skipped else Dies  # those that returned are in the frame
        self.state, differing = merged
        self.step(differing)  # it takes long after everything has become unknown
        if len(arrived) == 1:
            return arrived[0][1]
        return choose((guard(state, len(base.path)), value) for state, value in arrived)

    def spread(self, function: Callable[..., Value], *operands: Value, text: str | ast.expr = "") -> Value:
        """Apply `function` to each possible combination of the alternatives of its operands; `text` is what messages call it."""
        if not any(isinstance(operand, Choice) for operand in operands):
            return self._attempt(function, operands, text)
        combinations: list[tuple[Formula, tuple[Value, ...]]] = [(True, ())]
        for operand in operands:
            alternatives = operand.alternatives if isinstance(operand, Choice) else ((True, operand),)
            self.step(len(combinations))
            combinations = [
                (condition, (*chosen, value))
                for formula, chosen in combinations
                for also, value in alternatives
                if (condition := both(formula, also)) is not False
            ]
            if len(combinations) > MAX_COMBINATIONS:
                shown = _shown(text)
                return self.unknown(shown, f"`{shown}` may have more than {MAX_COMBINATIONS} values")
        results: list[tuple[Formula, Value]] = []
        for formula, chosen in combinations:
            if self.possible(formula):
                try:
                    results.append((formula, self._attempt(function, chosen, text)))
                except Dies:
                    continue
        if not results:
            raise Dies
        return choose(results)

    def _attempt(self, function: Callable[..., Value], operands: Sequence[Value], text: str | ast.expr) -> Value:
        from codemods.evaluate import havoc

        try:
            return function(*operands)
        except operators.Raises:
            raise Dies from None
        except (Unmodelled, TermError) as why:
            havoc.leak_elements(self, *operands)  # the result may be one of them
            source = next((operand for operand in operands if isinstance(operand, Opaque)), None)
            if source is not None:  # what made the operand unknown says more than the operation on it
                return Opaque((self.new_id(),), _shown(text) or source.text, source.reason, pure=source.pure)
            return self.unknown(_shown(text), str(why))


def _shown(text: str | ast.expr) -> str:
    return text if isinstance(text, str) else excerpt(text)  # which takes long, and is seldom asked for
