"""The JSON Schema of instance files: ``python -m optalloc.io.schema`` writes it anew."""

import ast
import inspect
import json
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from optalloc import entities
from optalloc.instance import FORMAT, Instance
from optalloc.io.atomic import write_text
from optalloc.io.checks_tasks import PHYSICS
from optalloc.quantities import Number

__all__ = ["SCHEMA_PATH", "instance_schema", "schema_text", "write_schema"]

SCHEMA_PATH: Final = Path(entities.__file__).parent / "instance.schema.json"
COMMENT: Final = (
    "The shape of an instance. What a schema cannot say is checked on reading: unique and existing ids, "
    "cycles, calendars, routes, parameters of scalings; whole numbers are written without a decimal point, "
    "and no number has more than 30 decimals."
)


class _Generator(GenerateJsonSchema):
    """No titles made of key names; defaults as plain numbers."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        return _plain_default(dft)


def _plain_default(value: Any) -> Any:
    if isinstance(value, Number):
        return json.loads(value.text)
    if isinstance(value, BaseModel):
        return {}
    if isinstance(value, dict):
        return {key: _plain_default(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [_plain_default(inner) for inner in value]
    return value


def instance_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of instance files."""
    schema = Instance.model_json_schema(schema_generator=_Generator)
    models = [model for name in schema["$defs"] if (model := getattr(entities, name))]
    for model in models:
        _describe(schema["$defs"][model.__name__], model)
    _describe(schema, Instance)
    _tidy(schema)
    schema["$defs"]["Task"]["allOf"] = _task_rules()
    schema["required"] = ["format", *schema["required"]]
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:{FORMAT.replace('/', ':')}",
    }
    return {**head, "$comment": COMMENT, **schema}


def _describe(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Give properties the texts that stand below the fields in the source."""
    body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    statements = body.body if isinstance(body, ast.ClassDef) else []
    for field, text in pairwise(statements):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _is_text(text):
            info = model.model_fields[field.target.id]
            words = inspect.cleandoc(text.value.value)  # type: ignore[attr-defined]
            schema["properties"][info.alias or field.target.id]["description"] = " ".join(
                words.replace("``", "`").split()
            )
    schema["description"] = (inspect.getdoc(model) or "").partition("\n")[0]


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _tidy(schema: Any) -> None:
    """Say in the schema's words what the validators do: non-empty objects, no other keys, no repetitions."""
    if isinstance(schema, list):
        for part in schema:
            _tidy(part)
    if not isinstance(schema, dict):
        return
    if schema.get("type") == "object":
        if "minLength" in schema:
            schema["minProperties"] = schema.pop("minLength")
        if "patternProperties" in schema:
            schema["additionalProperties"] = False
    for part in schema.values():
        _tidy(part)


def _given(key: str) -> dict[str, Any]:
    """The key is there and not null."""
    return {"required": [key], "properties": {key: {"not": {"type": "null"}}}}


def _task_rules() -> list[Any]:
    """Keys of a task that belong together or exclude each other."""
    nothing: dict[str, Any] = {"enum": [None, 0, {}]}
    physics = [
        _given("model"),
        {"oneOf": [_given("samples"), _given("reference_hours")]},
        {"if": _given("reference_hours"), "then": _given("reference"), "else": {"not": _given("reference")}},
        {"not": {"allOf": [_given("inputs"), _given("datasets")]}},
    ]
    explicit = {"properties": dict.fromkeys(PHYSICS, nothing)}
    return [{"if": _given("modes"), "then": explicit, "else": {"allOf": physics}}]


def schema_text() -> str:
    """The schema as the text of its file."""
    return json.dumps(instance_schema(), indent=1, ensure_ascii=False) + "\n"


def write_schema() -> None:
    """Write the published schema."""
    write_text(SCHEMA_PATH, schema_text())


if __name__ == "__main__":
    write_schema()
