"""The published JSON Schema says what the model says."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.documents import Change, Document, drop, faults_of, full, put

from optalloc.instance import read_text
from optalloc.io.checks import semantic_faults
from optalloc.io.faults import json_path
from optalloc.io.schema import SCHEMA_PATH, instance_schema, schema_text


def test_published_schema_is_the_generated_one() -> None:
    """``python -m optalloc.io.schema`` writes it anew."""
    assert SCHEMA_PATH.read_text(encoding="utf-8") == schema_text()
    jsonschema.Draft202012Validator.check_schema(instance_schema())


def places(value: Any, steps: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document."""
    if steps:
        yield steps
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in inside:
        yield from places(inner, (*steps, step))


SUBSTITUTES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    0.5,
    1.25,
    10**7,
    2.0**60,
    "",
    "a",
    [],
    ["a"],
    {},
    {"a": 1},
)


def changes(document: Document) -> Iterator[tuple[tuple[Any, ...], Change]]:
    """Each place with each way to replace or remove what stands there."""
    for steps in places(document):
        if steps[0] != "meta" or len(steps) == 1:
            yield from ((steps, put(*steps)(value)) for value in SUBSTITUTES)
            yield steps, drop(*steps)


@pytest.mark.parametrize("share", [0.04, pytest.param(1.0, marks=pytest.mark.long)])
def test_schema_and_model_agree(share: float) -> None:
    """What the schema refuses is refused on reading; what it accepts has at most faults of meaning."""
    validator = jsonschema.Draft202012Validator(instance_schema())
    everything = list(changes(full()))
    sample = random.Random(1).sample(everything, int(share * len(everything)))
    refused = 0
    for steps, change in sample:
        document = full()
        change(document)
        accepted = validator.is_valid(document)
        found = faults_of(document)
        meaning = {json_path(path) for path, _ in semantic_faults(document)}
        assert not set(found) - meaning if accepted else found, (steps, found, accepted)
        refused += not accepted
    assert len(sample) // 4 < refused < len(sample)


def test_schema_accepts_the_small_cases(shared: Path) -> None:
    """Published documents are valid by the schema alone."""
    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA_PATH.read_text(encoding="utf-8")))
    for path in sorted((shared / "bench" / "small_cases").glob("*.json")):
        if not path.name.endswith(".expected.json"):
            validator.validate(json.loads(path.read_text()))


PAGE = Path(__file__).resolve().parents[1] / "docs" / "instance.md"


def test_the_page_of_the_format_names_every_key() -> None:
    """Each key of the schema stands in docs/instance.md."""
    page = PAGE.read_text(encoding="utf-8")
    schema = instance_schema()
    keys = {key for part in (schema, *schema["$defs"].values()) for key in part["properties"]}
    assert [key for key in sorted(keys) if not re.search(rf"[`\"]{key}[`\"]", page)] == []


def test_the_example_of_the_page_is_an_instance() -> None:
    """The JSON in docs/instance.md reads, and is valid by the schema."""
    (text,) = re.findall(r"^```json\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert read_text(text).name == "first-steps"
    jsonschema.Draft202012Validator(instance_schema()).validate(json.loads(text))
