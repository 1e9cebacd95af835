"""The front door in a program of two processes, each with half of the devices, without `pmap`."""

from __future__ import annotations

import socket
import subprocess
import sys


def test_two_processes_attend_together() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [sys.executable, "-m", "tests.one_of_two_processes", address]
    processes = [
        subprocess.Popen([*command, str(index)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for index in range(2)
    ]
    try:
        for process in processes:
            out, error = process.communicate(timeout=300)
            assert process.returncode == 0, error[-2000:]
            assert out.startswith("num_kv_heads = 1   (k_pages.shape[0] of one shard; ")
    finally:
        for process in processes:
            process.kill()
            process.wait()
