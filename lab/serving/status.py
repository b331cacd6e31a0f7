"""What TensorFlow Serving calls a status: a code, a sentence, and the HTTP status of each code."""

from __future__ import annotations

#: the codes by name, each with its HTTP status; the others are 500
HTTP = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}


class Failed(Exception):
    """A status that is not OK."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def http(self) -> int:
        """The HTTP status that its answer has."""
        return HTTP.get(self.code, 500)

    def __str__(self) -> str:
        words = self.code.replace("_", " ").capitalize()
        return f"{words}: {self.message}"


def invalid(*parts: object) -> Failed:
    """A request that is wrong in itself."""
    return Failed("INVALID_ARGUMENT", "".join(str(part) for part in parts))
