"""What a host says of itself, read strictly: cards from the PCI bus, Pythons by their names."""

from hostwright.plan.host.hostfacts import AVX, MEMORY, OS_RELEASE, PCI, PYTHONS, UNAME, os_release, pythons, read_host
from hostwright.plan.model import Answer, Facts
from hostwright.standard.roles.driver.states.gpu_use import gpu_ids, nvswitches

HGX = "0x10de 0x030200 0x20b2\n" * 8 + "0x10de 0x068000 0x1af1\n" * 6 + "0x10de 0x040300 0x1aef\n"


def facts(**changes: str) -> Facts:
    texts = {
        OS_RELEASE: 'ID=ubuntu\nVERSION_ID="20.04"\nNAME="Ubuntu"\nnonsense\n',
        UNAME: "5.4.0-150-generic x86_64\n",
        PCI: HGX,
        AVX: "",
        PYTHONS: "/usr/bin/python3 3.8\n/usr/bin/python3.8 3.8\n/usr/local/bin/python3.10 3.10\n/x config\n",
        MEMORY: "1056431876\n",
    }
    return Facts({probe: Answer(0, changes.get(probe.script, text)) for probe, text in texts.items()})


def test_an_hgx_host_is_read_as_it_is():
    host = read_host(facts())
    assert (host.distribution, host.version) == ("ubuntu", "20.04")
    assert (host.kernel, host.machine) == ("5.4.0-150-generic", "x86_64")
    assert host.gpus == ((0x10DE, 0x20B2),) * 8
    assert gpu_ids(facts()) == (0x20B2,) * 8, "neither switches nor sound devices are GPUs"
    assert nvswitches(facts()) == 6
    assert host.pythons == ("3.10", "3.8")
    assert host.memory_bytes == 1056431876 * 1024
    assert host.avx


def test_the_first_interpreter_of_a_version_on_the_path_is_taken():
    assert pythons(facts()) == {"3.8": "/usr/bin/python3", "3.10": "/usr/local/bin/python3.10"}


def test_lines_without_a_sign_are_passed_over():
    assert "nonsense" not in os_release(facts())


def test_a_host_that_says_nothing_is_unknown_not_a_crash():
    host = read_host(Facts({probe: Answer(1, "") for probe in (OS_RELEASE, UNAME, PCI, AVX, PYTHONS, MEMORY)}))
    assert (host.distribution, host.gpus, host.pythons, host.memory_bytes) == ("unknown", (), (), None)
