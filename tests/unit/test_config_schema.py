from copy import deepcopy
from pathlib import Path

import jsonschema
import pytest
import yaml

from emo.config_schema import schema_text, write_schema

ROOT = Path(__file__).parents[2]
SCHEMA_FILE = ROOT / "workflow" / "schemas" / "config.schema.yaml"
CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())


@pytest.fixture(scope="module")
def validator():
    schema = yaml.safe_load(SCHEMA_FILE.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_file_is_in_step_with_the_model():
    assert SCHEMA_FILE.read_text(encoding="utf-8") == schema_text(), "run `make schema`"


def test_write_schema(tmp_path):
    write_schema(tmp_path / "new" / "schema.yaml")
    assert (tmp_path / "new" / "schema.yaml").read_text(encoding="utf-8") == schema_text()


def test_it_accepts_the_default_study(validator):
    validator.validate(CONFIG)


def test_it_marks_a_typo_a_missing_key_and_a_wrong_type(validator):
    """What an editor underlines while the file is written."""
    faulty = deepcopy(CONFIG)
    faulty["training"] |= {"stps": 5, "batch_size": "many"}
    del faulty["training"]["steps"]
    faults = [error.message for error in validator.iter_errors(faulty)]
    assert len(faults) == 3
    assert any("'stps' was unexpected" in fault for fault in faults)


def test_it_marks_an_unknown_form_of_method(validator):
    faulty = deepcopy(CONFIG)
    faulty["methods"]["emo"]["form"] = "emmo"
    assert not validator.is_valid(faulty)
