"""The kernels whose calls are checked, by the dotted paths they are imported from, and how their arguments bind."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from inspect import Parameter, Signature

from codemods.codes import OWN_CODES, SIGNATURE
from shapecheck.contract import Contract
from shapecheck.contracts import CONTRACTS
from shapecheck.contracts.derived import switched
from shapecheck.contracts.paged_attention import PORTABLE_PAGED_ATTENTION
from shapecheck.contracts.ragged_paged_attention import (
    PORTABLE_RAGGED_PAGED_ATTENTION,
    TORCH_XLA_RAGGED_PAGED_ATTENTION,
)
from shapecheck.relation import Relation
from shapecheck.rule import Rule

TYPE_ERROR = "type_error"
"""The name of what Python says of a call that does not fit the signature; None of one that does."""

_OWN = OWN_CODES[SIGNATURE]
FITS = Rule(SIGNATURE, _OWN.name, Relation(f"{TYPE_ERROR} is None"), _OWN.message, _OWN.explanation, argument="")
"""What Python demands of a call. No contract states it: at call time it is Python that raises the error."""


@dataclass(frozen=True)
class Callee:
    """One kernel as a caller sees it.

    Attributes:
        name: what messages call it.
        contract: what it demands.
        signature: its parameters. Of several versions it takes what any of them takes: a parameter that one of them lacks, or
            has a default for, is optional.
        renamed: the contract's names of the parameters that it calls otherwise, by its own names.
        on_tpu: whether it runs on a TPU only, unless Pallas interprets it.
        earlier: the signature of another kernel that had its path before; a call that fits only that one is a call of it.
    """

    name: str
    contract: Contract
    signature: Signature
    renamed: Mapping[str, str] = field(default_factory=dict[str, str])
    on_tpu: bool = False
    earlier: Signature | None = None

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What a call must keep: the rules of the contract, and Python's."""
        return (*self.contract.rules, FITS)

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """The names of the parameters that may be given by position, in their order."""
        kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        return tuple(name for name, each in self.signature.parameters.items() if each.kind in kinds)

    @cached_property
    def by_keyword(self) -> frozenset[str]:
        """The names of the parameters that may be given by keyword."""
        kinds = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        return frozenset(name for name, each in self.signature.parameters.items() if each.kind in kinds)

    @cached_property
    def required(self) -> frozenset[str]:
        """The contract's names of the parameters that every call gives."""
        parameters = self.signature.parameters.items()
        return frozenset(self.contract_name(name) for name, each in parameters if each.default is Parameter.empty)

    def contract_name(self, name: str) -> str:
        """Return the contract's name of a parameter."""
        return self.renamed.get(name, name)


def signature_of(declared: ast.arguments) -> Signature:
    """Return the signature of a function; what its defaults are is not said, only that there are some."""
    by_position = (*declared.posonlyargs, *declared.args)
    kinds = [Parameter.POSITIONAL_ONLY] * len(declared.posonlyargs) + [Parameter.POSITIONAL_OR_KEYWORD] * len(declared.args)
    defaults = [Parameter.empty] * (len(by_position) - len(declared.defaults)) + [...] * len(declared.defaults)
    parameters = [
        Parameter(each.arg, kind, default=default) for each, kind, default in zip(by_position, kinds, defaults, strict=True)
    ]
    if declared.vararg is not None:
        parameters.append(Parameter(declared.vararg.arg, Parameter.VAR_POSITIONAL))
    for each, default in zip(declared.kwonlyargs, declared.kw_defaults, strict=True):
        parameters.append(Parameter(each.arg, Parameter.KEYWORD_ONLY, default=Parameter.empty if default is None else ...))
    if declared.kwarg is not None:
        parameters.append(Parameter(declared.kwarg.arg, Parameter.VAR_KEYWORD))
    return Signature(parameters)


def _signature(parameters: str) -> Signature:
    (statement,) = ast.parse(f"def kernel({parameters}): ...").body
    assert isinstance(statement, ast.FunctionDef)
    return signature_of(statement.args)


_ARRAYS = "q, k_pages, v_pages, lengths, page_indices"
_KEYWORDS = "mask_value=..., attn_logits_soft_cap=..., pages_per_compute_block, megacore_mode=..., inline_seq_dim=..."

# jax/experimental/pallas/ops/tpu/paged_attention/paged_attention_kernel.py, JAX 0.10 to 0.12.
_JAX = Callee("paged_attention", CONTRACTS["paged_attention"], _signature(f"{_ARRAYS}, *, {_KEYWORDS}"), on_tpu=True)

