"""nvidia-smi's report from a host that lies or breaks: a ``ValueError`` in one sentence, or unknown values."""

from __future__ import annotations

import re
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostwright.audit.hardware.gpu import EccCounts, Gpu
from hostwright.standard.roles.driver.nvsmi.fields import MAX_CHARACTERS, NO_VALUES
from hostwright.standard.roles.driver.nvsmi.report import GpuReport, read_report
from tests.unit.roles.driver.nvsmi.test_nvsmi import REPORTS, T4, fixture

NAMES = sorted(REPORTS)
VALUE = re.compile(r">([^<>\n]+)</")
ELEMENT = re.compile(r"<([a-z_0-9]+)>[^<>]*</\1>")


def report(body: str) -> str:
    return f'<?xml version="1.0" ?>\n<nvidia_smi_log>\n<gpu id="00000000:01:00.0">{body}</gpu>\n</nvidia_smi_log>\n'


def card(body: str) -> Gpu:
    (gpu,) = read_report(report(body)).gpus
    return gpu


def refusal(text: str) -> str:
    with pytest.raises(ValueError) as caught:
        read_report(text)
    sentence = str(caught.value)
    assert type(caught.value) is ValueError
    assert sentence.isprintable()
    return sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "nvidia-smi printed nothing"),
        (" \n\t", "nvidia-smi printed nothing"),
        ("No devices were found\n", "nvidia-smi printed no report: No devices were found"),
        (
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest\n",
            "nvidia-smi printed no report: NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA "
            "driver. Ma",
        ),
        (
            "Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error\n",
            "nvidia-smi printed no report: Unable to determine the device handle for GPU 0000:0B:00.0: Unknown Error",
        ),
        ("\x1b[2J\x1b]0;owned\x07\u202e", "nvidia-smi printed no report: \ufffd[2J\ufffd]0;owned\ufffd\ufffd"),
        ("<html><body>proxy</body></html>", "nvidia-smi printed no report: <html><body>proxy</body></html>"),
        ("<nvidia_smi_log>\n<gpu>", "the report is truncated"),
        ("</nvidia_smi_log>\n<nvidia_smi_log>\n", "the report is truncated"),
        ("<log>\n<nvidia_smi_log>\n</nvidia_smi_log></log>", "the report is inside another XML element"),
        ("<?xml version='1.0' ?><log><nvidia_smi_log></nvidia_smi_log>", "the report is not well-formed XML (line 1)"),
        ("<nvidia_smi_log>\n<gpu></cpu>\n</nvidia_smi_log>", "the report is not well-formed XML (line 2)"),
        (
            "<?xml version='1.0' ?><log/>\n<nvidia_smi_log>\n</nvidia_smi_log>",
            "the report is not well-formed XML (line 2)",
        ),
        ("<!DOCTYPE log>\n<log><nvidia_smi_log/></log>", "the report is truncated"),
        ("<nvidia_smi_log>&undeclared;</nvidia_smi_log>", "the report is not well-formed XML (line 1)"),
    ],
)
def test_what_is_no_report_is_refused_in_a_sentence(text, sentence):
    assert refusal(text) == sentence


