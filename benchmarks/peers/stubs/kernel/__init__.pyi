from typing import Any

from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention as paged_attention

def pad_page_indices(*args: Any, **kwargs: Any) -> Any: ...
