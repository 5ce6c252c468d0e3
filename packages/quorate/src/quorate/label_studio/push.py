"""What to label next, in Label Studio: a tab of the Data Manager with the chosen tasks and, if somebody is to be asked
for each, one for everybody.

The open-source server has no assignments, and keeps no order of its own: a tab is a filter on the numbers of tasks,
sorted by the scores of predictions. A server that has assignments (Label Studio Enterprise) is given them too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from quorate.errors import InputError
from quorate.label_studio.client import Client, MissingError

_TITLE = "quorate: next"
_VIEWS = "/api/dm/views/"


class Tab(NamedTuple):
    """A tab of the Data Manager: its title, where it is, and how many tasks it shows."""

    title: str
    url: str
    tasks: int


class Pushed(NamedTuple):
    """The tabs that were made, the first with all tasks; and how many tasks were assigned, ``None``: they cannot be."""

    tabs: tuple[Tab, ...]
    assigned: int | None
    notes: tuple[str, ...] = ()


def push(client: Client, project: int, asked: Sequence[tuple[str, str]], *, by_annotator: bool = False) -> Pushed:
    """Show tasks in tabs of a project, of which ``asked`` has the ids and whom to ask for each.

    Tabs of an earlier push are replaced. With ``by_annotator`` everybody has a tab of their own, and tasks are assigned
    where the server can.
    """
    chosen = list(dict.fromkeys(_task(document) for document, _ in asked))
    wanted: dict[str, list[int]] = {_TITLE: chosen} if chosen else {}
    by_name: dict[str, list[int]] = {}
    for document, name in asked if by_annotator else ():
        by_name.setdefault(name, []).append(_task(document))
    wanted |= {f"{_TITLE} for {name}": tasks for name, tasks in by_name.items()}
    tabs: list[Tab] = client.patiently(lambda: _applied(client, project, wanted))
    notes = []
    if tabs and tabs[0].tasks < len(chosen):
        missing = len(chosen) - tabs[0].tasks
        notes.append(f"{missing:,} of the {len(chosen):,} documents are no tasks of project {project} (any more)")
    assigned, strangers = _assigned(client, project, by_name) if by_name else (None, ())
    notes += [f"nobody on the server is called {name!r}, so nothing was assigned to them" for name in strangers]
    return Pushed(tuple(tabs), assigned, tuple(notes))


def _task(document: str) -> int:
    if not document.isdecimal():
        raise InputError(
            f"document {document!r} is no task of Label Studio, whose ids are numbers (give an export of the project)"
        )
    return int(document)


def _applied(client: Client, project: int, wanted: Mapping[str, Sequence[int]]) -> list[Tab]:
    """Change, make and delete tabs; after a fault, another call finds what is left to do."""
    there: dict[str, int] = {}
    stale: list[int] = []
    for view in client.get(_VIEWS, project=project):
        title = str((view.get("data") or {}).get("title") or "")
        if title in wanted and title not in there:
            there[title] = view["id"]
        elif title == _TITLE or title.startswith(f"{_TITLE} for "):
            stale.append(view["id"])
    found = []
    for title, tasks in wanted.items():
        content = {"project": project, "data": _view(title, tasks)}
        if title in there:
            number = there[title]
            client.change(f"{_VIEWS}{number}/?project={project}", content)
        else:
            number = client.create(_VIEWS, content)["id"]
        shown = client.get("/api/tasks", project=project, view=number, page_size=1)["total"]
        found.append(Tab(title, f"{client.url}/projects/{project}/data?tab={number}", shown))
        if not shown:
            stale.append(number)
    for number in stale:
        client.delete(f"{_VIEWS}{number}/?project={project}")
    if found and not found[0].tasks:
        raise InputError(f"none of these documents is a task of project {project} (give an export of this project)")
    return [tab for tab in found if tab.tasks]


def _view(title: str, tasks: Iterable[int]) -> dict[str, Any]:
    """A tab as the Data Manager keeps it."""
    items = [
        {"filter": "filter:tasks:id", "operator": "equal", "type": "Number", "value": task} for task in sorted(tasks)
    ]
    return {
        "title": title,
        "type": "list",
        "target": "tasks",
        "filters": {"conjunction": "or", "items": items},
        "ordering": ["tasks:predictions_score"],
    }


def _assigned(client: Client, project: int, by_name: Mapping[str, Sequence[int]]) -> tuple[int | None, Sequence[str]]:
    """How many tasks were assigned, and to whom nothing could be; ``None``: the server has no assignments."""
    any_task = next(iter(by_name.values()))[0]
    try:
        client.get(f"/api/projects/{project}/tasks/{any_task}/assignees")
    except MissingError:
        return None, ()
    users = {str(user.get("email")): int(user["id"]) for user in client.get("/api/users/")}
    users |= {str(number): number for number in users.values()}
    named = [name for name in by_name if name in users]
    for name in named:
        chosen = {"all": False, "included": sorted(by_name[name])}
        content = {"type": "AN", "users": [users[name]], "selectedItems": chosen}
        # Tried again where it fails: to assign twice does no harm.
        client.patiently(partial(client.create, f"/api/projects/{project}/tasks/assignees", content))
    return sum(len(by_name[name]) for name in named), [name for name in by_name if name not in users]
