"""Kernels of torch_xla."""

import torch
import torch_xla.experimental.custom_kernel  # noqa: F401
from torch_xla.experimental.custom_kernel import paged_attention

q = torch.zeros(4, 8, 128)
kv = torch.zeros(1, 64, 16, 128)
lens = torch.zeros(4, dtype=torch.int32)
six = torch.zeros(4, 6, dtype=torch.int32)
paged_attention(q, kv, kv, lens, six, 3)
paged_attention(q, kv, kv, lens, six, pages_per_compute_block=3, megacore_mode="batch")
paged_attention(q, kv, kv, lens.to(torch.int32), six, 3)
paged_attention(q, kv, kv, lens, six.to(torch.int32), 3)
torch.ops.xla.paged_attention(q, kv, kv, torch.zeros(4), six, 3)
torch.ops.xla.paged_attention(q, kv, kv, lens, six, 3, None, None)


def decode(q, k, v, lengths, table, block):
    return paged_attention(q, k, v, lengths, table, min(block, table.shape[1]), "kv_head")
