from __future__ import annotations

import ast
import os
import stat
import sys
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from codemods.check import Analyse, Run
from codemods.config import Configuration, Settings
from codemods.files import Candidate, discover
from codemods.findings import CallSite, Edit, Finding, ProposedFix
from codemods.fix import Change, fix
from codemods.rewrite import inspect
from codemods.source import Source
from codemods.words import Words
from codemods.write import WriteError, write
from shapecheck.rule import Applicability

from .fake_analysis import BAD, GOOD, IMPORT, UNPROVEN, analyse


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def put(candidate: Candidate, data: bytes) -> None:
    write(candidate.path, data, candidate.stamp)


def run(
    *paths: str, using: Analyse = analyse, unsafe: bool = False, settings: Settings | None = None, writing: bool = True
) -> tuple[Run, list[Change]]:
    found = discover(paths or ["."], Configuration(lambda each: settings or each), Words())
    return fix(found, using, put if writing else None, unsafe=unsafe)


def errors(result: Run) -> list[str]:
    return [f"{error.path}:{error.line}: {error.message}" for error in result.report.errors]


CALL = "paged_attention(pages=6, block=4)"
FIXED = "paged_attention(pages=6, block=3)"

DAMAGE: dict[str, bytes] = {
    "LF": f"x = {CALL}\ny = 1\n".encode(),
    "CRLF": f"x = {CALL}\r\ny = 1\r\n".encode(),
    "CR only": f"x = {CALL}\ry = 1\r".encode(),
    "mixed": f"x = 1\r\ny = 1\rz = {CALL}\n\r".encode(),
    "no final newline": f"x = {CALL}".encode(),
    "trailing blanks": f"x = {CALL}  \t\n\n\n".encode(),
    "BOM": b"\xef\xbb\xbf" + f"x = {CALL}\n".encode(),
    "BOM and CRLF": b"\xef\xbb\xbf" + f"é = 1; x = {CALL}\r\n".encode(),
    "latin-1": f"# -*- coding: latin-1 -*-\nx = 'é', {CALL}\n".encode("latin-1"),
    "shift_jis": f"# coding: shift_jis\nx = 'あ', {CALL}\n".encode("shift_jis"),
    "form feed": f"x = 1\n\x0c\nz = 2\n\x0cx = {CALL}\n\x0c".encode(),
    "separators that end no line": f"x = 'a\u2028b\x85\x0b', {CALL}\n".encode(),
    "tabs": f"if 1:\n\tx = {CALL}\n".encode(),
    "backslash": f"x = 0, \\\r\n  {CALL}\r\n".encode(),
    "comments": b"x = paged_attention(  # one\n    pages=6,  # two\n    block=4,  # three\n    # four\n)\n",
    "unformatted": b"x = [paged_attention ( pages = 6 , block = 4 , ) ,\n  1,2 , ]\n",
    "wide characters": f"x = {{'名': '\U0001f600', 'é': {CALL}}}\n".encode(),
    "quotes": f"x = r'''\n{CALL}''' 'é', {CALL}\n".encode(),
}


@pytest.mark.parametrize("data", DAMAGE.values(), ids=DAMAGE)
def test_nothing_but_the_block_changes(data: bytes) -> None:
    Path("a.py").write_bytes(data)
    result, [change] = run()
    expected = b"3".join(data.rsplit(b"4", 1))
    assert Path("a.py").read_bytes() == change.after == expected
    assert not result.failed
    assert not result.report.errors
    assert result.report.fixed == len(result.fixed) == 1
    assert run()[1] == []  # there is nothing left to do


PYTHON = "(as Python {}.{})".format(*sys.version_info)
UNTOUCHED: dict[str, tuple[bytes, list[str]]] = {
    "syntax error": (f"{CALL}\nx = (\n".encode(), [f"a.py:2: cannot be parsed: '(' was never closed {PYTHON}"]),
    "NUL": (f"{CALL}\n\0\n".encode(), ["a.py:2: cannot be parsed: a NUL byte is no Python"]),
    "not UTF-8": (f"{CALL}\n\n'\xe9'\n".encode("latin-1"), ["a.py:3: cannot be decoded as utf-8: invalid continuation byte"]),
    "unknown encoding": (f"# coding: nope\n{CALL}\n".encode(), ["a.py:1: cannot be decoded: unknown encoding: nope"]),
    "nested too deeply": (
        f"{CALL}\nx = {'(' * 5000}\n".encode(),
        [f"a.py:2: cannot be parsed: too many nested parentheses {PYTHON}"],
    ),
    "too large": (f"{CALL}\n{'#' * 10_000_000}".encode(), ["a.py:1: is not checked: larger than 10 MB"]),
    "skipped": (f"# shapecheck: skip-file\n{CALL}\n".encode(), []),
    "suppressed": (f"{CALL}  # shapecheck: ignore[SC102]\n".encode(), []),
    "legal": (GOOD.encode(), []),
    "empty": (b"", []),
    "another kernel": (b"my_paged_attention(pages=6, block=4)\nx = (\n", []),
}


