"""Runs the program `plimsoll` of this package, so that `uvx plimsoll-cli` works."""

import os
import subprocess
import sys


def main():
    folder = os.path.dirname(os.path.realpath(sys.argv[0]))
    windows = os.name == "nt"
    program = os.path.join(folder, "plimsoll.exe" if windows else "plimsoll")
    command = [program, *sys.argv[1:]]
    if windows:
        sys.exit(subprocess.call(command))
    os.execv(program, command)
