"""What functions of the standard library and of frameworks do."""

from codemods.evaluate import contracts
from codemods.evaluate.interpreted import INTERPRETED
from codemods.evaluate.standard import (  # each fills the table
    assertions,
    chex,
    classes,
    configs,
    functions,
    imports,
    iterators,
    mappings,
    numbers,
    numpy_testing,
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
    "chex",
    "classes",
    "configs",
    "contracts",
    "functions",
    "imports",
    "iterators",
    "mappings",
    "numbers",
    "numpy_testing",
    "objects",
    "options",
    "ordering",
    "patches",
    "sequences",
    "sharding",
    "trees",
]
