"""What `--help` says besides the options: examples, exit statuses, comments."""

from __future__ import annotations

DESCRIPTION = """\
Find calls of TPU paged-attention kernels that break the kernel's contract, and repair them.
The code is read, never run."""

_EXIT_STATUS = """
exit status:
  0  nothing to report, or all of it fixed
  1  findings remain
  2  wrong usage or configuration, or a file that could not be read or parsed; the others are dealt with all the same"""

_COMMENTS = """
comments that keep findings back, on an end of the call or on the line of the argument:
  # shapecheck: ignore[SC102, SC201]         these rules, named in full: SC1 is no prefix here
  # shapecheck: ignore                       every rule
  # shapecheck: skip-file                    the whole file
  # noqa: SC102                              the same as ignore[SC102]; # noqa as ignore
`check --select SC902` finds those that keep nothing back, `fix --select SC902` removes them."""

EPILOG = f"""\
{_EXIT_STATUS.lstrip()}

settings are read from [tool.shapecheck] of the nearest pyproject.toml: select, ignore, chips, exclude, unproven,
strict, baseline

each command has examples: shapecheck check --help"""

CHECK_EXAMPLES = f"""\
examples:
  shapecheck check                           the folder you are in
  shapecheck check --strict --chip v5p src   every call must be proven legal, on a v5p
  shapecheck check --output-format github .  annotations for a workflow
  shapecheck check --output-format sarif --output-file shapecheck.sarif .
  shapecheck check --select SC2 .            only what concerns megacore
  shapecheck check --compile --chip v5p src  what the TPU compiler says of calls whose sizes are known
  shapecheck check --write-baseline known.json .
                                             accept what there is, to see only what is new:
  shapecheck check --baseline known.json .
  shapecheck check --stdin-filename a.py - < a.py
{_COMMENTS}
{_EXIT_STATUS}"""

FIX_EXAMPLES = f"""\
examples:
  shapecheck fix .                           apply the safe fixes
  shapecheck fix --diff . | git apply        the same, as a patch
  shapecheck fix --unsafe-fixes src          those that may change meaning or cost as well
  shapecheck fix --adopt src                 use the typed front door, and state contracts
  shapecheck fix - < a.py > fixed.py

repairs: another block or mode where it is written down; with --unsafe-fixes also largest_divisor(...) and
megacore_mode_for(...) for sizes that are known at run time only. `shapecheck explain CODE` tells that of each rule.
Every result is checked again. A repair that would not do is left out: its finding remains and says why, exit status 1.

output: the report, in any format, goes to standard output; with --diff, or where a file is read from standard
input, the patch or the repaired file goes there, and the report to standard error. On a terminal a patch is in color.

{_EXIT_STATUS}
With --diff it is 1 as well where there is something to change."""

COMPILE_EXAMPLES = """\
examples:
  shapecheck compile --chip v5p --q-heads 32 --kv-heads 8 --block 8
  shapecheck compile --chip v5e,v6e --batch 256 --pages-per-sequence 2048 --output-format json
  shapecheck compile --chip v5p --q-heads 64 --kv-heads 8 --megacore kv_head --mesh model=4
  shapecheck compile --chip v6e --batch 64 --mesh data=2,model=8
  shapecheck compile --chip v5p --pages-dtype int8 --scales-dtype float32
  shapecheck compile --callee ragged_paged_attention --chip v6e --tokens 512 --block 16 --query-block 32
  shapecheck compile --chip v5p --call src/serve.py:120             the sizes that the source says
  shapecheck compile --chip v5p --call src/serve.py:120 --batch 64  and those that it does not

exit status:
  0  it compiles, for every chip
  1  it does not, or it goes wrong, or hangs, when it runs
  2  wrong usage, sizes that are not known, or no answer: libtpu is absent, took too long or crashed

libtpu compiles for chips that are not there; no TPU is needed, and none is touched. It comes with
`pip install 'shapecheck-pallas[tpu]'`, for Linux, and runs in a process of its own. Answers are kept in the
user's cache folder."""

EXPLAIN_EXAMPLES = """\
examples:
  shapecheck explain                         every code with its message
  shapecheck explain SC102                   what it demands, why, and how to repair it
  shapecheck explain "ValueError: ... Got 16 and 24."      which rule an error is about, and what would be legal
  python serve.py 2>&1 | shapecheck explain -              the same for a traceback, or a log with one in it
  pytest 2>&1 | shapecheck explain --output-format json -
  shapecheck explain "decode hangs on v5e with megacore_mode='batch'"

Errors of JAX's kernels are known, of Pallas, of the TPU compiler, of torch_xla's and ejkernel's wrappers, and what
shapecheck itself prints. Of a text that is about something else, nothing is guessed. Nothing is run.

exit status:
  0  all of it is explained
  1  a text in which nothing is recognised, or that is empty
  2  there is no such code"""

PLAN_EXAMPLES = """\
examples:
  shapecheck plan config.json --chip v5e --batch 64 --context 8192
  shapecheck plan config.json --chip v4,v5p --tp 4 --batch 32 --context 4096 --page-size 32
  shapecheck plan --q-heads 28 --kv-heads 4 --head-dim 128 --chip v6e --batch 16 --context 32768
  shapecheck plan config.json --chip v5e --batch 8 --context 100000 --pages-dtype int8 --output-format json
  shapecheck plan config.json --chip v6e --batch 32 --context 8192 --compile --plot plan.png

exit status:
  0  every chip has a legal choice
  1  one has none
  2  wrong usage, a model that cannot be read, or no compiler to ask"""

STUB_EXAMPLES = """\
examples:
  shapecheck stub                            of all kernels, into shape_stubs
  shapecheck stub paged_attention --output stubs
  shapecheck stub kernels.py                 of the functions in this file that state contracts

pyrefly follows the shapes of arrays, with `pip install pyrefly jax-pyrefly-stubs`. With `search-path = ["shape_stubs"]` in
pyrefly.toml, a call whose sizes break a rule is an error there. What its language has no words for is listed, here and
at the head of each stub. See docs/type-checkers.md.

exit status: 0; 2 where a file is there that is not ours, or cannot be written"""

LSP_EXAMPLES = """\
It comes with `pip install 'shapecheck-pallas[lsp]'`. An editor starts it; docs/editors.md has settings for some.

initializationOptions, or the section `shapecheck` of the editor's settings, go on top of [tool.shapecheck]:
  {"chips": ["v5p"], "select": [], "ignore": ["SC115"], "unproven": true}

exit status: 0 when the editor ends it; 2 where pygls is not installed"""
