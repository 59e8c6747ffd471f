"""A pump with a valve, as an enhanced tool."""

from typing import Literal

from coag.situated import (
    EnhancedTool,
    OperationRefusedError,
    internal_operation,
    observable,
    operation,
    signal,
)


class Pump(EnhancedTool):
    """Pumps coolant into
    the circuit.

    What follows is for who reads the code.
    """

    category = "actuator"
    version = "4.0.0"
    protocol = "1. Power on.\n2. **Never** open the valve while `status` is `RAMPING`."

    status = observable(Literal["OFF", "RAMPING", "NOMINAL"], "OFF", description="Its state.")
    pressure = observable(int, 0, minimum=0, maximum=3000, unit="psi", description="Pressure.")
    valves: observable[list[str]] = observable(list[str], [], description="Open | closed.")
    nominal = signal("pump.pressure_nominal", "Pressure is stable.", payload={"psi": int})
    stopped = signal("pump.stopped", "It was switched off.")

    @operation(
        preconditions="`status` is `OFF`",
        check=lambda pump: pump.status == "OFF",
        effects="`status` becomes `RAMPING`",
        behavior="Latent: pressure builds up.",
        latency=5.0,
        completed_by="pump.pressure_nominal",
    )
    async def power_on(self, step: int = 1000) -> str:
        """Starts the pump.

        Args:
            step: Psi that are added in a second,
                at most 3000.

        Returns:
            What happens now.
        """
        if step > 3000:
            raise OperationRefusedError(f"a step of {step} psi would burst the pipe")
        self.status = "RAMPING"
        self.ramp(step)
        return "Pressure is building."

    @internal_operation
    async def ramp(self, step: int) -> None:
        while self.pressure < 2500:
            await self.sleep(1)
            self.pressure = min(self.pressure + step, 2500)
        self.status = "NOMINAL"
        self.nominal.emit(psi=self.pressure)

    @operation(critical=True)
    def switch_off(self) -> dict[str, int]:
        """Stops the pump at once."""
        before, self.pressure, self.status = self.pressure, 0, "OFF"
        self.stopped.emit()
        return {"psi_before": before}


class Counter(EnhancedTool):
    """Counts."""

    compare_and_set = True

    value = observable(int, 1)
    change = signal("counter.change", payload={"value": int})

    @operation
    def increment(self, json: int = 1) -> int:
        """Adds to the value."""
        self.value += json
        self.change.emit(value=self.value)
        return self.value
