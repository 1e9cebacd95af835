"""Legal and good choices of the kernel's parameters."""

from __future__ import annotations

from typing import Literal

from shapecheck.chip import chip_of, local_chip


def largest_divisor(n: int, at_most: int) -> int:
    """Return the largest divisor of `n` that is not above `at_most`.

    The block size to ask for where the page count is only known at run time:
    `pages_per_compute_block=largest_divisor(page_indices.shape[1], at_most=16)`. For a prime `n` above `at_most`
    that is 1, a slow block: pad the page table with `kernel.pad_page_indices` instead.

    Raises:
        ValueError: `n` or `at_most` is below 1.
    """
    if n < 1 or at_most < 1:
        raise ValueError(f"largest_divisor wants n >= 1 and at_most >= 1, got n={n} and at_most={at_most}")
    return next(divisor for divisor in range(min(n, at_most), 0, -1) if n % divisor == 0)


def divisors(n: int) -> list[int]:
    """Return every divisor of `n >= 1`, ascending."""
    low = [d for d in range(1, int(n**0.5) + 1) if n % d == 0]
    return low + [n // d for d in reversed(low) if d * d != n]


def megacore_mode_for(num_kv_heads: int, batch_size: int, *, chip: str | None = None) -> Literal["kv_head", "batch"] | None:
    """Return a megacore mode that is legal for these sizes on one device of `chip`.

    Args:
        num_kv_heads: KV heads on one device: inside `shard_map`, the size of the shard.
        batch_size: sequences on one device.
        chip: a name `shapecheck.chip` knows, e.g. `"v5p"`; None asks JAX for its first device.

    Returns:
        `"kv_head"` where the KV heads are even, else `"batch"` where the batch is, else None; always None where
        a device has one core (a mode would hang there), which includes every device that is no TPU.

    Raises:
        ValueError: `chip` is not a chip's name.
    """
    facts = chip_of(chip) if chip is not None else local_chip()
    if facts is None or facts.cores_per_device != 2:
        return None
    if num_kv_heads % 2 == 0:
        return "kv_head"
    return "batch" if batch_size % 2 == 0 else None
