from pathlib import Path

import pytest

from metastore.config.document import document, hive_document


@pytest.mark.parametrize(("page", "text", "argument"), [("settings", document(), ""), ("hive-properties", hive_document(), " hive")])
def test_the_pages_of_settings_are_current(page: str, text: str, argument: str) -> None:
    path = Path(__file__).parents[2] / "docs" / f"{page}.md"
    assert path.read_text() == text, f"run: python -m metastore.config.document{argument} > docs/{page}.md"