# kernel/paged_attention.py: the same call, which runs anywhere.
_FRONT_DOOR = replace(
    _JAX,
    contract=PORTABLE_PAGED_ATTENTION,
    signature=_signature(
        f"{_ARRAYS}, *, {_KEYWORDS}, implementation=..., mesh=..., heads_axis=..., batch_axis=..., pages_axis=...,"
        " check_values=..."
    ),
    on_tpu=False,
)

# torch_xla/experimental/custom_kernel.py, 2.4 to 2.9: the schema of the op and the Python function take their arguments in this
# order. The soft cap is there since 2.5. Up to 2.6 the op's schema, `str megacore_mode=None`, has no place for a None that is
# written down; since 2.7 it has.
_TORCH_XLA = Callee(
    "paged_attention",
    CONTRACTS["paged_attention"],
    _signature(f"{_ARRAYS}, pages_per_compute_block, megacore_mode=..., attn_logits_soft_cap=..."),
    on_tpu=True,
)

# torch_xla/experimental/pallas_kernels/multi_queries_paged_attention_kernel.py, 2.6 to 2.9; the soft cap is there since 2.7.
_MULTI_QUERIES_KERNEL = Callee(
    "paged_attention",
    CONTRACTS["multi_queries_paged_attention"],
    _signature(
        f"{_ARRAYS}, effective_q_lens, *, mask_value=..., num_kv_pages_per_compute_block, num_queries_per_compute_block=...,"
        " attn_logits_soft_cap=..."
    ),
    renamed={"num_kv_pages_per_compute_block": "pages_per_compute_block"},
)

# torch_xla/experimental/custom_kernel.py, 2.6 to 2.9; the soft cap is there since 2.7. Without `use_kernel` it is a loop in torch
# that asks for no blocks. The schema of the op has the order of the Python function, but no default of `use_kernel`.
_BLOCKS = "num_kv_pages_per_compute_block, num_queries_per_compute_block"
_MULTI_QUERIES = Callee(
    "multi_queries_paged_attention",
    switched(CONTRACTS["multi_queries_paged_attention"], "use_kernel", default=True),
    _signature(f"{_ARRAYS}, effective_q_lens, {_BLOCKS}, use_kernel=..., attn_logits_soft_cap=..."),
    renamed={"num_kv_pages_per_compute_block": "pages_per_compute_block"},
)
_MULTI_QUERIES_OP = replace(
    _MULTI_QUERIES, signature=_signature(f"{_ARRAYS}, effective_q_lens, {_BLOCKS}, use_kernel, attn_logits_soft_cap=...")
)

# The branch `xiowei/extend_paged_attention` of pytorch/xla, October 2024; never released. Without `use_pallas` it is a loop.
_EXTENDED = Callee(
    "extended_paged_attention",
    switched(CONTRACTS["extended_paged_attention"], "use_pallas", default=False),
    _signature(f"{_ARRAYS}, pages_per_compute_block, megacore_mode=..., attn_logits_soft_cap=..., use_pallas=..."),
)

# ejkernel/kernels/_pallas/tpu/page_attention/_interface.py, 0.0.1 to 0.0.80. `ejkernel.modules` has a `page_attention` too, which
# chooses a kernel by the platform it finds: only some of its calls are calls of this one, so it is not in the table.
_EJKERNEL = Callee(
    "page_attention",
    CONTRACTS["page_attention"],
    _signature(
        "query, key_cache, value_cache, context_lens, block_tables, attn_scale=..., max_context_len=..., num_splits=..., *,"
        " mask_value=..., attn_logits_soft_cap=..., pages_per_compute_block=..., megacore_mode=..., inline_seq_dim=...,"
        " sliding_window=..., num_warps=..., num_stages=..."
    ),
    renamed={
        "query": "q", "key_cache": "k_pages", "value_cache": "v_pages", "context_lens": "lengths", "block_tables": "page_indices",
    },
)  # fmt: skip

# jax/experimental/pallas/ops/tpu/ragged_paged_attention/kernel.py, JAX 0.10 to 0.12.
_RAGGED_ARRAYS = "q, kv_pages, kv_lens, page_indices, cu_q_lens, num_seqs"
_RAGGED_BLOCKS = "num_kv_pages_per_block=..., num_queries_per_block=..., vmem_limit_bytes=..."
_RAGGED_KEYWORDS = "sm_scale=..., sliding_window=..., soft_cap=..., mask_value=..., k_scale=..., v_scale=..."
_RAGGED = Callee(
    "ragged_paged_attention",
    CONTRACTS["ragged_paged_attention"],
    _signature(f"{_RAGGED_ARRAYS}, *, {_RAGGED_KEYWORDS}, {_RAGGED_BLOCKS}"),
    on_tpu=True,
)

