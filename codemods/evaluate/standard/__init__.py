"""What functions of the standard library and of frameworks do."""

from codemods.evaluate import contracts
from codemods.evaluate.interpreted import INTERPRETED

# each fills the table
from codemods.evaluate.standard import (
    assertions,
    classes,
    functions,
    iterators,
    numbers,
    objects,
    options,
    ordering,
    sequences,
    sharding,
    trees,
)

__all__ = [
    "INTERPRETED",
    "assertions",
    "classes",
    "contracts",
    "functions",
    "iterators",
    "numbers",
    "objects",
    "options",
    "ordering",
    "sequences",
    "sharding",
    "trees",
]
