"""The pages on which a person decides: plain HTML without scripts, every value escaped."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from coag.cycle import ApprovalRequest

from ._approvers import arguments_text, prediction_text, state_text, visible

REFRESH_SECONDS = 2
"""How often the list of waiting requests loads itself anew."""
SHOWN = 100_000
"""Characters of arguments that a page shows."""
STYLE = """\
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
pre { background: #f3f3f3; color: #111; padding: .75rem; overflow: auto; max-height: 24rem;
  white-space: pre-wrap; overflow-wrap: anywhere; }
li { margin: .75rem 0; }
dt { font-weight: 600; margin-top: .75rem; }
dd { margin: 0; overflow-wrap: anywhere; white-space: pre-wrap; }
label, input, button { font: inherit; }
input { width: 100%; box-sizing: border-box; padding: .4rem; margin-bottom: .75rem; }
button { padding: .5rem 1.25rem; margin-right: .75rem; border: 2px solid; border-radius: .3rem; }
.approve { background: #0a5c2b; color: #fff; border-color: #0a5c2b; }
.deny { background: #fff; color: #9b1c1c; border-color: #9b1c1c; }
"""

_PAGE = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">{refresh}
<title>{title}</title>
<link rel="stylesheet" href="{base}page.css">
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""
_FORM = """\
<form method="post" action="{base}requests/{key}">
<input type="hidden" name="digest" value="{digest}">
<p><label for="by">Your name</label> <input id="by" name="by" value="{by}" maxlength="100"
 autocomplete="off"></p>
<p><label for="reason">Reason (a denial is told to the agent with it)</label>
 <input id="reason" name="reason" maxlength="500" autocomplete="off"></p>
<p><button class="approve" name="granted" value="true">Approve</button>
<button class="deny" name="granted" value="false">Deny</button></p>
</form>"""


def _page(title: str, body: str, base: str, *, refresh: bool = False) -> str:
    again = f'\n<meta http-equiv="refresh" content="{REFRESH_SECONDS}">' if refresh else ""
    return _PAGE.format(title=escape(title), body=body, base=escape(base), refresh=again)


def list_page(waiting: Mapping[str, ApprovalRequest], base: str) -> str:
    """What waits for a decision. Loads itself anew, so it has links only and no forms."""
    items = [
        f'<li><a href="{escape(base)}requests/{key}">{_text(request.action)}</a> '
        f"for {_text(request.agent)} (risk: {_text(request.risk)}), "
        f"until {request.expires_at:%H:%M:%S} UTC</li>"
        for key, request in waiting.items()
    ]
    nothing = "<p>Nothing waits for approval. This page looks again by itself.</p>"
    body = f"<ul>\n{chr(10).join(items)}\n</ul>" if items else nothing
    title = f"({len(items)}) Approvals" if items else "Approvals"
    return _page(title, f"<h1>Approvals</h1>\n{body}", base, refresh=True)


def request_page(key: str, request: ApprovalRequest, base: str, by: str) -> str:
    """One request with the form to decide it; does not move under the person's hand."""
    facts = {
        "Agent": request.agent,
        "State": state_text(request, SHOWN),
        "Predicted change": prediction_text(request, SHOWN),
        "Why it is asked": request.reason,
        "Risk": request.risk,
        "Goal": request.goal,
        "What the agent says": request.wish,
        "What it expects": request.expected_effect,
        "Asked again because": request.changed,
        "How long": f"An approval holds {request.approval_seconds:g} s, for this one action and "
        "only while the agent sees things as it does now. Without an answer it is denied at "
        f"{request.expires_at:%Y-%m-%d %H:%M:%S} UTC.",
        "Policy": request.policy,
        "Digest": request.digest,
    }
    listed = "\n".join(f"<dt>{k}</dt><dd>{_text(v)}</dd>" for k, v in facts.items() if v)
    form = _FORM.format(base=escape(base), key=key, digest=request.digest, by=escape(by))
    body = (
        f"<h1>Run {_text(request.action)}?</h1>\n"
        f"<pre>{escape(arguments_text(request, SHOWN))}</pre>\n{form}\n<dl>\n{listed}\n</dl>\n"
        f'<p><a href="{escape(base)}">All that waits</a></p>'
    )
    return _page(f"Run {visible(request.action)}?", body, base)


def problem_page(problem: str, base: str) -> str:
    """Why something could not be done."""
    link = f'<p><a href="{escape(base)}">All that waits</a></p>' if base else ""
    return _page("Not possible", f"<h1>Not possible</h1>\n<p>{escape(problem)}</p>\n{link}", base)


def _text(text: str) -> str:
    return escape(visible(text))
