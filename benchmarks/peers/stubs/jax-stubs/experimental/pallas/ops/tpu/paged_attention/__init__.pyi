from . import paged_attention_kernel as paged_attention_kernel
from . import quantization_utils as quantization_utils
from .paged_attention_kernel import paged_attention as paged_attention
