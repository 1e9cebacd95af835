"""The contracts of known kernels, by the name of the callee."""

from collections.abc import Mapping

from shapecheck.contract import Contract
from shapecheck.contracts.extended_paged_attention import EXTENDED_PAGED_ATTENTION
from shapecheck.contracts.multi_queries_paged_attention import MULTI_QUERIES_PAGED_ATTENTION
from shapecheck.contracts.page_attention import PAGE_ATTENTION
from shapecheck.contracts.paged_attention import PAGED_ATTENTION, PORTABLE_PAGED_ATTENTION
from shapecheck.contracts.ragged_paged_attention import PORTABLE_RAGGED_PAGED_ATTENTION, RAGGED_PAGED_ATTENTION

CONTRACTS: Mapping[str, Contract] = {
    contract.name: contract
    for contract in (
        PAGED_ATTENTION,
        MULTI_QUERIES_PAGED_ATTENTION,
        EXTENDED_PAGED_ATTENTION,
        PAGE_ATTENTION,
        RAGGED_PAGED_ATTENTION,
    )
}

FRONT_DOORS = (PORTABLE_PAGED_ATTENTION, PORTABLE_RAGGED_PAGED_ATTENTION)
"""The contracts of the functions of `kernel`, which have the names of the kernels that they call, and rules of their own."""
