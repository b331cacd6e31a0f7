"""Orders to a BMC over real HTTP, and what comes of them."""

from __future__ import annotations

import pytest

from hostwright.rebuild.bmc import BmcError, BmcRefused, BmcStuck, BmcUnreachable, Power
from tests.unit.support import redfish
from tests.unit.support.bmcs import failure, opened
from tests.unit.support.redfish import DRIVE, RESET, SYSTEM, Answer, Machine, refusal

IMAGE = "https://images.example/install.iso"


# --- power


def test_a_machine_that_is_off_is_turned_on_and_awaited() -> None:
    machine = Machine(power="Off", takes=False)

    def then() -> None:
        machine.power = "On" if machine.power == "PoweringOn" else "PoweringOn"

    with opened(machine, then) as controller:
        assert controller.power() is Power.OFF
        controller.turn_on()
        assert controller.power() is Power.ON
    assert machine.orders == [{"ResetType": "On"}]


@pytest.mark.parametrize(("power", "order"), [("On", "turn_on"), ("Off", "turn_off")])
def test_no_order_is_given_for_what_is_so_already(power: str, order: str) -> None:
    machine = Machine(power=power)
    with opened(machine) as controller:
        getattr(controller, order)()
    assert machine.orders == []


def test_the_operating_system_is_asked_first_where_that_is_wanted() -> None:
    machine = Machine()
    with opened(machine) as controller:
        controller.turn_off(gracefully=True)
    assert machine.orders == [{"ResetType": "GracefulShutdown"}]


def test_an_operating_system_that_does_not_end_is_cut_off() -> None:
    machine = Machine(takes=False)

    def deaf(_: Machine, __: str) -> Answer | None:
        machine.takes = len(machine.orders) >= 1
        return None

    machine.overrides["POST", RESET] = deaf
    with opened(machine) as controller:
        controller.turn_off(gracefully=True)
        assert controller.power() is Power.OFF
    assert machine.orders == [{"ResetType": "GracefulShutdown"}, {"ResetType": "ForceOff"}]


def test_without_a_graceful_way_the_power_is_cut() -> None:
    machine = Machine(knows=("On", "ForceOff"))
    with opened(machine) as controller:
        controller.turn_off(gracefully=True)
    assert machine.orders == [{"ResetType": "ForceOff"}]


def test_a_cycle_is_one_order_where_the_bmc_knows_it() -> None:
    machine = Machine()
    with opened(machine) as controller:
        controller.cycle()
    assert machine.orders == [{"ResetType": "ForceRestart"}]


def test_a_cycle_is_off_and_on_where_it_does_not() -> None:
    machine = Machine(knows=("On", "ForceOff"))
    with opened(machine) as controller:
        controller.cycle()
    assert machine.orders == [{"ResetType": "ForceOff"}, {"ResetType": "On"}]


def test_a_cycle_of_a_machine_that_is_off_turns_it_on() -> None:
    machine = Machine(power="Off")
    with opened(machine) as controller:
        controller.cycle()
    assert machine.orders == [{"ResetType": "On"}]


def test_a_power_state_that_does_not_come_is_told_with_the_console() -> None:
    with (
        pytest.raises(BmcStuck, match=r"the order to power on, but still reports off.*ssh admin@bmc07") as caught,
        opened(Machine(power="Off", takes=False), timeout_s=90.0, console="ssh admin@bmc07") as controller,
    ):
        controller.turn_on()
    assert caught.value.host == "gpu07"


def test_a_bmc_that_is_away_while_the_power_changes_is_asked_again() -> None:
    machine = Machine(power="Off", takes=False)
    failing = [True] * 4

    def away(_: Machine, __: str) -> Answer | None:
        if machine.orders and failing:
            failing.pop()
            return refusal(503, "the web server begins")
        machine.power = "On" if machine.orders else "Off"
        return None

    machine.overrides["GET", SYSTEM] = away
    with opened(machine) as controller:
        controller.turn_on()
    assert not failing


def test_an_order_is_refused_in_the_words_of_the_bmc() -> None:
    machine = Machine(power="Off")
    machine.overrides["POST", RESET] = lambda *_: refusal(409, "The chassis\x1b[2J intrusion switch is open")
    with (
        pytest.raises(BmcRefused, match=r"refuses to power on: The chassis \[2J intrusion switch") as caught,
        opened(machine) as controller,
    ):
        controller.turn_on()
    assert str(caught.value).isprintable()
    assert machine.count("POST", RESET) == 1


