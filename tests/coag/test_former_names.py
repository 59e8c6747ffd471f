"""Names of before still work, with a warning that says the new one."""

from __future__ import annotations

from importlib import import_module

import pytest

FORMER = """
coag.agent AnswerSource ReplayAnswers
coag.agent Doubles ReplayDoubles
coag.agent Remains RecoveredState
coag.agent read_remains recover_state
coag.agent take_up restore
coag.agent taking_up reading_trace
coag.awareness.dynamics SharedEngine coag.awareness.SharedEngine
coag.awareness.perception Domain PerceptionDomain
coag.compat Attempt ToolAttempt
coag.compat SteadyClient ResilientClient
coag.compat mend_arguments repair_arguments
coag.context Deed PastAction
coag.context Earlier EarlierDialogue
coag.context Limits MemoryLimits
coag.context Rejection RejectedCandidate
coag.context Spent GoalCost
coag.cycle ActionDoor ActionExecutor
coag.cycle Asked ModelReply
coag.cycle Ended BatchResult
coag.cycle ModuleSeam ModuleHost
coag.cycle Offered ToolProposal
coag.cycle Part Ablation
coag.cycle Ran ActionRun
coag.distributed Connection RemoteConnection
coag.distributed Limits RemoteLimits
coag.doctor Finding ProbeFinding
coag.doctor Found ProbeOutcome
coag.doctor Limits ProbeLimits
coag.memory Decision WriteDecision
coag.memory revoke_origin retract_source
coag.memory.transfer Imported ImportResult
coag.memory.transfer corrected coag.memory.correction.corrected
coag.models Asker StructuredModel
coag.models Heard UsageCapture
coag.models Offered ToolAnswer
coag.models UnformedCall CallRecord
coag.models listening capture_usage
coag.models tell_usage publish_usage
coag.proof CycleStory CycleResult
coag.proof Death Rejection
coag.proof Domain DomainKnowledge
coag.proof Remark TraceRemark
coag.schema Asked RequestDetails
coag.schema Given AnswerDetails
coag.schema GoalStatus GoalAssessment
coag.schema Rung OutputMode
"""


@pytest.mark.parametrize(("face", "old", "new"), [row.split() for row in FORMER.split("\n") if row])
def test_a_former_name_warns_and_gives_the_new_one(face: str, old: str, new: str) -> None:
    module = import_module(face)
    home, _, name = new.rpartition(".")
    with pytest.warns(DeprecationWarning, match=rf"{old} is (now .*{name}|in {home} now)"):
        found = getattr(module, old)
    assert found is getattr(import_module(home or face), name)
    with pytest.raises(AttributeError, match="'Nonsense'"):
        _ = module.Nonsense
