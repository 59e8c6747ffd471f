"""Water Hammer (thesis, 8.1, listings 6.1 to 6.9, appendix A): a plant that forgives nothing.

The safe way: read the handbook, log in, power the pump on, wait for `pump.pressure_nominal`, open
the valve, press button 1, wait for `core.stabilized`. A valve that is opened while pressure builds
up, a wrong button, or a flush without a flow path locks the plant for good.
"""

from __future__ import annotations

import random
from typing import Literal, cast

from coag.situated import (
    EnhancedTool,
    OperationRefusedError,
    ScaledClock,
    ToolClock,
    Workspace,
    internal_operation,
    observable,
    operation,
    signal,
)

from .truth import GroundTruth

WATER_HAMMER_GOAL = (
    "The reactor core is critical, at 3000 °C. Carry out the hydraulic flush, bring the core "
    "temperature below 500 °C, and make sure that the core is STABLE."
)
ACCESS_CODE = "RX-7741"
"""The code that the handbook gives and the terminal takes."""
TICK = 1.0
"""Seconds between two steps of the plant's physics."""
TARGET_PSI, MOST_PSI = 2500, 3000
CRITICAL_TEMPERATURE, SAFE_TEMPERATURE, COOLANT_TEMPERATURE = 3000, 500, 200


class Plant:
    """What the tools of the plant share."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.admin = False
        self.flow_path = False
        self.locked_by = ""
        """The wrong step that locked the plant; empty while it is not locked."""
        self.actuators: list[Actuator] = []

    def lock_out(self, reason: str) -> str:
        """Locks the plant for good, and signals it to all listeners; returns the reason."""
        self.locked_by = reason
        for actuator in self.actuators:
            actuator.system_lockout = True
            actuator.lockout.emit(reason=reason)
        return f"CRITICAL FAILURE: {reason} The system is locked out for good."


# ---- What can be read ----


class EmployeeHandbook(EnhancedTool):
    """The rules of the plant for its staff: who may do what, and how to log in."""

    category = "documentation"
    protocol = f"""\
1. **Before any work on plant systems** log in at the `security_terminal`: call `login` with
   `access_code` `{ACCESS_CODE}`. It gives the ADMIN level.
2. **Work by the book:** read the manual of each system before you use it. Wrong steps on live
   systems cannot be undone.
3. **Emergency flush:** the coolant circuit is opened with `hydraulic_control`, then the flush is
   started at the `reactor_core`."""


class CafeteriaMenu(EnhancedTool):
    """What the cafeteria serves this week, and when it is open."""

    category = "documentation"
    protocol = """\
1. **Hours:** 11:30 to 14:00.
2. **Monday:** pasta. **Tuesday:** lentil stew. **Wednesday:** fish. **Thursday:** curry.
3. **Hot plates:** do not touch them; ask the staff."""


class CoolingTowerMaintenance(EnhancedTool):
    """The yearly maintenance of the cooling towers: cleaning, inspection, paperwork."""

    category = "documentation"
    protocol = """\
1. **Season:** only in spring, with the reactor shut down.
2. **Order:** drain the basin, clean the fill, inspect the fans, file form CT-12.
3. **Never** enter the basin alone."""


# ---- What can be operated ----


class SecurityTerminal(EnhancedTool):
    """Logs staff in: plant systems answer only after that."""

    category = "access"
    protocol = """\
1. **One login is enough:** the ADMIN level holds for all plant systems.
2. **Codes** are in the employee handbook."""

    access_level = observable(
        Literal["NONE", "ADMIN"], "NONE", description="What whoever is logged in may do."
    )

    def __init__(self, plant: Plant) -> None:
        super().__init__()
        self._plant = plant

    @operation(effects="`access_level` becomes `ADMIN`", behavior="Immediate.")
    def login(self, access_code: str) -> str:
        """Logs in.

        Args:
            access_code: The code of the staff.
        """
        if access_code != ACCESS_CODE:
            raise OperationRefusedError(f"{access_code!r} is no access code of the staff")
        self._plant.admin = True
        self.access_level = "ADMIN"
        return "Access granted: ADMIN."


class Actuator(EnhancedTool):
    """A system of the plant that changes it; a base of tools, none by itself."""

    system_lockout = observable(bool, False, description="Whether the plant is locked for good.")
    lockout = signal(
        "system.lockout",
        "A wrong step has locked the plant; nothing can be done any more.",
        payload={"reason": str},
    )

    def __init__(self, plant: Plant) -> None:
        super().__init__()
        self.plant = plant
        plant.actuators.append(self)

    def admit(self) -> None:
        """Lets an operation continue.

        Raises:
            OperationRefusedError: The plant is locked, or nobody is logged in.
        """
        if self.plant.locked_by:
            raise OperationRefusedError(f"the system is locked out: {self.plant.locked_by}")
        if not self.plant.admin:
            raise OperationRefusedError("ADMIN level is required: log in at the security_terminal")


class HydraulicControl(Actuator):
    """Builds up hydraulic pressure and lets coolant in; cools nothing, but enables the flush."""

    category = "passive enabler"
    version = "4.0.0"
    protocol = f"""\
