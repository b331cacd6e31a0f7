"""Tests of probing with real programs in /bin/sh, and with hosts that return false answers."""

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostwright.common.errors import ProtocolError
from hostwright.common.quoting import sh
from hostwright.plan.model import Answer, Probe
from hostwright.plan.probing import cap_bytes, new_nonce, ordered, parse, programs
from hostwright.transport.root.become import wrap
from tests.unit.support.forks import OF_A_LOOK, forks
from tests.unit.transport.test_become import stand_in


def observe(*probes: Probe):
    asked, nonce = ordered(probes), new_nonce()
    done = subprocess.run(
        ["/bin/sh"], input=wrap(*programs(asked, nonce), password=None), capture_output=True, check=False
    )
    assert len(done.stdout) <= cap_bytes(asked)
    return parse(asked, nonce, done.stdout, "gpu01")


def test_status_and_output_come_back_for_user_and_root_probes(tmp_path, monkeypatch):
    """With a stand-in of sudo that only runs its arguments: root privileges belong to the host, not to this test."""
    stand_in(tmp_path, monkeypatch, '#!/bin/sh\nshift\nexec "$@"\n')
    user, root, silent = Probe("echo one; exit 3"), Probe("echo two; exit 4", root=True), Probe("true")
    facts = observe(user, root, silent)
    assert facts[user] == Answer(3, "one\n")
    assert facts[root] == Answer(4, "two\n")
    assert facts[silent] == Answer(0, "")


def test_equal_probes_are_asked_once(tmp_path):
    count = Probe(sh("echo x >>%s", tmp_path / "asked"))
    observe(count, Probe("true"), count, Probe(count.script))
    assert (tmp_path / "asked").read_text() == "x\n"


def test_an_answer_is_cut_at_its_cap_and_says_so():
    probe = Probe("yes", cap_bytes=1000)
    answer = observe(probe)[probe]
    assert answer.truncated
    assert len(answer.text) == 1000


def test_of_an_answer_that_takes_the_place_of_others_only_its_cap_is_kept():
    """The answer is longer than all limits together: the program ends there, and the missing answers show this."""
    before, endless, after = Probe("echo before"), Probe("yes", cap_bytes=1000), Probe("echo after")
    root = Probe("echo root", root=True)
    facts = observe(before, endless, after)
    assert facts == {before: Answer(0, "before\n"), endless: Answer(141, "y\n" * 500, truncated=True)}
    asked, nonce = (endless, root), new_nonce()
    user, as_root = (
        subprocess.run(["/bin/sh"], input=program.encode(), capture_output=True, check=False).stdout
        for program in programs(asked, nonce)
    )
    assert parse(asked, nonce, user + as_root, "gpu01") == {
        endless: Answer(141, "y\n" * 500, truncated=True),
        root: Answer(0, "root\n"),
    }


def test_a_connection_that_ends_within_an_answer_gives_no_answer():
    with pytest.raises(ProtocolError, match=r"0 of 1 probes.*echo first"):
        parse((Probe("echo first"),), "N", b"\nN  0\nfir", "gpu01")


def test_a_probe_costs_one_fork():
    """Built-in commands of the shell need no process except the subshell. A last command replaces the subshell."""
    quick, outside = (
        [Probe(f"echo {number}") for number in range(50)],
        [Probe(f"cat /{number}") for number in range(50)],
    )
    assert forks("") == 0
    assert forks("cat /1; cat /2") == 2
    for probes in quick, outside:
        assert forks(programs(probes, new_nonce())[0]) - 50 in OF_A_LOOK


def test_what_probes_print_comes_in_whole_blocks():
    """Each write on the host is a packet, and each packet costs the controller 0.2 ms."""
    probes, nonce = [Probe(f"printf {number:04}; printf '%01000d' {number}") for number in range(100)], new_nonce()
    with subprocess.Popen(["/bin/sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdin is not None and shell.stdout is not None
        shell.stdin.write(programs(probes, nonce)[0].encode())
        shell.stdin.close()
        blocks = list(iter(lambda: os.read(shell.stdout.fileno(), 1 << 20), b""))
    assert len(parse(probes, nonce, b"".join(blocks), "gpu01")) == 100
    assert len(blocks) <= 30, "100 kB in blocks of 4 kB"


def test_standard_error_and_standard_input_are_not_the_hosts():
    probe = Probe("echo noise >&2; cat; echo said")
    assert observe(probe)[probe].text == "said\n"


def test_a_probe_cannot_end_or_change_the_program_around_it():
    rude, after = Probe("cd /; LC_ALL=xx; set -e; trap 'echo t' EXIT; exit 7"), Probe("echo fine")
    facts = observe(rude, after)
    assert facts[rude].status == 7
    assert facts[after].text == "fine\n"


TEXTS = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"), max_size=200)


@settings(max_examples=8)
@given(st.lists(TEXTS, min_size=8, max_size=12, unique=True))
def test_file_contents_come_back_exactly(texts):
    """Several contents per program, since each example starts a new program."""
    probes = [Probe(sh("printf '%%s' %s", text)) for text in texts]
    facts = observe(*probes)
    assert [facts[probe].text for probe in probes] == texts


def test_bytes_that_are_no_text_become_replacement_characters():
    probe = Probe(r"printf 'a\377b'")
    assert observe(probe)[probe].text == "a\N{REPLACEMENT CHARACTER}b"


def test_a_missing_answer_names_the_probe():
    probes = (Probe("echo first"), Probe("echo second"))
    output = b"banner\nN  0\nfirst\n\nN 0 \n"
    with pytest.raises(ProtocolError, match=r"1 of 2 probes.*echo second"):
        parse(probes, "N", output, "gpu01")


def test_doubled_and_unasked_answers_are_refused():
    output = b"N  0\na\nN 0 \n"
    with pytest.raises(ProtocolError, match="out of order"):
        parse((Probe("echo a"),), "N", output * 2, "gpu01")
    with pytest.raises(ProtocolError, match="out of order"):
        parse((), "N", output, "gpu01")


@settings(max_examples=60)
@given(st.binary(max_size=500))
def test_garbage_from_a_host_is_an_error_never_a_crash(garbage):
    with pytest.raises(ProtocolError):
        parse((Probe("echo a"),), "a nonce that is not in it", garbage, "gpu01")


LIES = {
    "the first answer again and again": b"\nN 0 0\n",
    "answers that nobody asked for": b"".join(b"\nN 0 %d\n" % number for number in range(2, 999_000, 997)),
    "huge numbers": b"\nN 0 " + b"9" * 5000 + b"\n",
    "huge statuses": b"\nN " + b"9" * 5000 + b" 1\n",
    "digits that are not ASCII": "\nN \u0660 \u0661\n".encode(),
    "newlines": b"\n",
    "nothing but the nonce": b"N ",
    "ends": b"\nN 0 \n",
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_lie_of_eight_mebibytes_is_read_in_one_pass(lie):
    """Searching for the end of each started answer would take hours, in one call that cannot be interrupted."""
    probes = tuple(Probe(f"echo {number}", cap_bytes=2**24) for number in range(1000))
    with pytest.raises(ProtocolError):
        parse(probes, "N", b"\nN  0\nfirst" + lie * (8 * 2**20 // len(lie)), "gpu01")


def test_a_host_that_does_not_keep_to_the_cap_gets_no_more_than_that():
    probe = Probe("cat /etc/motd", cap_bytes=100)
    answer = parse((probe,), "N", b"\nN  0\n" + b"x" * 100_000 + b"\nN 0 \n", "gpu01")[probe]
    assert (len(answer.text), answer.truncated) == (100, True)
