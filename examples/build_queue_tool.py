"""The enhanced tool of `build_queue.py`, a simulated queue of builds; run, it prints its manual."""

from typing import Literal

from coag.situated import EnhancedTool, Workspace, internal_operation, observable, operation, signal


class BuildQueue(EnhancedTool):
    """Builds what is pushed, and deploys builds that have passed."""

    protocol = "1. Retry a build that failed **once**: its tests are flaky.\n2. Deploy it then."
    build = observable(int, 0, description="Number of the last build.")
    status = observable(Literal["IDLE", "BUILDING", "FAILED", "PASSED"], "IDLE")
    deployed = observable(int, 0, description="The build that users have.")
    failed = signal("build.failed", "A build failed.", payload={"build": int, "reason": str})
    passed = signal("build.passed", "A build passed.", payload={"build": int})

    @operation
    def push(self, commit: str) -> str:
        """Builds a commit; here the first attempt always fails."""
        self.build += 1
        self.work("test_search timed out")
        return f"Build {self.build} of {commit} has begun."

    @operation(
        preconditions="`status` is `FAILED`", check=lambda queue: queue.status == "FAILED",
        latency=5, completed_by="build.passed",
    )  # fmt: skip
    def retry(self) -> str:
        """Runs the last build again."""
        self.work("")
        return f"Build {self.build} runs again."

    @operation(preconditions="`status` is `PASSED`", check=lambda q: q.status == "PASSED")
    def deploy(self) -> str:
        """Gives the last build to all users."""
        self.deployed = self.build
        return f"Build {self.build} is deployed."

    @internal_operation
    async def work(self, fault: str) -> None:
        """Runs on by itself."""
        self.status = "BUILDING"
        await self.sleep(0.5)
        self.status = "FAILED" if fault else "PASSED"
        if fault:
            self.failed.emit(build=self.build, reason=fault)
        else:
            self.passed.emit(build=self.build)


def workspace() -> Workspace:
    """One queue."""
    (place := Workspace()).add(BuildQueue())
    return place


if __name__ == "__main__":
    print(BuildQueue().manual())
