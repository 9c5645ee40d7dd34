"""Tables to markdown: pipes where they fit, lists where they do not."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from vademecum.ingest.read.lists import marked

_LIST_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ", re.M)
_FENCE = re.compile(r"^(`{3,})[^\n]*\n(.*?)\n\1$", re.S)


@dataclass(slots=True, kw_only=True)
class Cell:
    """One cell: its blocks of markdown and how far it reaches."""

    blocks: list[str] = field(default_factory=list)
    is_header: bool = False
    columns: int = 1
    rows: int = 1


def table_to_markdown(rows: Sequence[Sequence[Cell]]) -> list[str]:
    """The blocks that say what the table says."""
    grid = _grid([row for row in rows if row])
    grid = [row for row in grid if any(cell.blocks for cell in row)]
    grid = _without_empty_columns(grid)
    if not grid:
        return []
    if len(grid[0]) == 1:
        return _column(grid)
    if _is_alternating(grid):
        pairs = zip(grid[::2], grid[1::2], strict=True)
        return ["\n".join(f"- {_flat(term[0])}: {_flat(words[1])}" for term, words in pairs)]
    header = grid[0] if _is_header(grid) else None
    body = grid[1:] if header else grid
    if any(_is_tall(cell) for row in body for cell in row):
        return _records([_flat(cell) for cell in header] if header else None, body)
    names = [_flat(cell) for cell in header] if header else [""] * len(grid[0])
    lines = [_line(names), _line(["---"] * len(names))]
    lines += [_line([_flat(cell) for cell in row]) for row in body]
    return ["\n".join(lines)]


def _grid(rows: list[Sequence[Cell]]) -> list[list[Cell]]:
    """Rows of equal length: a cell that reaches down is said again in every row."""
    grid: list[list[Cell]] = []
    reaching: dict[int, tuple[int, Cell]] = {}
    for row in rows:
        line: list[Cell] = []
        cells = iter(row)
        while True:
            rest, above = reaching.get(len(line), (0, None))
            if rest and above is not None:
                reaching[len(line)] = (rest - 1, above)
                line.append(above)
                continue
            cell = next(cells, None)
            if cell is None:
                break
            for column in range(cell.columns):
                shown = cell if column == 0 else Cell(is_header=cell.is_header)
                reaching[len(line)] = (cell.rows - 1, shown)
                line.append(shown)
        grid.append(line)
    width = max(map(len, grid), default=0)
    for line in grid:
        line.extend(Cell() for _ in range(width - len(line)))
    return grid


def _without_empty_columns(grid: list[list[Cell]]) -> list[list[Cell]]:
    if not grid:
        return grid
    kept = [i for i in range(len(grid[0])) if any(row[i].blocks for row in grid)]
    return [[row[i] for i in kept] for row in grid]


def _is_header(grid: list[list[Cell]]) -> bool:
    return len(grid) > 1 and all(cell.is_header or not cell.blocks for cell in grid[0])


def _is_alternating(grid: list[list[Cell]]) -> bool:
    """Pairs of rows, a term on the left and then its description on the right."""
    return (
        len(grid[0]) == 2
        and len(grid) % 2 == 0
        and all(term[0].blocks and not term[1].blocks for term in grid[::2])
        and all(words[1].blocks and not words[0].blocks for words in grid[1::2])
    )


def _is_tall(cell: Cell) -> bool:
    """Holds code of several lines, which one line cannot show."""
    return any(
        (match := _FENCE.match(block)) is not None and "\n" in match[2] for block in cell.blocks
    )


def _column(grid: list[list[Cell]]) -> list[str]:
    if len(grid) == 1:
        return grid[0][0].blocks
    blocks: list[str] = []
    for (cell,) in grid:
        if cell.is_header and not blocks:
            blocks.append(f"**{_flat(cell)}**")
        elif cell.blocks:
            blocks.append(marked("\n".join(cell.blocks), "- "))
    return [blocks[0], "\n".join(blocks[1:])] if blocks[1:] else blocks


def _records(names: list[str] | None, body: list[list[Cell]]) -> list[str]:
    """One list item for each row, its cells one after the other under their column's name."""
    items = []
    for row in body:
        blocks: list[str] = []
        for column, cell in enumerate(row):
            if not cell.blocks:
                continue
            name = names[column] if names else ""
            if name and cell.blocks[0].startswith("```"):
                blocks.append(f"**{name}:**")
                blocks += cell.blocks
            else:
                first = f"**{name}:** {cell.blocks[0]}" if name else cell.blocks[0]
                blocks += [first, *cell.blocks[1:]]
        items.append(marked("\n\n".join(blocks), "- "))
    return ["\n\n".join(items)]


def _line(texts: list[str]) -> str:
    return "| " + " | ".join(texts) + " |"


def _flat(cell: Cell) -> str:
    return " ".join(_on_one_line(cell.blocks)).replace("|", r"\|")


def _on_one_line(blocks: Sequence[str]) -> Iterator[str]:
    for block in blocks:
        if match := _FENCE.match(block):
            yield f"`{' '.join(match[2].split())}`"
        elif _LIST_ITEM.match(block):
            parts = (" ".join(part.split()) for part in _LIST_ITEM.split(block))
            yield "; ".join(part for part in parts if part)
        else:
            yield " ".join(block.split())
