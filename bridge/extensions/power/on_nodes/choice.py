# SPDX-License-Identifier: Apache-2.0
"""The sensors of a node in order of preference: the first that has a value is used.

A meter that had a value and has none is lost: that is reported, with its last value, as long as no
other meter has one, because the model does not replace a measurement.

A meter of the machine does not measure one of several nodes on it (several slurmds): for those
only Slurm and the model are used, and Slurm only if there are at most `MAX_REQUESTED` of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bridge.errors import ConfigError
from bridge.extensions.power.on_nodes.model import NodeLoad, PowerModel
from bridge.extensions.power.on_nodes.pm_counters import PmCounters
from bridge.extensions.power.on_nodes.rapl import Rapl
from bridge.extensions.power.on_nodes.sensor import Sensor
from bridge.extensions.power.on_nodes.slurm_energy import SlurmEnergy

NAME: Final = "power"
"""Of the extension; under it, `AgentSettings.extensions` has `PowerSettings`."""
ORDER: Final = ("rapl", "pm_counters", "slurm", "model")
OF_MACHINE: Final = frozenset({"rapl", "pm_counters"})
MAX_REQUESTED: Final = 8


@dataclass(frozen=True)
class PowerSettings:
    """An agent's settings of sensors.

    Attributes:
        sensors: names from `ORDER`, the first one tried first; empty: nothing is measured.
        rest_w: power that RAPL does not measure, W.
        model: idle and maximum power of the node, W; None: as the service states them.
    """

    sensors: tuple[str, ...] = ORDER
    sys: Path = Path("/sys")
    rest_w: float = 0.0
    model: tuple[float, float] | None = None


@dataclass(frozen=True)
class Value:
    """A power and its source.

    Attributes:
        source: name of the sensor.
        age_s: how long ago it was measured.
        is_measured: by a meter, not by the model.
    """

    watts: float
    source: str
    age_s: float
    is_measured: bool = True


class NodeSensors:
    """All sensors of a node.

    Attributes:
        load: kept up to date by the caller, for the model.
        model: its bounds may be stated later.
        lost: the last value of a meter, if none has one now.
    """

    def __init__(self, node: str, settings: PowerSettings, load: NodeLoad, *, of: int = 1) -> None:
        """Finds the available sensors.

        Args:
            node: as Slurm calls it.
            load: busy CPUs of the node.
            of: number of nodes of this machine.
        """
        self.load, self.model = load, PowerModel(load, settings.model)
        self.lost: Value | None = None
        self._last: Value | None = None
        make: dict[str, Callable[[], Sensor]] = {
            "rapl": lambda: Rapl(settings.sys, settings.rest_w),
            "pm_counters": lambda: PmCounters(settings.sys),
            "slurm": lambda: SlurmEnergy(node),
            "model": lambda: self.model,
        }
        left_out = OF_MACHINE if of > 1 else frozenset()
        left_out |= {"slurm"} if of > MAX_REQUESTED else frozenset()
        self._sensors = [make[name]() for name in settings.sensors if name not in left_out]

    def read(self) -> Value | None:
        """The value of the first sensor that has one."""
        found = first_value(self._sensors)
        if found is not None and found.is_measured:
            self._last, self.lost = found, None
        else:
            self.lost = self._last
        return found


def first_value(sensors: Sequence[Sensor]) -> Value | None:
    """The value of the first sensor that has one; None: none has."""
    for sensor in sensors:
        watts = sensor.read()
        if watts is not None:
            measured = not isinstance(sensor, PowerModel)
            return Value(watts, sensor.name, max(sensor.age_s, 0.0), measured)
    return None


def sensors_from(text: str) -> tuple[str, ...]:
    """Names of sensors from the command line, e.g. `rapl,model`; `none` for none.

    Raises:
        ConfigError: one is unknown.
    """
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if names == ("none",):
        return ()
    for name in names:
        if name not in ORDER:
            raise ConfigError(
                "--power-sensors", f"'{name[:40]}' is unknown; there are {', '.join(ORDER)}, none"
            )
    return tuple(dict.fromkeys(names))


def model_from(text: str) -> tuple[float, float] | None:
    """Idle and maximum power from the command line, e.g. `71-250`; empty: not stated.

    Raises:
        ConfigError: it is something else.
    """
    if not text:
        return None
    idle, dash, maximum = text.removesuffix("W").partition("-")
    idle = idle.removesuffix("W")
    if not dash or not idle.isdecimal() or not maximum.isdecimal() or int(idle) > int(maximum):
        raise ConfigError("--power-model", f"must be IDLE-MAXIMUM in W, e.g. 71-250, not '{text}'")
    return float(idle), float(maximum)
