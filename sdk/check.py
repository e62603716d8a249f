"""Every check of the official SDKs against `plimsoll-mock`: `check.py PLIMSOLL_MOCK [PART]`.

`cargo xtask sdk` builds the one and calls the other.
"""

import sys
import time
import traceback

import anthropic
import openai

import chat  # noqa: F401
import messages  # noqa: F401
import responses  # noqa: F401
from served import CHECKS, Served


def main():
    Served.program = sys.argv[1]
    part = sys.argv[2] if len(sys.argv) > 2 else ""
    print(f"openai {openai.__version__}, anthropic {anthropic.__version__}, strict validation")
    chosen = [(protocol, act) for protocol, act in CHECKS if part in f"{protocol} {act.__name__}"]
    failed = 0
    for protocol, act in chosen:
        began = time.monotonic()
        try:
            act()
            word = "ok"
        except Exception:
            failed += 1
            word = "FAILED"
            traceback.print_exc()
        took = time.monotonic() - began
        print(f"{word:<7} {protocol:<17} {act.__name__} ({took:.1f} s)", flush=True)
    print(f"{len(chosen) - failed} of {len(chosen)} checks passed")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
