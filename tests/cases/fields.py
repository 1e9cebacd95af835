"""What the constructors that libraries write make of what they are given."""

import dataclasses
from collections import namedtuple
from dataclasses import KW_ONLY, InitVar, dataclass, field
from types import SimpleNamespace
from typing import ClassVar

import attr
import attrs
import equinox as eqx
import flax.struct
import jax.numpy as jnp
from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention
from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from pydantic import field_validator as fv

q, kv = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128))
lens, idx = jnp.zeros((2,), jnp.int32), jnp.zeros((2, 64), jnp.int32)


@dataclass
class CacheConfig:
    max_len: int
    page_size: int = 16
    sizes: list[int] = field(default_factory=lambda: [4, 8])
    scale: InitVar[int] = 1
    pages: int = field(init=False)
    LANES: ClassVar[int] = 128

    def __post_init__(self, scale):
        if self.max_len % self.page_size:
            raise ValueError("max_len")
        self.pages = self.max_len // self.page_size * scale

    @property
    def block(self):
        return self.sizes[-1]

    @classmethod
    def for_model(cls, name: str, **options):
        return cls({"small": 1024, "large": 4000}[name], **options)


def tables(config):
    return jnp.zeros((2, config.pages), jnp.int32)


config = CacheConfig(2048)
paged_attention(q, kv, kv, lens, tables(config), pages_per_compute_block=config.block)  #: proven SC102
config = CacheConfig.for_model("large")
paged_attention(q, kv, kv, lens, tables(config), pages_per_compute_block=config.block)  #: SC102 violated
config = dataclasses.replace(config, max_len=640, scale=2)
paged_attention(q, kv, kv, lens, tables(config), pages_per_compute_block=config.block)  #: proven SC102


@dataclass
class KeywordOnly:
    pages: int
    _: KW_ONLY
    block: int = 8


@dataclass
class Ordered:
    block: int = field(default=8, kw_only=True)
    pages: int = 64
    hidden: int = field(default=9, init=False, repr=False)


paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=KeywordOnly(64).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Ordered(9).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Ordered(9).pages)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Ordered(9).hidden)  #: SC102 violated


class Plain(BaseModel):
    block: int = Field(default=16, ge=1)


class Validated(BaseModel):
    block: int = 8

    @field_validator("block")
    @classmethod
    def more(cls, value):
        return value + 1


class ValidatedAfter(BaseModel):
    block: int = 8

    @model_validator(mode="after")
    def more(self):
        self.block = self.block + 1
        return self


class Completed(BaseModel):
    block: int = 8

    def model_post_init(self, context):
        self.block += 1


class Renamed(BaseModel):
    block: int = Field(default=8, alias="pages_per_block")


paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Plain().block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Plain(block=9).block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Plain(block="8").block)  #: SC110 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Plain(block=8).model_copy(update={"block": 9}).block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Validated(block=8).block)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=ValidatedAfter(block=7).block)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Completed(block=7).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Completed(block=8).block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Renamed(block=9).block)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Renamed(pages_per_block=9).block)  #: SC102 unproven


@attrs.define
class Converted:
    block: int = attrs.field(default=8, converter=lambda value: value + 1)
    _pages: int = 64

    @property
    def pages(self):
        return self._pages


@attrs.define
class Finished:
    block: int = 8

    def __attrs_post_init__(self):
        self.block += 1


@attrs.frozen
class Decided:
    pages: int = 40
    block: int = attrs.field()

    @block.default
    def _block(self):
        return self.pages // 5


@attr.s
class Listed:
    block = attr.ib(default=9)
    pages = attr.ib(8)


paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Converted(block=7).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Converted(pages=9).pages)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Finished(block=7).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=attrs.evolve(Finished(block=6), block=8).block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Decided(pages=25).block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Decided(block=9).block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Listed().block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Listed(8).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Listed(9, pages=4).pages)  #: proven SC102


class Attention(eqx.Module):
    block: int = eqx.field(static=True, converter=lambda value: value + 1)
    pages: int = eqx.field(static=True, default=9)


@flax.struct.dataclass
class State:
    pages: int = flax.struct.field(pytree_node=False, default=64)
    block: int = 16


paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Attention(8).block)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Attention(8).pages)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=State().pages)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=State().replace(block=9).block)  #: SC102 violated

Point = namedtuple("Point", ["pages", "block"], defaults=[9])
Pair = namedtuple("Pair", "pages block")
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Point(64).block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Point(64)._replace(block=4)[1])  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Pair._make([64, 8]).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Pair(*(64, 9))._asdict()["block"])  #: SC102 violated
space = SimpleNamespace(pages=64, block=9)
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=space.block)  #: SC102 violated
space.block = 8
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=space.block)  #: proven SC102