def test_an_order_whose_answer_is_lost_is_not_given_twice() -> None:
    machine = Machine()

    def lost(_: Machine, __: str) -> Answer:
        raise ConnectionResetError

    machine.overrides["POST", RESET] = lost
    with pytest.raises(BmcUnreachable), opened(machine) as controller:
        controller.cycle()
    assert machine.count("POST", RESET) == 1


# --- what is booted next


def test_the_next_boot_is_from_the_network_once() -> None:
    machine = Machine()
    with opened(machine) as controller:
        controller.boot_once("network")
        assert controller.status().boot_override == "Pxe (Once)"
        controller.boot_from_disk()
        assert controller.status().boot_override == ""
    assert machine.boot["BootSourceOverrideEnabled"] == "Disabled"


def test_where_there_is_no_pxe_the_network_is_uefi_http() -> None:
    machine = Machine(boots=("None", "UefiHttp", "Hdd"))
    with opened(machine) as controller:
        controller.boot_once("network")
    assert machine.boot["BootSourceOverrideTarget"] == "UefiHttp"


def test_a_boot_that_is_not_offered_is_said_to_be_so() -> None:
    with (
        pytest.raises(BmcError, match=r"cannot boot the host from the network: the BMC supports only Hdd, None"),
        opened(Machine(boots=("None", "Hdd"))) as controller,
    ):
        controller.boot_once("network")


def test_a_boot_order_that_is_not_kept_is_noticed() -> None:
    with (
        pytest.raises(BmcStuck, match="accepted the order to boot from the network once, but does not report it"),
        opened(Machine(takes=False)) as controller,
    ):
        controller.boot_once("network")


def test_an_image_is_inserted_and_taken_out_again() -> None:
    machine = Machine(image="http://old.example/old.iso")
    with opened(machine) as controller:
        controller.boot_once("media", image_url=IMAGE)
        status = controller.status()
        assert (status.media, status.boot_override) == ((IMAGE,), "Cd (Once)")
        controller.boot_from_disk()
    assert machine.image is None
    assert machine.boot["BootSourceOverrideTarget"] == "None"


def test_unbootable_image_is_ejected() -> None:
    machine = Machine(boots=("None", "Pxe"))
    with pytest.raises(BmcError, match="cannot boot the host from the image"), opened(machine) as controller:
        controller.boot_once("media", image_url=IMAGE)
    assert machine.image is None


def test_an_image_that_never_shows_is_noticed() -> None:
    machine = Machine()
    machine.overrides["POST", f"{DRIVE}/Insert"] = lambda *_: redfish.answer(204)
    with (
        pytest.raises(BmcStuck, match="accepted the image, but reports that none is inserted"),
        opened(machine) as controller,
    ):
        controller.boot_once("media", image_url=IMAGE)
    assert machine.boot["BootSourceOverrideEnabled"] == "Disabled"


@pytest.mark.parametrize("url", ["", "install.iso", "ftp://images.example/x.iso"])
def test_an_image_needs_a_url_for_the_web(url: str) -> None:
    with pytest.raises(BmcError, match="needs the image's URL"), opened(Machine()) as controller:
        controller.boot_once("media", image_url=url)


def test_a_bmc_without_virtual_media_says_so() -> None:
    with pytest.raises(BmcError, match="has no virtual CD"), opened(Machine(managed=False)) as controller:
        controller.boot_once("media", image_url=IMAGE)


def test_nothing_is_ordered_where_the_disk_is_booted_anyway() -> None:
    machine = Machine()
    with opened(machine) as controller:
        controller.boot_from_disk()
    assert machine.orders == []


# --- status, systems


def test_the_status_is_what_the_bmc_says_made_printable() -> None:
    with opened(Machine(image="https://me:geheim@images.example/x.iso")) as controller:
        status = controller.status()
    assert (status.power, status.manufacturer, status.model) == (Power.ON, "Dell Inc.", "PowerEdge R750xa")
    assert (status.serial, status.bios, status.health) == ("CN7 [31m042", "1.9.2", "Warning")
    assert status.media == ("https://images.example/x.iso",)


def test_the_inventory_chooses_among_several_systems_of_a_bmc() -> None:
    machine = Machine(systems=("1", "2"))
    assert "has several systems: name one of 1, 2 in hostwright_bmc_system" in str(failure(machine))
    assert "has no system '3': name one of 1, 2" in str(failure(machine, system="3"))
    for name in ("2", "node2"):
        with opened(machine, system=name) as controller:
            assert controller.power() is Power.ON
    assert "lists no system in Redfish" in str(failure(Machine(systems=())))
