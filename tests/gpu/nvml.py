"""Print what NVML answers about every card, a line a function: all that ask for nothing but the card, and some more."""

from __future__ import annotations

import inspect
import sys

try:
    import pynvml
except ImportError:
    sys.exit("nvidia-ml-py is not installed; make gpu-kit brings it")

#: functions that ask for more: the number of a sensor, threshold, clock or link; the kind and the span of errors
NUMBERED = {
    "nvmlDeviceGetTemperature": [(0,)],
    "nvmlDeviceGetTemperatureThreshold": [(number,) for number in range(8)],
    "nvmlDeviceGetClockInfo": [(number,) for number in range(4)],
    "nvmlDeviceGetNvLinkState": [(number,) for number in range(18)],
    "nvmlDeviceGetTotalEccErrors": [(0, 0), (0, 1), (1, 0), (1, 1)],
}
UNIQUE = ("Certificate", "Metadata", "Pdi", "HandleBy")  #: what identifies one card, or takes such a name


def print_answers(prefix: str, *values: object) -> None:
    """Print the answers of the functions that begin so and need so many values."""
    for name, function in vars(pynvml).items():
        if name.startswith(prefix) and inspect.isfunction(function) and not any(word in name for word in UNIQUE):
            parameters = inspect.signature(function).parameters.values()
            if sum(one.default is one.empty for one in parameters) == len(values):
                try:
                    answer = function(*values)
                except Exception as error:  # noqa: BLE001 - a library older than the binding: several classes
                    answer = f"{type(error).__name__}: {error}"
                print(f"{name}{values[1:]}:", [str(one) for one in answer] if isinstance(answer, list) else answer)


try:
    pynvml.nvmlInit()
except pynvml.NVMLError as failed:
    sys.exit(f"NVML does not start: {failed}")
print_answers("nvmlSystemGet")
for card in map(pynvml.nvmlDeviceGetHandleByIndex, range(pynvml.nvmlDeviceGetCount())):
    print_answers("nvmlDeviceGet", card)
    for name, numbers in NUMBERED.items():
        for each in numbers:
            print_answers(name, card, *each)
