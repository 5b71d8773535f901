"""Write a Gantt chart as a picture or as a web page that stands alone."""

import html
import io
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


def write_gantt(problem: Problem, plan: Plan, path: str | Path) -> None:
    """Write the chart; the ending of ``path`` chooses among html, png and svg.

    Raises
    ------
    InputError
        For another ending, or where matplotlib is not installed.
    """
    path = Path(path)
    kind = path.suffix.lower().lstrip(".")
    if kind not in ("html", "png", "svg"):
        raise InputError(f"{path}: the ending must be .html, .png or .svg")
    if kind == "html":
        text = _page(problem, plan, _picture(problem, plan, "svg").decode())
        write_bytes(path, text.encode())
    else:
        write_bytes(path, _picture(problem, plan, kind))


def _picture(problem: Problem, plan: Plan, kind: str) -> bytes:
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise InputError("drawing needs matplotlib; install it with: pip install 'optalloc[plot]'") from None
    with matplotlib.rc_context({"backend": "agg", "svg.hashsalt": "optalloc", "svg.fonttype": "none"}):
        import matplotlib.pyplot as plt

        draw_gantt(problem, plan)
        figure = plt.gcf()
        stream = io.BytesIO()
        metadata = {"Date": None} if kind == "svg" else None
        figure.savefig(stream, format=kind, dpi=150, metadata=metadata)
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
