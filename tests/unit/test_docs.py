"""What the documents say about defaults is what the code does."""

import re
from pathlib import Path

import yaml

from emo.config_methods import EmoPaperSettings, EmoSettings, TokenTerms
from emo.config_token_options import TokenOptions
from emo.evidence.page import tables_of

ROOT = Path(__file__).parents[2]


def test_the_table_of_switches_is_that_of_the_settings():
    """One row for each key whose value differs between the forms, with both values."""
    text = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| `([^`]+)` \| \S.* \|$", text, re.MULTILINE)
    told = {key: (yaml.safe_load(paper), yaml.safe_load(emo)) for key, paper, emo in rows}
    emo, paper = EmoSettings(form="emo"), EmoPaperSettings(form="emo-paper")
    differ = {
        name: (getattr(paper, name), getattr(emo, name))
        for name in TokenTerms.model_fields
        if getattr(paper, name) != getattr(emo, name)
    }
    assert told == differ


def test_the_table_of_options_is_that_of_the_settings():
    """Each has the same default in both forms, so that neither form says anything of it."""
    text = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
    part = text[text.index("## Options beyond") : text.index("## Maps between")]
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| [^|]+ \|$", part, re.MULTILINE)
    options = TokenOptions()
    told = {key: yaml.safe_load(value) for key, value in rows}
    assert told == {name: getattr(options, name) for name in TokenOptions.model_fields}


def test_the_readme_gives_both_defaults_of_every_key():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    part = text[text.index("**methods, `form: emo` and") : text.index("**training**")]
    rows = re.findall(r"^\| `(\w+)` \| `([^`]+)` \| `([^`]+)` \| \S.* \|$", part, re.MULTILINE)
    told = {key: (yaml.safe_load(emo), yaml.safe_load(paper)) for key, emo, paper in rows}
    emo, paper = EmoSettings(form="emo"), EmoPaperSettings(form="emo-paper")
    fields = TokenTerms.model_fields
    assert told == {name: (getattr(emo, name), getattr(paper, name)) for name in fields}


def test_the_page_of_evidence_shows_the_tables_that_are_kept():
    """A place for each folder of evidence, with its table; places of studies to come are empty."""
    folder = ROOT / "docs" / "evidence"
    kept = {
        path.parent.name: path.read_text(encoding="utf-8") for path in folder.glob("*/table.md")
    }
    page = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    shown = tables_of(page, "docs/evidence.md")
    assert {name: table for name, table in shown.items() if table.strip()} == kept
    studies = {path.stem for path in (ROOT / "configs").glob("*.yaml")} | {"config"}
    assert shown.keys() <= studies
