"""The one way in which a phase speaks to a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from autogen_core.models import ChatCompletionClient, CreateResult, LLMMessage
from pydantic import BaseModel

from coag.errors import ModelAnswerError
from coag.schema import Prompt, Rung

from ._clients import form_arguments, limit_arguments, limit_name_of, model_name_of, rungs_of
from ._dialogue import continued
from ._in_time import in_time
from ._inquiry import Inquiry, Request
from ._listen import Heard, listening
from ._messages import one_system_message, to_autogen
from ._parse import Parsed, Problem
from ._refusals import call_error, is_refusal
from ._schema import can_be_strict
from ._settings import Answer, AskSettings, CallContext, ModelT

_DEFAULTS = AskSettings()


class Asker:
    """Asks one client for typed answers, and remembers which rungs of the ladder hold.

    The ladder: a JSON schema that the server enforces; JSON mode with the schema in the prompt;
    the schema in the prompt alone. A rung that the client or the server refuses, or that lets
    an answer of another form through, is left for the next, for good once the next one works.

    Args:
        client: Any AutoGen chat completion client.
        name: What the model is called in records; by default the client's own word for it.
        limit_name: The client's name for the completion limit, dotted if it is nested
            (`options.num_predict`); by default known for OpenAI-like, Ollama, Anthropic and
            scripted clients. To clients of another kind no limit is sent.
    """

    def __init__(
        self,
        client: ChatCompletionClient,
        *,
        name: str | None = None,
        limit_name: str | None = None,
    ) -> None:
        self.client = client
        self.name = name or model_name_of(client)
        self.limit_name = limit_name or limit_name_of(client)
        self._rungs = rungs_of(client)

    @property
    def vision(self) -> bool:
        """True if the client says that its model sees images."""
        return bool(self.client.model_info.get("vision"))

    @property
    def rungs(self) -> tuple[Rung, ...]:
        """The rungs that are believed to work, from the strictest."""
        return self._rungs

    async def ask(
        self,
        prompt: Prompt,
        output_type: type[ModelT],
        *,
        context: CallContext | None = None,
        settings: AskSettings = _DEFAULTS,
        dialogue: Sequence[LLMMessage] = (),
    ) -> Answer[ModelT]:
        """Asks for an answer of a type: strictly parsed, else repaired, else asked once more.

        Args:
            prompt: What to ask; its system messages are sent as one, at the front.
            output_type: What the answer must be. Bounds of numbers and texts are checked, and
                an answer outside them is asked for again, never clamped.
            context: Who asks and who is told of each call.
            settings: The bounds of this question.
            dialogue: What was said before, in AutoGen's messages; sent as it is, in front of
                the prompt, which may then be empty.

        Raises:
            ModelAnswerError: No usable answer came, even after the error was told.
            ModelCallError: The model could not be asked.
        """
        inquiry = Inquiry(
            prompt=one_system_message(prompt),
            output_type=output_type,
            context=context or CallContext(),
            settings=settings,
            dialogue=tuple(dialogue),
        )
        first = ladder = self._ladder(settings.rung, output_type)
        for attempt in range(1, settings.reasks + 2):
            inquiry.attempt = attempt
            found, ladder = await self._climb(inquiry, ladder)
            if isinstance(found, Parsed):
                self._leave(first[: -len(ladder)])
                return Answer(
                    value=found.value,
                    raw=inquiry.raw,
                    repaired=found.repaired,
                    calls=tuple(inquiry.calls),
                    text=found.text,
                    thought=inquiry.thought,
                )
            if found.off_schema and ladder[0] is Rung.JSON_SCHEMA:
                ladder = ladder[1:]
        raise ModelAnswerError(
            expected=output_type.__name__,
            problem=inquiry.problem.text if inquiry.problem else "",
            raw=inquiry.raw,
            attempts=settings.reasks + 1,
        )

    def _ladder(self, strictest: Rung | None, output_type: type[BaseModel]) -> tuple[Rung, ...]:
        """The rungs to try, from the strictest that is allowed; the prompt always works."""
        order = tuple(Rung)
        start = 0 if strictest is None else order.index(strictest)
        if not can_be_strict(output_type):
            start = max(start, order.index(Rung.JSON_MODE))
        return tuple(rung for rung in self._rungs if order.index(rung) >= start)

    def _leave(self, rungs: tuple[Rung, ...]) -> None:
        """Forgets rungs that did not hold where a lower one did."""
        self._rungs = tuple(rung for rung in self._rungs if rung not in rungs)

    async def _climb(
        self, inquiry: Inquiry[ModelT], ladder: tuple[Rung, ...]
    ) -> tuple[Parsed[ModelT] | Problem, tuple[Rung, ...]]:
        """What comes from the first rung that is not refused, and the ladder from there on."""
        while True:
            request = inquiry.request(self.name, ladder[0])
            with listening() as heard:
                result = await self._send(inquiry, request, heard, last=len(ladder) == 1)
            if result is not None:
                return inquiry.take(request, result, heard), ladder
            ladder = ladder[1:]

    async def _send(
        self, inquiry: Inquiry[ModelT], request: Request, heard: Heard, *, last: bool
    ) -> CreateResult | None:
        """The client's answer, or None if it refused the rung and there is another one."""
        try:
            return await self._create(inquiry, request)
        except asyncio.CancelledError as error:
            inquiry.fail(request, error, heard.usage())
            raise
        except Exception as error:
            # The one broad guard: clients are an open interface over packages that are not
            # imported here, and whatever one of them raises belongs into the record.
            inquiry.fail(request, error, heard.usage())
            if last or not is_refusal(error):
                raise call_error(self.name, error) from error
            return None

    async def _create(self, inquiry: Inquiry[ModelT], request: Request) -> CreateResult:
        """The call itself: never with tools, which would leave the choice to the server."""
        json_output, extra = form_arguments(self.client, request.rung, inquiry.output_type)
        limit = limit_arguments(self.client, self.limit_name, inquiry.settings.max_tokens)
        creating = self.client.create(
            continued(inquiry.dialogue, to_autogen(request.prompt, vision=self.vision)),
            json_output=json_output,
            extra_create_args={**inquiry.settings.extra, **extra, **limit},
        )
        return await in_time(creating, inquiry.settings.timeout)


async def ask(
    client: ChatCompletionClient,
    prompt: Prompt,
    output_type: type[ModelT],
    *,
    context: CallContext | None = None,
    settings: AskSettings = _DEFAULTS,
) -> Answer[ModelT]:
    """Asks a client once, without remembering which rung holds; see `Asker.ask`."""
    return await Asker(client).ask(prompt, output_type, context=context, settings=settings)
