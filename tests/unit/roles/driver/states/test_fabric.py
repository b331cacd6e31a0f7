"""What joins the cards, how it is found, and what each kind gets: made-up buses and facts, modelled on public threads.

No board with NVLink 5 and no rack was at hand: what such hosts answer follows NVIDIA's gpu-driver-container and the
threads named in ``states/fabric.py``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from hostwright.plan.host.hostfacts import PCI
from hostwright.plan.model import Answer, Change, Facts, Planned, Refusal
from hostwright.plan.roles.role import RoleContext
from hostwright.plan.stacks.fits import fits
from hostwright.plan.testing import plan_text
from hostwright.resources.conditions import When
from hostwright.stack.fitting import Misfit
from hostwright.stack.rules import HostFacts
from hostwright.stack.stack import Stack
from hostwright.standard.roles.driver import Driver, driver
from hostwright.standard.roles.driver.chips import RACK_CARDS
from hostwright.standard.roles.driver.nvsmi.report import read_report
from hostwright.standard.roles.driver.rules import a_whole_board_has_its_subnet_manager, fabric_manager_is_of_the_driver
from hostwright.standard.roles.driver.section import DriverSection
from hostwright.standard.roles.driver.states.fabric import FABRIC, BridgeModules, Fabric, fabric_of
from tests.unit.stack.test_rules import nvidia
from tests.unit.support.facts import changes_of
from tests.unit.support.forks import forks
from tests.unit.support.shell import ask, program, run
from tests.unit.support.stackfleet import ADVISORIES, ROLES, TODAY, stacks
from tests.unit.support.stacks import load_stack

STACKS = Path(__file__).parents[5] / "inventory" / "stacks"
B200, GB200, A100, H100 = (f"0x10de 0x030200 {device}\n" for device in ("0x2901", "0x2941", "0x20b0", "0x2330"))
NVSWITCH = "0x10de 0x068000 0x1af1\n"
BRIDGES = "bridge 0000:05:00.0\nbridge 0000:05:00.1\n"
RUNNING = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled\n"
GONE = "LoadState=not-found\nActiveState=inactive\nUnitFileState=\n"
V = "580.178.04"


def stack(**section: object) -> Stack:
    """The stack pytorch-2.14 with the driver's parts that a test names, each from its own file."""
    base = load_stack("pytorch-2.14", [STACKS])
    wanted = base.section(DriverSection)
    values = {**wanted.model_dump(), **section}
    return base.model_copy(update={"sections": {**base.sections, "driver": DriverSection(**values)}})


def facts(pci: str, fabric: str = "") -> Facts:
    return Facts({PCI: Answer(0, pci), FABRIC: Answer(0, fabric)})


@pytest.mark.parametrize(
    ("pci", "answer", "kind"),
    [
        (A100 * 8 + NVSWITCH * 6, "", Fabric.SWITCHES),
        (H100 * 8, "nvswitch 0000:c0:00.0\n", Fabric.SWITCHES),
        (B200 * 8, BRIDGES, Fabric.NVLINK5),
        (B200, "", Fabric.NONE),  # one card of such a board in a virtual machine
        (GB200 * 4, "", Fabric.RACK),
        (GB200 * 4, BRIDGES, Fabric.RACK),
        (A100, "unread\n", Fabric.NONE),
        (A100, "bridge \x1b[31m\nnvswitch\n", Fabric.NONE),
    ],
)
def test_what_joins_the_cards_is_found(pci: str, answer: str, kind: Fabric) -> None:
    assert fabric_of(facts(pci, answer)) is kind


# --- the question itself


def bus(folder: Path, devices: dict[str, tuple[str, str, str, str]], *modules: str) -> str:
    """The probe of a host with these devices: vendor, class, id, product data; and these modules loaded."""
    for slot, (vendor, kind, device, data) in devices.items():
        place = folder / "bus/pci/devices" / slot
        place.mkdir(parents=True)
        for name, text in {"vendor": vendor, "class": kind, "device": device, "vpd": data}.items():
            if text:
                (place / name).write_bytes(f"{text}\n".encode())
    for module in modules:
        (folder / "module" / module).mkdir(parents=True)
    return FABRIC.script.replace("/sys/", f"{folder}/").replace("/proc/driver", f"{folder}/driver")


CARD = {"0000:1b:00.0": ("0x10de", "0x030200", "0x2901", "")}
NIC = {"0000:0a:00.0": ("0x15b3", "0x020700", "0x1021", "\x82\x1fNVIDIA ConnectX-7 HHHL")}
BRIDGE = {"0000:05:00.0": ("0x15b3", "0x020700", "0x1021", "\x82\x0cV3\x06SW_MNG\x00")}


def test_a_bridge_is_told_by_its_product_data(tmp_path: Path) -> None:
    path = program(tmp_path / "bin", "modprobe", "exit 0").parent
    done = run(bus(tmp_path, CARD | NIC | BRIDGE, "mlx5_core", "mlx5_ib"), path=path)
    assert done.stdout.decode().splitlines() == ["bridge 0000:05:00.0", "lacks ib_umad"]
    assert done.returncode == 0


