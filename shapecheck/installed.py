"""Contracts on kernels of other libraries, in place: also for who has imported them already, and until they are taken off."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from types import CodeType, FunctionType, TracebackType
from typing import Any, TypeAlias, TypeVar

from shapecheck.contract import Contract
from shapecheck.contracts import CONTRACTS
from shapecheck.decorators import checked

_JAX = "jax.experimental.pallas.ops.tpu"

KERNELS: Mapping[str, Contract] = {
    f"{_JAX}.paged_attention.paged_attention_kernel.paged_attention": CONTRACTS["paged_attention"],
    f"{_JAX}.ragged_paged_attention.kernel.ragged_paged_attention": CONTRACTS["ragged_paged_attention"],
}
"""The contract of each function that `install` puts one on, by the path of where it is defined."""

_Function = TypeVar("_Function", bound=Callable[..., Any])

_lock = threading.RLock()
_front_doors: dict[str, Any] = {}
_handing_on = ContextVar("_handing_on", default=False)
_installed: dict[str, _Installed] = {}
_holders: set[Installation] = set()


Watch: TypeAlias = Callable[[Contract, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""What is called in place of a function that has its contract: with the contract, the function, and its arguments."""


class Installation:
    """What `install` returns. Contracts stay until every one is released; as a context manager it is released at its end."""

    def __init__(self, watch: Watch | None) -> None:
        self.watch = watch

    def uninstall(self) -> None:
        """Take the contracts off, unless another installation holds them."""
        with _lock:
            _holders.discard(self)
            if not _holders:
                uninstall()

    def __enter__(self) -> Installation:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.uninstall()


def install(watch: Watch | None = None) -> Installation:
    """Put the contracts of `KERNELS` on the kernels themselves, until `uninstall` takes them off.

        shapecheck.install()          # for the rest of the program
        with shapecheck.install():    # for as long as this takes
            ...

    Every call is checked, however the kernel was imported and whenever, inside a `functools.partial` or a `jit` too: it is the
    function inside JAX's jit object that is changed, not the names that refer to it. It runs when a call is traced, so that a
    call of a signature that was traced before costs nothing; what was traced before is forgotten here. A program that was
    compiled before, from a function of yours, runs on as it is.

    Several installations may be held at the same time; each function has its contract once. This imports JAX.

    Args:
        watch: is called in place of each function, and calls it; also of each front door, which has its contract anyway.
    """
    with _lock:
        _holders.add(holder := Installation(watch))
        try:
            for path, contract in KERNELS.items():
                if path not in _installed:
                    _installed[path] = _Kernel(path, contract)
            if watch is not None:
                for path, function in _front_doors.items():
                    if path not in _installed:
                        _installed[path] = _Installed(path, function, function.__contract__)
        except BaseException:
            holder.uninstall()
            raise
        return holder


def uninstall() -> None:
    """Take all contracts off that `install` has put on, whoever holds them."""
    with _lock:
        _holders.clear()
        while _installed:
            _installed.popitem()[1].remove()


def front_door(function: _Function) -> _Function:
    """Let who watches kernels see the calls of a function with a contract that stands before one of `KERNELS`; return it."""
    path = f"{function.__module__}.{function.__qualname__}"
    with _lock:
        _front_doors[path] = function
        if any(holder.watch is not None for holder in _holders):
            _installed[path] = _Installed(path, _front_doors[path], _front_doors[path].__contract__)
    return function


@contextmanager
def handing_on() -> Generator[None]:
    """Say that what is called here, or is traced, is the kernel behind a front door, whose call has been seen."""
    token = _handing_on.set(True)
    try:
        yield
    finally:
        _handing_on.reset(token)


def is_handed_on() -> bool:
    """Say whether the call of a kernel that is watched comes from its front door."""
    return _handing_on.get()


def guarded(path: str) -> Callable[..., Any]:
    """Return what is called in place of a function that has its contract; who is already inside when it is taken off, goes on."""
    installed = _installed.get(path)
    if installed is None:
        function: Callable[..., Any] = _function_at(path)
        return function
    watches = [holder.watch for holder in tuple(_holders) if holder.watch is not None]
    return functools.reduce(installed.watched_by, watches, installed.checked)


class _Installed:
    """A function whose calls go by `guarded`, by giving it other code: what refers to it goes on to refer to it.

    A front door, or anything else that has its contract.
    """

    def __init__(self, path: str, function: FunctionType, contract: Contract) -> None:
        self._function = function
        self._code = code = function.__code__
        original = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
        original.__kwdefaults__ = function.__kwdefaults__
        original.__annotations__ = function.__annotations__
        vars(original).update(vars(function))
        self.contract = contract
        self.checked: Callable[..., Any] = original
        function.__code__ = _code_that_asks(path, code)

    def watched_by(self, function: Callable[..., Any], watch: Watch) -> Callable[..., Any]:
        def watched(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            return watch(self.contract, function, args, kwargs)

        return watched

    def remove(self) -> None:
        self._function.__code__ = self._code


class _Kernel(_Installed):
    """A kernel of JAX, a jit object, on which its contract is put."""

    def __init__(self, path: str, contract: Contract) -> None:
        self._jitted = _function_at(path)
        function = _plain(self._jitted, path)
        signature = inspect.signature(function)
        super().__init__(path, function, contract)
        self.checked = checked(self.checked, contract)
        vars(function)["__signature__"] = signature
        self._forget()

    def remove(self) -> None:
        super().remove()
        del vars(self._function)["__signature__"]
        self._forget()

    def _forget(self) -> None:
        """Have calls traced again that were traced before."""
        if hasattr(self._jitted, "clear_cache"):
            self._jitted.clear_cache()


def _function_at(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def _plain(function: Any, path: str) -> FunctionType:
    """Return the function of Python inside a jit object."""
    plain = inspect.unwrap(function)
    if not isinstance(plain, FunctionType) or plain.__code__.co_freevars:
        raise TypeError(f"{path} is no plain function, so no contract can be put on it")
    return plain


def _code_that_asks(path: str, code: CodeType) -> CodeType:
    """Return code that hands its arguments on to `guarded(path)`; it says that it is where the other code is.

    A function takes only code with as many free variables as it has.
    """
    free = ", ".join(code.co_freevars)
    source = (
        f"def around({free}):\n"
        "    def asking(*args, **kwargs):\n"
        f"        {f'nonlocal {free}' if free else 'pass'}\n"
        "        from shapecheck.frames import without_own_frames\n"
        f"        from {__name__} import guarded\n"
        "        __tracebackhide__ = True\n"
        "        try:\n"
        f"            return guarded({path!r})(*args, **kwargs)\n"
        "        except Exception as error:\n"
        "            error.__traceback__ = without_own_frames(error.__traceback__.tb_next)\n"
        "            raise\n"
    )
    module = compile(source, code.co_filename, "exec")
    (around,) = (each for each in module.co_consts if isinstance(each, CodeType))
    (asking,) = (each for each in around.co_consts if isinstance(each, CodeType))
    return asking.replace(co_name=code.co_name, co_qualname=code.co_qualname, co_firstlineno=code.co_firstlineno)
