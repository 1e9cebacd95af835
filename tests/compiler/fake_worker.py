"""Stands in for `shapecheck/compiler/worker.py`: the batch size says what the compiler does to the process."""

import json
import os
import sys
import time

OK, HANG, ABORT, EXIT = 1, 2, 3, 4
LOG = os.environ.get("FAKE_LOG")


def log(text: str) -> None:
    if LOG:
        with open(LOG, "a") as file:
            print(text, file=file)


def main() -> None:
    log(f"start {os.getpid()}")
    hello = os.environ.get("FAKE_HELLO", '{"ready": true}')
    if hello == "die":
        print("Check failed: no such thing", file=sys.stderr)
        sys.exit(7)
    print(hello, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        batch = request["arrays"]["q"]["shape"][0]
        log(f"asked {batch}")
        if batch == HANG:
            time.sleep(600)
        if batch == ABORT:
            print("Fatal: the compiler is upset", file=sys.stderr, flush=True)
            os.abort()
        if batch == EXIT:
            sys.exit(3)
        print(json.dumps({"ok": True, "memory": {"hbm": batch, "vmem": 1}, "seconds": 0.5}), flush=True)


if __name__ == "__main__":
    main()
