"""The values of settings as people may see them: without secrets."""

from __future__ import annotations

import pytest

from metastore.config import Config, settings, shown


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("postgresql://u:se:cret@h:5432/d", "postgresql://u:***@h:5432/d"),
        ("postgresql://h/d?user=u&password=secret&sslmode=require", "postgresql://h/d?user=u&password=***&sslmode=require"),
        ("mysql://u:s/e@h/d", "mysql://u:***@h/d"),
        ("postgresql://u:p@ss/w@rd@h/d", "postgresql://u:***@h/d"),
        ("sqlite:////tmp/x.db", "sqlite:////tmp/x.db"),
        ("postgresql://u@h/d", "postgresql://u@h/d"),
    ],
)
def test_passwords_in_urls_are_not_shown(url: str, text: str) -> None:
    setting = next(each for each in settings() if each.name == "db")
    assert shown(Config(db=url), setting) == text


def test_no_secret_is_shown() -> None:
    secrets = {"ldap_bind_password": "hunter2", "authorization_token": "hunter2", "filesystem_options": {"s3": {"secret": "hunter2"}}}
    config = Config(**secrets)  # type: ignore[arg-type]  # names of settings
    assert {shown(config, each) for each in settings() if each.name in secrets} == {"(not shown)"}
    assert all("hunter2" not in shown(config, each) for each in settings())
