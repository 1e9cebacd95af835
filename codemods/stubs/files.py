"""The files of stubs: one for each module that defines or exports a kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from codemods.callees import CALLEES
from codemods.stubs.callee import HEAD, Stub

VERSIONS = "pyrefly 1.5.0 and jax-pyrefly-stubs 1.4.0"
"""For which stubs are written: the language of shapes is young, and changes."""

MARK = "# Written by `shapecheck stub`"
"""How each file begins: what does not begin so is not ours to replace."""

PATHS = tuple(path for path in CALLEES if path.startswith(("jax.", "kernel.")))
"""The kernels of which there are stubs, by every path that they are imported from."""

NAMES = tuple(dict.fromkeys(path.rpartition(".")[2] for path in PATHS))

_PACKAGES = {path.rpartition(".")[0].rpartition(".")[0] for path in PATHS}
"""The modules that only hand on what modules inside of them define."""

_OTHERS = "def __getattr__(name: str) -> Any: ...\n"  # a stub hides the module; what it does not speak of may be anything

_PAGED = "jax.experimental.pallas.ops.tpu.paged_attention"
_IMPORTS = f"from {_PAGED}.quantization_utils import QuantizedTensor\nfrom numpy import ndarray\n"
_QUANTIZED_TENSOR = f"""\
from typing import Any

from jax import Array

class QuantizedTensor:
    weight: Array
    scales: Array

{_OTHERS}"""


def stubs_of(names: Iterable[str]) -> Mapping[str, Stub]:
    """Return the stub of each kernel that has one of these names, by the module that defines it."""
    chosen = set(names)
    modules = {path.rpartition(".")[0]: CALLEES[path] for path in PATHS if path.rpartition(".")[2] in chosen}
    return {module: Stub(callee) for module, callee in modules.items() if module not in _PACKAGES}


def files_of(stubs: Mapping[str, Stub], own: Mapping[str, Sequence[Stub]]) -> Mapping[str, str]:
    """Return the text of each file, by its path inside the folder that pyrefly is to search.

    Args:
        stubs: kernels, by the module that defines them.
        own: functions of the user, by their module.
    """
    files: dict[str, str] = {}
    for module, each in own.items():
        files[f"{module.replace('.', '/')}.pyi"] = "\n".join([HEAD, *(stub.text for stub in each), _OTHERS])
    exports: dict[str, str] = {}
    for module, stub in stubs.items():
        files[f"{module.replace('.', '/')}.pyi"] = f"{HEAD}{_IMPORTS}\n{stub.text}\n{_OTHERS}"
        package, name = module.rpartition(".")[0], stub.callee.name
        exports[package] = f"{exports.get(package, '')}from {module} import {name} as {name}\n"
    if stubs:
        files[f"{_PAGED.replace('.', '/')}/quantization_utils.pyi"] = _QUANTIZED_TENSOR
        exports.setdefault(_PAGED, "")
    for package, lines in exports.items():
        files[f"{package.replace('.', '/')}/__init__.pyi"] = f"from typing import Any\n\n{lines}\n{_OTHERS}"
    return {path: f"{MARK}, for {VERSIONS}.\n{text}" for path, text in files.items()}
