"""Directory of a SavedModel on the controller: version number, completeness and checksums."""

from __future__ import annotations

import hashlib
import io
import re
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hostwright.roles import Artifact, InputError
from hostwright.standard.roles.serving.models.wire import graphs_of

FILE = "saved_model.pb"
TAG = "serve"
DEFAULT = "serving_default"
MOST_FILES = 10_000
MOST_VERSION = 2**63 - 1  #: largest version number of a model in TensorFlow Serving
_LIKE_A_VERSION = re.compile(r"v?[0-9]+([._-][0-9]+)*")
_SHARD = re.compile(r"variables\.data-(\d{5})-of-(\d{5})")
#: pattern of allowed file names, which ``sha256sum`` prints without escapes
_NAME = re.compile(r"[^\x00-\x1f\\\x7f]+")


@dataclass(frozen=True, slots=True)
class SavedModel:
    """Version of a TensorFlow model in the directory ``folder`` on the controller."""

    folder: Path
    number: int | None  #: version number of the model and name of the directory
    files: tuple[tuple[str, str], ...]
    size: int

    @property
    def listing(self) -> str:
        """Checksums of all files, in the format of ``sha256sum``."""
        return "".join(f"{digest}  {name}\n" for digest, name in self.files)

    @property
    def digest(self) -> str:
        """Hash of ``listing``, which identifies this version's files in the inventory."""
        return f"sha256:{hashlib.sha256(self.listing.encode()).hexdigest()}"


def read_model(folder: Path, version: int | None = None, signature: str = "") -> SavedModel:
    """Read a model from ``folder``, or from its subdirectory ``version``.

    ``signature``: signature that clients request (empty: TensorFlow's default). Raises ``InputError`` if TensorFlow
    Serving cannot serve the model.
    """
    place = _place(folder, version)
    try:
        number = _number(place, version)
        names = tuple(_names(place))
        restores = _check_graph(place / FILE, signature)
        _check_variables(place, names, restores=restores)
        files = tuple((_checksum(place / name), name) for name in names)
        size = sum((place / name).stat().st_size for name in names)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", str(error.filename or place)) from error
    return SavedModel(place, number, files, size)


def called_like_a_version(folder: Path) -> bool:
    """Return whether the directory's name is a version, such as ``2`` or ``v0.1``."""
    return bool(_LIKE_A_VERSION.fullmatch(folder.name))


def _number(folder: Path, version: int | None) -> int | None:
    number = int(folder.name) if folder.name.isascii() and folder.name.isdigit() else 0
    if 1 <= number <= MOST_VERSION:
        return number
    if version is None and called_like_a_version(folder):
        raise InputError(
            f"the directory's name {folder.name} is not a version number (1 to {MOST_VERSION}); give the number, such"
            " as --version 1",
            str(folder),
        )
    return None


def _place(folder: Path, version: int | None) -> Path:
    if not folder.is_dir():
        raise InputError("no such directory; name the directory that tf.saved_model.save wrote", str(folder))
    below: dict[int, Path] = {}
    for child in sorted(child for child in folder.iterdir() if child.name.isascii() and child.name.isdigit()):
        other = below.setdefault(int(child.name), child)
        if other is not child:
            raise InputError(f"{other.name} and {child.name} are the same version; move one of them away", str(folder))
    with_model = {number: child for number, child in below.items() if (child / FILE).is_file()}
    if version is not None and version in with_model:
        return with_model[version]
    if (folder / FILE).is_file():
        if with_model:
            numbers = ", ".join(map(str, sorted(with_model)))
            raise InputError(
                f"is a model itself and also contains the versions {numbers}; name the directory of one version, "
                "or move the versions away",
                str(folder),
            )
        return folder
    if version is None and len(with_model) == 1:
        return next(iter(with_model.values()))
    if with_model:
        numbers = ", ".join(map(str, sorted(with_model)))
        raise InputError(f"has the versions {numbers}; choose one with --version", str(folder))
    if version is not None and version in below:
        folder = below[version]
    raise InputError(
        f"not a SavedModel: {FILE} is missing; name the directory that tf.saved_model.save wrote", str(folder)
    )


