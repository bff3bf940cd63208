# SPDX-License-Identifier: Apache-2.0
"""The gate of the layers: includes point down, in no circle, and from public to public."""

import pathlib

from source_file import Problem

LAYERS = pathlib.Path(__file__).with_name("layers.txt")


def read_layers(path=LAYERS):
    """Each layer's line number among the lines that name layers, lowest first."""
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()
             if line.strip() and not line.startswith("#")]
    return {name: height for height, names in enumerate(lines) for name in names}


def layer_of(path):
    """include/bursar/<layer>/... and src/<layer>/..., else nothing."""
    parts = path.split("/")
    folders = parts[2:-1] if parts[0] == "include" else parts[1:-1]
    return folders[0] if folders else None


def resolve(file, name, known):
    """The path of the file of ours that `name` means, if any."""
    folder = file.path.rsplit("/", 1)[0]
    for candidate in (f"include/{name}", f"{folder}/{name}", f"src/{name}"):
        if candidate in known:
            return candidate
    return None


def include_graph(files):
    """path -> [(line, included path)], and the includes of ours that name no file."""
    known = {file.path for file in files}
    graph, missing = {}, []
    for file in files:
        graph[file.path] = []
        for line, quote, name in file.includes():
            target = resolve(file, name, known)
            if target:
                graph[file.path].append((line, target))
            elif quote == '"' or name.startswith("bursar/"):
                missing.append(Problem(file.path, line, f"includes {name}, which is no file"))
    return graph, missing


def upward(graph, heights):
    for path, includes in graph.items():
        own = layer_of(path)
        if own not in heights:
            yield Problem(path, 1, f"lies in no layer of {LAYERS.name}")
            continue
        if path.startswith("include/") and path.count("/") != 3:
            yield Problem(path, 1, "public headers lie in include/bursar/<layer>/")
        for line, target in includes:
            other = layer_of(target)
            if path.startswith("include/") and not target.startswith("include/"):
                yield Problem(path, line, f"a public header includes the private {target}")
            if other != own and heights.get(other, -1) >= heights[own]:
                yield Problem(path, line, f"{own} includes {target}, which is not below it")


def cycles(graph):
    """One problem for each include that closes a circle."""
    done, trail = set(), []

    def visit(path):
        trail.append(path)
        for line, target in graph[path]:
            if target in trail:
                circle = " -> ".join(trail[trail.index(target):] + [target])
                yield Problem(path, line, f"include cycle: {circle}")
            elif target not in done:
                yield from visit(target)
        done.add(trail.pop())

    for path in graph:
        if path not in done:
            yield from visit(path)


def layering(files):
    graph, missing = include_graph(
        [file for file in files if file.is_cxx and file.path.startswith(("include/", "src/"))])
    yield from missing
    yield from upward(graph, read_layers())
    yield from cycles(graph)
