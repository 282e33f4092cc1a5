#!/usr/bin/env python3
"""Every public header compiles alone, in C and in C++.

usage: headers.py [STARLING]
"""

import glob
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LANGUAGES = {"c": ("gcc", "c11"), "c++": ("g++", "c++11")}


def compiles(header, language):
    compiler, standard = LANGUAGES[language]
    command = [compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra", "-Werror"]
    command += ["-fsyntax-only", "-I", os.path.join(ROOT, "include"), header]
    return subprocess.run(command, check=False).returncode == 0


def main():
    failed = False
    for header in sorted(glob.glob(os.path.join(ROOT, "include", "starling", "*.h"))):
        for language in LANGUAGES:
            good = compiles(header, language)
            failed |= not good
            print(f"{'ok' if good else 'not ok'} {os.path.basename(header)} alone in {language}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
