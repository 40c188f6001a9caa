#!/usr/bin/env python3
"""check_schema.py SCHEMA FILE: prints where the values of FILE (JSON) do not fit the schema; 1 if somewhere.

Knows those keywords of JSON Schema that the chart uses, and refuses a schema with others, since a check that
skips a keyword would take every value. A whole chart needs no more, and Debian's validator need not be there."""
import json
import re
import sys

NOTES = {"$schema", "title", "description", "definitions"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


def has_type(value, name):
    if isinstance(value, bool) and name != "boolean":
        return False  # Python's True is an int, JSON's is not.
    return isinstance(value, TYPES[name])


def check_object(schema, root, value, where):
    for key in schema.get("required", []):
        if key not in value:
            yield f"{where}: lacks {key}"
    known = schema.get("properties", {})
    rest = schema.get("additionalProperties", True)
    for key, item in value.items():
        place = f"{where}.{key}"
        if key in known:
            yield from check(known[key], root, item, place)
        elif rest is False:
            yield f"{place}: is no value of this chart"
        elif rest is not True:
            yield from check(rest, root, item, place)


def check_array(schema, root, value, where):
    if len(value) < schema.get("minItems", 0):
        yield f"{where}: has too few entries"
    for index, item in enumerate(value):
        yield from check(schema.get("items", {}), root, item, f"{where}[{index}]")


def check_one(schema, root, value, where):
    """Checks a value whose type fits."""
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: is none of {', '.join(schema['enum'])}"
    if "minimum" in schema and value < schema["minimum"]:
        yield f"{where}: is less than {schema['minimum']}"
    if len(value if isinstance(value, str) else "x") < schema.get("minLength", 0):
        yield f"{where}: is empty"
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{where}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, dict):
        yield from check_object(schema, root, value, where)
    if isinstance(value, list):
        yield from check_array(schema, root, value, where)


KEYWORDS = {"$ref", "type", "anyOf", "enum", "minimum", "minLength", "pattern", "required", "properties",
            "additionalProperties", "minItems", "items"} | NOTES


def check(schema, root, value, where):
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/definitions/")
        yield from check(root["definitions"][name], root, value, where)
    elif "anyOf" in schema:
        if all(list(check(one, root, value, where)) for one in schema["anyOf"]):
            yield f"{where}: {value!r} is none of what it may be"
    elif "type" in schema and not has_type(value, schema["type"]):
        yield f"{where}: is no {schema['type']}"
    else:
        yield from check_one(schema, root, value, where)


def unknown_keywords(schema):
    """Yields the keywords of `schema` and of all that is in it that check() does not know."""
    yield from sorted(set(schema) - KEYWORDS)
    inner = list(schema.get("properties", {}).values()) + list(schema.get("definitions", {}).values())
    inner += schema.get("anyOf", []) + [schema[key] for key in ("items", "additionalProperties") if key in schema]
    for one in inner:
        if isinstance(one, dict):
            yield from unknown_keywords(one)


def main():
    schema, value = (json.loads(open(path, encoding="utf-8").read()) for path in sys.argv[1:3])
    unknown = list(unknown_keywords(schema))
    if unknown:
        sys.exit(f"check_schema.py: knows no keyword {', '.join(unknown)}")
    problems = list(check(schema, schema, value, "values"))
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
