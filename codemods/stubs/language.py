"""Relations in pyrefly's language of shapes: sizes of arrays, integers, and literals, of which only what is certain is told.

A function of that language gives `Invalid`, an error at the call, where a relation is broken. Sizes may be symbols, and two that
differ as symbols may be equal: so every part of a condition asks first whether the sizes in it are numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from shapecheck.chip import CHIP_FACTS
from shapecheck.contract import Contract
from shapecheck.outcome import UNKNOWN
from shapecheck.rule import Rule

TRUE, FALSE = ast.Constant(True), ast.Constant(False)

_OPPOSITE: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Untellable(Exception):
    """What the language has no words for; the message says what."""


@dataclass(frozen=True)
class Sentence:
    """One rule in that language.

    Attributes:
        rule: the rule.
        arrays: the arguments whose shapes it takes.
        parameters: the other arguments that it takes.
        sizes: the sizes that it speaks of, each with the expression for it.
        broken: the condition under which it is broken.
    """

    rule: Rule
    arrays: tuple[str, ...]
    parameters: tuple[str, ...]
    sizes: Mapping[str, str]
    broken: str


@dataclass(frozen=True)
class Language:
    """What can be said of the calls of one contract."""

    contract: Contract

    def sentence(self, rule: Rule) -> Sentence:
        """Return a rule in the language.

        Raises:
            Untellable: it speaks of what the language knows nothing of.
        """
        if rule.on_tpu:
            raise Untellable("it holds on a TPU only, and where a call runs is not known")
        for name in rule.names:
            if reason := self._unspeakable(name):
                raise Untellable(reason)
        broken = _simplified(self._certain(rule.relation.tree, False))
        if broken is FALSE:
            raise Untellable("the annotations say it already")
        used = {node.id for node in ast.walk(broken) if isinstance(node, ast.Name)} & {*rule.names}
        used |= {name for name in rule.names if name.endswith("_rank")}
        sizes = {name: self.sizes[name] for name in rule.names if name in used and name in self.sizes}
        arrays = {self.contract.owners[name] for name in used if name in self.sizes}
        return Sentence(
            rule,
            tuple(array.name for array in self.contract.arrays if array.name in arrays),
            tuple(each.name for each in self.contract.parameters if each.name in used),
            sizes,
            ast.unparse(ast.fix_missing_locations(broken)),
        )

    @cached_property
    def sizes(self) -> dict[str, str]:
        """The expression for each axis and rank, by the name that relations have for it."""
        sizes: dict[str, str] = {}
        for array in self.contract.arrays:
            sizes[f"{array.name}_rank"] = f"len({array.name})"
            sizes |= {f"{array.name}_{axis}": f"{array.name}[{index}]" for axis, index in array.positions.items()}
        sizes |= {axis: sizes[qualified[0]] for axis, qualified in self.contract.axes.items()}
        hidden = {parameter.name for parameter in self.contract.parameters}
        return {name: size for name, size in sizes.items() if name not in hidden}

    @cached_property
    def literals(self) -> dict[str, tuple[str, ...]]:
        """The words of each parameter that takes one of a few or None: those that relations compare it with."""
        words: dict[str, tuple[str, ...]] = {}
        for node in (node for rule in self.contract.rules for node in ast.walk(rule.relation.tree)):
            if isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and (strings := _strings(node.comparators[0])):
                words[node.left.id] = tuple(dict.fromkeys((*words.get(node.left.id, ()), *strings)))
        return {each.name: words[each.name] for each in self.contract.parameters if each.default is None and each.name in words}

    @cached_property
    def integers(self) -> frozenset[str]:
        """The parameters that take a size: those without another kind of default that a relation measures or computes with."""
        open_to_it = {
            each.name for each in self.contract.parameters if each.default in (None, UNKNOWN) or type(each.default) is int
        }
        return frozenset(
            name.id
            for rule in self.contract.rules
            for node in ast.walk(rule.relation.tree)
            for name in _measured(node)
            if name.id in open_to_it
        )

    @cached_property
    def optional(self) -> frozenset[str]:
        """The parameters that may be None, and so be left out."""
        return frozenset(each.name for each in self.contract.parameters if each.default is None)

    @cached_property
    def measures(self) -> frozenset[str]:
        """The integers that are sizes to the language, as relations compare them with axes; of others it knows literals only."""
        compared = [
            node for rule in self.contract.rules for node in ast.walk(rule.relation.tree) if isinstance(node, ast.Compare)
        ]
        names = {
            name.id for node in compared if self._speaks_of_axes(node) for name in ast.walk(node) if isinstance(name, ast.Name)
        }
        return (self.integers - self.optional) & names

    def _unspeakable(self, name: str) -> str:
        """Say why the language does not know what a name stands for; empty where it does."""
        if name in self.sizes or name in self.literals or name in self.integers:
            return ""
        if name.removesuffix("_type") in self.integers:
            return ""
        if name in CHIP_FACTS:
            return "no chip is known"
        if name in self.contract.value_names:
            return "what is in arrays is not known"
        if name.endswith(("_dtype", "_bits")) or "_scales_" in name:
            return "dtypes are not known"
        return "an argument that is no size is not known"

    def _certain(self, node: ast.expr, holds: bool) -> ast.expr:
        """Return a condition under which a relation is certain to hold, or certain not to."""
        match node:
            case ast.BoolOp(op, operands):
                join = ast.And() if isinstance(op, ast.And) == holds else ast.Or()
                return ast.BoolOp(join, [self._certain(each, holds) for each in operands])
            case ast.UnaryOp(ast.Not(), operand):
                return self._certain(operand, not holds)
            case ast.IfExp(test, body, orelse):
                branches = ((test, True, body), (test, False, orelse))
                return ast.BoolOp(
                    ast.Or(),
                    [
                        ast.BoolOp(ast.And(), [self._certain(on, taken), self._certain(then, holds)])
                        for on, taken, then in branches
                    ],
                )
            case ast.Compare(left, [_, _, *_] as ops, comparators):
                links = zip([left, *comparators], ops, comparators, strict=False)
                return self._certain(ast.BoolOp(ast.And(), [ast.Compare(a, [op], [b]) for a, op, b in links]), holds)
            case ast.Compare(left, [op], comparators):
                return self._compared(node if holds else ast.Compare(left, [_OPPOSITE[type(op)]()], comparators))
        raise Untellable(f"`{ast.unparse(node)}` is no comparison")

    def _compared(self, node: ast.Compare) -> ast.expr:
        """Return a comparison that asks first whether what it compares is known."""
        match node:
            case ast.Compare(left, [ast.In() | ast.NotIn() as op], [ast.Tuple(members)]):
                single, join = (ast.Eq, ast.Or()) if isinstance(op, ast.In) else (ast.NotEq, ast.And())
                return ast.BoolOp(join, [self._compared(ast.Compare(left, [single()], [each])) for each in members])
            case ast.Compare(ast.Call(ast.Name("min" | "max" as function), parts), [op], [right]):
                every = (function == "min") == isinstance(op, ast.Gt | ast.GtE)
                if not isinstance(op, _ORDER):
                    raise Untellable(f"`{ast.unparse(node)}`: {function}() is not in the language")
                join = ast.And() if every else ast.Or()
                return ast.BoolOp(join, [self._compared(ast.Compare(each, [op], [right])) for each in parts])
            case ast.Compare(ast.Name(name), [ast.Eq() | ast.NotEq() as op], [ast.Constant(str(kind))]) if name.endswith("_type"):
                is_int = kind == "int" and name.removesuffix("_type") in self.integers
                if not is_int:
                    raise Untellable("the types of arguments are for annotations")
                return TRUE if isinstance(op, ast.Eq) else FALSE
            case ast.Compare(ast.Name(name), [ast.Is() | ast.IsNot()], [ast.Constant(None)]):
                optional = name in self.literals or (name in self.integers and name in self.optional)
                return node if optional else FALSE if isinstance(node.ops[0], ast.Is) else TRUE
            case ast.Compare(left, [op], [right]) if self._speaks_of_axes(node):
                if isinstance(op, _ORDER):
                    ordered = _as_quotient(left, op, right)
                    return ast.BoolOp(ast.And(), [*self._known(node, ordered, in_order=True), ordered])
        return ast.BoolOp(ast.And(), [*self._known(node, node), node])

    def _speaks_of_axes(self, node: ast.AST) -> bool:
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        return any(name in self.sizes and not name.endswith("_rank") for name in names)

    def _known(self, node: ast.Compare, written: ast.expr, *, in_order: bool = False) -> Iterator[ast.expr]:
        """Yield what has to hold for a comparison to have a value, and the one that is meant."""
        for each in ast.walk(node):
            match each:
                case ast.Compare() if each is node:
                    pass
                case (
                    ast.Constant(float()) | ast.Compare() | ast.Tuple() | ast.Call() | ast.IfExp() | ast.BoolOp() | ast.UnaryOp()
                ):
                    raise Untellable(f"`{ast.unparse(each)}` is not in the language")
                case ast.BinOp(_, ast.Sub(), _) if in_order:
                    raise Untellable(f"`{ast.unparse(node)}`: what may be negative is not put in order with sizes")
        for name in dict.fromkeys(each.id for each in ast.walk(node) if isinstance(each, ast.Name)):
            if name in self.integers - self.measures:
                if self._speaks_of_axes(node):
                    raise Untellable("what may be None is not compared with sizes")
                yield _parsed(f"dsl.is_int_value({name})")
            elif name not in self.literals and not name.endswith("_rank"):
                yield _parsed(f"dsl.is_concrete_int({name})")
                if name in self.measures and not self._speaks_of_axes(node) and _computes(node):
                    raise Untellable("an argument that is compared with sizes is not computed with alone")
                if in_order and name in self.integers:
                    yield _parsed(f"0 <= {name}")
        for each in ast.walk(written):
            match each:
                case ast.BinOp(_, ast.FloorDiv() | ast.Mod(), right) if not isinstance(right, ast.Constant):
                    yield ast.Compare(right, [ast.NotEq()], [ast.Constant(0)])


def _as_quotient(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.Compare:
    """Return an order of two sizes in a language that only tells whether they are equal: `a < b` where `a // b == 0`."""
    equal = ast.Eq() if isinstance(op, ast.Lt | ast.LtE) else ast.NotEq()
    more = isinstance(op, ast.LtE | ast.Gt)
    match right:
        case ast.Constant(int(size)):
            divisor: ast.expr = ast.Constant(size + more)
            if size + more < 1:
                raise Untellable("sizes are not negative")
            if size + more == 1:
                return ast.Compare(left, [equal], [ast.Constant(0)])
        case _:
            divisor = ast.BinOp(right, ast.Add(), ast.Constant(1)) if more else right
    return ast.Compare(ast.BinOp(left, ast.FloorDiv(), divisor), [equal], [ast.Constant(0)])


def _measured(node: ast.AST) -> Iterator[ast.Name]:
    """Yield the names that a node puts in order, or computes with."""
    match node:
        case ast.Compare(left, [ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()], [right]):
            parts = [left, right]
        case ast.BinOp(left, _, right):
            parts = [left, right]
        case _:
            parts = []
    yield from (each for each in parts if isinstance(each, ast.Name))


def _computes(node: ast.AST) -> bool:
    return any(isinstance(each, ast.BinOp) for each in ast.walk(node))


def _strings(node: ast.expr) -> list[str]:
    """Return the strings that a name is compared with."""
    members = node.elts if isinstance(node, ast.Tuple) else [node]
    return [each.value for each in members if isinstance(each, ast.Constant) and isinstance(each.value, str)]


def _simplified(node: ast.expr) -> ast.expr:
    """Return a condition without the parts that are true or false in any case, and without saying one twice."""
    if not isinstance(node, ast.BoolOp):
        return node
    ends, passes = (FALSE, TRUE) if isinstance(node.op, ast.And) else (TRUE, FALSE)
    parts: dict[str, ast.expr] = {}
    for each in map(_simplified, node.values):
        same = isinstance(each, ast.BoolOp) and type(each.op) is type(node.op)
        for part in each.values if isinstance(each, ast.BoolOp) and same else [each]:
            if part is ends:
                return ends
            if part is not passes:
                parts.setdefault(ast.unparse(part), part)
    if len(parts) < 2:
        return next(iter(parts.values()), passes)
    return ast.BoolOp(node.op, list(parts.values()))


def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
