"""Keys and texts in partition filters that no grammar foresees: unquoted keys of any name, quotes within texts."""

from __future__ import annotations

import pytest

from metastore.rules.filters import Node, parse, select_partitions


def selects(node: Node | None, columns: list[tuple[str, str]], *values: str) -> bool:
    return bool(select_partitions(node, columns, [values]).positions)


UNUSUAL = [
    "my-key",
    "größe",
    "日期",
    "$date",
    "sp ace",
    "a.b",
    "a",
    "sp",
    "x y-z",
    "dt=1",
    "it's",
    'say "x"',
    "100%",
    "a(b)",
    "2020",
    "2020-01-01",
    "-5",
    "k!",
    "in-between",
    "not in",
    " lead",
    "`tick`",
    "true",
    "date",
    "and",
    "a/b:c",
    "x,y",
    "naïve_1",
    "ключ",
    "1.5",
    "'q'",
]


@pytest.mark.parametrize("key", UNUSUAL)
@pytest.mark.parametrize("template", [
    '{} = "7"', '{}="7"', '"7" = {}', '({} = "7")',
    '{} in ("7", "8")', '({}) in ("7")', '{} not in ("8")', '({}) not in ("8")', '{} like "7%"',
    '{} not like "8%"', '{} between "6" and "7"', '{} not between "1" and "2"', '{} <=> "7"', '({} = "7" and {} != "8")',
    '(z = "1" and {} = "7") or {} = "9"', '"7" >= {} and "6" < {}',
])  # fmt: skip
def test_keys_of_any_name_stand_bare(key: str, template: str) -> None:
    columns = [*((name, "string") for name in UNUSUAL), ("z", "string")]
    text = template.format(*[key] * template.count("{}"))
    rows = [[*("7" if name == key else "0" for name in UNUSUAL), "1"], ["0"] * len(UNUSUAL) + ["1"]]
    wanted = [0, 1] if " not " in template else [0]
    assert select_partitions(parse(text, [name for name, _ in columns]), columns, rows).positions == wanted
    upper = text.replace(key, key.upper()) if key.upper().lower() == key else text
    assert select_partitions(parse(upper, [name for name, _ in columns]), columns, rows).positions == wanted


def test_keys_of_any_name_stand_bare_in_a_struct() -> None:
    columns = [("a-b", "string"), ("sp ace", "string"), ("100%", "int")]
    text = '(struct(a-b, 100%, sp ace)) in (const struct("1", 5, "7"), struct("2", 6, "7"))'
    found = select_partitions(parse(text, [name for name, _ in columns]), columns, [["1", "7", "5"], ["1", "7", "6"], ["2", "7", "6"]])
    assert found == ([0, 2], [])


def test_constants_are_no_keys_of_the_same_text() -> None:
    columns = [("2020-01-01", "string"), ("5", "int"), ("k", "date"), ("a=1", "int"), ("a", "int"), ("'q'", "string")]
    row = ["x", "6", "2020-01-01", "8", "1", "z"]
    for text in (
        "k = 2020-01-01",
        "2020-01-01 = k",
        "a = 1",
        "a=1",
        "5 < 5.5 or a=1",
        "k in (2020-01-01)",
        "5 = 6",
        "k between 2020-01-01 and 2020-01-01 and 5=6",
        "a=1=8",
        "2020-01-01 = 'x'",
        "a in (5, 1)",
        "'q' = 'z'",
        "(5) in (6)",
    ):
        assert selects(parse(text, [name for name, _ in columns]), columns, *row), text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'k = "C:\\"', r"C:\\"),
        (r'k = "C:\"', "C:\\"),
        (r'k = "a\" or k = "b"', "a\\"),
        (r'(k = "a\") and (k != "b\")', "a\\"),
        (r'k in ("a\","b\")', "b\\"),
        (r'k = "a\tb"', r"a\tb"),
        (r'''k = "it\'s"''', r"it\'s"),
        (r'k like "C:\x.*"', r"C:\xy"),
        ("k = 'say \"x\"'", 'say "x"'),
        ('k = "it\'s"', "it's"),
        ('k = "a\nb"', "a\nb"),
        ('k = "k = 1 or my-key = 2"', "k = 1 or my-key = 2"),
        ('k = "日 期"', "日 期"),
        ('k = ""', ""),
    ],
)
def test_strings_have_the_meaning_of_sparks_quotes(text: str, value: str) -> None:
    columns = [("k", "string"), ("my-key", "string")]
    assert selects(parse(text, ["k", "my-key"]), columns, value, "0")
    assert not selects(parse(text, ["k", "my-key"]), columns, "other", "0")


@pytest.mark.parametrize("text", ["İl = 'x'", "'x' = İl", "`İl` = 'x'", "İL like 'x%'", "j = 1 and i\u0307l = 'x'", "(İl) in ('x')"])
def test_a_key_whose_capital_is_one_character_and_its_small_letter_two(text: str) -> None:
    columns = [("İl".lower(), "string"), ("j", "int")]
    assert select_partitions(parse(text, [name for name, _ in columns]), columns, [["x", "1"], ["y", "1"]]).positions == [0]
