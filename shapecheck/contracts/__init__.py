"""The contracts of known kernels, by the name of the callee."""

from collections.abc import Mapping

from shapecheck.contract import Contract
from shapecheck.contracts.paged_attention import PAGED_ATTENTION

CONTRACTS: Mapping[str, Contract] = {contract.name: contract for contract in (PAGED_ATTENTION,)}
