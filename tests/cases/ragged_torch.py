"""Calls of torch_xla's `ragged_paged_attention`, of 2.8 and 2.9; what only 2.7 takes is not judged."""

import torch
import torch_xla
from torch_xla.experimental.custom_kernel import ragged_paged_attention
from torch_xla.experimental.pallas_kernels.ragged_paged_attention_v2 import ragged_paged_attention as copy

q = torch.zeros((64, 8, 128), dtype=torch.bfloat16)
kv = torch.zeros((32, 16, 4, 128), dtype=torch.bfloat16)
lens = torch.zeros((8,), dtype=torch.int32)
table = torch.zeros((8, 16), dtype=torch.int32)
starts = torch.zeros((9,), dtype=torch.int32)
count = torch.tensor([8], dtype=torch.int32)

ragged_paged_attention(q, kv, lens, table, starts, count, k_scale=1)  #: proven SC101 SC105 SC107 SC123 SC125
ragged_paged_attention(q, kv, lens, table, starts, count, soft_cap=0.0)  #: SC113 violated
ragged_paged_attention(q, kv, lens, table, starts, count, soft_cap=0.0, use_kernel=False)  #: quiet
torch.ops.xla.ragged_paged_attention(q, kv, lens, table, starts, count, num_kv_pages_per_block=17, num_queries_per_block=8)  #: SC127 violated
torch.ops.xla.ragged_paged_attention.default(q, kv, lens, table, starts, count, use_kernel=True)  #: proven SC127
copy(q, kv, lens, table, starts[:8], count)  #: SC123 violated
ragged_paged_attention(q, kv, kv, lens, table, starts, count, num_kv_pages_per_block=2, num_queries_per_block=8)  #: not-a-site
torch.ops.xla.ragged_paged_attention(q, kv, kv, lens, table, starts, count, 17, 128, True)  #: not-a-site
torch.ops.xla.ragged_paged_attention(q, k_pages=kv, v_pages=kv, kv_lens=lens, page_indices=table, cu_q_lens=starts, num_seqs=count)  #: not-a-site
