#!/usr/bin/env python3
"""Turn an export table into weak stubs and a linker version script.

    make-stubs.py TABLE STUBS.c EXPORTS.map [--entries]
    make-stubs.py --check TABLE OBJECT ...

A stub says by name that it is not simulated and answers the library's "not supported" code; a
definition in the .c files wins over it.  --entries also writes the sorted table `sim_entries` of
all exported functions, for a library that looks its own entries up by name (libcuda).  --check
fails when an object defines a visible function that the table does not list: it would be lost.

Table format: see README.md beside this file.
"""

import argparse
import re
import subprocess
import sys

LINE = re.compile(
    r"^(?P<name>\w+)"
    r"(?:\s+(?P<node>(?!since=)[\w.]+))?"
    r"(?:\s+since=(?P<since>\d+))?"
    r"(?:\s*=\s*(?P<target>\w+))?$"
)

ALIAS = """\
__asm__(".text\\n.globl {name}\\n.type {name}, @function\\n"
        "{name}: jmp {target}@PLT\\n.size {name}, . - {name}\\n");
"""
STUB = """\
__attribute__((weak)) int {name}(void)
{{
    static bool said;
    return sim_missing("{name}", &said);
}}
"""


def read_table(path):
    entries = []
    with open(path, encoding="ascii") as file:
        for number, text in enumerate(file, 1):
            text = text.split("#")[0].strip()
            if not text:
                continue
            match = LINE.match(text)
            if not match:
                sys.exit(f"{path}:{number}: not 'name [node] [since=VERSION] [= target]': {text}")
            entries.append(match.groupdict())
    return entries


def write_stubs(path, entries, with_entries):
    names = [entry["name"] for entry in entries]
    with open(path, "w", encoding="ascii") as file:
        file.write('/* Made by make-stubs.py. */\n#include "sim.h"\n\n')
        file.writelines(f"int {name}(void);\n" for name in names)
        for entry in entries:
            file.write(ALIAS.format(**entry) if entry["target"] else STUB.format(**entry))
        if with_entries:
            write_entries(file, entries)


def write_entries(file, entries):
    file.write("#pragma GCC visibility push(hidden)\n")
    file.write("extern const struct sim_entry sim_entries[];\n")
    file.write("extern const size_t sim_entry_count;\n")
    file.write("#pragma GCC visibility pop\n")
    file.write("const struct sim_entry sim_entries[] = {\n")
    for entry in sorted(entries, key=lambda entry: entry["name"]):
        file.write('    {{"{0}", {0}, {1}}},\n'.format(entry["name"], entry["since"] or 0))
    file.write("};\nconst size_t sim_entry_count = sizeof(sim_entries) / sizeof(sim_entries[0]);\n")


def write_map(path, entries):
    nodes = {}
    for entry in entries:
        nodes.setdefault(entry["node"] or "", []).append(entry["name"])
    # A nameless node cannot stand beside named ones; what no node lists is then exported without a
    # version, and our own helpers stay inside because they are hidden.
    plain = nodes.pop("", []) if len(nodes) > 1 else []
    with open(path, "w", encoding="ascii") as file:
        for node, names in sorted(nodes.items()) or [("", [])]:
            file.write(f"{node} {{\n")
            if names:
                file.write("global:\n" + "".join(f"    {name};\n" for name in names))
            file.write("};\n" if plain else "local:\n    *;\n};\n")


def visible_functions(path):
    symbols = subprocess.run(["readelf", "-sW", path], check=True, capture_output=True, text=True)
    for line in symbols.stdout.splitlines():
        field = line.split()
        is_function = len(field) == 8 and field[3:6] == ["FUNC", "GLOBAL", "DEFAULT"]
        if is_function and field[6] != "UND":
            yield field[7]


def check(table, objects):
    listed = {entry["name"] for entry in read_table(table)}
    lost = [(path, name) for path in objects for name in visible_functions(path)
            if name not in listed]
    for path, name in lost:
        print(f"{path}: {name} is not listed in {table}: list it, or make it static or hidden",
              file=sys.stderr)
    return 1 if lost else 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entries", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("table")
    parser.add_argument("files", nargs="+")
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    if arguments.check:
        return check(arguments.table, arguments.files)
    stubs, version_script = arguments.files
    entries = read_table(arguments.table)
    write_stubs(stubs, entries, arguments.entries)
    write_map(version_script, entries)
    return 0


if __name__ == "__main__":
    sys.exit(main())
