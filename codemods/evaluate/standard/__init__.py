"""What functions of the standard library and of frameworks do."""

from codemods.evaluate import contracts
from codemods.evaluate.interpreted import INTERPRETED
from codemods.evaluate.standard import (  # each fills the table
    functions,
    imports,
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
    "contracts",
    "functions",
    "imports",
    "numbers",
    "objects",
    "options",
    "ordering",
    "patches",
    "sequences",
    "sharding",
    "trees",
]
