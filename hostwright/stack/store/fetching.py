"""Downloads a URL into a ``.part`` file that a later attempt resumes. Callers verify the content."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from hostwright.common.errors import ArtifactError
from hostwright.common.places import refused, unread

if TYPE_CHECKING:
    import requests

CHUNK_BYTES = 1024 * 1024
TIMEOUTS_S = (15.0, 60.0)  #: time limits in seconds for connecting, and for the wait between received bytes
#: maximum number of retries of a request. The delays before the retries are 0.5, 1 and 2 s.
_RETRIES = 3
_STALLS = 3  #: maximum number of consecutive attempts to download a file without receiving a new byte
_BUSY = (429, 500, 502, 503, 504)

ONLINE = "is this machine online, and does it need a proxy (https_proxy)?"
PROXY = "is https_proxy right?"
TRUST = "if your network inspects TLS, set its CA: REQUESTS_CA_BUNDLE=FILE"

#: progress callback with the number of received bytes and the total size (``None`` if unknown)
Tell = Callable[[int, int | None], None]


class _Again(Exception):
    """Error: the transfer was interrupted, or the part file is unusable, so the download must be repeated."""


class Unreached(ArtifactError):
    """Error: no connection to a server or its proxy, so that further downloads will probably also fail.

    ``who`` is the server or the proxy, ``why`` the reason, ``cure`` the check for the operator to make.
    """

    def __init__(self, who: str, why: str, cure: str):
        super().__init__(f"{who} {why}: {cure}")
        self.who, self.why, self.cure = who, why, cure


def make_session() -> requests.Session:
    """Return an HTTP session that retries requests to busy servers; proxies and CA certificates are as for curl."""
    import requests
    from requests.adapters import HTTPAdapter
    from urllib3.util import Retry

    retry = Retry(
        total=_RETRIES,
        backoff_factor=0.5,
        status_forcelist=_BUSY,
        raise_on_status=False,
        # a server may ask for a wait of hours, while another mirror may answer at once
        respect_retry_after_header=False,
    )
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=retry))
    return session


def fetch(session: requests.Session, url: str, part: Path, *, size: int | None, checked: bool, tell: Tell) -> None:
    """Download ``url`` into the file ``part``, or resume an interrupted download.

    With ``checked``, the caller verifies a checksum afterwards; otherwise a download is resumed only if the server
    confirms that its file is unchanged. Raises ``ArtifactError`` if the download fails.
    """
    scheme = urlsplit(url).scheme
    if scheme == "file":
        _copy(Path(unquote(urlsplit(url).path)), part, tell)
        return
    if scheme not in ("http", "https"):
        raise ArtifactError(f"the URL '{url}' has an unsupported scheme; use http, https or file")
    stalls, before = 0, -1
    while True:
        try:
            _attempt(session, url, part, size=size, checked=checked, tell=tell)
        except _Again as reason:
            length = _length(part)
            stalls = 0 if length > before else stalls + 1
            before = length
            if stalls >= _STALLS:
                raise ArtifactError(f"{url}: {reason}") from None
        else:
            return


def _attempt(session: requests.Session, url: str, part: Path, *, size: int | None, checked: bool, tell: Tell) -> None:
    import requests
    from urllib3.exceptions import HTTPError

    validator = _validator(part)
    known = validator.read_text() if validator.exists() else ""
    if not (checked or known):
        part.unlink(missing_ok=True)
    start = _length(part)
    headers = {"Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        if not checked:
            headers["If-Range"] = known
    try:
        response = session.get(url, headers=headers, stream=True, timeout=TIMEOUTS_S)
    except (requests.ConnectionError, requests.Timeout) as error:
        raise _unreached(session, url, error) from error
    except (requests.RequestException, UnicodeError) as error:
        raise ArtifactError(f"{url}: {_reason(error)}") from error
    with response:
        if _complete(response, start):
            return
        start, total = _begin(response, url, part, start, size)
        validator.write_text(_identity(response))
        try:
            _append(part, start, response.raw.stream(CHUNK_BYTES, decode_content=False), total, tell)
        except HTTPError as error:
            raise _Again(_reason(error)) from error


def _complete(response: requests.Response, start: int) -> bool:
    return response.status_code == 416 and response.headers.get("Content-Range") == f"bytes */{start}"


def _begin(response: requests.Response, url: str, part: Path, start: int, size: int | None) -> tuple[int, int | None]:
    if response.status_code == 416:
        part.unlink(missing_ok=True)
        raise _Again("the partial download is longer than the file")
    if not response.ok:
        raise ArtifactError(f"{url}: the server responded with {response.status_code} {response.reason}")
    if response.status_code != 206:
        start = 0
    elif not response.headers.get("Content-Range", "").startswith(f"bytes {start}-"):
        part.unlink(missing_ok=True)
        raise _Again("the server sent another range than requested")
    length = response.headers.get("Content-Length", "")
    total = start + int(length) if length.isdigit() else None
    if size is not None and total is not None and total != size:
        raise ArtifactError(f"{url}: the file has {total:,} bytes, but the stack specifies {size:,}")
    _check_room(part, (total or size or 0) - start)
    return start, total or size


def _append(part: Path, start: int, chunks: Iterator[bytes], total: int | None, tell: Tell) -> None:
    with part.open("r+b" if part.exists() else "wb") as file:
        file.truncate(start)
        file.seek(start)
        tell(start, total)
        for chunk in chunks:
            file.write(chunk)
            tell(file.tell(), total)


def _copy(source: Path, part: Path, tell: Tell) -> None:
    try:
        total = source.stat().st_size
        part.unlink(missing_ok=True)
        _check_room(part, total)
        with source.open("rb") as file:
            _append(part, 0, iter(lambda: file.read(CHUNK_BYTES), b""), total, tell)
    except OSError as error:
        reading = error.filename == str(source)
        raise ArtifactError(f"{source}: {unread(error) if reading else refused(error)}") from error


def _check_room(part: Path, wanted: int) -> None:
    free = shutil.disk_usage(part.parent).free
    if wanted > free:
        raise ArtifactError(
            f"not enough disk space in {part.parent}: {part.name} needs {wanted:,} more bytes, and {free:,} are "
            "available; free disk space, or set HOSTWRIGHT_ARTIFACTS to another directory"
        )


def _validator(part: Path) -> Path:
    return part.with_name(part.name + ".validator")


def _identity(response: requests.Response) -> str:
    tag = response.headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified", "")


def _length(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _unreached(session: requests.Session, url: str, error: Exception) -> Unreached:
    import requests

    inner, why = _innermost(error), _reason(error)
    if isinstance(error, requests.exceptions.SSLError):
        reason = getattr(inner, "verify_message", "") or why
        return Unreached(_server(url), f"cannot be trusted ({reason})", TRUST)
    settings = session.merge_environment_settings(url, {}, None, None, None)
    proxy = requests.utils.select_proxy(url, settings["proxies"])
    who = f"the proxy {_server(proxy)}" if proxy else _server(url)
    if isinstance(inner, socket.gaierror):
        why = f"cannot be resolved ({why})"
    elif isinstance(error, requests.Timeout):
        why = f"did not respond within {TIMEOUTS_S[isinstance(error, requests.ReadTimeout)]:.0f} s"
    else:
        why = f"cannot be reached ({why})"
    return Unreached(who, why, PROXY if proxy else ONLINE)


def _server(url: str) -> str:
    return urlsplit(url).netloc.rpartition("@")[2] or url


def _reason(error: Exception) -> str:
    inner = _innermost(error)
    if isinstance(inner, OSError) and inner.strerror:
        return inner.strerror  # `strerror` has no error number, unlike `str(inner)`
    return str(inner) or type(inner).__name__


def _innermost(error: BaseException) -> BaseException:
    while error.__cause__ is not None or error.__context__ is not None:
        error = error.__cause__ or error.__context__ or error
    return error


def discard(part: Path) -> None:
    """Remove the file ``part`` of a download, and the file beside it with the server's ETag or date."""
    part.unlink(missing_ok=True)
    _validator(part).unlink(missing_ok=True)
