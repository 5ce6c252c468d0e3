"""What a service is told when it starts: where it keeps things, where it listens, how its queue works."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from quorate.corpus.overlaps import OverlapRule
from quorate.errors import SettingsError
from quorate.project.settings_file import LabelStudioProject
from quorate_serve.reach import address_of_this_machine, is_everywhere

COLOURS = ("blue", "orange", "green", "pink", "cyan", "red", "olive", "violet")
"""The colours that labels can have, each readable on light and on dark; those of ``--t0`` to ``--t7`` in base.css."""

_FOLDER = Path(".quorate", "serve")
_SECRET_VARIABLE = "QUORATE_SECRET"


@dataclass(frozen=True)
class QueueSettings:
    """How documents are given out.

    A document has at least ``per_document_min`` annotators before it counts as done, and at most
    ``per_document_max``. A lease ends after ``lease_minutes``. ``check_rate`` and ``training`` say how often a
    document with known labels comes, and how many come first; ``per_person_max`` how many documents one person does.
    ``hold_back`` lets those wait whose labels would tell much less than those of others who are there.

    >>> QueueSettings(per_document_max=1, per_document_min=2).check()
    Traceback (most recent call last):
    ...
    quorate.errors.SettingsError: per-document-max 1 is below per-document-min 2 (raise it)
    """

    per_document_min: int = 2
    per_document_max: int = 5
    lease_minutes: float = 60.0
    check_rate: float = 0.05
    training: int = 0
    per_person_max: int | None = None
    hold_back: bool = False

    def check(self) -> None:
        """:class:`SettingsError` if they do not go together."""
        if self.per_document_max < self.per_document_min:
            raise SettingsError(
                f"per-document-max {self.per_document_max} is below per-document-min {self.per_document_min} (raise it)"
            )
        if not 0 <= self.check_rate <= 0.5:
            raise SettingsError(f"check-rate {self.check_rate} is not a share (give one from 0 to 0.5)")
        if self.lease_minutes <= 0:
            raise SettingsError(f"lease-minutes {self.lease_minutes} is not a time (give a positive number)")


@dataclass(frozen=True)
class ReviewSettings:
    """How documents come to reviewers.

    ``per_document`` reviewers decide on each; who was given one has it for ``lease_minutes``. Nobody reviews what they
    annotated themselves, unless ``own``: then such documents come last.

    >>> ReviewSettings().per_document
    1
    """

    per_document: int = 1
    lease_minutes: float = 15.0
    own: bool = False

    def check(self) -> None:
        """:class:`SettingsError` if they make no sense."""
        if self.per_document < 1:
            raise SettingsError(f"{self.per_document} reviewers per document are too few (give 1 or more)")
        if self.lease_minutes <= 0:
            raise SettingsError(f"lease-minutes {self.lease_minutes} is not a time (give a positive number)")


@dataclass(frozen=True)
class FitSettings:
    """How long a fit of the live consensus may take, and how many bytes of memory, before it is stopped.

    Without ``memory``, four fifths of what was free when the fit began.

    >>> FitSettings(seconds=0).check()
    Traceback (most recent call last):
    ...
    quorate.errors.SettingsError: fit-seconds 0 is not a time (give a positive number)
    """

    seconds: float = 600.0
    memory: int | None = None

    def check(self) -> None:
        """:class:`SettingsError` if they make no sense."""
        if not self.seconds > 0:
            raise SettingsError(f"fit-seconds {self.seconds:g} is not a time (give a positive number)")


@dataclass(frozen=True)
class LabelStudioSettings:
    """Which projects of Label Studio are kept in step, after how many seconds they are asked again.

    A prediction there whose scores moved by less than ``least_change`` is left as it is.

    >>> LabelStudioSettings().projects
    ()
    """

    projects: tuple[LabelStudioProject, ...] = ()
    seconds: float = 60.0
    least_change: float = 0.005

    def check(self) -> None:
        """:class:`SettingsError` if they make no sense."""
        if not 0 < self.seconds <= 86_400:
            raise SettingsError(f"watch {self.seconds:g} is not a time (give 1 to 86,400 seconds)")
        if not 0 <= self.least_change <= 1:
            raise SettingsError(f"least-change {self.least_change:g} is not a change of a score (give 0 to 1)")


@dataclass(frozen=True)
class ServiceSettings:
    """All that the processes of a service are told.

    ``labels`` are those that people choose from, some with a key and a colour of their own; ``guidelines`` say in
    Markdown how to mark them, and are kept in ``guidelines_file``, a path in the project. ``suggestions`` shows them
    the consensus as they annotate, which sways them, and is off; ``blind`` hides it from reviewers until they have
    looked. ``overlaps`` says which spans of one annotator may overlap, and ``fits`` when a fit is stopped. ``origin``
    is the address that browsers use, if a proxy stands before the service. A session ends ``session_hours`` after the
    login, or ``idle_hours`` after the last request; a token ``token_days`` after it was made, or earlier. ``oidc`` has
    the options of the provider of logins, if there is one.

    >>> ServiceSettings(Path("project")).database
    'sqlite:///project/.quorate/serve/service.db'
    """

    root: Path
    database_url: str | None = None
    host: str = "127.0.0.1"
    port: int = 8787
    origin: str | None = None
    labels: tuple[str, ...] = ()
    keys: Mapping[str, str] = field(default_factory=dict)
    colours: Mapping[str, str] = field(default_factory=dict)
    guidelines: str = ""
    guidelines_file: str = "guidelines.md"
    suggestions: bool = False
    blind: bool = True
    queue: QueueSettings = field(default_factory=QueueSettings)
    reviews: ReviewSettings = field(default_factory=ReviewSettings)
    overlaps: OverlapRule = field(default_factory=OverlapRule)
    fits: FitSettings = field(default_factory=FitSettings)
    label_studio: LabelStudioSettings = field(default_factory=LabelStudioSettings)
    upload_limit: int = 256 * 1024 * 1024
    session_hours: float = 12.0
    idle_hours: float = 4.0
    token_days: int = 90
    webhook_hosts: tuple[str, ...] = ()
    oidc: Mapping[str, str] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the service keeps what is not in the database."""
        return self.root / _FOLDER

    @property
    def database(self) -> str:
        """The address of the database, as SQLAlchemy takes it."""
        if self.database_url is None:
            return f"sqlite:///{(self.folder / 'service.db').as_posix()}"
        for plain in ("postgresql://", "postgres://"):
            if self.database_url.startswith(plain):
                return "postgresql+psycopg://" + self.database_url.removeprefix(plain)
        return self.database_url

    @property
    def address(self) -> str:
        """Where browsers find the service."""
        host = address_of_this_machine(self.host) if is_everywhere(self.host) else self.host
        host = f"[{host}]" if ":" in host else host
        return (self.origin or f"http://{host}:{self.port}").rstrip("/")

    def make_folder(self) -> None:
        """Make the folder: nobody else on the machine looks into it, and git leaves it alone."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        ignore = self.folder / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")

    @property
    def is_https(self) -> bool:
        """Whether browsers reach the service by https."""
        return self.address.startswith("https:")

    @property
    def session_cookie(self) -> str:
        """The name of the cookie of a session: by https one that no other host and no plain http can set.

        A browser keeps the cookies of all ports of a host together: by plain http, where several services may run on
        one machine, each has a name of its own.
        """
        return "__Host-quorate_session" if self.is_https else f"quorate_session_{self.port}"

    @property
    def login_cookie(self) -> str:
        """The name of the cookie of a login at a provider, as long as that takes."""
        return "__Secure-quorate_login" if self.is_https else f"quorate_login_{self.port}"

    def secret(self) -> bytes:
        """The key of this service, made when it is first asked for; ``QUORATE_SECRET`` gives it to several machines."""
        if given := os.environ.get(_SECRET_VARIABLE):
            if len(given) < 32:
                raise SettingsError(f"{_SECRET_VARIABLE} is too short (give 32 characters or more, at random)")
            return given.encode()
        path = self.folder / "secret"
        if not path.exists():
            self.make_folder()
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:  # another process of the service was first
                return self.secret()
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(secrets.token_hex(32).encode())
        return path.read_bytes()