@pytest.mark.parametrize(("data", "messages"), UNTOUCHED.values(), ids=UNTOUCHED)
def test_what_is_not_to_be_fixed_is_not_written(data: bytes, messages: list[str]) -> None:
    Path("a.py").write_bytes(data)
    Path("b.py").write_text(BAD)
    os.utime("a.py", ns=(1, 1))
    result, changes = run()
    assert Path("a.py").read_bytes() == data
    assert os.stat("a.py").st_mtime_ns == 1
    assert errors(result) == messages
    assert [change.path for change in changes] == ["b.py"]  # the other file is none the worse for it


def test_stubs_are_checked_but_not_fixed() -> None:
    Path("a.pyi").write_text(BAD)
    result, changes = run()
    assert not changes
    assert result.failed
    assert Path("a.pyi").read_text() == BAD


class TestFiles:
    def test_the_mode_stays(self) -> None:
        Path("a.py").write_text(BAD)
        os.chmod("a.py", 0o751)
        run()
        assert stat.S_IMODE(os.stat("a.py").st_mode) == 0o751
        assert Path("a.py").read_text() == GOOD

    @pytest.mark.skipif(not hasattr(os, "setxattr"), reason="Linux")
    def test_extended_attributes_stay(self) -> None:
        Path("a.py").write_text(BAD)
        try:
            os.setxattr("a.py", "user.mine", b"1")
        except OSError:
            pytest.skip("the file system has none")
        run()
        assert Path("a.py").read_text() == GOOD
        assert os.getxattr("a.py", "user.mine") == b"1"

    def test_a_symbolic_link_stays_one(self) -> None:
        Path("pkg").mkdir()
        Path("pkg/a.txt").write_text(BAD)
        os.symlink("pkg/a.txt", "link.py")
        run()
        assert os.readlink("link.py") == "pkg/a.txt"
        assert Path("pkg/a.txt").read_text() == GOOD

    def test_hard_links_stay_together(self) -> None:
        Path("a.py").write_text(BAD)
        os.link("a.py", "b.py")
        result, _ = run()
        assert os.path.samefile("a.py", "b.py")
        assert Path("b.py").read_text() == GOOD
        assert not result.report.errors

    def test_a_read_only_file_is_left_alone_and_its_finding_remains(self) -> None:
        Path("a.py").write_text(BAD)
        os.chmod("a.py", 0o444)
        result, changes = run()
        assert Path("a.py").read_text() == BAD
        assert errors(result) == ["a.py:1: is not fixed: it is read-only"]
        assert (result.failed, result.report.fixed, changes) == (True, 0, [])
        assert [finding.code for finding in result.report.findings] == ["SC102"]

    def test_files_that_cannot_be_written_are_judged_again_once(self) -> None:
        judged: list[str] = []

        def counting(sources: list[Source], **others: object) -> tuple[list[CallSite], list[Finding]]:
            judged.extend(source.path for source in sources)
            return analyse(sources, **others)  # type: ignore[arg-type]

        for name in "abcdef":
            Path(f"{name}.py").write_text(BAD)
            os.chmod(f"{name}.py", 0o444)
        result, _ = run(using=counting)
        assert errors(result) == [f"{name}.py:1: is not fixed: it is read-only" for name in "abcdef"]
        assert (result.report.fixed, len(result.report.findings)) == (0, 6)
        assert len(judged) == 3 * 6  # before, with the fixes, without them

    def test_one_that_cannot_be_written_does_not_hide_why_others_are_not_fixed(self) -> None:
        Path("a.py").write_text(BAD)
        os.chmod("a.py", 0o444)
        Path("b.py").write_text(IMPORT + f"x = f'{{{CALL}=}}'\n")
        result, _ = run()
        assert errors(result) == ["a.py:1: is not fixed: it is read-only"]
        own, other = notes(result)
        assert own == "a.py:2: use 3"
        assert other.startswith("b.py:2: not fixed (use 3): ")

    def test_nothing_is_written_before_every_project_is_repaired(self) -> None:
        for name in "ab":
            Path(name).mkdir()
            Path(name, "setup.py").touch()
            Path(name, "x.py").write_text(BAD)

        def stopped(sources: list[Source], **others: object) -> tuple[list[CallSite], list[Finding]]:
            if any(source.path == "b/x.py" and b"block=3" in source.text for source in sources):
                raise KeyboardInterrupt
            return analyse(sources, **others)  # type: ignore[arg-type]

        with pytest.raises(KeyboardInterrupt):
            run("a", "b", using=stopped)
        assert Path("a/x.py").read_text() == BAD

    def test_a_file_that_was_changed_meanwhile_is_left_alone(self) -> None:
        Path("a.py").write_text(BAD)

        def slow(sources: list[Source], **others: object) -> tuple[list[CallSite], list[Finding]]:
            Path("a.py").write_text(BAD + "mine = 1\n")
            return analyse(sources, **others)  # type: ignore[arg-type]

        result, _ = run(using=slow)
        assert Path("a.py").read_text() == BAD + "mine = 1\n"
        assert errors(result) == ["a.py:1: is not fixed: it was changed while it was being checked"]

    def test_a_file_that_is_gone_is_reported(self) -> None:
        Path("a.py").write_text(BAD)

        def slow(sources: list[Source], **others: object) -> tuple[list[CallSite], list[Finding]]:
            Path("a.py").unlink(missing_ok=True)
            return analyse(sources, **others)  # type: ignore[arg-type]

        assert errors(run(using=slow)[0]) == ["a.py:1: is not fixed: it cannot be written: No such file or directory"]

    def test_a_folder_in_which_no_file_can_be_made_is_no_obstacle(self, monkeypatch: pytest.MonkeyPatch) -> None:
        Path("a.py").write_text(BAD)
        inode = os.stat("a.py").st_ino
        monkeypatch.setattr("codemods.write.tempfile.mkstemp", raising(PermissionError(13, "Permission denied")))
        run()
        assert Path("a.py").read_text() == GOOD
        assert os.stat("a.py").st_ino == inode

    @pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
    def test_what_is_interrupted_leaves_the_old_file_and_nothing_else(
        self, monkeypatch: pytest.MonkeyPatch, error: BaseException
    ) -> None:
        Path("a.py").write_text(BAD)
        monkeypatch.setattr("codemods.write.os.replace", raising(error))
        with pytest.raises((WriteError, KeyboardInterrupt)):
            write("a.py", b"new", discover(["a.py"], Configuration(), Words()).candidates[0].stamp)
        assert os.listdir() == ["a.py"]
        assert Path("a.py").read_text() == BAD

    def test_what_another_run_is_writing_stays(self) -> None:
        import fcntl

        Path("a.py").write_text(BAD)
        prefix = f".shapecheck-{zlib.crc32(b'a.py'):08x}-"
        for name in (f"{prefix}live.tmp", f"{prefix}stale.tmp", ".shapecheck-00000000-other.tmp"):
            Path(name).touch()
        with open(f"{prefix}live.tmp") as live:
            fcntl.flock(live, fcntl.LOCK_EX)
            run()
        assert sorted(os.listdir()) == sorted([".shapecheck-00000000-other.tmp", f"{prefix}live.tmp", "a.py"])

    def test_without_a_writer_nothing_is_written(self) -> None:
        Path("a.py").write_text(BAD)
        result, changes = run(writing=False)
        assert changes == [Change("a.py", BAD.encode(), GOOD.encode())]
        assert Path("a.py").read_text() == BAD
        assert (len(result.fixed), result.report.fixed, result.failed) == (1, 0, False)


