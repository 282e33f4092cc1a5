#!/usr/bin/env python3
"""README's first experiment learns, as it says, and with as few bytes as it says."""
import os
import re

from _here import ROOT, check, run_tests


def section():
    with open(os.path.join(ROOT, "README.md")) as file:
        text = file.read()
    return text.split("## Your first experiment", 1)[1].split("\n## ", 1)[0]


def numbers(text):
    """[(mean accuracy, MB sent, accuracy of the averaged model)] of each run that it shows."""
    means = re.findall(r"^mean +(\S+) % +\S+ +(\S+)", text, re.M)
    averaged = re.findall(r"^averaged model +loss \S+, accuracy (\S+) %", text, re.M)
    return [(float(a), float(sent), float(b)) for (a, sent), b in zip(means, averaged)]


def test_the_first_experiment_learns_as_the_page_says(scene):
    page = section()
    experiment = re.search(r"^\$ cat first\.json\n(\{.*?^\})", page, re.M | re.S)[1]
    path = scene.write("first.json", experiment)
    found = []
    for i, words in enumerate(((), ("--set", "algorithm=all-reduce"))):
        ended = scene.call("sim", path, *words, "--out", scene.path(f"out{i}"), timeout=300)
        ended.check_well()
        found += numbers(ended.out)
    said = numbers(page)
    check(len(found) == len(said) == 2, f"{found}, {said}")
    for (mean, sent, averaged), (its_mean, its_sent, its_averaged) in zip(found, said):
        # kernels differ between processors, and so do the last digits
        check(abs(mean - its_mean) < 1.5 and abs(averaged - its_averaged) < 1, f"{found}, {said}")
        check(abs(sent / its_sent - 1) < 0.01, f"{found}, {said}")
    (gossip, few, best), (_, many, exact) = found
    check(gossip > 94 and best > 95.5 and best > exact - 1, f"{found}")
    times = int(re.search(r"sent (\d+) times fewer bytes", page)[1])
    check(abs(many / few - times) < 1, f"{many / few} times, and the page says {times}")


if __name__ == "__main__":
    run_tests()
