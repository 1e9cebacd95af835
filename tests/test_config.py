from __future__ import annotations

from pathlib import Path

import pytest

from codemods.config import ConfigError, Configuration, Settings, SettingsError, exclusion


def configured(folder: Path, text: str) -> Settings:
    (folder / "pyproject.toml").write_text(text)
    return Configuration().nearest(str(folder))


def test_every_key_is_read(tmp_path: Path) -> None:
    text = """
    [tool.shapecheck]
    select = ["SC1", "SC201"]
    ignore = ["SC102"]
    chips = ["v5p", "TPU v5 lite"]
    exclude = ["third_party", "src/gen/"]
    unproven = true
    strict = false
    baseline = "known/today.json"
    """
    assert configured(tmp_path, text) == Settings(
        select=("SC1", "SC201"),
        ignore=("SC102",),
        chips=("v5p", "v5e"),
        exclude=("third_party", f"{tmp_path}/src/gen"),
        unproven=True,
        strict=False,
        baseline=f"{tmp_path}/known/today.json",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tool.shapecheck]\nselct = ['SC1']",
            r"has no key 'selct'; it has: select, ignore, chips, exclude, unproven, strict, baseline",
        ),
        ("[tool.shapecheck]\nselect = 'SC1'", "select must be an array of strings, not 'SC1'"),
        ("[tool.shapecheck]\nignore = [1]", r"ignore must be an array of strings, not \[1\]"),
        ("[tool.shapecheck]\nselect = ['XX1']", "select: 'XX1' is no code, nor the beginning of one; known: SC001, "),
        ("[tool.shapecheck]\nchips = ['v99']", "chips: unknown chip 'v99'; known: v2"),
        ("[tool.shapecheck]\nstrict = 1", "strict must be true or false, not 1"),
        ("[tool.shapecheck]\nbaseline = true", "baseline must be the path of a file, not True"),
        ("[tool]\nshapecheck = 3", "tool.shapecheck must be a table"),
        ("[tool.shapecheck\n", "line 1"),
    ],
)
def test_what_is_no_setting_is_refused_with_the_file_and_the_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        configured(tmp_path, text)
    assert str(tmp_path / "pyproject.toml") in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[project]\nselect = 3\n[tool.shapecheck]\nstrict = true\nselect = 3\n", 5),
        ("[tool.shapecheck]\nselect = [\n  'XX1',\n]\n", 2),
        ("[tool]\nshapecheck = {strict = 3}\n", 2),
        ("[tool]\nx = 1\nshapecheck = 3\n", 3),
        ("[tool.shapecheck]\nstrict = true\n'selct' = []\n", 3),
        ("[tool.shapecheck]\nstrict = yes\n", 2),
    ],
)
def test_the_line_of_what_is_no_setting_is_told(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(SettingsError) as caught:
        configured(tmp_path, text)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{tmp_path / 'pyproject.toml'}:{line}: ")


def test_what_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"[tool.shapecheck]\n# \xff\n")
    with pytest.raises(SettingsError, match=r"pyproject.toml:2: is not UTF-8: invalid start byte"):
        Configuration().nearest(str(tmp_path))


@pytest.mark.parametrize(
    "text", ["", "[project]\nname = 'x'\n", "this is not TOML [", "[project]\ndependencies = ['shapecheck']"]
)
def test_a_file_without_the_table_says_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.shapecheck]\nstrict = true\n")
    assert configured(tmp_path / "inner", text) == Settings(strict=True)


def test_an_empty_table_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "pyproject.toml").write_text("[tool.shapecheck]\nstrict = true\n")
    assert configured(tmp_path / "inner", "[tool.shapecheck]\n") == Settings()


@pytest.mark.parametrize(
    ("select", "ignore", "code", "reported"),
    [
        ((), (), "SC102", True),
        ((), (), "SC501", False),
        ((), (), "SC902", False),
        (("SC",), (), "SC501", True),
        (("SC5",), (), "SC501", True),
        (("SC5",), (), "SC102", False),
        (("SC902",), (), "SC902", True),
        ((), ("SC1",), "SC102", False),
        (("SC1",), ("SC102",), "SC102", False),
        (("SC102",), ("SC1",), "SC102", True),
        (("SC1",), ("SC1",), "SC102", False),
    ],
)
def test_the_longer_prefix_decides(select: tuple[str, ...], ignore: tuple[str, ...], code: str, reported: bool) -> None:
    assert Settings(select=select, ignore=ignore).reports(code) is reported


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [("gen", "gen"), ("gen/", "gen"), ("*.py", "*.py"), ("a/b", "/base/a/b"), ("./a/b", "/base/a/b"), ("/abs/*.py", "/abs/*.py")],
)
def test_a_pattern_with_a_slash_belongs_to_its_folder(pattern: str, expected: str) -> None:
    assert exclusion(pattern, "/base") == expected


def test_a_folder_with_brackets_is_no_pattern() -> None:
    assert exclusion("a/b", "/x[1]") == "/x[[]1]/a/b"