def raising(error: BaseException) -> Callable[..., object]:
    def fail(*_: object, **__: object) -> object:
        raise error

    return fail


class TestFixpoint:
    def test_every_finding_of_a_file_is_fixed_in_one_round(self) -> None:
        Path("a.py").write_text("".join(f"{CALL}\n" for _ in range(50)))
        rounds: list[int] = []

        def counting(sources: list[Source], **others: object) -> tuple[list[CallSite], list[Finding]]:
            rounds.append(1)
            return analyse(sources, **others)  # type: ignore[arg-type]

        assert run(using=counting)[0].report.fixed == 50
        assert Path("a.py").read_text() == f"{FIXED}\n" * 50
        assert len(rounds) == 2

    def test_nested_calls_are_fixed(self) -> None:
        Path("a.py").write_text("paged_attention(pages=6, block=4, q=paged_attention(pages=9, block=6))\n")
        assert run()[0].report.fixed == 2
        assert Path("a.py").read_text() == "paged_attention(pages=6, block=3, q=paged_attention(pages=9, block=3))\n"

    def test_unsafe_fixes_are_applied_on_request(self) -> None:
        text = IMPORT + "paged_attention(pages=6, block=4, mode='kv_head')\n"
        Path("a.py").write_text(text)
        assert run()[0].failed
        assert Path("a.py").read_text() == text.replace("block=4", "block=3")
        assert not run(unsafe=True)[0].failed
        assert Path("a.py").read_text() == text.replace("block=4", "block=3").replace("'kv_head'", "None")

    def test_what_is_unproven_is_fixed_only_on_request(self) -> None:
        Path("a.py").write_text(UNPROVEN)
        assert run()[1] == []
        assert run(settings=Settings(strict=True))[1] == []
        result, changes = run(unsafe=True)
        assert len(changes) == len(result.fixed) == 1

    def test_what_is_ignored_is_not_fixed(self) -> None:
        Path("a.py").write_text(UNPROVEN)
        assert run(unsafe=True, settings=Settings(unproven=True, ignore=("SC102",)))[1] == []
        Path("a.py").write_text(UNPROVEN.replace("block=4)", "block=4)  # shapecheck: ignore[SC102]"))
        assert run(unsafe=True)[1] == []

    def test_an_import_that_several_fixes_need_is_added_once(self) -> None:
        Path("a.py").write_text(UNPROVEN + UNPROVEN.removeprefix(IMPORT).replace("f(", "g("))
        result, _ = run(unsafe=True, settings=Settings(strict=True))
        assert not result.failed
        assert result.report.fixed == 2
        text = Path("a.py").read_text()
        assert text.count("import largest_divisor\n") == 1
        assert text.startswith(IMPORT + "from shapecheck import largest_divisor\ndef f(n):\n")
        assert text.count("block=largest_divisor(n, 4)") == 2

    def test_fixes_that_overlap_are_applied_one_after_the_other(self) -> None:
        Path("a.py").write_text("paged_attention(pages=6, block=4, mode='kv_head')\n")

        def overlapping(sources: list[Source], **others: object) -> tuple[list[CallSite], list[Finding]]:
            sites, findings = analyse(sources, **others)  # type: ignore[arg-type]
            return sites, [widened(sources[0], finding) for finding in findings]

        result, _ = run(using=overlapping, unsafe=True)
        assert result.report.fixed == 2
        assert Path("a.py").read_text() == "paged_attention(pages=6, block=3, mode=None)\n"

    def test_what_is_fixed_is_told_where_it_was_at_first(self) -> None:
        text = UNPROVEN + "x = paged_attention(pages=6, block=4, mode='kv_head')\n"
        Path("a.py").write_text(text)

        def overlapping(sources: list[Source], **others: object) -> tuple[list[CallSite], list[Finding]]:
            sites, findings = analyse(sources, **others)  # type: ignore[arg-type]
            return sites, [each if each.verdict == "unproven" else widened(sources[0], each) for each in findings]

        result, [change] = run(using=overlapping, unsafe=True)
        assert b"import largest_divisor" in change.after  # by the first round: what comes later has moved
        places = [(each.code, each.span.line, each.span.column, each.span.end_column) for each in result.fixed]
        assert places == [("SC102", 3, 43, 44), ("SC102", 4, 36, 37), ("SC201", 4, 44, 53)]
        assert {each.call.line for each in result.fixed} == {3, 4}

    def test_comments_that_suppress_nothing_are_removed_on_request(self) -> None:
        text = IMPORT + f"{CALL}  # shapecheck: ignore[SC201]\n{FIXED}  # mine  # shapecheck: ignore[SC102]\n"
        Path("a.py").write_text(text)
        assert run(settings=Settings(ignore=("SC102",)))[1] == []
        result, _ = run(settings=Settings(select=("SC",)))
        assert not result.failed
        assert Path("a.py").read_text() == IMPORT + f"{FIXED}\n{FIXED}  # mine\n"


