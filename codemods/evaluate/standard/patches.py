"""What tests replace for some time: `unittest.mock.patch` and pytest's `monkeypatch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemods.evaluate import havoc, modules, objects
from codemods.evaluate.calls import Arguments
from codemods.evaluate.interpreted import interprets
from codemods.evaluate.library import Unmodelled
from codemods.values import External, Module, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_WHY = "it is replaced for some time"


def replace(machine: Machine, target: Value, name: Value, arguments: Arguments) -> None:
    """Forget an attribute for good: when it is put back is not followed. Without `name` the target is a dotted path."""
    if isinstance(target, str):
        if name is None:
            target, _, name = target.rpartition(".")
        target = _named(machine, target)
    cell = objects.cell_of(machine, target, name) if isinstance(name, str) else None
    if cell is None:
        havoc.everything(machine, _WHY, arguments.node, names=True)
    else:
        machine.memory.volatile[cell] = machine.unknown(cell[1], _WHY, arguments.node)
        havoc.forget(machine, [cell], _WHY, arguments.node)


def _named(machine: Machine, path: str) -> Value:
    """Return what a dotted path names: a module, or something in one."""
    first, *rest = path.split(".")
    value = modules.resolve(machine, first)
    for position, name in enumerate(rest, 2):
        inner = modules.resolve(machine, ".".join(path.split(".")[:position])) if isinstance(value, Module) else None
        node = machine.frame.statement
        value = inner if isinstance(inner, Module) or node is None else objects.attribute(machine, value, name, node)
    return value


def monkeypatch(machine: Machine, method: str, arguments: Arguments) -> None:
    """Execute `monkeypatch.setattr(target, "name", value)` and its like."""
    given: dict[str, Value] = {**dict(zip(("target", "name", "value"), arguments.positional, strict=False)), **arguments.keywords}
    if method.endswith("item"):
        item = arguments.positional[0] if arguments.positional else given.get("dic")
        havoc.leak(machine, given.get("value"))
        if isinstance(item, External):  # of a library; the environment is not known anyway
            return
        objects.forget(machine, item, arguments.node)
        havoc.disturb(machine, _WHY, arguments.node)
    else:
        target, name = given.get("target"), given.get("name")
        is_whole = isinstance(target, str) and ("name" not in given or (method == "setattr" and "value" not in given))
        replace(machine, target, None if is_whole else name, arguments)


@interprets("unittest.mock.patch.object")
def _patch(machine: Machine, arguments: Arguments) -> Value:
    given = {**dict(zip(("target", "attribute"), arguments.positional, strict=False)), **arguments.keywords}
    replace(machine, given.get("target"), given.get("attribute"), arguments)
    raise Unmodelled("a patch")


@interprets("unittest.mock.patch.dict")
def _patch_dict(machine: Machine, arguments: Arguments) -> Value:
    """Some items of a dict are replaced for some time; those of the environment are not known anyway."""
    patched = arguments.positional[0] if arguments.positional else arguments.keywords.get("in_dict")
    if patched not in (External("os.environ"), "os.environ"):
        havoc.everything(machine, "some dict is replaced for some time", arguments.node, names=True)
    raise Unmodelled("a patch")


@interprets("unittest.mock.patch")
def _patch_named(machine: Machine, arguments: Arguments) -> Value:
    target = arguments.positional[0] if arguments.positional else arguments.keywords.get("target")
    replace(machine, target, None, arguments)
    raise Unmodelled("a patch")


@interprets("unittest.mock.patch.multiple")
def _patch_several(machine: Machine, arguments: Arguments) -> Value:
    havoc.everything(machine, "something is replaced for some time", arguments.node, names=True)
    raise Unmodelled("a patch")
