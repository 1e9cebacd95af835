"""Typed front doors of TPU kernels: the same call, its contract enforced, on TPU and CPU."""
