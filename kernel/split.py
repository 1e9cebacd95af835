"""One call of paged attention split over the devices of a mesh."""

# JAX types some of its functions in part: what they are, and give, is unknown to pyright.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P


@dataclass(frozen=True)
class Split:
    """Which axis of a mesh takes what; None: every device along all axes has it all.

    Attributes:
        mesh: the devices.
        heads_axis: splits query heads, and KV heads where there are as many as devices along it, or more.
        batch_axis: splits the rows.
        pages_axis: splits the pool of pages.
    """

    mesh: Mesh | AbstractMesh
    heads_axis: str | None
    batch_axis: str | None
    pages_axis: str | None

    def over_devices(self, attend: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
        """Return `attend` of whole arrays, which calls it for what each device gets of them."""

        def attend_whole(q: jax.Array, k_pages: Any, *others: Any) -> jax.Array:
            num_kv_heads = jax.tree.leaves(k_pages)[0].shape[0]
            devices = 1 if self.heads_axis is None else self.mesh.shape[self.heads_axis]
            copies = max(devices // num_kv_heads, 1)
            heads, rows = P(self.batch_axis, self.heads_axis), P(self.batch_axis)
            pool = P(self.heads_axis if copies == 1 else None, self.pages_axis)
            specs = (heads, pool, pool, rows, rows)
            return jax.shard_map(
                attend if copies == 1 else functools.partial(self._attend_one_head, attend, copies),
                mesh=self.mesh,
                in_specs=specs,
                out_specs=heads,
                check_vma=False,  # Pallas' kernels do not say along which axes their results vary
            )(*map(self._placed, (q, k_pages, *others), specs))

        return attend_whole

    def _placed(self, whole: Any, spec: P) -> Any:
        """Split an array over the explicit axes of the mesh, as `jax.shard_map` does itself over all others."""
        types = dict(zip(self.mesh.axis_names, self.mesh.axis_types, strict=True))
        if AxisType.Explicit not in types.values():
            return whole
        explicit = P(*(axis if types.get(axis) is AxisType.Explicit else None for axis in spec))
        return jax.sharding.reshard(whole, NamedSharding(self.mesh, explicit))

    def _attend_one_head(
        self,
        attend: Callable[..., jax.Array],
        copies: int,
        q: jax.Array,
        k_pages: Any,
        v_pages: Any,
        lengths: jax.Array,
        page_indices: jax.Array,
    ) -> jax.Array:
        """Call `attend` for the one KV head of this device, which it shares with `copies - 1` others.

        The pools of all heads count as one pool, of which the page table names another part. A slice would copy it.
        """
        total_num_pages = jax.tree.leaves(k_pages)[0].shape[1]
        head = lax.axis_index(self.heads_axis) // copies
        page_indices = page_indices + (head * total_num_pages).astype(page_indices.dtype)
        return attend(q, *map(_one_pool, (k_pages, v_pages)), lengths, page_indices)


def _one_pool(pages: Any) -> Any:
    """Return the pages of all KV heads as those of one, head by head."""

    def joined(leaf: jax.Array) -> jax.Array:
        return leaf.reshape(1, -1, *leaf.shape[2:])

    return jax.tree.map(joined, pages)
