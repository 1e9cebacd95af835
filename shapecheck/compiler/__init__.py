"""The TPU compiler as the judge: libtpu compiles for chips that are not there.

    from shapecheck.compiler import Question, ask

    answer, = ask([Question.of("v5e", batch_size=8, num_q_heads=32, ..., q_dtype="bfloat16", pages_dtype="bfloat16")])
    answer.compiles, answer.rule, answer.memory

JAX and libtpu are in another process (`worker`), which has a time limit and may crash; nothing here imports them.
"""

from shapecheck.compiler.answer import Answer, Failure, mebibytes
from shapecheck.compiler.cache import Cache, cache_folder
from shapecheck.compiler.kernels import KERNELS, Kernel, kernel_of
from shapecheck.compiler.pool import TIMEOUT, ask
from shapecheck.compiler.process import CompilerUnavailable
from shapecheck.compiler.question import Mesh, Question, missing

__all__ = [
    "KERNELS",
    "TIMEOUT",
    "Answer",
    "Cache",
    "CompilerUnavailable",
    "Failure",
    "Kernel",
    "Mesh",
    "Question",
    "ask",
    "cache_folder",
    "kernel_of",
    "mebibytes",
    "missing",
]
