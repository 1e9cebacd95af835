"""The findings that a code base had when it adopted the check: kept in a file, they are not reported, and new ones are."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from codemods.check import Run
from codemods.config import ConfigError
from codemods.files import Found, Project, read, shown
from codemods.findings import Finding, Note
from codemods.report.fingerprints import call_of, identity
from codemods.source import Source
from codemods.write import WriteError, write
from shapecheck.rule import Verdict

_VERSION = 1


class Entry(NamedTuple):
    """A finding that is accepted, but for how often: its path is relative to the folder of the baseline."""

    path: str
    code: str
    verdict: str
    fingerprint: str


class Baseline:
    """One file of accepted findings.

    Attributes:
        path: where it is.
        counts: how often each finding is accepted.
        calls: the name of the rule and the call of each, for whoever reads the file.
    """

    def __init__(self, path: str, *, may_be_missing: bool) -> None:
        self.path = path
        self.counts: Counter[Entry] = Counter()
        self.calls: dict[Entry, tuple[str, str]] = {}
        try:
            document = json.loads(read(path)[0])
        except FileNotFoundError:
            if may_be_missing:
                return
            raise self._unusable("there is no such file; `shapecheck check --write-baseline FILE` makes one") from None
        except OSError as error:
            raise self._unusable(f"cannot be read: {error.strerror or error}") from None
        except ValueError as error:
            raise self._unusable(f"is no baseline: {error}") from None
        try:
            self._take(document)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise self._unusable(f"is no baseline of version {_VERSION}: {type(error).__name__}: {error}") from None

    def _unusable(self, reason: str) -> ConfigError:
        return ConfigError(f"baseline {self.path}: {reason}")

    def _take(self, document: Any) -> None:
        if document["version"] != _VERSION:
            raise ValueError(f"version {document['version']!r}")
        for path, entries in document["findings"].items():
            for each in entries:
                entry = Entry(path, each["code"], Verdict(each["verdict"]), each["fingerprint"])
                self.counts[entry] += int(each["count"])
                self.calls[entry] = each["name"], each["call"]

    def entry(self, run: Run, finding: Finding) -> Entry:
        path = os.path.relpath(os.path.abspath(finding.path), os.path.dirname(self.path)).replace(os.sep, "/")
        source = run.sources[finding.path]
        return Entry(path, finding.code, finding.verdict, identity(path, source, finding))

    def absolute(self, entry: Entry) -> str:
        return os.path.normpath(os.path.join(os.path.dirname(self.path), entry.path))

    def replace(self, gone: Counter[Entry], new: Iterable[tuple[Entry, Finding]], sources: Mapping[str, Source]) -> None:
        """Write the file: without what is gone, with what is new."""
        self.counts -= gone
        for entry, finding in new:
            self.counts[entry] += 1
            self.calls[entry] = finding.name, call_of(sources[finding.path], finding)
        findings: dict[str, list[dict[str, Any]]] = {}
        for entry in sorted(self.counts):
            name, call = self.calls[entry]
            what = {"code": entry.code, "name": name, "verdict": entry.verdict, "call": call}
            listed = findings.setdefault(entry.path, [])
            listed.append({**what, "count": self.counts[entry], "fingerprint": entry.fingerprint})
        self._write(json.dumps({"version": _VERSION, "findings": findings}, indent=1) + "\n")

    def _write(self, text: str) -> None:
        try:
            try:
                write(self.path, text.encode(), read(self.path)[1])
            except FileNotFoundError:
                with open(self.path, "xb") as file:
                    file.write(text.encode())
        except (OSError, WriteError) as error:
            raise self._unusable(f"cannot be written: {getattr(error, 'strerror', None) or error}") from None


class Baselines:
    """The baselines that the settings name, by the files that they are for."""

    def __init__(self, found: Found, *, written: str = "") -> None:
        projects = {each.path: each.project for each in found.candidates}
        projects |= {path: file.project for path, file in found.others.items()}
        self._projects: Mapping[str, Project] = projects
        paths = {project.settings.baseline for project in projects.values()} | {written}
        self._baselines = {path: Baseline(path, may_be_missing=path == written) for path in sorted(paths - {""})}
        self._written = written

    def keep_new(self, run: Run) -> Run:
        """Take what is accepted out of the report, all of it where the baseline is to be written.

        Of what is no longer found a note tells, and writing forgets it: but not of what this run did not look for.
        """
        left = {path: Counter(baseline.counts) for path, baseline in self._baselines.items()}
        remaining: list[Finding] = []
        new: dict[str, list[tuple[Entry, Finding]]] = {path: [] for path in left}
        for finding in run.report.findings:
            path = self._baseline_of(finding.path)
            entry = self._baselines[path].entry(run, finding) if path else None
            if entry is not None and left[path][entry]:
                left[path][entry] -= 1
            else:
                remaining.append(finding)
                if entry is not None:
                    new[path].append((entry, finding))
        failed = {error.path for error in run.report.errors}
        looked_at = {os.path.abspath(path): project for path, project in self._projects.items() if path not in failed}
        notes: list[Note] = []
        for path, baseline in self._baselines.items():
            gone = Counter(
                {entry: count for entry, count in left[path].items() if count and _is_looked_for(baseline, entry, looked_at)}
            )
            if path == self._written:
                baseline.replace(gone, new[path], run.sources)
                remaining.clear()  # it is the only one: the command line overlays the settings of every file
            elif gone:
                notes.append(Note(shown(path), 1, _stale(gone.total(), shown(path))))
        accepted = len(run.report.findings) - len(remaining)
        report = replace(run.report, findings=remaining, baselined=accepted, notes=[*run.report.notes, *notes])
        return run._replace(report=report)

    def _baseline_of(self, path: str) -> str:
        project = self._projects.get(path)
        return project.settings.baseline if project else ""


def _is_looked_for(baseline: Baseline, entry: Entry, looked_at: Mapping[str, Project]) -> bool:
    """Say whether a run that looked at these files would have found it, were it still there."""
    path = baseline.absolute(entry)
    if path not in looked_at:
        return not os.path.exists(path)
    settings = looked_at[path].settings
    told = entry.verdict != Verdict.UNPROVEN or settings.unproven or settings.strict
    return settings.baseline == baseline.path and told and settings.reports(entry.code)


def _stale(count: int, path: str) -> str:
    found = "1 finding of the baseline is" if count == 1 else f"{count} findings of the baseline are"
    return f"{found} no longer found: `shapecheck check --write-baseline {path}` removes {'it' if count == 1 else 'them'}"