def _names(folder: Path) -> Iterator[str]:
    count = 0
    for path in sorted(_below(folder), key=lambda path: path.relative_to(folder).as_posix().encode("utf-8", "replace")):
        name = path.relative_to(folder).as_posix()
        kind = path.lstat().st_mode
        if stat.S_ISLNK(kind):
            raise InputError("is a symbolic link; replace it with the file", str(path))
        if stat.S_ISDIR(kind):
            continue
        if not stat.S_ISREG(kind) or not _NAME.fullmatch(name):
            raise InputError(
                "not a regular file, or its name has unusual characters; remove it from the model", str(path)
            )
        count += 1
        if count > MOST_FILES:
            raise InputError(f"has more than {MOST_FILES} files; name the directory of one version", str(folder))
        yield name


def _below(folder: Path) -> Iterator[Path]:
    """Iterate without recursion, unlike ``rglob``, which recurses at each directory level."""
    left = [folder]
    while left:
        for path in left.pop().iterdir():
            yield path
            if path.is_dir() and not path.is_symlink():
                left.append(path)


def _check_variables(folder: Path, names: tuple[str, ...], *, restores: bool) -> None:
    """Raise ``InputError`` if a file of the model's weights is missing, as in an incomplete copy.

    ``restores``: whether the graph reads the weights from files.
    """
    shards = [match for name in names if (match := _SHARD.fullmatch(name.removeprefix("variables/")))]
    if not shards and "variables/variables.index" not in names:
        if not restores:
            return
        sentence = "variables/variables.index is missing, but the graph restores variables; export the model again"
        raise InputError(sentence, str(folder))
    if "variables/variables.index" not in names:
        raise InputError("variables/variables.index is missing; copy or export the model again", str(folder))
    count = int(shards[0][2]) if shards else 1
    wanted = [f"variables/variables.data-{number:05}-of-{count:05}" for number in range(count)]
    missing = next((name for name in wanted if name not in names), None)
    if missing:
        raise InputError(f"{missing} is missing; copy or export the model again", str(folder))


def _check_graph(file: Path, signature: str) -> bool:
    """Return whether the graph that serves requests restores variables from files.

    Raises ``InputError`` if the model has no such graph, or if the graph lacks ``signature``.
    """
    try:
        graphs = graphs_of(file)
    except ValueError as error:
        sentence = f"not a SavedModel ({error}); copy or export the model again"
        raise InputError(sentence, str(file)) from error
    served = next((graph for graph in graphs if set(graph.tags) == {TAG}), None)
    if served is None:
        tags = "; ".join("+".join(graph.tags) or "no tag" for graph in graphs) or "no graph at all"
        raise InputError(
            f"the model has no graph for serving (expected tag {TAG!r}, found {tags}); export it with "
            "tf.saved_model.save",
            str(file),
        )
    wanted = signature or DEFAULT
    if wanted in served.signatures:
        return served.restores
    known = ", ".join(served.signatures) or "none"
    if signature:
        raise InputError(f"no signature {signature!r}; the model has: {known}", str(file))
    raise InputError(
        f"no signature {DEFAULT!r}, which serves requests without a signature name; the model has: {known}. Export it"
        " with signatures=…, or give your clients' signature: --signature NAME",
        str(file),
    )


def _checksum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


LISTING, FILES = "sha256sums", "files"  #: names in a model's archive: file with checksums, and directory with the model


def pack(model: SavedModel, name: str, version: int, target: Path) -> Artifact:
    """Write ``model`` and its checksums as an archive to ``target``; return the archive as an artifact."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        listing = model.listing.encode()
        member = tarfile.TarInfo(LISTING)
        member.size = len(listing)
        tar.addfile(member, io.BytesIO(listing))
        for _, file in model.files:
            member = tarfile.TarInfo(f"{FILES}/{file}")
            member.size, member.mode = (model.folder / file).stat().st_size, 0o644
            with (model.folder / file).open("rb") as stream:
                tar.addfile(member, stream)
    with target.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return Artifact(name="served-model", file=f"model-{name}-{version}.tar", sha256=digest, size=target.stat().st_size)