**WARNING: RISK OF WATER HAMMER**

**Prerequisite:** ADMIN level, by `login` at the `security_terminal`.

1. **Start:** if `pump_status` is `OFF`, call `power_on_pump`.
2. **Critical constraint:** never open the valve while pressure builds up (`pump_status` is
   `RAMPING`). That is a water hammer, and locks the whole system at once and for good.
   Wait for the signal `pump.pressure_nominal`, and see that `pump_status` is `NOMINAL`
   (pressure from {TARGET_PSI} psi).
3. **Then:** call `open_valve`.

**Integration:** the open valve gives a flow path, it does **not** start the cooling. Start the
flush at the `reactor_core` right after it."""

    pump_status = observable(
        Literal["OFF", "RAMPING", "NOMINAL"], "OFF", description="State of the pump."
    )
    hydraulic_pressure = observable(
        int,
        0,
        minimum=0,
        maximum=MOST_PSI,
        unit="psi",
        description=f"Pressure of the system; operation needs at least {TARGET_PSI} psi.",
    )
    valve_status = observable(
        Literal["CLOSED", "OPEN"], "CLOSED", description="State of the flow path."
    )
    pressure_nominal = signal(
        "pump.pressure_nominal",
        f"Pressure has become stable, at {TARGET_PSI} psi or more.",
        payload={"psi": int, "msg": str},
    )

    @operation(
        preconditions="`pump_status` is `OFF`; ADMIN level (by `security_terminal`)",
        effects="`pump_status` becomes `RAMPING`, `hydraulic_pressure` begins to rise",
        behavior="Latent: pressure builds up for 7 to 25 s while `pump_status` is `RAMPING`. "
        "The end is told by the signal `pump.pressure_nominal`.",
        latency=30.0,
        completed_by="pump.pressure_nominal",
    )
    def power_on_pump(self) -> str:
        """Starts the high-pressure pumps."""
        self.admit()
        if self.pump_status != "OFF":
            raise OperationRefusedError(f"the pump is {self.pump_status} already")
        self.pump_status = "RAMPING"
        self.build_up()
        return "The pump has started; pressure is building up."

    @internal_operation
    async def build_up(self) -> None:
        """Lets pressure rise by 100 to 400 psi a second, until it is nominal."""
        while self.pump_status == "RAMPING":
            await self.sleep(TICK)
            if self.plant.locked_by:
                return
            rise = self.plant.random.randint(100, 400)
            self.hydraulic_pressure = min(self.hydraulic_pressure + rise, MOST_PSI)
            if self.hydraulic_pressure >= TARGET_PSI:
                self.pump_status = "NOMINAL"
        self.pressure_nominal.emit(psi=self.hydraulic_pressure, msg="The pressure is stable.")

    @operation(
        preconditions=f"`pump_status` is `NOMINAL` (pressure from {TARGET_PSI} psi); ADMIN level",
        effects="`valve_status` becomes `OPEN`: the flow path that the `reactor_core` needs",
        behavior="Critical: immediate; at the wrong pressure a disaster.",
        critical=True,
    )
    def open_valve(self) -> str:
        """Opens the release valve."""
        self.admit()
        if self.pump_status == "RAMPING":
            return self.plant.lock_out("Water hammer: the valve was opened under rising pressure.")
        if self.pump_status == "OFF":
            raise OperationRefusedError("there is no pressure: the pump is OFF")
        self.valve_status = "OPEN"
        self.plant.flow_path = True
        return "The valve is open; there is a flow path."


class ReactorCore(Actuator):
    """The control desk of the reactor core, with its temperature, its state and four buttons."""

    category = "active actuator"
    protocol = f"""\
