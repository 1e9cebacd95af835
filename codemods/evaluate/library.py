"""The table of library functions whose effect on shapes, dtypes and numbers is known.

Each model is a function of a `Call` and is registered for the dotted paths it stands for:

    @models("jax.numpy.zeros", "numpy.zeros", "torch.zeros")
    def zeros(call: Call) -> Value: ...

A model sees values without alternatives (`Choice` is spread out before it is asked). It raises `Unmodelled` where it
cannot tell; the result is then unknown, with that reason. Methods of arrays are registered as `array.NAME`, with the
array as the first argument.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from codemods.values import Value


class Unmodelled(Exception):
    """The result of this call is not known."""


class Impossible(Unmodelled):
    """The call would fail: nothing comes out of it."""


@dataclass(frozen=True)
class Call:
    """The arguments of a call to a library function.

    Attributes:
        path: the dotted path that was called, e.g. `jax.numpy.zeros`.
        positional: the values of the positional arguments.
        keywords: those of the keyword arguments.
        elements: turns a sequence value (tuple, list, range, ...) into the tuple of its elements, or raises `Unmodelled`.
        fresh: makes an unknown value that differs from every other: `fresh("jax.random.split(...)")`.
    """

    path: str
    positional: tuple[Value, ...]
    keywords: Mapping[str, Value] = field(default_factory=dict[str, Value])
    elements: Callable[[Value], tuple[Value, ...]] = field(default=lambda value: value, repr=False)
    fresh: Callable[[str], Value] = field(default=lambda text: None, repr=False)

    @property
    def library(self) -> str:
        """`jax`, `numpy` or `torch`."""
        return self.path.partition(".")[0]

    def get(self, position: int | None, name: str, default: Any = None) -> Value:
        """Return the argument at `position` (None: keyword only) or called `name`."""
        if position is not None and position < len(self.positional):
            return self.positional[position]
        return self.keywords.get(name, default)


Model: TypeAlias = Callable[[Call], Value]

MODELS: dict[str, Model] = {}


def models(*paths: str) -> Callable[[Model], Model]:
    """Register a function as the model of these dotted paths."""

    def register(model: Model) -> Model:
        MODELS.update(dict.fromkeys(paths, model))
        return model

    return register
