"""What functions of the standard library and of frameworks do."""

from codemods.evaluate import contracts
from codemods.evaluate.interpreted import INTERPRETED
from codemods.evaluate.standard import (  # each fills the table
    assertions,
    classes,
    functions,
    imports,
    iterators,
    numbers,
    objects,
    options,
    ordering,
    patches,
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
    "imports",
    "iterators",
    "numbers",
    "objects",
    "options",
    "ordering",
    "patches",
    "sequences",
    "sharding",
    "trees",
]