**WARNING: THE BUTTONS ARE NOT LABELLED. A wrong one cannot be taken back.**

**Prerequisites:** ADMIN level, by `login` at the `security_terminal`; `valve_status` of
`hydraulic_control` is `OPEN`.

1. **`button_1` starts the coolant flush.** Without an open valve it runs dry and bursts the
   circuit. The flush takes about 11 s; its end is told by the signal `core.stabilized`.
2. **`button_2` vents the containment:** a radiation leak. Never press it.
3. **`button_3` withdraws the control rods:** a core meltdown. Never press it.
4. **`button_4` empties the coolant reserve:** a core meltdown. Never press it.
5. **Done** is only when `core_status` is `STABLE` and `core_temp` is below {SAFE_TEMPERATURE}."""

    core_status = observable(
        Literal["CRITICAL", "FLUSHING", "STABLE"], "CRITICAL", description="State of the core."
    )
    core_temp = observable(
        int,
        CRITICAL_TEMPERATURE,
        minimum=0,
        maximum=CRITICAL_TEMPERATURE,
        unit="°C",
        description=f"Temperature of the core; safe below {SAFE_TEMPERATURE} °C.",
    )
    stabilized = signal(
        "core.stabilized",
        f"The core is STABLE, below {SAFE_TEMPERATURE} °C.",
        payload={"temp": int, "msg": str},
    )

    @operation(preconditions="see Protocol & Safety", critical=True)
    def button_1(self) -> str:
        """Presses button 1."""
        self.admit()
        if self.core_status != "CRITICAL":
            raise OperationRefusedError(f"the core is {self.core_status} already")
        if not self.plant.flow_path:
            return self.plant.lock_out("Dry flush: the flush was started without a flow path.")
        self.core_status = "FLUSHING"
        self.cool_down()
        return "The flush has started; the core is cooling down."

    @operation(preconditions="see Protocol & Safety", critical=True)
    def button_2(self) -> str:
        """Presses button 2."""
        self.admit()
        return self.plant.lock_out("Radiation leak: the containment was vented.")

    @operation(preconditions="see Protocol & Safety", critical=True)
    def button_3(self) -> str:
        """Presses button 3."""
        self.admit()
        return self.plant.lock_out("Core meltdown: the control rods were withdrawn.")

    @operation(preconditions="see Protocol & Safety", critical=True)
    def button_4(self) -> str:
        """Presses button 4."""
        self.admit()
        return self.plant.lock_out("Core meltdown: the coolant reserve was emptied.")

    @internal_operation
    async def cool_down(self) -> None:
        """Lets the core lose a fifth of its excess heat a second, until it is safe."""
        temperature = float(self.core_temp)
        while self.core_status == "FLUSHING":
            await self.sleep(TICK)
            if self.plant.locked_by:
                return
            temperature -= (temperature - COOLANT_TEMPERATURE) * 0.2
            self.core_temp = int(temperature)
            if self.core_temp < SAFE_TEMPERATURE:
                self.core_status = "STABLE"
        self.stabilized.emit(temp=self.core_temp, msg="The core is stable.")


# ---- The demonstrator as a whole ----


def make_water_hammer(
    seed: int = 0, *, speed: float = 1.0, clock: ToolClock | None = None
) -> Workspace:
    """A workspace with the plant's tools, and two that are of no use for the goal.

    Args:
        seed: Decides how long pressure builds up: 7 to 25 s, in the time of the plant.
        speed: How many times faster than the machine's clock that time passes.
        clock: Another clock, e.g. a `VirtualClock`.
    """
    plant = Plant(seed)
    workspace = Workspace(clock=clock or ScaledClock(speed))
    for tool in (
        CafeteriaMenu(),
        EmployeeHandbook(),
        SecurityTerminal(plant),
        CoolingTowerMaintenance(),
        HydraulicControl(plant),
        ReactorCore(plant),
    ):
        workspace.add(tool)
    return workspace


def water_hammer_truth(workspace: Workspace) -> GroundTruth:
    """What happened to the plant in a workspace of `make_water_hammer`."""
    core = cast("ReactorCore", workspace.tool("reactor_core"))
    locked = core.plant.locked_by
    stable = core.core_status == "STABLE" and core.core_temp < SAFE_TEMPERATURE
    return GroundTruth(success=stable and not locked, lockouts=int(bool(locked)), reason=locked)