def test_a_module_that_the_kernel_lacks_is_told(tmp_path: Path) -> None:
    path = program(tmp_path / "bin", "modprobe", "exit 1").parent
    done = run(bus(tmp_path, CARD | BRIDGE, "mlx5_core", "mlx5_ib"), path=path)
    assert done.stdout.decode().splitlines() == ["bridge 0000:05:00.0", "lacks ib_umad", "missing ib_umad"]


def test_older_cards_beside_network_cards_cost_nothing(tmp_path: Path) -> None:
    """Product data comes slowly, and only boards of Blackwell have such bridges."""
    old = {"0000:1b:00.0": ("0x10de", "0x030200", "0x2330", "")}
    script = bus(tmp_path, old | BRIDGE)
    assert ask(script) == (0, "")
    assert forks(script) == 0


def test_the_drivers_own_list_of_switches_counts(tmp_path: Path) -> None:
    (tmp_path / "driver/nvidia-nvswitch/devices/0000:c0:00.0").mkdir(parents=True)
    assert ask(bus(tmp_path, {})) == (0, "nvswitch 0000:c0:00.0\n")


@pytest.mark.parametrize("card", sorted(RACK_CARDS))
def test_a_tray_is_refused_every_standard_stack_with_its_architecture_and_what_to_do(card: int) -> None:
    tray = HostFacts("ubuntu", "24.04", "6.8.0-1040-nvidia-64k", "aarch64", nvidia(card) * 4)
    for fit in fits(tray, stacks(), ROLES, ADVISORIES, TODAY, suggest=False):
        (sentence,) = (str(one) for one in fit.misfits if one.rule == "rack")
        assert f"racks have aarch64 processors. {fit.stack}, like all standard stacks, is for x86_64" in sentence
        assert "NVIDIA's own image; or your own stack for aarch64" in sentence


# --- names and versions


@pytest.mark.parametrize(
    ("version", "manager", "imex"),
    [
        ("470.182.03", "nvidia-fabricmanager-470", "nvidia-imex-470"),
        ("570.211.01", "nvidia-fabricmanager-570", "nvidia-imex-570"),
        ("580.178.04", "nvidia-fabricmanager", "nvidia-imex"),
        ("620.70.06", "nvidia-fabricmanager", "nvidia-imex"),
    ],
)
def test_the_names_of_packages_follow_the_branch(version: str, manager: str, imex: str) -> None:
    section = DriverSection(version=version, artifact="driver")
    assert (section.fabric_manager_package, section.imex_package) == (manager, imex)


def test_a_distributions_own_name_stays() -> None:
    part = {"package": "nvidia-fabricmanager-580", "version": f"{V}-0ubuntu1", "artifact": "manager"}
    assert DriverSection(version=V, artifact="driver", fabric_manager=part).fabric_manager_package == part["package"]


def test_parts_of_another_version_are_refused() -> None:
    part = {"version": "580.159.04-1", "artifact": "part"}
    section = DriverSection(version=V, artifact="driver", fabric_manager=part, imex=part)
    assert [misfit.nearest for misfit in fabric_manager_is_of_the_driver(section)] == [
        f"nvidia-fabricmanager {V}-1",
        f"nvidia-imex {V}-1",
    ]


def test_a_part_without_a_source_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"imex has no artifact, but the driver is a \.run file"):
        DriverSection(version=V, artifact="driver", imex={"version": f"{V}-1"})


# --- what hosts get

MANAGER = {"version": "580.159.04-1", "artifact": "fabric-manager"}
NVLINK5 = {**MANAGER, "subnet_manager": {"version": "2025.06.5-1", "artifact": "fabric-manager"}}
Replies = dict[str, str | Answer]
PARTS = "nvidia-fabricmanager\t580.159.04-1\thi \nnvlsm\t2025.06.5-1\thi \ninfiniband-diags\t44.0-2\tii \n"


def planned(wanted: Stack, pci: str, answers: Replies, variables: Driver | None = None) -> list[Planned]:
    """What is planned of the states that stand under a condition about the fabric."""
    found = driver.resources(variables or Driver(), RoleContext(wanted))
    states = [one for one in found if isinstance(one, When)]
    told = {"dpkg-query -W": "bash\t5.1\tii \n", "read -r c <": pci, "drivers/nouveau": "", "/boot/vmlinuz": "",
            "show -p LoadState": GONE, "SecureBoot": "off\n", "extended_states": "", **answers}  # fmt: skip
    return list(changes_of(states, told))


