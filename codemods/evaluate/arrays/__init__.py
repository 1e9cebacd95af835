"""Arrays: what operators, subscripts, attributes and library functions make of their shapes and dtypes.

Importing the package registers the models of jax, numpy and torch in `codemods.evaluate.library.MODELS`.
"""

from codemods.evaluate.arrays import (  # noqa: F401
    attributes,
    constructors,
    conversions,
    counting,
    gathering,
    joining,
    matrices,
    products,
    quantized,
    random,
    rearrangements,
    rearranging,
    reductions,
    repeating,
)
from codemods.evaluate.arrays.attributes import attribute, length
from codemods.evaluate.arrays.dtypes import dtype_of
from codemods.evaluate.arrays.elementwise import binary, inplace, unary
from codemods.evaluate.arrays.indexing import index

__all__ = ["attribute", "binary", "dtype_of", "index", "inplace", "length", "unary"]
