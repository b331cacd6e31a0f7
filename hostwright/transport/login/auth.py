"""SSH authentication: the order of the keys offered, and the error if the server accepts none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import paramiko

from hostwright.common.errors import Unreachable
from hostwright.common.places import unread
from hostwright.common.secret import Secret
from hostwright.transport.exchange import Deadline
from hostwright.transport.login.cache import FileCache
from hostwright.transport.routing.sshconfig import Endpoint

_NAMED = " (ansible_ssh_private_key_file)"
_NO_KEY = "create a key (ssh-keygen, ssh-copy-id), or set ansible_ssh_private_key_file in the inventory"
_REFUSED = "is ansible_user right, and is one of these keys in that user's ~/.ssh/authorized_keys on the host?"
_PUBLIC_BYTES = 100  #: number of bytes read from a file to detect a public key
_Attempt = tuple[str, Callable[[paramiko.Transport], object]]


class Login:
    """The authentication strategy of one connection: configured key files, the agent, default key files, the password.

    Configured key files come first, so that an agent with many keys does not use up the server's ``MaxAuthTries``.
    """

    def __init__(
        self,
        host: str,
        endpoint: Endpoint,
        deadline: Deadline,
        keys: FileCache[paramiko.PKey],
        *,
        key_file: Path | None = None,
        password: Secret | None = None,
        use_agent: bool = True,
    ):
        self._host = host
        self._endpoint = endpoint
        self._deadline = deadline
        self._keys = keys
        self._key_file = key_file
        self._password = password
        self._use_agent = use_agent
        self._tried: list[str] = []
        self._notes: list[str] = []

    def authenticate(self, transport: paramiko.Transport) -> None:
        """Log in to the server. Raises ``Unreachable`` if that fails."""
        offered: set[bytes] = set()
        with closing(paramiko.Agent()) if self._use_agent else _NoAgent() as agent:
            for what, attempt in self._attempts(agent, offered):
                self._tried.append(what)
                transport.auth_timeout = max(self._deadline.left_s(), 0.001)
                with suppress(paramiko.AuthenticationException):
                    attempt(transport)
                if transport.is_authenticated():
                    return
                if self._deadline.passed():
                    raise Unreachable(
                        self._host,
                        f"the login at {self._endpoint} did not finish within {self._deadline.timeout_s:g} s",
                        passing=True,
                    )
                if not transport.is_active():
                    self._notes.append(
                        "the server closed the connection (too many attempts, or the account is locked): set "
                        "ansible_ssh_private_key_file in the inventory to the right key"
                    )
                    break
        raise Unreachable(self._host, self._failure())

    def _attempts(self, agent: paramiko.Agent | _NoAgent, offered: set[bytes]) -> Iterator[_Attempt]:
        user = self._endpoint.user

        def offer(what: str, key: paramiko.PKey) -> Iterator[_Attempt]:
            if key.asbytes() not in offered:
                offered.add(key.asbytes())
                yield what, lambda transport: transport.auth_publickey(user, key)

        named = () if self._endpoint.default_identities else self._endpoint.identity_files
        first = (self._key_file, *named) if self._key_file else named
        for path in first:
            for key in self._load(path, asked_for=path == self._key_file):
                yield from offer(f"the key {path}", key)
        for number, agent_key in enumerate(self._allowed(agent.get_keys()), 1):
            yield from offer(f"key {number} of the agent", agent_key)
        for path in () if first else self._endpoint.identity_files:
            for key in self._load(path):
                yield from offer(f"the key {path}", key)
        secret = self._password
        if secret is not None:
            yield "the password", lambda transport: transport.auth_password(user, secret.reveal())

    def _allowed(self, keys: tuple[paramiko.AgentKey, ...]) -> list[paramiko.AgentKey]:
        """With ``IdentitiesOnly``, return only keys with a public key next to a configured key file."""
        if not self._endpoint.identities_only:
            return list(keys)
        public = set()
        for path in (self._key_file, *self._endpoint.identity_files):
            beside = path and path.with_name(path.name + ".pub")
            if beside and beside.is_file():
                public.update(beside.read_text(encoding="utf-8", errors="replace").split()[1:2])
        return [key for key in keys if key.get_base64() in public]

    def _load(self, path: Path, *, asked_for: bool = False) -> list[paramiko.PKey]:
        """Return the private key in ``path``, or an empty list if it cannot be loaded.

        The reason for a failure is appended to ``_notes`` for the final error, except for a missing default key file.
        """
        try:
            return [self._keys.get(path)]
        except FileNotFoundError:
            if asked_for:
                self._notes.append(f"the key {path}{_NAMED} does not exist")
        except OSError as error:
            self._notes.append(f"the key {path}{_NAMED if asked_for else ''} cannot be read: {unread(error)}")
        except TypeError:  # The cryptography library raises TypeError for a key with a passphrase.
            self._notes.append(f"the key {path} has a passphrase; run: ssh-add {path}")
        except (ValueError, paramiko.SSHException):
            self._notes.append(f"{path}{_NAMED if asked_for else ''} is {_no_key(path)}")
        return []

    def _failure(self) -> str:
        notes = "".join(f"; {note}" for note in self._notes)
        if not self._tried:
            cure = notes or f": {_NO_KEY}"
            return f"the login at {self._endpoint} failed without a usable key or password{cure}"
        cure = notes or f": {_REFUSED}"
        return f"the login at {self._endpoint} was refused; tried: {', '.join(self._tried)}{cure}"


def _no_key(path: Path) -> str:
    begin = path.read_bytes()[:_PUBLIC_BYTES].lstrip()
    if begin.startswith((b"ssh-", b"ecdsa-", b"sk-")):
        return "a public key: set the private key instead, the file without .pub"
    return "not a usable private key: check it with `ssh-keygen -y -f`"


class _NoAgent:
    def get_keys(self) -> tuple[paramiko.AgentKey, ...]:
        return ()

    def __enter__(self) -> _NoAgent:
        return self

    def __exit__(self, *_: object) -> None:
        return None
