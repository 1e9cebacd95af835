"""Fixtures of conftest files give the tests below them their values."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from .marked import complaints, source_of

HEAD = """
    import jax.numpy as jnp
    import pytest
    from jax.experimental.pallas.ops.tpu.paged_attention import paged_attention

    q, kv, lens = jnp.zeros((2, 8, 128)), jnp.zeros((4, 64, 16, 128)), jnp.zeros((2,), jnp.int32)

"""

CONFTEST = """
    import jax.numpy as jnp
    import pytest

    PAGES = 8

    @pytest.fixture
    def pages():
        return PAGES

    @pytest.fixture(scope="session")
    def table(pages):
        return jnp.zeros((2, pages), jnp.int32)

    @pytest.fixture(params=[4, 3])
    def block(request):
        return request.param
"""


def judged(folder: Path, test: str, **conftests: str) -> list[str]:
    """Write conftest files, by folder, and a test in the folder `below`; return what is wrong with its markers."""
    for name, text in conftests.items():
        place = folder / ("" if name == "top" else name)
        place.mkdir(exist_ok=True)
        (place / "conftest.py").write_text(dedent(text))
    (folder / "below").mkdir(exist_ok=True)
    file = folder / "below" / "test_it.py"
    file.write_text(dedent(HEAD) + dedent(test))
    return complaints(source_of(file), folder)


def test_a_conftest_above_gives_values(tmp_path: Path) -> None:
    test = """
        def test_one(table):
            paged_attention(q, kv, kv, lens, table, pages_per_compute_block=4)  #: proven SC102 SC106

        class TestIt:
            def test_two(self, table, block):
                paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: SC102 violated
    """
    assert not judged(tmp_path, test, top=CONFTEST)


def test_the_nearest_fixture_counts(tmp_path: Path) -> None:
    test = """
        @pytest.fixture
        def block():
            return 9

        def test_one(table, block):
            paged_attention(q, kv, kv, lens, table, pages_per_compute_block=block)  #: proven SC102
    """
    below = """
        import pytest

        @pytest.fixture
        def pages():
            return 9
    """
    assert not judged(tmp_path, test, top=CONFTEST, below=below)


def test_what_else_may_give_values_leaves_them_unknown(tmp_path: Path) -> None:
    test = """
        def test_one(table):
            paged_attention(q, kv, kv, lens, table, pages_per_compute_block=4)  #: SC102 unproven
    """
    assert not judged(tmp_path, test, top=CONFTEST + "\n    def pytest_generate_tests(metafunc): ...\n")
    renamed = "\n    @pytest.fixture(name='table')\n    def other():\n        return 1\n"
    assert not judged(tmp_path, test, top=CONFTEST + renamed)
