"""What it takes to split a call of paged attention over the devices of a mesh."""

from __future__ import annotations

from shapecheck.arguments import Parameter
from shapecheck.outcome import Values
from shapecheck.plan import divisors
from shapecheck.relation import Relation
from shapecheck.rule import Example, Rule

MESH_PARAMETERS = (
    Parameter("mesh", default=None),
    Parameter("heads_axis", default=None, names_axis=True),
    Parameter("batch_axis", default=None, names_axis=True),
    Parameter("pages_axis", default=None, names_axis=True),
)

SPLIT = Relation("heads_axis is not None or batch_axis is not None")
"""What holds of calls of which each device gets a part."""


def _axes(values: Values) -> str | None:
    names: tuple[str, ...] | None = getattr(values.get("mesh"), "axis_names", None)
    if names is None:
        return None
    return f"the axes of the mesh: {', '.join(map(repr, names))}" if names else "there is no mesh: pass `mesh`, or set one"


def _heads(values: Values) -> str | None:
    query, kv = (values.get(name) for name in ("num_q_heads", "num_kv_heads"))
    if not (isinstance(query, int) and isinstance(kv, int) and query >= 1 and kv >= 1):
        return None
    copies = (size for size in divisors(query) if size % kv == 0)
    return _sizes("heads_axis", sorted({*divisors(kv), *copies}), values)


def _rows(values: Values) -> str | None:
    batch = values.get("batch_size")
    return _sizes("batch_axis", divisors(batch), values) if isinstance(batch, int) and batch >= 1 else None


def _pools(values: Values) -> str | None:
    pages, batch = (values.get(name) for name in ("total_num_pages", "batch_size"))
    if not (isinstance(pages, int) and isinstance(batch, int) and pages >= 1 and batch >= 1):
        return None
    return _sizes("pages_axis", [size for size in divisors(pages) if batch % size == 0], values)


def page_ids(values: Values) -> str | None:
    """Tell the page ids that a row may have: where the pool is split, they count from the first page of the row's device."""
    pages, axis = values.get("total_num_pages"), values.get("pages_axis")
    devices, share = (
        (1, "total_num_pages") if axis is None else (values.get("pages_axis_size"), "total_num_pages // pages_axis_size")
    )
    if not (isinstance(pages, int) and isinstance(devices, int) and devices >= 1):
        return None
    return f"at least 0, at most {pages // devices - 1} = {share} - 1"


def _sizes(parameter: str, legal: list[int], values: Values) -> str:
    shown = legal if len(legal) <= 12 else [*legal[:6], "...", *legal[-5:]]
    return f"legal sizes of the mesh axis {values.get(parameter)!r}: {', '.join(map(str, shown))}"


MESH_RULES = (
    Rule(
        "SC205",
        "mesh-axis",
        Relation(
            "(heads_axis is None or heads_axis_size >= 1) and (batch_axis is None or batch_axis_size >= 1)"
            " and (heads_axis is None or heads_axis != batch_axis) and (pages_axis is None or pages_axis == batch_axis)"
        ),
        message="heads and rows are split over two axes of the mesh, and pages over the one of their rows or not at all",
        explanation=(
            "A row must find its pages on its own device, so the pool can only be split as the batch is. Without `mesh` the axes "
            "are those of the mesh that `jax.set_mesh` has set."
        ),
        argument="heads_axis",
        advice=_axes,
        example=Example({'heads_axis="heads"': 'heads_axis="model"'}),
    ),
    Rule(
        "SC206",
        "mesh-heads",
        Relation(
            "heads_axis is None or num_kv_heads % heads_axis_size == 0"
            " or (heads_axis_size % num_kv_heads == 0 and num_q_heads % heads_axis_size == 0)"
        ),
        message="the axis must divide the KV heads, or be a multiple of them that divides the query heads",
        explanation=(
            "The query heads of one KV head stay together. An axis larger than the KV heads gives each of them to several "
            "devices, which share its query heads. Any other size would give a device query heads of a KV head that it shares "
            "with another one unevenly; `jax.shard_map` splits query heads without a look at that."
        ),
        argument="heads_axis",
        advice=_heads,
        example=Example({"make_mesh((2, 4)": "make_mesh((2, 3)"}),
    ),
    Rule(
        "SC207",
        "mesh-batch",
        Relation("batch_axis is None or batch_size % batch_axis_size == 0"),
        message="the axis must divide the batch",
        explanation="Each device takes as many rows as the others; pad the batch with rows of length 0.",
        argument="batch_axis",
        advice=_rows,
        example=Example({"make_mesh((2, 4)": "make_mesh((3, 2)"}),
    ),
    Rule(
        "SC208",
        "mesh-pages",
        Relation("pages_axis is None or total_num_pages % pages_axis_size == 0"),
        message="the axis must divide the pages of the pool",
        explanation="Each device takes as many pages as the others; their ids count from its own first page.",
        argument="pages_axis",
        advice=_pools,
        example=Example(
            {"(4, 64, 32": "(4, 63, 32", 'batch_axis="rows"': 'batch_axis="rows", pages_axis="rows"'},
            {'batch_axis="rows"': 'batch_axis="rows", pages_axis="rows"'},
        ),
    ),
)
