"""Modules that functions import, execute or execute again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemods.evaluate import havoc, modules
from codemods.evaluate.calls import Arguments
from codemods.evaluate.interpreted import interprets
from codemods.evaluate.library import Unmodelled
from codemods.values import Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine


@interprets("importlib.import_module", "builtins.__import__")
def _import_module(machine: Machine, arguments: Arguments) -> Value:
    name, *rest = arguments.positional or (arguments.keywords.get("name"),)
    if not isinstance(name, str) or name.startswith(".") or "level" in arguments.keywords or len(rest) > 3:
        havoc.everything(machine, "a module is imported of which the name is not known", arguments.node, names=True)
        raise Unmodelled("which module is imported is not known")
    found = modules.resolve(machine, name)
    is_function = getattr(getattr(arguments.node, "func", None), "id", "") == "__import__"
    return modules.resolve(machine, name.partition(".")[0]) if is_function and "fromlist" not in arguments.keywords else found


@interprets("importlib.reload", "runpy.run_path", "runpy.run_module")
def _run(machine: Machine, arguments: Arguments) -> Value:
    havoc.everything(machine, "a module is executed once more", arguments.node, names=True)
    raise Unmodelled("a module that is executed once more")
