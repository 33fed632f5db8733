"""Lay out a graph of waits: boxes in columns, a waiting one to the right of the one that it waits for. The template draws them as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from metastore.console.waits import Holder

WIDTH, HEIGHT = 230, 62
GAP_X, GAP_Y, EDGE = 70, 18, 6
LETTERS = 30
"""Letters of a line that fit into a box."""
MOST = 60
"""Holders that are drawn; more are only listed."""


@dataclass(frozen=True, slots=True)
class Box:
    """A holder; x and y are of its upper left corner."""

    holder: Holder
    x: int
    y: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Arrow:
    """The path of a curve from a waiting box to the one that it waits for."""

    waiter: str
    blocker: str
    path: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """Boxes and arrows, and the size of the whole drawing."""

    boxes: list[Box]
    arrows: list[Arrow]
    width: int
    height: int


def draw(holders: Sequence[Holder]) -> Drawing | None:
    """Return the drawing of the holders that wait or hold up others; None for none, or more than `MOST`."""
    if not 0 < len(holders) <= MOST:
        return None
    columns: dict[int, list[Holder]] = {}
    depths = _depths(holders)
    for each in sorted(holders, key=lambda each: (-len(each.holds_up), each.key)):
        columns.setdefault(depths[each.key], []).append(each)
    boxes = {}
    for number, depth in enumerate(sorted(columns)):
        for row, each in enumerate(columns[depth]):
            x, y = EDGE + number * (WIDTH + GAP_X), EDGE + row * (HEIGHT + GAP_Y)
            boxes[each.key] = Box(each, x, y, _lines(each))
    arrows = [
        Arrow(key, other, _curve(box, boxes[other])) for key, box in boxes.items() for other in box.holder.waits_for if other in boxes
    ]
    width = max(box.x for box in boxes.values()) + WIDTH + EDGE
    height = max(box.y for box in boxes.values()) + HEIGHT + EDGE
    return Drawing(list(boxes.values()), arrows, width, height)


def _depths(holders: Sequence[Holder]) -> dict[str, int]:
    """Return the length of each holder's longest chain of waits, by its key. In a circle it is limited to the number of holders."""
    depths = {each.key: 0 for each in holders}
    for _ in holders:
        for each in holders:
            behind = [depths[other] + 1 for other in each.waits_for if other in depths]
            depths[each.key] = min(max([depths[each.key], *behind]), len(holders))
    return depths


def _lines(holder: Holder) -> tuple[str, ...]:
    who = "@".join(part for part in (holder.user, holder.host) if part) or "unknown"
    rest = f" and {len(holder.objects) - 1} more" if len(holder.objects) > 1 else ""
    first = (holder.contended or holder.objects)[0]
    return tuple(_cut(line) for line in (holder.name, who, _cut(first, LETTERS - len(rest)) + rest))


def _cut(text: str, most: int = LETTERS) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}\N{HORIZONTAL ELLIPSIS}"


def _curve(waiter: Box, blocker: Box) -> str:
    """Return the path from the left side of one box to the right side of the other."""
    x1, y1 = waiter.x, waiter.y + HEIGHT // 2
    x2, y2 = blocker.x + WIDTH, blocker.y + HEIGHT // 2
    middle = (x1 + x2) // 2
    if x1 > x2:
        return f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2 + 8} {y2}"
    return f"M{x1} {y1} C{x1 - GAP_X} {y1} {x2 + GAP_X} {y2} {x2 + 8} {y2}"