@pytest.mark.parametrize("name", NAMES)
def test_a_report_cut_anywhere_is_refused(name):
    text = fixture(name)
    for end in range(200, len(text) - 2, len(text) // 23):
        assert refusal(text[:end]) == "the report is truncated"


BOMBS = {
    "laughs": '<!DOCTYPE nvidia_smi_log [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">'
    '<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;"><!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;">]>\n',
    "file": '<!DOCTYPE nvidia_smi_log [<!ENTITY d SYSTEM "file:///etc/passwd">]>\n',
    "parameter": '<!DOCTYPE nvidia_smi_log [<!ENTITY % d SYSTEM "http://127.0.0.1:9/d"> %d;]>\n',
    "unparsed": '<!DOCTYPE nvidia_smi_log [<!NOTATION n SYSTEM "n"><!ENTITY d SYSTEM "d" NDATA n>]>\n',
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_entities_are_refused(bomb):
    text = BOMBS[bomb] + "<nvidia_smi_log>\n<driver_version>&d;</driver_version>\n</nvidia_smi_log>\n"
    assert refusal(text) == "the report has XML entity declarations, which nvidia-smi never writes"


def test_the_document_type_is_never_fetched(tmp_path):
    """A DTD that lies there and would change what is read, were it read."""
    (tmp_path / "evil.dtd").write_text('<!ENTITY d "470.0">')
    head = f'<!DOCTYPE nvidia_smi_log SYSTEM "file://{tmp_path}/evil.dtd">\n'
    text = f"{head}<nvidia_smi_log>\n<driver_version>1%s</driver_version>\n</nvidia_smi_log>"
    assert read_report(text % "").driver == "1"
    assert refusal(text % "&d;") == "the report is not well-formed XML (line 3)"


def test_megabytes_are_refused_unread():
    assert refusal("<nvidia_smi_log>" + "A" * 10_000_000 + "</nvidia_smi_log>") == "the report is larger than 4 MiB"
    assert refusal("\x00\xff<" * 1_000_000).startswith("nvidia-smi printed no report: ")
    assert refusal("<process_name>" * 200_000 + "<nvidia_smi_log></nvidia_smi_log>").startswith("the report is inside")


def test_depth_is_no_matter():
    deep = "<a>" * 100_000 + "</a>" * 100_000
    assert card(f"{deep}<uuid>GPU-1</uuid>").uuid == "GPU-1"


def test_cards_processes_and_strings_are_capped():
    process = "<process_info><pid>7</pid><process_name>p</process_name></process_info>"
    one = f"<gpu><serial>{'9' * 5000}</serial><processes>{process * 2000}</processes></gpu>"
    many = f"<nvidia_smi_log><driver_version>{'4 ' * 900}</driver_version>{one}{'<gpu/>' * 500}</nvidia_smi_log>"
    found = read_report(many)
    assert len(found.gpus) == 64
    assert len(found.gpus[0].processes) == 1024
    assert (len(found.gpus[0].serial), len(found.driver)) == (MAX_CHARACTERS, MAX_CHARACTERS - 1)
    assert [gpu.index for gpu in found.gpus] == list(range(64))


def test_lines_around_the_report_are_kept_apart_and_capped():
    found = read_report("note\n" * 99 + report("") + "x" * 999 + "\n")
    assert found.notices == ("note",) * 8
    assert read_report("\ufeff" + report("") + "x" * 999).notices == ("x" * MAX_CHARACTERS,)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("python train.py --if a<b && c>d", "python train.py --if a<b && c>d"),
        ("a&amp;b &lt;c&gt;", "a&b <c>"),
        ("\xff\x00\x1b[2J\udcff", "\xff\ufffd\ufffd[2J\ufffd"),
        ("</process_name><uuid>GPU-forged</uuid>", "</process_name><uuid>GPU-forged</uuid>"),
        ("&#0;&bomb;", "&#0;&bomb;"),
        ("[Not Found]", ""),
        ("[kworker/0:1]", "[kworker/0:1]"),
        ("timeout", "timeout"),
    ],
)
def test_a_process_may_be_called_anything(written, name):
    text = fixture("t4-470.182.03").replace("/opt/venv/bin/python serve.py --model a&amp;b", written)
    process = replace(T4.processes[0], name=name)
    assert read_report(text).gpus == (replace(T4, processes=(process,)),)


def test_a_process_cannot_claim_that_its_card_is_lost():
    text = fixture("t4-470.182.03").replace("/opt/venv/bin/python serve.py --model a&amp;b", "GPU is lost")
    assert read_report(text).gpus[0].fault == ""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "word", ["N/A", "[N/A]", "", "Requested functionality has been deprecated", "9" * 30, "-1 MiB"]
)
def test_words_in_the_place_of_every_value_are_unknown(name, word):
    text = VALUE.sub(f">{word}</", fixture(name))
    for gpu in read_report(text).gpus:
        known = {one.name for one in fields(Gpu) if getattr(gpu, one.name) not in (None, "", (), EccCounts())}
        strings = {"uuid", "model", "serial", "vbios", "recovery"} if word.startswith(("9", "-")) else set()
        assert known - {"index", "bus", "mig_instances"} <= strings


@pytest.mark.parametrize("word", sorted(NO_VALUES))
def test_no_word_of_an_error_is_a_value(word):
    body = f"<uuid>{word.upper()}</uuid><fb_memory_usage><total>[{word}]</total></fb_memory_usage>"
    gpu = card(body)
    assert (gpu.uuid, gpu.memory_bytes) == ("", None)


