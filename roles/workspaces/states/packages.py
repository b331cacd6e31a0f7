"""Debian packages of images on a host, and the differences between two images."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from hostwright.roles import sh_file

Packages = Mapping[str, str]  #: name of a Debian package → version of the package
_INSTALLED = ("ii", "hi")  #: dpkg's status abbreviations for an installed package, without and with a hold


def packages_script(images: Iterable[str]) -> str:
    """Return a script for root that prints the Debian packages in the images with the IDs ``images``."""
    return sh_file(__file__, "sh/packages.sh", images=tuple(images))


def read_packages(text: str) -> dict[str, Packages]:
    """Parse the output of ``packages_script``: image ID → packages, for successful queries.

    >>> read_packages("image sha256:1\\nii  tmux 3.1c-1\\nrc  nano 5.4-2\\nimage sha256:2\\nsilent\\nend\\n")
    {'sha256:1': {'tmux': '3.1c-1'}}
    """
    images: dict[str, dict[str, str]] = {}
    silent, image = set(), ""
    lines = text.splitlines()
    if lines[-1:] != ["end"]:
        return {}
    for line in lines[:-1]:
        words = line.split()
        if words[:1] == ["image"] and len(words) == 2:
            image = words[1]
            images[image] = {}
        elif words == ["silent"]:
            silent.add(image)
        elif len(words) == 3 and words[0] in _INSTALLED and image:
            images[image][words[1]] = words[2]
    return {name: found for name, found in images.items() if found and name not in silent}


def differences(before: Packages, after: Packages) -> Iterator[str]:
    """Yield the differences between the packages of two images as lines of text.

    >>> list(differences({"tmux": "1", "git": "1", "nano": "5"}, {"tmux": "2", "git": "1", "vim": "8"}))
    ['tmux  1 → 2', 'new: vim', 'gone: nano']
    """
    for name in sorted(before.keys() & after.keys()):
        if before[name] != after[name]:
            yield f"{name}  {before[name]} → {after[name]}"
    for word, names in (("new", after.keys() - before.keys()), ("gone", before.keys() - after.keys())):
        if names:
            yield f"{word}: {', '.join(sorted(names))}"
