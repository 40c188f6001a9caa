#!/usr/bin/env python3
"""Puts the defects of mutants.txt into copies of their sources, each behind a switch.

usage: mutate.py SOURCE_TREE MUTANTS OUTPUT_DIRECTORY [--list]

Writes the copies below OUTPUT_DIRECTORY, and mutant_names.h with the number and the name of each.
--list prints the sources instead. A defect whose place is not in its source just once is an error.
"""
import pathlib
import re
import sys

HEADER = '''#pragma once

#include <utility>

namespace spoke::sim {

inline constexpr std::pair<int, const char*> kMutantNames[] = {
NAMES};

}  // namespace spoke::sim
'''
HEAD = re.compile(r'^== (\d+)(?: (\S+))?: (.*)$')


def parse(text):
    mutants = []
    for line in text.splitlines():
        head = HEAD.match(line)
        if head:
            mutants.append({'number': int(head[1]), 'source': head[2], 'name': head[3], '-': [], '+': []})
        elif mutants and line[:1] in ('-', '+'):
            mutants[-1][line[0]].append(line[1:])
    return mutants


def apply(mutant, text):
    before = '\n'.join(mutant['-'])
    if text.count(before) != 1:
        sys.exit(f'mutants.txt: mutant {mutant["number"]} is {text.count(before)} times in {mutant["source"]}')
    switch = f'::spoke::sim::Mutant({mutant["number"]})'
    return text.replace(before, '\n'.join(mutant['+']).replace('MUTANT', switch))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    tree, table, output = (pathlib.Path(argument) for argument in sys.argv[1:4])
    mutants = parse(table.read_text())
    sources = sorted({mutant['source'] for mutant in mutants if mutant['source']})
    if '--list' in sys.argv:
        print(';'.join(sources), end='')
        return
    for source in sources:
        text = (tree / source).read_text()
        for mutant in mutants:
            if mutant['source'] == source:
                text = apply(mutant, text)
        write(output / source, '#include "tests/sim/mutant.h"\n' + text)
    names = ''.join(f'    {{{mutant["number"]}, "{mutant["name"]}"}},\n' for mutant in mutants)
    write(output / 'mutant_names.h', HEADER.replace('NAMES', names))


main()