def test_an_nvlink5_board_gets_modules_subnet_manager_and_fabric_manager_in_this_order() -> None:
    changes = planned(stack(fabric_manager=NVLINK5), B200 * 8, {"SW_MNG": BRIDGES + "lacks ib_umad\n"})
    assert [change.what for change in changes] == [
        "file /etc/modules-load.d/hostwright-fabric.conf",
        "modules of the NVLink bridges",
        "packages infiniband-diags",
        "package nvlsm",
        "package nvidia-fabricmanager",
        "service nvidia-fabricmanager.service",
    ]


def test_an_nvlink5_board_that_has_it_plans_nothing_but_its_file() -> None:
    answers: Replies = {
        "SW_MNG": BRIDGES, "dpkg-query -W": PARTS, "show -p LoadState": RUNNING,
    }  # fmt: skip
    changes = planned(stack(fabric_manager=NVLINK5), B200 * 8, answers)
    assert [change.what for change in changes] == ["file /etc/modules-load.d/hostwright-fabric.conf"]


def test_a_stack_without_subnet_manager_is_refused_on_such_a_board_before_anything_changes() -> None:
    (first, *_) = planned(stack(fabric_manager=MANAGER), B200 * 8, {"SW_MNG": BRIDGES})
    assert isinstance(first, Refusal)
    assert "hgx-b200" in first.sentence


def test_a_whole_board_is_refused_by_a_stack_without_subnet_manager_before_it_is_connected_to() -> None:
    def refused(wanted: Stack, device: int, number: int) -> Misfit | None:
        section = wanted.section(DriverSection)
        return a_whole_board_has_its_subnet_manager(V, ((0x10DE, device),) * number, section)

    misfit = refused(stack(), 0x2901, 8)
    assert misfit is not None
    assert misfit.nearest == "hgx-b200"
    assert refused(stack(), 0x2901, 1) is None  # a card in a virtual machine
    assert refused(stack(), 0x2941, 8) is None  # of a rack
    assert refused(stack(), 0x2330, 8) is None
    assert refused(load_stack("hgx-b200", [STACKS]), 0x2901, 8) is None


def test_an_older_board_gets_fabric_manager_alone() -> None:
    changes = planned(stack(fabric_manager=NVLINK5), A100 * 8 + NVSWITCH * 6, {})
    assert [change.what for change in changes] == [
        "package nvidia-fabricmanager",
        "service nvidia-fabricmanager.service",
    ]


def test_a_host_without_switches_gets_none_of_it() -> None:
    assert planned(stack(fabric_manager=NVLINK5, imex=MANAGER), B200, {}) == []


def test_a_racks_tray_gets_imex_and_no_fabric_manager() -> None:
    wanted = stack(fabric_manager=NVLINK5, imex=MANAGER)
    changes = planned(wanted, GB200 * 4, {}, Driver(imex_nodes=("10.0.0.1", "10.0.0.2")))
    assert [change.what for change in changes] == [
        "file /etc/modprobe.d/hostwright-imex.conf",
        "package nvidia-imex",
        "file /etc/nvidia-imex/nodes_config.cfg",
        "IMEX channel",
        "service nvidia-imex.service",
        "restart of nvidia-imex.service",
    ]
    assert not [change for change in planned(wanted, GB200 * 4, {}) if "nodes_config" in change.what]


def test_ubuntus_package_of_further_modules_comes_where_one_is_missing() -> None:
    answers = {
        "SW_MNG": "bridge 0000:05:00.0\nlacks ib_umad\nmissing ib_umad\n",
        "uname -rm": "6.8.0-90-generic x86_64\n",
        "os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n',
    }
    assert "linux-modules-extra-6.8.0-90-generic absent" in plan_text(BridgeModules(), answers)
    (change,) = changes_of(BridgeModules(), answers)
    assert isinstance(change, Change)
    assert "modprobe" in change.steps[-1].script
    debian = {**answers, "os-release": 'ID=debian\nVERSION_ID="12"\n'}
    assert plan_text(BridgeModules(), debian) == "~ modules of the NVLink bridges: ib_umad not loaded → loaded"


# --- what nvidia-smi says of it


def card(state: str, status: str = "Success", clique: str = "1", cluster: str = "00000000-0000-0000-0000-000000000000"):
    fabric = (
        f"<fabric><state>{state}</state><status>{status}</status><cliqueId>{clique}</cliqueId>"
        f"<clusterUuid>{cluster}</clusterUuid></fabric>"
    )
    (gpu,) = read_report(f"<nvidia_smi_log><gpu>{fabric}</gpu></nvidia_smi_log>").gpus
    return gpu.fabric, gpu.fabric_state, gpu.clique


def test_state_status_and_clique_are_read() -> None:
    assert card("Completed") == (True, "Completed, Success", "1")
    rack = "5cd30dc8-0000-4000-8000-000000000001"
    assert card("Completed", cluster=rack, clique="388")[2] == f"{rack}.388"
    assert card("In Progress", "N/A", "N/A") == (False, "In Progress", "")
    assert card("Completed", "Insufficient resources") == (False, "Completed, Insufficient resources", "")
    assert card("N/A", "N/A", "N/A") == (None, "", "")
