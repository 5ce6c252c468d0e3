"""Who may ask for what, in one table. A route that is not in it is refused to everybody.

The table says what a role may ask for at all. Whose data an answer holds is up to the route: whatever is about labels
takes the person who asks, never one that the request names; where a request names a person, :func:`own_or` decides.
"""

from __future__ import annotations

from typing import Final

from quorate_serve.people import Role
from quorate_serve.problems import NotFoundError
from quorate_serve.sessions import Who

EVERYBODY: Final = None
"""Also who is not logged in."""

ROUTES: dict[str, Role | None] = {
    # what it takes to come in
    "health": EVERYBODY,
    "openapi": EVERYBODY,
    "login_page": EVERYBODY,
    "login": EVERYBODY,
    "oidc_login": EVERYBODY,
    "oidc_back": EVERYBODY,
    "invitation_page": EVERYBODY,
    "invitation": EVERYBODY,
    # everybody who is logged in, about themselves
    "home": Role.ANNOTATOR,
    "annotate_page": Role.ANNOTATOR,
    "annotate_again_page": Role.ANNOTATOR,
    "saved_page": Role.ANNOTATOR,
    "guidelines_page": Role.ANNOTATOR,
    "logout": Role.ANNOTATOR,
    "next_document": Role.ANNOTATOR,
    "release_document": Role.ANNOTATOR,
    "save_annotation": Role.ANNOTATOR,
    "list_annotations": Role.ANNOTATOR,
    "get_annotation": Role.ANNOTATOR,
    "withdraw_annotation": Role.ANNOTATOR,
    "undo_annotation": Role.ANNOTATOR,
    "annotation_history": Role.ANNOTATOR,
    "get_person": Role.ANNOTATOR,
    "own_data": Role.ANNOTATOR,
    "list_tokens": Role.ANNOTATOR,
    "make_token": Role.ANNOTATOR,
    "remove_token": Role.ANNOTATOR,
    "live": Role.ANNOTATOR,
    "own_page": Role.ANNOTATOR,
    "account_page": Role.ANNOTATOR,
    "make_token_from_page": Role.ANNOTATOR,
    "remove_token_from_page": Role.ANNOTATOR,
    "change_password": Role.ANNOTATOR,
    "log_out_everywhere": Role.ANNOTATOR,
    # what reviewers see
    "review_page": Role.REVIEWER,
    "adjudicate_page": Role.REVIEWER,
    "list_documents": Role.REVIEWER,
    "get_document": Role.REVIEWER,
    "progress": Role.REVIEWER,
    "next_review": Role.REVIEWER,
    "get_review": Role.REVIEWER,
    "reveal_consensus": Role.REVIEWER,
    "release_review": Role.REVIEWER,
    "save_review": Role.REVIEWER,
    "withdraw_review": Role.REVIEWER,
    "list_reviews": Role.REVIEWER,
    "list_disputes": Role.REVIEWER,
    "decided_page": Role.REVIEWER,
    "withdraw_from_page": Role.REVIEWER,
    "progress_page": Role.REVIEWER,
    "list_audits": Role.REVIEWER,
    "next_check": Role.REVIEWER,
    "check_document": Role.REVIEWER,
    "audit_page": Role.REVIEWER,
    "audit_check_page": Role.REVIEWER,
    # what managers do; reviewers see the consensus once they have looked for themselves (reveal_consensus)
    "list_consensus": Role.MANAGER,
    "get_consensus": Role.MANAGER,
    "document_history": Role.MANAGER,
    "add_documents": Role.MANAGER,
    "import_file": Role.MANAGER,
    "export_annotations": Role.MANAGER,
    "list_people": Role.MANAGER,
    "change_person": Role.MANAGER,
    "invite_person": Role.MANAGER,
    "list_invitations": Role.MANAGER,
    "revoke_invitation": Role.MANAGER,
    "plan_audit": Role.MANAGER,
    "extend_audit": Role.MANAGER,
    "end_audit": Role.MANAGER,
    "plan_audit_from_page": Role.MANAGER,
    "extend_audit_from_page": Role.MANAGER,
    "end_audit_from_page": Role.MANAGER,
    "people_page": Role.MANAGER,
    "person_page": Role.MANAGER,
    "invite_from_page": Role.MANAGER,
    "revoke_from_page": Role.MANAGER,
    "change_person_from_page": Role.MANAGER,
    "new_password_from_page": Role.MANAGER,
    "settings_page": Role.MANAGER,
    "setup_page": Role.MANAGER,
    "set_up_from_page": Role.MANAGER,
    "campaign_page": Role.MANAGER,
    "change_campaign_from_page": Role.MANAGER,
    "import_from_page": Role.MANAGER,
    "list_webhooks": Role.MANAGER,
    "create_webhook": Role.MANAGER,
    "change_webhook": Role.MANAGER,
    "rotate_webhook": Role.MANAGER,
    "remove_webhook": Role.MANAGER,
    "list_deliveries": Role.MANAGER,
    "try_webhook": Role.MANAGER,
    "webhooks_page": Role.MANAGER,
    "create_webhook_from_page": Role.MANAGER,
    "switch_webhook_from_page": Role.MANAGER,
    "rotate_webhook_from_page": Role.MANAGER,
    "try_webhook_from_page": Role.MANAGER,
    "remove_webhook_from_page": Role.MANAGER,
    # what cannot be undone
    "erase_person": Role.ADMIN,
    "erase_from_page": Role.ADMIN,
}

BROWSER_ONLY = frozenset({"make_token", "make_token_from_page"})
"""What no token is good for: one that was stolen would otherwise never end."""

PAGES: tuple[tuple[str, str, Role], ...] = (
    ("Annotate", "/annotate", Role.ANNOTATOR),
    ("Review", "/review", Role.REVIEWER),
    ("Adjudicate", "/adjudicate", Role.REVIEWER),
    ("Audit", "/audit", Role.REVIEWER),
    ("Progress", "/progress", Role.REVIEWER),
    ("People", "/people", Role.MANAGER),
    ("Your work", "/people/me", Role.ANNOTATOR),
    ("Settings", "/settings", Role.MANAGER),
)
"""The pages that the navigation leads to: name, path, and from which role on."""

ABOUT: dict[str, str] = {
    "Annotate": "Mark spans, one document after another.",
    "Review": "Look at what is least certain, and accept or correct the consensus.",
    "Adjudicate": "Decide where reviewers differ.",
    "Audit": "Check a few documents, and know how good all of them are.",
    "Progress": "How far it is, how good it is, and when to stop.",
    "People": "Who labels, how much, and who can be trusted with what.",
    "Your work": "What you have done, and how it compares with the consensus.",
    "Settings": "Files in and out, labels, and how documents are given out.",
}
"""What each page is for."""


def own_or(who: Who, person: str, least: Role) -> None:
    """:class:`NotFoundError` unless somebody asks about themselves, or may ask about others."""
    if person != who.person and not who.role.may(least):
        raise NotFoundError(f"nobody is called {person}")