def widened(source: Source, finding: Finding) -> Finding:
    """Let the fix replace the whole call."""
    assert finding.fix is not None
    [edit] = finding.fix.edits
    call = finding.call
    text = source.text[call.start : edit.start].decode() + edit.replacement + source.text[edit.end : call.end].decode()
    return replace(finding, fix=replace(finding.fix, edits=(Edit(call.start, call.end, text),)))


def notes(result: Run) -> list[str]:
    return [f"{each.path}:{each.span.line}: {each.fix.message}" for each in result.report.findings if each.fix]


class TestPromises:
    """A fix that is not what it says is not written: the finding remains, and says why."""

    def note(self, change: Callable[[Source, Finding], Finding], text: str = BAD) -> str:
        Path("a.py").write_text(text)

        def changed(sources: list[Source], **others: object) -> tuple[list[CallSite], list[Finding]]:
            sites, findings = analyse(sources, **others)  # type: ignore[arg-type]
            return sites, [change(sources[0], finding) for finding in findings]

        result, changes = run(using=changed)
        assert Path("a.py").read_text() == text
        assert (changes, result.report.fixed, result.failed, result.report.errors) == ([], 0, True, [])
        [finding] = result.report.findings
        assert finding.fix is not None
        assert (finding.fix.applicability, finding.fix.edits) == (Applicability.DISPLAY, ())
        return finding.fix.message

    def edited(self, replacement: str, *, before: int = 0) -> Callable[[Source, Finding], Finding]:
        def change(_: Source, finding: Finding) -> Finding:
            edit = Edit(finding.span.start - before, finding.span.end, replacement)
            return replace(finding, fix=ProposedFix(Applicability.SAFE, "do it", (edit,)))

        return change

    def test_the_finding_would_remain(self) -> None:
        assert self.note(self.edited("5")) == "not fixed (do it): SC102 would remain"

    def test_another_would_come_up(self) -> None:
        message = self.note(self.edited("block=3, mode='kv_head'", before=len("block=")))
        assert message == "not fixed (do it): SC201 would come up at a.py:2"

    def test_the_call_would_no_longer_be_one(self) -> None:
        def change(source: Source, finding: Finding) -> Finding:
            end = finding.call.start + len("paged_attention")
            return replace(finding, fix=ProposedFix(Applicability.SAFE, "", (Edit(finding.call.start, end, "print"),)))

        assert self.note(change) == "not fixed (): a call of a kernel would no longer be recognised"

    def test_the_result_would_be_no_python(self) -> None:
        assert self.note(self.edited("3)")).startswith("not fixed (do it): '3)' is no expression")

    def test_more_would_change(self) -> None:
        text = IMPORT + "x = f'{paged_attention(pages=6, block=4)=}'\n"
        assert self.note(lambda source, finding: finding, text).startswith("not fixed (use 3): ")

    def test_one_that_is_refused_does_not_have_the_others_inspected_again(self, monkeypatch: pytest.MonkeyPatch) -> None:
        inspected: list[Edit] = []

        def counting(source: Source, edit: Edit) -> None:
            inspected.append(edit)
            inspect(source, edit)

        def wrong(sources: list[Source], **others: object) -> tuple[list[CallSite], list[Finding]]:
            sites, [first, *findings] = analyse(sources, **others)  # type: ignore[arg-type]
            return sites, [self.edited("3)")(sources[0], first), *findings]

        monkeypatch.setattr("codemods.fix.inspect", counting)
        Path("a.py").write_text(IMPORT + f"{CALL}\n" * 6)
        result, _ = run(using=wrong)
        assert (result.report.fixed, len(notes(result)), len(inspected)) == (5, 1, 6)

    def test_a_literal_in_a_file_that_cannot_be_checked(self) -> None:
        literal = f"BLOCK = 4\nX = {'(' * 170}1{',)' * 170}\n"
        Path("b.py").write_text(literal)
        edit = Edit(8, 9, "3", path="b.py")
        message = self.note(lambda _, finding: replace(finding, fix=ProposedFix(Applicability.SAFE, "do it", (edit,))))
        assert message == "not fixed (do it): is not checked: nested too deeply, 173 levels"
        assert Path("b.py").read_text() == literal

    def test_the_others_in_the_file_are_fixed(self) -> None:
        text = IMPORT + "x = f'{paged_attention(pages=6, block=4)=}'\npaged_attention(pages=6, block=4)\n"
        Path("a.py").write_text(text)
        result, _ = run()
        assert result.report.fixed == 1
        assert len(notes(result)) == 1
        assert Path("a.py").read_text() == "3".join(text.rsplit("4", 1))

    def test_one_that_does_not_keep_its_promise_undoes_no_other(self) -> None:
        good, bad = f"{CALL}\n", "paged_attention(pages=7, block=4)\n"
        Path("a.py").write_text(IMPORT + good + bad + good)

        def wrong(sources: list[Source], **others: object) -> tuple[list[CallSite], list[Finding]]:
            sites, findings = analyse(sources, **others)  # type: ignore[arg-type]
            return sites, [self.edited("3")(sources[0], finding) for finding in findings]

        result, _ = run(using=wrong)
        assert result.report.fixed == 2
        assert notes(result) == ["a.py:3: not fixed (do it): SC102 would remain"]
        assert Path("a.py").read_text() == IMPORT + f"{FIXED}\n" + bad + f"{FIXED}\n"

    def test_a_violation_in_another_file_undoes_what_caused_it(self) -> None:
        Path("a.py").write_text(BAD)
        Path("b.py").write_text(f"{GOOD}import a\n")

        def entangled(sources: list[Source], **others: object) -> tuple[list[CallSite], list[Finding]]:
            sites, findings = analyse(sources, **others)  # type: ignore[arg-type]
            if not findings:
                [finding] = analyse([Source("b.py", BAD.encode())], **others)[1]  # type: ignore[arg-type]
                findings = [replace(finding, fix=None)]
            return sites, findings

        result, _ = run(using=entangled)
        assert notes(result) == ["a.py:2: not fixed (use 3): SC102 would come up at b.py:2"]
        assert Path("a.py").read_text() == BAD

    def test_a_result_that_cannot_be_judged_is_not_trusted(self) -> None:
        Path("a.py").write_text(BAD)

        def failing(sources: list[Source], **others: object) -> tuple[list[CallSite], list[Finding]]:
            if b"block=3" in sources[0].text:
                raise RuntimeError("lost")
            return analyse(sources, **others)  # type: ignore[arg-type]

        result, _ = run(using=failing)
        assert notes(result) == ["a.py:2: not fixed (use 3): the result cannot be judged"]
        assert Path("a.py").read_text() == BAD


