"""`ml_collections.ConfigDict`: a dict whose items are attributes, and in which dicts become such dicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codemods.evaluate import configs
from codemods.evaluate.arguments import Arguments
from codemods.evaluate.interpreted import interprets, unfollowed
from codemods.evaluate.library import Unmodelled
from codemods.values import DictRef, Value

if TYPE_CHECKING:
    from codemods.evaluate.machine import Machine

_OWNERS = ("ml_collections", "ml_collections.config_dict", "ml_collections.config_dict.config_dict")


@interprets(*(f"{owner}.ConfigDict" for owner in _OWNERS))
def _config(machine: Machine, arguments: Arguments) -> Value:
    match arguments.positional:
        case () if not arguments.keywords and not arguments.spread:
            return configs.make(machine, ())
        case (DictRef() as value,) if not arguments.keywords:
            return configs.convert(machine, value)
        case _:
            raise Unmodelled(unfollowed(arguments))


@interprets("ml_collections.config_dict.create", "ml_collections.config_dict.config_dict.create")
def _create(machine: Machine, arguments: Arguments) -> Value:
    if arguments.positional or arguments.spread:
        raise Unmodelled(unfollowed(arguments))
    return configs.make(machine, arguments.keywords.items())
