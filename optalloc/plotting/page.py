"""Write a Gantt chart as a picture or as a web page that stands alone."""

import html
import io
import re
import warnings
from pathlib import Path

from optalloc.errors import InputError, visible
from optalloc.io.atomic import write_bytes
from optalloc.plotting.gantt import draw_gantt
from optalloc.problem import Plan, Problem

__all__ = ["write_gantt"]

_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body{{font:14px system-ui,sans-serif;margin:2em}}svg{{max-width:100%;height:auto}}
table{{border-collapse:collapse}}td,th{{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:left}}</style></head>
<body><h1>{title}</h1>
{svg}
<h2>Runs</h2>
<table><tr>{head}</tr>
{rows}</table></body></html>
"""
_HEAD = ("task", "start (h)", "end (h)", "devices", "data", "cost ($)", "utility")


_DPI, _MOST_PIXELS = 150, 65_000
"""Of a picture in points; Matplotlib draws none with 2^16 in a direction."""
_OTHER_SCRIPTS = (
    "Noto Sans CJK JP", "Noto Sans CJK SC", "Noto Sans", "Hiragino Sans", "PingFang SC", "Yu Gothic",
    "Microsoft YaHei", "Malgun Gothic", "Segoe UI", "Arial Unicode MS",
)  # fmt: skip
"""Fonts that, where they are installed, lend the characters that Matplotlib's own lacks."""


def write_gantt(problem: Problem, plan: Plan, path: str | Path) -> list[str]:
    """Write the chart; the ending of ``path`` chooses among html, png and svg.

    Returns
    -------
    What the reader of the chart should know.

    Raises
    ------
    InputError
        For another ending, or where matplotlib is not installed.
    """
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("html", "png", "svg"):
        raise InputError(f"{path}: the ending must be .html, .png or .svg")
    picture, complete = _picture(problem, plan, "svg" if kind == "html" else kind)
    write_bytes(path, _page(problem, plan, picture.decode()).encode() if kind == "html" else picture)
    if complete or kind != "png":  # in an SVG the text is text, and its reader has other fonts
        return []
    return [
        "the fonts installed here lack characters of some ids, which show as boxes; .svg and .html have them"
    ]


def _picture(problem: Problem, plan: Plan, kind: str) -> tuple[bytes, bool]:
    """The chart, and whether fonts had all its characters."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise InputError("drawing needs matplotlib; install it with: pip install 'optalloc[plot]'") from None
    settings = {"backend": "agg", "svg.hashsalt": "optalloc", "svg.fonttype": "none", "font.family": _fonts()}
    with matplotlib.rc_context(settings), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        content = _drawn(problem, plan, kind)
    lacking = [each for each in caught if re.match("Glyph .* missing", str(each.message))]
    for each in caught:
        if each not in lacking:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    return content, not lacking


def _fonts() -> list[str]:
    import matplotlib
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return [*matplotlib.rcParams["font.family"], *(name for name in _OTHER_SCRIPTS if name in installed)]


def _drawn(problem: Problem, plan: Plan, kind: str) -> bytes:
    import matplotlib.pyplot as plt

    draw_gantt(problem, plan)
    figure = plt.gcf()
    stream = io.BytesIO()
    dpi = min(_DPI, _MOST_PIXELS / max(figure.get_size_inches()))
    figure.savefig(stream, format=kind, dpi=dpi, metadata={"Date": None} if kind == "svg" else None)
    plt.close(figure)
    return stream.getvalue()


def _page(problem: Problem, plan: Plan, svg: str) -> str:
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{_escaped(cell)}</td>" for cell in row) + "</tr>"
        for row in _rows(problem, plan)
    )
    head = "".join(f"<th>{name}</th>" for name in _HEAD)
    drawing = svg[svg.index("<svg") :]
    return _PAGE.format(title=_escaped(problem.instance.name), svg=drawing, head=head, rows=rows)


def _escaped(text: str) -> str:
    return html.escape(visible(text))


def _rows(problem: Problem, plan: Plan) -> list[list[str]]:
    hours = float(problem.instance.tick_seconds) / 3600
    unit = float(problem.instance.money_unit_usd)
    rows = []
    for task, task_id in enumerate(problem.task_ids):
        mode = int(plan.mode[task])
        if mode < 0:
            rows.append([task_id, "rejected", "", "", "", "", ""])
            continue
        start, ticks = int(plan.start[task]), int(problem.duration[mode])
        devices = ", ".join(
            f"{n}× {problem.node_ids[r]}" for r, n in problem.uses(mode) if r < problem.num_nodes
        )
        data = ", ".join(problem.dataset_ids[dataset] for dataset, _, _ in problem.inputs(mode))
        money, utility = f"{int(problem.money[mode]) * unit:.2f}", f"{int(problem.utility[mode]) / 1000:.3f}"
        rows.append(
            [task_id, f"{start * hours:.2f}", f"{(start + ticks) * hours:.2f}", devices, data, money, utility]
        )
    return rows