def test_what_comes_up_by_one_adoption_undoes_no_other() -> None:
    examined: list[int] = []
    for name in "abcdefgh":
        Path(f"{name}.py").write_text(GOOD)

    def entangled(sources: list[Source], **others: object) -> tuple[list[CallSite], list[Finding]]:
        sites, findings = analyse(sources, **others)  # type: ignore[arg-type]
        if any(source.path == "c.py" and b"from kernel import" in source.text for source in sources):
            _, findings = analyse([Source("c.py", BAD.encode())], **others)  # type: ignore[arg-type]
        examined.append(len(sources))
        return sites, [replace(finding, fix=None) for finding in findings]

    result, changes = fix(discover(["."], Configuration(), Words()), entangled, put, adopting=True)
    assert [change.path for change in changes] == [f"{name}.py" for name in "abdefgh"]
    assert Path("c.py").read_text() == GOOD
    told = {note.path: note.message for note in result.report.notes}
    assert told.pop("c.py") == "not adopted: SC102 would come up at c.py:2"
    assert set(told.values()) == {"adopted: the kernel is imported from `kernel`"}
    assert sum(examined) <= 8 * 8  # at first, all, and of four each, two each, and one and one


def test_a_long_file_differs_in_its_call_only() -> None:
    text = IMPORT + "".join(f"def f{n}(x={n}):\n    return [x, {{'é': {n}}}, lambda y: y]\n" for n in range(300)) + f"{CALL}\n"
    Path("a.py").write_text(text)
    run()
    old, new = ast.parse(text), ast.parse(Path("a.py").read_text())
    different = [(a, b) for a, b in zip(old.body, new.body, strict=True) if ast.dump(a) != ast.dump(b)]
    assert [ast.unparse(b) for _, b in different] == [FIXED]
