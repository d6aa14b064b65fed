"""The JSON schema of ``config.yaml``, for editors and workflow catalogues."""

from pathlib import Path

import yaml

from emo.config import Study
from emo.outputs import atomic_file

HEADER = "# Written by `make schema` from emo/config.py; do not edit.\n"


def schema_text() -> str:
    """Return the schema as YAML."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Study.model_json_schema(),
    }
    return HEADER + yaml.safe_dump(schema, sort_keys=False, width=100)


def write_schema(path: Path) -> None:
    """Write the schema file."""
    with atomic_file(path) as temporary:
        temporary.write_text(schema_text(), encoding="utf-8")
