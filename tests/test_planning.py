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


LARGE = ("--chip", "v5e", "--batch", "64", "--context", "8192")


def test_the_cache_of_all_layers_must_fit(capsys: pytest.CaptureFixture[str]) -> None:
    Path("config.json").write_text(json.dumps({**MODEL, "num_hidden_layers": 32}))
    assert cli.main(["plan", "config.json", *LARGE]) == 1
    out = capsys.readouterr().out
    assert (
        "cache of 32768 pages: 2.00 GiB in each layer, 64.00 GiB in 32 layers, of 15.75 GiB HBM; the weights come on top" in out
    )
    assert "legal  <- take this" in out  # the call itself is
    assert "problem: the pages of 32 layers do not fit: 8064 pages would, without the weights\n" in out
    assert "change: keep 8064 pages on a device instead of 32768" in out
    assert "enough for 15 of 64 sequences at full length" in out
    assert cli.main(["plan", "config.json", *LARGE, "--total-pages", "8064"]) == 0
    assert cli.main(["plan", "config.json", *LARGE, "--total-pages", "8065"]) == 1


def test_the_layers_of_a_device_can_be_stated(capsys: pytest.CaptureFixture[str]) -> None:
    Path("config.json").write_text(json.dumps({**MODEL, "num_hidden_layers": 32}))
    assert cli.main(["plan", "config.json", *LARGE, "--layers", "4"]) == 0
    assert "8.00 GiB in 4 layers" in capsys.readouterr().out
    assert cli.main(["plan", "--q-heads", "32", "--kv-heads", "8", "--head-dim", "128", "--layers", "8", *LARGE]) == 1
    assert "problem: the pages of 8 layers" in capsys.readouterr().out


def test_without_layers_it_says_that_one_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "config.json", *LARGE]) == 0
    assert "2.00 GiB in each layer, of 15.75 GiB HBM; of how many layers is not known (--layers)" in capsys.readouterr().out


def test_json_has_the_cache(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["plan", "config.json", *LARGE, "--layers", "32", "--pages-dtype", "int8", "--output-format", "json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)["plans"]
    layer = 8 * 32768 * 16 * (2 * 128 + 2 * 4)  # the scales as they are given
    assert found["cache"].pop("largest_num_pages") < 16128 * 2**20 * 32768 // (32 * layer)  # a call broadcasts its scales
    assert found["cache"] == {"num_layers": 32, "layer_bytes": layer, "total_bytes": 32 * layer, "fits": False}
    assert found["hbm_bytes"] == 16128 * 2**20


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
