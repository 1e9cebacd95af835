"""Options that a user may set: argparse, absl's flags, the environment. A default says what they may be, not what they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from codemods.evaluate import containers, iteration
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.interpreted import Interpreted, interprets
from codemods.evaluate.library import Unmodelled
from codemods.evaluate.machine import Dies
from codemods.evaluate.methods import METHODS
from codemods.evaluate.settings import option
from codemods.evaluate.state import ABSL_FLAGS
from codemods.values import Class, External, Instance, ListRef, Opaque, Parser, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


# argparse

_SAME = ("add_argument_group", "add_mutually_exclusive_group", "add_subparsers", "add_parser")
"""What these give has its options in the same namespace."""


@interprets("argparse.ArgumentParser")
def _parser(machine: Machine, arguments: Arguments) -> Value:
    made = Parser(machine.new_id())
    inherits = arguments.spread or "parents" in arguments.keywords
    machine.state.cells[(made.id, "contents")] = ()
    if inherits:
        containers.forget(machine, made, "a parser", "it has the options of other parsers", arguments.node)
    return made


def add_argument(machine: Machine, receiver: Parser, arguments: Arguments) -> Value:
    """Declare an option; one that is declared twice, for several commands, may have either default."""
    held = machine.read((receiver.id, "contents"))
    names = [name for name in arguments.positional if isinstance(name, str)]
    if not isinstance(held, tuple) or arguments.spread or len(names) != len(arguments.positional) or not names:
        containers.forget(machine, receiver, "a parser", "an option of it is not known", arguments.node)
        return machine.unknown("an action", "it is not followed", arguments.node, pure=True)
    shown = next((name for name in names if name.startswith("--")), names[0])
    given = arguments.keywords.get("dest")
    name = given if isinstance(given, str) else shown.lstrip("-").replace("-", "_")
    twice = any(known == name for known, _, _ in held)
    value = option(machine, shown, None, arguments.node) if twice else _declared(machine, shown, arguments)
    default = None if twice else _default(arguments)
    kept = tuple(each for each in held if each[0] != name)
    machine.state.cells[(receiver.id, "contents")] = (*kept, (name, value, default))
    return machine.unknown("an action", "it is not followed", arguments.node, pure=True)


def _declared(machine: Machine, shown: str, arguments: Arguments) -> Value:
    given = arguments.keywords
    default = _default(arguments)
    several = "nargs" in given or given.get("action") in ("append", "extend", "count", "append_const")
    if several:
        return option(machine, shown, None, arguments.node)
    if given.get("action") in ("store_true", "store_false"):
        return option(machine, shown, default, arguments.node, (True, False))
    choices: Value = given.get("choices", ())
    parts = list(iteration.elements(machine, choices)) if isinstance(choices, tuple | range | ListRef) else []
    optional = shown.startswith("-") and given.get("required") is not True
    if parts and optional and default not in parts:
        parts.append(default)
    made = option(machine, shown, default, arguments.node, parts)
    number = {External("builtins.int"): "int", External("builtins.float"): "float"}
    surely = isinstance(default, int | float) or (default is None and not optional)
    kind = next((name for converter, name in number.items() if given.get("type") == converter), "") if surely else ""
    return replace(made, kind=kind) if isinstance(made, Opaque) else made


def _default(arguments: Arguments) -> Value:
    given = arguments.keywords
    if given.get("action") in ("store_true", "store_false"):
        return given.get("default", given["action"] == "store_false")
    default = given.get("default")
    kind = given.get("type")
    if isinstance(default, str) and kind in (External("builtins.int"), External("builtins.float")):
        try:  # argparse converts a default that is a string
            return int(default) if kind == External("builtins.int") else float(default)
        except ValueError:
            return None
    return default


def same_parser(machine: Machine, receiver: Parser, arguments: Arguments) -> Value:
    """A group, or the parser of a command: its options end up in one namespace."""
    return receiver


def leave(machine: Machine, receiver: Parser, arguments: Arguments) -> Value:
    """`parser.error` and `parser.exit` end the program."""
    raise Dies


def set_defaults(machine: Machine, receiver: Parser, arguments: Arguments) -> Value:
    held = machine.read((receiver.id, "contents"))
    if isinstance(held, tuple):
        changed = {name: option(machine, name, value, arguments.node) for name, value in arguments.keywords.items()}
        kept = tuple(each for each in held if each[0] not in changed)
        added = tuple((name, value, arguments.keywords[name]) for name, value in changed.items())
        machine.state.cells[(receiver.id, "contents")] = (*kept, *added)


def parse_args(machine: Machine, receiver: Parser, arguments: Arguments) -> Value:
    held = machine.read((receiver.id, "contents"))
    if not isinstance(held, tuple):
        raise Unmodelled("an option of the parser is not known")
    given = arguments.positional[0] if arguments.positional else arguments.keywords.get("args")
    nothing = isinstance(given, tuple | ListRef) and not iteration.elements(machine, given)
    made = Instance(machine.new_id(), Class("Namespace", machine.new_id(), (), "open"))
    for name, value, default in held:
        machine.state.cells[(made.id, name)] = default if nothing else value
    return made


def parse_known_args(machine: Machine, receiver: Parser, arguments: Arguments) -> Value:
    rest = machine.unknown("the other arguments", "they are not known", arguments.node, pure=True)
    return parse_args(machine, receiver, arguments), rest


METHODS.update(
    {
        (Parser, "add_argument"): add_argument,
        (Parser, "set_defaults"): set_defaults,
        (Parser, "error"): leave,
        (Parser, "exit"): leave,
        (Parser, "parse_args"): parse_args,
        (Parser, "parse_known_args"): parse_known_args,
        **dict.fromkeys(((Parser, name) for name in _SAME), same_parser),
    }
)


# absl


def _flag(*, enumerated: bool) -> Interpreted:
    def define(machine: Machine, arguments: Arguments) -> Value:
        names = ("name", "default", *(("enum_values",) if enumerated else ()))
        given = dict(zip(names, arguments.positional, strict=False)) | dict(arguments.keywords)
        name, default = given.get("name"), given.get("default")
        if not isinstance(name, str) or arguments.spread:
            raise Unmodelled("the name of the flag is not known")
        choices = iteration.elements(machine, given["enum_values"]) if enumerated else ()
        value = option(machine, f"--{name}", default, arguments.node, choices if default in choices else (), "a flag")
        machine.state.cells[(ABSL_FLAGS, name)] = value
        made = Instance(machine.new_id(), Class("FlagHolder", machine.new_id(), (), "open"))
        machine.state.cells[(made.id, "value")] = value
        machine.state.cells[(made.id, "default")] = default
        return made

    return define


_PLAIN = ("integer", "float", "string", "bool", "boolean")
interprets(*(f"absl.flags.DEFINE_{kind}" for kind in _PLAIN))(_flag(enumerated=False))
interprets("absl.flags.DEFINE_enum")(_flag(enumerated=True))


# The environment


@interprets("os.environ.get", "os.getenv")
def _environment(machine: Machine, arguments: Arguments) -> Value:
    given = dict(zip(("key", "default"), arguments.positional, strict=False)) | dict(arguments.keywords)
    name = given.get("key")
    if not isinstance(name, str):
        raise Unmodelled("which variable of the environment it is is not known")
    value = option(machine, f"${name}", given.get("default"), arguments.node, kind="a variable of the environment")
    assert isinstance(value, Opaque)
    return replace(value, key=("environment", name, machine.state.epoch))