@attrs.define
class Doubled:
    block: int = 9

    def __init__(self, half: int):
        self.__attrs_init__(half * 2)


class Loaded(BaseModel):
    block: int = 9

    def __init__(self, **data: int):
        super().__init__(**data)


class Named(Loaded):
    def __init__(self, given: int):
        Loaded.__init__(self, block=given)


paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Doubled(4).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Loaded(block=8).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Loaded().block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Named(8).block)  #: proven SC102


@attrs.define
class Watched:
    pages: int = attrs.field(default=8, converter=lambda v: v + 1)
    block: int = attrs.field(default=8)
    plain: int = 8

    @block.validator
    def _look(self, attribute, value):
        pass


@attrs.define(field_transformer=lambda cls, found: found)
class Transformed:
    block: int = 9


@attrs.define(on_setattr=lambda made, attribute, value: value + 1)
class Hooked:
    block: int = 9


keeping = attrs.define(field_transformer=lambda cls, found: found)


@keeping
class Kept:
    block: int = 9


unwatched = Watched()
unwatched.plain = 9
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=unwatched.plain)  #: SC102 violated
watched, hooked = Watched(), Hooked()
watched.pages, watched.block, hooked.block = 9, 9, 9
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=watched.pages)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=watched.block)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Hooked().block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=hooked.block)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Transformed(9).block)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Kept(9).block)  #: SC102 unproven


class Configured(BaseModel):
    model_config = ConfigDict(alias_generator=str.upper)


class Inheriting(Configured):
    block: int = 9


class Shouting(BaseModel, alias_generator=str.upper):
    block: int = 9


class Imported(BaseModel):
    block: int = 9

    @fv("block")
    @classmethod
    def _less(cls, value):
        return value - 1


class Assigned(BaseModel):
    model_config = ConfigDict(validate_assignment=True)
    block: int = 9


class Frozen(BaseModel, frozen=True):
    model_config = ConfigDict(extra="forbid")
    block: int = 9

    @property
    def pages(self):
        return self.block - 1


assigned = Assigned()
assigned.block = 9
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Inheriting(block=9).block)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Shouting(block=9).block)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Imported(block=9).block)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=assigned.block)  #: SC102 unproven
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Frozen().block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Frozen(block=9).pages)  #: proven SC102


# What validators and defaults that are written as methods do, and what is behind a constructor that refuses its arguments.


@attrs.define
class Checked:
    pages: int = attrs.field(default=64, validator=attrs.validators.instance_of(int))
    block: int = attrs.field(validator=[attrs.validators.instance_of(int), attrs.validators.ge(1), attrs.validators.le(64)])
    heads: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.in_([2, 4])))

    @block.default
    def _block(self):
        return self.pages // 8

    @pages.validator
    def _check(self, attribute, value):
        if value % 8:
            raise ValueError(attribute.name)


@attrs.define
class Changed:
    block: int = 8
    pages: int = attrs.field(default=64)

    @pages.validator
    def _check(self, attribute, value):
        self.block = value // 8 + 1


@attrs.define
class Inherited(Changed):
    more: int = attrs.field(default=2, converter=int)


paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Checked().block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Checked(40).block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Checked(block=16).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Changed().block)  #: SC102 violated
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Inherited(pages=24).block)  #: proven SC102
paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Inherited(more="5").more)  #: SC102 violated


def of_a_checked_number(pages, block):
    checked = Checked(pages, block)
    table = jnp.zeros((2, checked.pages), jnp.int32)
    paged_attention(q, kv, kv, lens, table, pages_per_compute_block=8)  #: proven SC102
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=checked.block)  #: proven SC110


def never_passes():
    Checked(63)
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven


def never_of_its_type():
    Checked("64")
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven


def never_one_of_these():
    Checked(heads=3)
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven


def too_many():
    Checked(block=65)
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven


class Bounded(BaseModel):
    block: int = Field(default=80, ge=1, le=64)
    pages: int = Field(default=64, multiple_of=8)


def of_a_bounded_number():
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Bounded().block)  #: SC102 violated
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=Bounded(block=9, pages=8).block)  #: SC102 violated
    Bounded(block=65)
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven


def no_multiple():
    Bounded(pages=9)
    paged_attention(q, kv, kv, lens, idx, pages_per_compute_block=9)  #: SC102 unproven