# kernel/ragged_paged_attention.py: the same call, which runs anywhere.
_RAGGED_FRONT_DOOR = replace(
    _RAGGED,
    contract=PORTABLE_RAGGED_PAGED_ATTENTION,
    signature=_signature(f"{_RAGGED_ARRAYS}, *, {_RAGGED_KEYWORDS}, {_RAGGED_BLOCKS}, implementation=..., check_values=..."),
    on_tpu=False,
)

# torch_xla/experimental/custom_kernel.py, 2.8 and 2.9. Without `use_kernel` it is a loop in torch. In 2.7 keys and values were
# two arrays, and the op took the blocks by position: what gives more than the six arrays by position is not judged.
_TORCH_RAGGED_KERNEL = replace(
    _RAGGED,
    contract=TORCH_XLA_RAGGED_PAGED_ATTENTION,
    earlier=_signature("q, k_pages, v_pages, kv_lens, page_indices, cu_q_lens, num_seqs, *blocks, **options"),
)
_TORCH_RAGGED = replace(
    _TORCH_RAGGED_KERNEL,
    contract=switched(TORCH_XLA_RAGGED_PAGED_ATTENTION, "use_kernel", default=True),
    signature=_signature(f"{_RAGGED_ARRAYS}, *, {_RAGGED_KEYWORDS}, use_kernel=..., {_RAGGED_BLOCKS}"),
)

_TPU = "jax.experimental.pallas.ops.tpu.paged_attention"
_RAGGED_TPU = "jax.experimental.pallas.ops.tpu.ragged_paged_attention"
_XLA = "torch_xla.experimental"
_EJ = "ejkernel.kernels._pallas.tpu.page_attention"
_OVERLOAD = ".default"  # the only one of each op; `torch.ops.xla.paged_attention.default` is called as the op itself is

CALLEES: Mapping[str, Callee] = {
    f"{_TPU}.paged_attention": _JAX,
    f"{_TPU}.paged_attention_kernel.paged_attention": _JAX,
    "kernel.paged_attention": _FRONT_DOOR,
    "kernel.paged_attention.paged_attention": _FRONT_DOOR,
    f"{_RAGGED_TPU}.ragged_paged_attention": _RAGGED,
    f"{_RAGGED_TPU}.kernel.ragged_paged_attention": _RAGGED,
    "kernel.ragged_paged_attention": _RAGGED_FRONT_DOOR,
    "kernel.ragged_paged_attention.ragged_paged_attention": _RAGGED_FRONT_DOOR,
    f"{_XLA}.custom_kernel.ragged_paged_attention": _TORCH_RAGGED,
    f"{_XLA}.pallas_kernels.ragged_paged_attention_v2.ragged_paged_attention": _TORCH_RAGGED_KERNEL,
    "torch.ops.xla.ragged_paged_attention": _TORCH_RAGGED,
    f"torch.ops.xla.ragged_paged_attention{_OVERLOAD}": _TORCH_RAGGED,
    f"{_XLA}.custom_kernel.paged_attention": _TORCH_XLA,
    "torch.ops.xla.paged_attention": _TORCH_XLA,
    f"torch.ops.xla.paged_attention{_OVERLOAD}": _TORCH_XLA,
    f"{_XLA}.pallas_kernels.multi_queries_paged_attention_kernel.paged_attention": _MULTI_QUERIES_KERNEL,
    f"{_XLA}.custom_kernel.multi_queries_paged_attention": _MULTI_QUERIES,
    "torch.ops.xla.multi_queries_paged_attention": _MULTI_QUERIES_OP,
    f"torch.ops.xla.multi_queries_paged_attention{_OVERLOAD}": _MULTI_QUERIES_OP,
    f"{_XLA}.custom_kernel.extended_paged_attention": _EXTENDED,
    _EJ: _EJKERNEL,  # the package `tpu` has the function under the name of the module that it comes from
    f"{_EJ}.page_attention": _EJKERNEL,
    f"{_EJ}._interface.page_attention": _EJKERNEL,
    "ejkernel.kernels.pallas.tpu.page_attention": _EJKERNEL,
}

PACKAGES = frozenset({"kernel", "shapecheck"})
"""Our own packages: a tree that holds them is this project's, and what they export means there what it means elsewhere."""

WORDS = frozenset({b"shapecheck", *(path.removesuffix(_OVERLOAD).rpartition(".")[2].encode() for path in CALLEES)})
"""The whole words of which a file must hold one to be worth parsing: a kernel's name, or ours, for a contract of its own."""
