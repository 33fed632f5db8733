from pathlib import Path

from metastore.config.document import document


def test_the_page_of_settings_is_current() -> None:
    page = Path(__file__).parents[2] / "docs" / "settings.md"
    assert page.read_text() == document(), "run: python -m metastore.config.document > docs/settings.md"
