# The contract of paged_attention in pyrefly's language of shapes, where an `Invalid` result is an error at the call. Each rule
# reports also that it holds: a silent checker may have decided, or may not have looked. `n // b * b == n` is simplified where
# sizes are symbols (b = 1, b = n), `n % b == 0` is not. Two sizes that differ as symbols may still be equal, so only concrete
# ones break a rule. What has no rule here can not be said: there are no dtypes and no contents, and of an argument that is no
# size only a literal can be seen.

import shape_extensions.dsl as dsl
from shape_extensions import Int, IntTuple, type_shape_dsl_function

@type_shape_dsl_function
def SC101(q: IntTuple, k: IntTuple) -> IntTuple:
    heads = q[1]
    kv = k[0]
    if heads // kv * kv == heads:
        return dsl.Invalid("SC101 holds")
    if dsl.is_concrete_int(heads) and dsl.is_concrete_int(kv) and heads % kv != 0:
        return dsl.Invalid("SC101 is broken")
    return q

@type_shape_dsl_function
def SC102(q: IntTuple, table: IntTuple, block: Int) -> IntTuple:
    pages = table[1]
    if pages // block * block == pages:
        return dsl.Invalid("SC102 holds")
    if dsl.is_concrete_int(pages) and dsl.is_concrete_int(block) and pages % block != 0:
        return dsl.Invalid("SC102 is broken")
    return q

@type_shape_dsl_function
def SC103(q: IntTuple, k: IntTuple, v: IntTuple) -> IntTuple:
    kv = k[0]
    vkv = v[0]
    total = k[1]
    vtotal = v[1]
    page = k[2]
    vpage = v[2]
    dim = k[3]
    vdim = v[3]
    if kv == vkv and total == vtotal and page == vpage and dim == vdim:
        return dsl.Invalid("SC103 holds")
    if (
        (dsl.is_concrete_int(kv) and dsl.is_concrete_int(vkv) and kv != vkv)
        or (dsl.is_concrete_int(total) and dsl.is_concrete_int(vtotal) and total != vtotal)
        or (dsl.is_concrete_int(page) and dsl.is_concrete_int(vpage) and page != vpage)
        or (dsl.is_concrete_int(dim) and dsl.is_concrete_int(vdim) and dim != vdim)
    ):
        return dsl.Invalid("SC103 is broken")
    return q

@type_shape_dsl_function
def SC104(q: IntTuple, k: IntTuple) -> IntTuple:
    dim = q[2]
    kdim = k[3]
    if dim == kdim:
        return dsl.Invalid("SC104 holds")
    if dsl.is_concrete_int(dim) and dsl.is_concrete_int(kdim) and dim != kdim:
        return dsl.Invalid("SC104 is broken")
    return q

@type_shape_dsl_function
def SC105(q: IntTuple, lengths: IntTuple) -> IntTuple:
    batch = q[0]
    rows = lengths[0]
    if rows == batch:
        return dsl.Invalid("SC105 holds")
    if dsl.is_concrete_int(rows) and dsl.is_concrete_int(batch) and rows != batch:
        return dsl.Invalid("SC105 is broken")
    return q

@type_shape_dsl_function
def SC106(q: IntTuple, table: IntTuple) -> IntTuple:
    batch = q[0]
    rows = table[0]
    if rows == batch:
        return dsl.Invalid("SC106 holds")
    if dsl.is_concrete_int(rows) and dsl.is_concrete_int(batch) and rows != batch:
        return dsl.Invalid("SC106 is broken")
    return q

@type_shape_dsl_function
def SC109(q: IntTuple, k: IntTuple, v: IntTuple, lengths: IntTuple, table: IntTuple) -> IntTuple:
    if len(q) == 3 and len(k) == 4 and len(v) == 4 and len(lengths) == 1 and len(table) == 2:
        return dsl.Invalid("SC109 holds")
    if len(q) != 3 or len(k) != 4 or len(v) != 4 or len(lengths) != 1 or len(table) != 2:
        return dsl.Invalid("SC109 is broken")
    return q

@type_shape_dsl_function
def SC110(q: IntTuple, block: Int) -> IntTuple:
    if dsl.is_concrete_int(block) and 0 < block:
        return dsl.Invalid("SC110 holds")
    if dsl.is_concrete_int(block) and block < 1:
        return dsl.Invalid("SC110 is broken")
    return q

@type_shape_dsl_function
def SC111(q: IntTuple, k: IntTuple, table: IntTuple) -> IntTuple:
    heads = q[1]
    dim = q[2]
    kv = k[0]
    total = k[1]
    page = k[2]
    pages = table[1]
    if heads != 0 and dim != 0 and kv != 0 and total != 0 and page != 0 and pages != 0:
        return dsl.Invalid("SC111 holds")
    if heads == 0 or dim == 0 or kv == 0 or total == 0 or page == 0 or pages == 0:
        return dsl.Invalid("SC111 is broken")
    return q

@type_shape_dsl_function
def SC201(q: IntTuple, k: IntTuple, mode: str | None) -> IntTuple:
    kv = k[0]
    if mode != "kv_head" or kv // 2 * 2 == kv:
        return dsl.Invalid("SC201 holds")
    if mode == "kv_head" and dsl.is_concrete_int(kv) and kv % 2 != 0:
        return dsl.Invalid("SC201 is broken")
    return q

@type_shape_dsl_function
def SC202(q: IntTuple, mode: str | None) -> IntTuple:
    batch = q[0]
    if mode != "batch" or batch // 2 * 2 == batch:
        return dsl.Invalid("SC202 holds")
    if mode == "batch" and dsl.is_concrete_int(batch) and batch % 2 != 0:
        return dsl.Invalid("SC202 is broken")
    return q

@type_shape_dsl_function
def SC203(q: IntTuple, mode: str | None) -> IntTuple:
    if mode is None or mode == "kv_head" or mode == "batch":
        return dsl.Invalid("SC203 holds")
    if mode is not None and mode != "kv_head" and mode != "batch":
        return dsl.Invalid("SC203 is broken")
    return q
