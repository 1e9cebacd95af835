"""In what order JAX's ragged kernel copies pages and waits for them: its loops, without the arithmetic.

Read off `jax/experimental/pallas/ops/tpu/ragged_paged_attention/kernel.py`, JAX 0.10.2 to 0.12.0, which no interpreter runs.
"""

from __future__ import annotations

from collections.abc import Sequence


class Stuck(Exception):
    """The kernel waits for a copy that nothing has begun."""


class Schedule:
    """One run of the kernel.

    Attributes:
        confused: whether it took the copy of other pages for what it waited for.
        unwritten: how many rows of q, over all tiles of heads, got no result although they belong to a sequence.
        pending: how many copies are still under way at its end.
    """

    def __init__(
        self, kv_lens: Sequence[int], cu_q_lens: Sequence[int], num_seqs: int, *, rows: int, queries: int, tokens: int, tiles: int
    ) -> None:
        self._kv_lens, self._cu_q_lens, self._num_seqs = kv_lens, cu_q_lens, num_seqs
        self._queries, self._tokens, self._tiles = queries, tokens, tiles
        self._copies: list[list[tuple[int, int, int]]] = [[], []]  # under way to each buffer: of which tile, sequence and block
        self.confused = False
        written: set[tuple[int, int]] = set()
        sequence, buffer = 0, 0
        for tile in range(tiles):
            for first in range(0, rows, queries):
                if tile == first == 0:
                    self._copies[buffer].append((0, 0, 0))
                done = False
                while not done and first < cu_q_lens[num_seqs] and sequence < num_seqs:
                    start, end = cu_q_lens[sequence : sequence + 2]
                    buffer = self._attend(tile, sequence, buffer, ends_here=end <= first + queries)
                    written |= {(tile, row) for row in range(max(start, first), min(end, first + queries))}
                    done = end >= first + queries
                    sequence += end <= first + queries
                sequence = sequence if sequence < num_seqs else 0
        self.unwritten = tiles * cu_q_lens[num_seqs] - len(written)
        self.pending = sum(map(len, self._copies))

    def _attend(self, tile: int, sequence: int, buffer: int, *, ends_here: bool) -> int:
        blocks = -(-self._kv_lens[sequence] // self._tokens)
        for block in range(blocks):
            following = (tile, sequence, block + 1)
            if block + 1 == blocks:
                behind = sequence + ends_here
                following = (tile + 1, 0, 0) if behind == self._num_seqs else (tile, behind, 0)
            if following[0] < self._tiles:
                self._copies[1 - buffer].append(following)
            if not self._copies[buffer]:
                raise Stuck
            self.confused |= self._copies[buffer].pop(0) != (tile, sequence, block)
            buffer = 1 - buffer
        return buffer
