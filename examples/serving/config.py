"""Sizes of the models that are served."""

from dataclasses import dataclass

PAGE_SIZE = 16


@dataclass(frozen=True)
class ModelConfig:
    """The attention of one model, as its checkpoint has it."""

    num_q_heads: int
    num_kv_heads: int
    head_dim: int
    max_model_len: int = 4096

    @property
    def pages_per_sequence(self) -> int:
        return -(-self.max_model_len // PAGE_SIZE)


LLAMA_8B = ModelConfig(num_q_heads=32, num_kv_heads=8, head_dim=128)
GEMMA_2B = ModelConfig(num_q_heads=8, num_kv_heads=1, head_dim=256)
PHI_14B = ModelConfig(num_q_heads=40, num_kv_heads=10, head_dim=128)
