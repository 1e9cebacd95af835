"""What functions of the standard library and of frameworks do."""

from codemods.evaluate import contracts
from codemods.evaluate.interpreted import INTERPRETED
from codemods.evaluate.standard import functions, numbers, objects, options, sequences, sharding, trees  # each fills the table

__all__ = ["INTERPRETED", "contracts", "functions", "numbers", "objects", "options", "sequences", "sharding", "trees"]