@pytest.mark.parametrize(
    ("field", "path", "values"),
    [
        ("memory_bytes", "fb_memory_usage/total", {
            "1 MiB": 2**20, "2 GiB": 2**31, "1024 kB": 2**20, "7 B": 7, "99999999999 MiB": None, "-1 MiB": None,
            "1": None, "1 MiB free": None, "١ MiB": None, "1e3 MiB": None,
        }),
        ("temperature", "temperature/gpu_temp", {
            "0 C": 0, "-3 C": -3, "251 C": None, "40": None, "40 F": None, "4.5 C": None,
        }),
        ("power", "power_readings/power_draw", {
            "0.5 W": 0.5, "-1 W": None, "1000000 W": None, "nan W": None, "5 mW": None,
        }),
        ("pcie_generation", "pci/pci_gpu_link_info/pcie_gen/current_link_gen", {
            "6": 6, "10": None, "-1": None, "4.0": None,
        }),
        ("pcie_width", "pci/pci_gpu_link_info/link_widths/current_link_width", {
            "x8": 8, "16x": 16, "0x": None, "64x": None,
        }),
        ("pcie_replays", "pci/replay_counter", {"7": 7, "4294967295": None}),
        ("remap_pending", "remapped_rows/remapped_row_pending", {"Yes": True, "No": False, "Perhaps": None}),
        ("persistence", "persistence_mode", {"Enabled": True, "Disabled": False, "[Enabled]": True, "1": None}),
        ("performance", "performance_state", {"P0": "P0", "P15": "P15", "P16": "", "P1; reboot": ""}),
        ("recovery", "gpu_recovery_action", {"None": "", "Reboot": "Reboot", "N/A": ""}),
        ("bus", "pci/pci_bus_id", {
            "00000000:3B:00.0": "0000:3b:00.0", "00010000:01:00.0": "10000:01:00.0",
            "3E3F8E05:00:00.0": "3e3f8e05:00:00.0", "0000:AF:00.1": "0000:af:00.1",
            "../../etc": "0000:01:00.0", "00000000:3B:00.9": "0000:01:00.0",
        }),
    ],
)  # fmt: skip
def test_a_value_is_read_strictly(field, path, values):
    parts = path.split("/")
    before, after = "".join(f"<{part}>" for part in parts), "".join(f"</{part}>" for part in reversed(parts))
    assert {word: getattr(card(f"{before}{word}{after}"), field) for word in values} == values


def test_counts_keep_their_last_digit():
    counts = "<ecc_errors><volatile><dram_correctable>%s</dram_correctable></volatile></ecc_errors>"
    assert card(counts % (2**53 + 1)).ecc_volatile == EccCounts(corrected=2**53 + 1, dram_corrected=2**53 + 1)
    assert card(counts % (2**64 - 1)).ecc_volatile == EccCounts(), "NVML's word for no value"


def test_totals_before_turing_are_summed_where_they_are_not_told():
    bits = "<single_bit><device_memory>3</device_memory><cbu>1</cbu><total>N/A</total></single_bit>"
    gpu = card(f"<ecc_errors><aggregate>{bits}</aggregate></ecc_errors>")
    assert gpu.ecc_aggregate == EccCounts(corrected=4, sram_corrected=1, dram_corrected=3)


def test_a_threshold_needs_the_distance_now():
    slow = "<gpu_temp_slow_tlimit_threshold>-2 C</gpu_temp_slow_tlimit_threshold>"
    text = f"<temperature><gpu_temp>29 C</gpu_temp>{slow}%s</temperature>"
    assert card(text % "").temperature_slowdown is None
    assert card(text % "<gpu_temp_tlimit>58 C</gpu_temp_tlimit>").temperature_slowdown == 89


def check(found: GpuReport) -> None:
    """What holds of every report, whatever the host said."""
    assert len(found.gpus) <= 64
    for gpu in found.gpus:
        strings = [value for one in fields(Gpu) if isinstance(value := getattr(gpu, one.name), str)]
        strings += [process.name for process in gpu.processes]
        assert all(len(one) <= MAX_CHARACTERS and "\n" not in one and "\x1b" not in one for one in strings)
        numbers = [value for one in fields(Gpu) if isinstance(value := getattr(gpu, one.name), int | float)]
        assert all(-500 <= number <= 2**63 for number in numbers)


@given(st.sampled_from(NAMES), st.data())
def test_a_report_without_some_elements_and_with_other_words_is_read(name, data):
    text = fixture(name)
    for _ in range(data.draw(st.integers(1, 6))):
        found = list(data.draw(st.sampled_from([VALUE, ELEMENT])).finditer(text))
        match = data.draw(st.sampled_from(found)) if found else None
        words = data.draw(
            st.one_of(st.text(max_size=40), st.sampled_from(["N/A", "GPU is lost", "-5 C", "9e9", "<x/>"]))
        )
        begin, end = (
            (match.start(1), match.end(1)) if match and match.re is VALUE else match.span() if match else (0, 0)
        )
        text = text[:begin] + words + text[end:]
    try:
        check(read_report(text, text))
    except ValueError as error:
        assert type(error) is ValueError
        assert str(error).isprintable()


@given(st.one_of(st.text(), st.binary().map(lambda raw: raw.decode(errors="surrogateescape"))), st.text())
def test_anything_is_a_report_or_a_sentence(text, links):
    wrapped = f"<nvidia_smi_log>\n<gpu>{text}</gpu>\n</nvidia_smi_log>"
    for one in (text, wrapped, fixture("t4-470.182.03") + text):
        try:
            check(read_report(one, links))
        except ValueError as error:
            assert type(error) is ValueError
            assert str(error).isprintable()
            assert len(str(error)) < 160


@given(st.text(alphabet="GPULink 0123456789:<>inactve.()\n\tGB/sUID-", max_size=400))
def test_any_status_of_links_is_read(links):
    for gpu in read_report(fixture("v100-sxm2-450.80.02"), links).gpus:
        assert all(0 <= link.number < 64 for link in gpu.links)
