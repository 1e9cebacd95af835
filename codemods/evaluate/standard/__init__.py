"""What functions of the standard library and of frameworks do; importing this fills the table of interpreted functions."""

from codemods.evaluate.standard import functions, numbers, objects, sequences

__all__ = ["functions", "numbers", "objects", "sequences"]
