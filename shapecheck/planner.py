"""Which compute blocks and megacore modes are legal for a model on a chip, which to take, and what to change if none is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shapecheck.chip import LANES, Chip
from shapecheck.contracts.memory import CACHE_BYTES, CACHE_NEEDED, LAYER_BYTES, bounds
from shapecheck.contracts.paged_attention import PAGED_ATTENTION
from shapecheck.model import Model
from shapecheck.plan import divisors
from shapecheck.rule import Verdict

_MODES = ("kv_head", "batch", None)
_SLOW = 128  # tokens in a block: with fewer, the matrix unit, which multiplies 128 by 128, is not full


@dataclass(frozen=True)
class Option:
    """One choice of the two parameters that are free.

    Attributes:
        pages_per_compute_block: the block, in pages.
        megacore_mode: the mode.
        verdicts: the verdict of each rule, by code; hints are left out.
        vmem_bytes: the vector memory that the call takes, as two bounds: what is between them only the compiler knows.
    """

    pages_per_compute_block: int
    megacore_mode: str | None
    verdicts: Mapping[str, Verdict]
    vmem_bytes: tuple[int, int]

    @property
    def verdict(self) -> Verdict:
        return Verdict.worst(self.verdicts.values())

    @property
    def broken(self) -> list[str]:
        """The codes of the rules that it breaks."""
        return [code for code, verdict in self.verdicts.items() if verdict is Verdict.VIOLATED]

    @property
    def open(self) -> list[str]:
        """The codes of the rules of which that cannot be told."""
        return [code for code, verdict in self.verdicts.items() if verdict is Verdict.UNPROVEN]


@dataclass(frozen=True)
class Change:
    """What makes a geometry legal, or faster, that no choice of block and mode does: `words`, and the geometry then."""

    words: str
    geometry: Mapping[str, Any]


@dataclass(frozen=True)
class Cache:
    """The keys and values that a device keeps for all layers, where a call has those of one; the weights come on top.

    Attributes:
        num_layers: layers; None: not known, and one is counted.
        layer_bytes: what the pages of one layer take, with their scales.
        total_bytes: what those of all layers take.
        fits: whether they may fit, beside what a call makes of them, into the chip's HBM.
        largest_num_pages: the largest number of pages that would, over all layers.
    """

    num_layers: int | None
    layer_bytes: int
    total_bytes: int
    fits: bool
    largest_num_pages: int


@dataclass(frozen=True)
class Plan:
    """All choices for one geometry on one chip.

    Attributes:
        chip: the chip.
        geometry: the sizes and dtypes of the call on one device, by the names of the contract.
        options: the choices whose block divides the pages and whose mode the heads and the batch allow, the best first.
        changes: what to change where none is legal, where the cache does not fit, or where the best is slow.
        cache: what the pages of all layers take.
    """

    chip: Chip
    geometry: Mapping[str, Any]
    options: tuple[Option, ...]
    changes: tuple[Change, ...]
    cache: Cache

    @property
    def best(self) -> Option | None:
        """The largest block that is proven legal, with a mode where the chip has two cores."""
        return next((option for option in self.options if option.verdict is Verdict.PROVEN), None)


def geometry_of(
    model: Model, *, batch: int, context: int, page_size: int, pages: int | None = None, q_dtype: str, pages_dtype: str
) -> dict[str, Any]:
    """Return the geometry of a decoding step on one device.

    Args:
        model: the heads that the device holds.
        batch: sequences on the device.
        context: tokens that a sequence may come to.
        page_size: tokens in a page.
        pages: pages on the device; None: enough for each sequence to come to its full length.
        q_dtype, pages_dtype: the dtypes; `"int8"` pages are quantized ones, with float32 scales.
    """
    pages_per_sequence = -(-context // page_size)
    return {
        "batch_size": batch,
        "num_q_heads": model.num_q_heads,
        "num_kv_heads": model.num_kv_heads,
        "head_dim": model.head_dim,
        "page_size": page_size,
        "pages_per_sequence": pages_per_sequence,
        "total_num_pages": batch * pages_per_sequence if pages is None else pages,
        "q_dtype": q_dtype,
        "pages_dtype": pages_dtype,
        "scales_dtype": "float32" if pages_dtype == "int8" else None,
        "lengths_dtype": "int32",
        "page_indices_dtype": "int32",
        "attn_logits_soft_cap": model.attn_logits_soft_cap,
    }


def plan(chip: Chip, geometry: Mapping[str, Any], layers: int | None = None) -> Plan:
    """Judge every choice of block and mode for a geometry, by the names of the contract; and the cache of all layers."""
    options = _options(chip, geometry)
    changes = tuple(_changes(chip, geometry, options, layers or 1))
    return Plan(chip, geometry, options, changes, _cache(chip, geometry, layers))


def _cache(chip: Chip, geometry: Mapping[str, Any], layers: int | None) -> Cache:
    values = {**PAGED_ATTENTION.geometry(chip=chip, **geometry), "num_layers": layers or 1}
    fits = _fits(chip, geometry, layers or 1)
    # The bytes grow with the pages: as many as are in the memory are never too few.
    beyond = geometry["total_num_pages"] + 1 if not fits else chip.hbm_bytes
    largest = _largest(beyond, lambda pages: _fits(chip, {**geometry, "total_num_pages": pages}, layers or 1))
    return Cache(layers, LAYER_BYTES.value(values), CACHE_BYTES.value(values), fits, largest)


def _fits(chip: Chip, geometry: Mapping[str, Any], layers: int) -> bool:
    values = {**PAGED_ATTENTION.geometry(chip=chip, **geometry), "num_layers": layers}
    return CACHE_NEEDED.evaluate(values) is not False


def _largest(beyond: int, fits: Callable[[int], bool]) -> int:
    """Return the largest number below a limit up to which all fit; 0 where none does."""
    low, high = 0, beyond
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _options(chip: Chip, geometry: Mapping[str, Any]) -> tuple[Option, ...]:
    """Return the choices, the best first: legal before open before broken ones, larger blocks first, megacore first."""
    options = [
        _option(block, mode, values)
        for block in divisors(geometry["pages_per_sequence"])
        for mode in _MODES
        for values in [PAGED_ATTENTION.geometry(chip=chip, **geometry, pages_per_compute_block=block, megacore_mode=mode)]
        if mode is None or PAGED_ATTENTION.permits("megacore_mode", mode, values) is not Verdict.VIOLATED
    ]
    order = [Verdict.PROVEN, Verdict.UNPROVEN, Verdict.VIOLATED]
    return tuple(
        sorted(
            options,
            key=lambda each: (order.index(each.verdict), -each.pages_per_compute_block, _MODES.index(each.megacore_mode)),
        )
    )


def _option(block: int, mode: str | None, values: Mapping[str, Any]) -> Option:
    verdicts = {rule.code: rule.judge(values) for rule in PAGED_ATTENTION.applicable(values) if not rule.is_hint}
    return Option(block, mode, verdicts, bounds(values)["vmem"])


def _is_legal(options: Sequence[Option]) -> bool:
    return any(option.verdict is Verdict.PROVEN for option in options)


def _changes(chip: Chip, geometry: Mapping[str, Any], options: Sequence[Option], layers: int) -> Iterator[Change]:
    """Yield what to change: of each rule that no choice keeps for certain, its remedy, one on top of the other."""
    for code, remedy in _REMEDIES.items():
        if not _keeps(code, chip, geometry):
            change = remedy(chip, geometry)
            if change is None:
                return
            geometry, options = change.geometry, _options(chip, change.geometry)
            yield change
    if not (_keeps("SC309", chip, geometry) and _fits(chip, geometry, layers)):
        change = _fewer_pages(chip, geometry, layers)
        if change is None:
            return
        geometry, options = change.geometry, _options(chip, change.geometry)
        yield change
    slow = options[0].pages_per_compute_block * geometry["page_size"] < _SLOW
    if (slow or not _is_legal(options)) and (change := _more_pages(chip, geometry)) is not None:
        yield change


def _keeps(code: str, chip: Chip, geometry: Mapping[str, Any]) -> bool:
    """Say whether some block is certain to keep a rule."""
    rule = next(rule for rule in PAGED_ATTENTION.rules if rule.code == code)
    values = PAGED_ATTENTION.geometry(chip=chip, **geometry)
    blocks = divisors(geometry["pages_per_sequence"])
    return any(rule.judge({**values, "pages_per_compute_block": block}) is Verdict.PROVEN for block in blocks)


def _pad_heads(chip: Chip, geometry: Mapping[str, Any]) -> Change:
    padded = -(-geometry["head_dim"] // LANES) * LANES
    words = f"pad head_dim from {geometry['head_dim']} to {padded}: zeros in q and the pages; scale q by the logical head_dim"
    return Change(words, {**geometry, "head_dim": padded})


def _split_batch(chip: Chip, geometry: Mapping[str, Any]) -> Change | None:
    batch: int = geometry["batch_size"]
    for parts in range(2, batch + 1):
        changed = {**geometry, "batch_size": -(-batch // parts)}
        if _keeps("SC305", chip, changed):
            return Change(f"split the batch of {batch} into {parts} calls of at most {changed['batch_size']} sequences", changed)
    return None


def _smaller_pages(chip: Chip, geometry: Mapping[str, Any]) -> Change | None:
    size: int = geometry["page_size"]
    for smaller in reversed([each for each in divisors(size) if each < size]):
        factor = size // smaller
        counts = {name: geometry[name] * factor for name in ("pages_per_sequence", "total_num_pages")}
        changed = {**geometry, **counts, "page_size": smaller}
        if _keeps("SC306", chip, changed):
            return Change(f"make pages of {smaller} tokens instead of {size}", changed)
    return None


def _fewer_pages(chip: Chip, geometry: Mapping[str, Any], layers: int) -> Change | None:
    """Keep as many pages on the device as fit: sequences that all come to their full length need more devices."""

    def fits(pages: int) -> bool:
        changed = {**geometry, "total_num_pages": pages}
        return _fits(chip, changed, layers) and _keeps("SC309", chip, changed)

    pages = _largest(geometry["total_num_pages"], fits)
    if pages == 0:
        return None
    full = pages // geometry["pages_per_sequence"]
    words = (
        f"keep {pages} pages on a device instead of {geometry['total_num_pages']}: at most, without what the model takes;"
        f" enough for {full} of {geometry['batch_size']} sequences at full length"
    )
    return Change(words, {**geometry, "total_num_pages": pages})


def _more_pages(chip: Chip, geometry: Mapping[str, Any]) -> Change | None:
    """Pad the page table to the next number of pages that a block of enough tokens divides."""
    pages: int = geometry["pages_per_sequence"]
    block = -(-_SLOW // geometry["page_size"])
    padded = -(-pages // block) * block
    changed = {**geometry, "pages_per_sequence": padded}
    if padded == pages or not _is_legal(_options(chip, changed)):
        return None
    words = f"pad the page table from {pages} to {padded} pages (kernel.pad_page_indices): a block of {block} is legal then"
    return Change(words, changed)


_REMEDIES: Mapping[str, Callable[[Chip, Mapping[str, Any]], Change | None]] = {
    "SC301": _pad_heads,
    "SC305": _split_batch,
    "SC306": _smaller_pages,
}
"""By the code of a rule that no choice keeps, what else to change."""
