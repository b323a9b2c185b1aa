# Copyright 2026 the probe developers. SPDX-License-Identifier: Apache-2.0
"""Holds answers in JSON to the schemas of ``probe --json-schema``, and notes which keys of the schemas they have."""

from __future__ import annotations

import jsonschema

from probe.reading.commands.main import json_schemas

SCHEMAS = json_schemas()


def validate(command, answer):
    """Raise where an answer has a key, or a value, that the schema of its command does not allow."""
    jsonschema.Draft202012Validator(SCHEMAS[command]).validate(answer)


def keys(command, answer):
    """Return the keys of the schema that an answer has, as pairs: the part of the schema, and the key."""
    return set(_keys(SCHEMAS[command], SCHEMAS[command], answer, command))


def all_keys(command):
    """Return all keys of a schema, as such pairs."""
    return set(_all(SCHEMAS[command], SCHEMAS[command], command))


def _resolved(root, schema, name):
    while "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        schema = root["$defs"][name]
    return schema, name


def _keys(root, schema, answer, name):
    schema, name = _resolved(root, schema, name)
    for number, choice in enumerate(schema.get("anyOf", ())):
        if jsonschema.Draft202012Validator({"$defs": root["$defs"], **choice}).is_valid(answer):
            yield from _keys(root, choice, answer, f"{name}[{number}]")
            break
    if isinstance(answer, list) and isinstance(schema.get("items"), dict):
        for item in answer:
            yield from _keys(root, schema["items"], item, name)
    if isinstance(answer, dict):
        known, further = schema.get("properties", {}), schema.get("additionalProperties")
        for key, value in answer.items():
            if key in known:
                yield name, key
                yield from _keys(root, known[key], value, f"{name}.{key}")
            elif isinstance(further, dict):
                yield from _keys(root, further, value, name)


def _all(root, schema, name):
    schema, name = _resolved(root, schema, name)
    for number, choice in enumerate(schema.get("anyOf", ())):
        yield from _all(root, choice, f"{name}[{number}]")
    for part in (schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, dict):
            yield from _all(root, part, name)
    for key, value in schema.get("properties", {}).items():
        yield name, key
        yield from _all(root, value, f"{name}.{key}")
