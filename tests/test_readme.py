import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)\)", README))))
def test_the_targets_of_the_readmes_links_exist(link: str) -> None:
    assert (ROOT / link).is_file()


def test_the_commands_of_the_readme_are_there_and_ci_runs_them() -> None:
    commands = re.findall(r"^(examples/run|\./run-tests)\b", README, re.MULTILINE)
    ci = (ROOT / ".ci" / "run").read_text()
    for command in ("examples/run", "./run-tests"):
        assert command in commands
        assert re.search(rf"^{re.escape(command)}\b", ci, re.MULTILINE)
        assert (ROOT / command).stat().st_mode & 0o111


def test_until_a_release_is_published_nothing_says_to_install_one() -> None:
    if re.search(r"^## \[\d", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE):
        pytest.skip("a release is published")
    texts = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "metastore").rglob("*.py"), *(ROOT / "examples").rglob("*.*")]
    published = re.compile(r"pip install (-\S+ )*['\"]?metastore\b")
    assert [str(each.relative_to(ROOT)) for each in texts if published.search(each.read_text())] == []
