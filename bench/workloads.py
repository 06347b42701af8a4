#!/usr/bin/env python3
"""The table of workloads, bench/workloads.json, for PyTorch's side of the benches and for docs/workloads.md.

    bench/workloads.py            writes the tables of docs/workloads.md
    bench/workloads.py --check    changes nothing; exits with 1 where the page differs from the table
"""
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/workloads.md"


def table():
    """{"models": [...], "operations": [...]}, each entry with its sizes by device ("gpu", "cpu", "tiny")."""
    return json.loads((ROOT / "bench/workloads.json").read_text())


def sizes_text(sizes):
    return ", ".join([sizes["dtype"]] + [f"{name} {value}" for name, value in sizes.items() if name != "dtype"])


def rows(entries):
    lines = ["| name | what | on a GPU | on a CPU |", "| --- | --- | --- | --- |"]
    for entry in entries:
        what = entry["what"] + (f"; {entry['optimizer']}" if "optimizer" in entry else "")
        lines.append(f"| {entry['name']} | {what} | {sizes_text(entry['gpu'])} | {sizes_text(entry['cpu'])} |")
    return "\n".join(lines)


def page_with_tables(text, entries):
    for kind in ("models", "operations"):
        begin, end = f"<!-- workloads: {kind} -->", "<!-- end -->"
        pattern = re.compile(re.escape(begin) + r".*?" + re.escape(end), re.S)
        if not pattern.search(text):
            raise SystemExit(f"workloads.py: {PAGE} has no table {begin} … {end}")
        text = pattern.sub(lambda _: f"{begin}\n{rows(entries[kind])}\n{end}", text)
    return text


def check_names(entries):
    for kind in ("models", "operations"):
        names = [entry["name"] for entry in entries[kind]]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise SystemExit(f"workloads.py: {kind} has {twice} twice")


def main():
    entries, text = table(), PAGE.read_text()
    check_names(entries)
    wanted = page_with_tables(text, entries)
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(wanted)
    elif wanted != text:
        raise SystemExit("workloads.py: docs/workloads.md differs from bench/workloads.json; run bench/workloads.py")


if __name__ == "__main__":
    main()
