"""The command `plan`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from codemods import cli

MODEL = {"num_attention_heads": 32, "num_key_value_heads": 8, "hidden_size": 4096}
LOAD = ("--batch", "8", "--context", "1600")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("config.json").write_text(json.dumps(MODEL))


def test_the_table_marks_the_choice_and_the_call_can_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "config.json", "--chip", "v5p", "--tp", "4", *LOAD]) == 0
    out = capsys.readouterr().out
    assert "8 query heads, 2 KV heads, head_dim 128; batch 8, 100 pages of 16 tokens, bfloat16 pages" in out
    (taken,) = [line.split() for line in out.splitlines() if "<- take this" in line]
    assert taken[:3] == ["100", "1600", "kv_head"]
    call = out[out.index("paged_attention(") :]
    seen: dict[str, Any] = {}
    names = dict.fromkeys(("q", "k_pages", "v_pages", "lengths", "page_indices"))
    exec(call, {"paged_attention": lambda *_, **given: seen.update(given), **names})
    assert seen == {"pages_per_compute_block": 100, "megacore_mode": "kv_head"}


def test_json_has_every_choice_for_every_chip(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "config.json", "--chip", "v5e,v5p", *LOAD, "--output-format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [each["chip"] for each in document["plans"]] == ["v5e", "v5p"]
    first = document["plans"][0]
    assert [option["pages_per_compute_block"] for option in first["options"]] == [100, 50, 25, 20, 10, 5, 4, 2, 1]
    assert first["best"] == first["options"][0]
    assert first["best"]["verdicts"]["SC102"] == "proven"
    assert first["geometry"]["num_kv_heads"] == 8


def test_sizes_of_the_command_line_replace_those_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "config.json", "--head-dim", "64", "--chip", "v5e", *LOAD]) == 1
    out = capsys.readouterr().out
    assert "breaks SC301" in out
    assert "none of these is known to be legal\nchange: pad head_dim from 64 to 128" in out


def test_without_a_file_all_sizes_are_needed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "--q-heads", "32", "--kv-heads", "8", "--head-dim", "128", "--chip", "v5e", *LOAD]) == 0
    assert cli.main(["plan", "--q-heads", "32", "--chip", "v5e", *LOAD]) == 2
    assert "a config.json, or all of --q-heads, --kv-heads and --head-dim" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "config.json: is no JSON"),
        ("[]", "config.json: is no JSON object"),
        ("{}", "config.json: it has no number of attention heads"),
        ("{}", "; --q-heads, --kv-heads and --head-dim state what it lacks"),
        ('{"text_config": {"kv_lora_rank": 512}}', "multi-head latent attention (kv_lora_rank): paged_attention is not for it\n"),
    ],
)
def test_a_file_that_cannot_be_read_is_an_error(text: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("config.json").write_text(text)
    assert cli.main(["plan", "config.json", "--chip", "v5e", *LOAD]) == 2
    assert says in capsys.readouterr().err


def test_the_call_has_the_cap_of_the_model_and_what_is_left_out_is_noted(capsys: pytest.CaptureFixture[str]) -> None:
    Path("config.json").write_text(json.dumps({**MODEL, "attn_logit_softcapping": 50.0, "sliding_window": 4096}))
    assert cli.main(["plan", "config.json", "--chip", "v5e", *LOAD]) == 0
    out = capsys.readouterr().out
    assert "    megacore_mode=None,\n    attn_logits_soft_cap=50.0,\n)\n" in out
    assert "note: sliding_window = 4096 is left out" in out
    assert cli.main(["plan", "config.json", "--chip", "v5e", *LOAD, "--output-format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["plans"]
    assert found["geometry"]["attn_logits_soft_cap"] == 50.0
    assert len(found["notes"]) == 1


def test_a_split_that_is_not_possible_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "config.json", "--chip", "v5e", "--tp", "3", *LOAD]) == 2
    assert "cannot be split over 3 devices; legal numbers: 1, 2, 4, 8, 16, 32" in capsys.readouterr().err


def test_the_picture_is_drawn() -> None:
    assert cli.main(["plan", "config.json", "--chip", "v5e,v6e", *LOAD, "--plot", "plan.png"]) == 0
    assert Path("plan.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_no_known_format_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "config.json", "--chip", "v5e", *LOAD, "--plot", "plan.txt"]) == 2
    assert "plan.txt: cannot be drawn" in capsys.readouterr().err


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert cli.main(["plan", "config.json", "--chip", "v5e", *LOAD, "--plot", "plan.png"]) == 2
    assert "pip install 'shapecheck-pallas[plot]'" in capsys.readouterr().err
