"""The scripts of docs/settings.md, each with a program in the place of what it calls."""

from __future__ import annotations

import json
import os
import re
import subprocess
from email import message_from_string
from email.policy import default
from pathlib import Path
from typing import Any

import pytest

from hostwright.common.quoting import sh
from tests.places import PROJECT

PAGE = (PROJECT / "docs/settings.md").read_text("utf-8")
EVIL = '\'; touch evil; $(touch evil) `touch evil` <!channel> & "x"'
FAILED = [{"host": "gpu02", "result": "failed", "sentence": EVIL}]
TEXT = f"provision on 2 hosts: 1 changed, 1 failed\ngpu02: {EVIL}"


def script(name: str) -> str:
    found = re.search(rf"```sh\n(#!/bin/sh\n# notify/{name}\.sh\n.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def told(tmp_path: Path) -> Any:
    """Runs a script with a run on its standard input; what the program got, with its words first, or nothing."""
    got = tmp_path / "got"
    fake = tmp_path / "fake"
    fake.write_text(sh('#!/bin/sh\n{ printf "%%s\\n" "$*"; cat; } >%s\n', str(got)))
    fake.chmod(0o755)

    def told(name: str, **run: Any) -> list[str]:
        file = tmp_path / f"{name}.sh"
        text = script(name).replace("/usr/sbin/sendmail", str(fake))
        file.write_text(re.sub(r"\b(curl|logger)(?= --)", str(fake), text))
        document = {"text": TEXT, "failed": FAILED, "status": 1, **run}
        environment = {**os.environ, "SLACK_WEBHOOK": "https://hooks.example.org/x"}
        subprocess.run(
            ["/bin/sh", str(file)], input=json.dumps(document), text=True, env=environment, cwd=tmp_path, check=False
        )
        assert not (tmp_path / "evil").exists()
        return got.read_text().splitlines() if got.exists() else []

    return told


def test_slack(told: Any) -> None:
    words, body = told("slack")
    assert words.endswith("--data @- https://hooks.example.org/x")
    shown = json.loads(body)["text"]
    assert shown.startswith("provision on 2 hosts: 1 changed, 1 failed\ngpu02: ")
    assert "&lt;!channel&gt; &amp;" in shown, "a host calls nobody"


def test_mail(told: Any) -> None:
    words, *lines = told("mail")
    assert words == "-t -i"
    mail = message_from_string("\n".join(lines) + "\n", policy=default)
    assert (mail["To"], mail["Subject"]) == ("ops@example.org", TEXT.splitlines()[0])
    assert mail.get_content().strip() == TEXT  # type: ignore[attr-defined]


def test_no_mail_without_a_failure(told: Any) -> None:
    assert told("mail", failed=[], status=0) == []


def test_syslog(told: Any) -> None:
    words, *lines = told("syslog")
    assert words == "--tag hostwright --priority user.notice"
    assert lines == TEXT.splitlines()
