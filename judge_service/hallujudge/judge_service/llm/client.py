"""A chat client: retries, circuit breaker, adaptive concurrency and budget around one model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ..errors import HallujudgeError
from ..tenancy import JudgeState, tenancy
from .budget import Budget, CallBudget, Reservation, Usage, VerdictStore
from .call_policy import Call, CallStatistics, Patience, Restarts, Tools
from .chat import ChatRequest, most_prompt_tokens
from .chat_replies import ROOM_ADVICE, TIME_ADVICE, ChatReply, is_cut_thought
from .chat_servers import ChatServer, next_server, preferred
from .chat_settings import ChatSettings, settled
from .circuits import ByCaller, Outage, Rejections
from .failures import CallFailedError, FailureKind, unusable
from .known_judge import CONSTRAINED_QUESTION, KnownJudge, ServerProbe, is_longer, is_same
from .protocols import Exchanges

# Shorter outages are restarts.
_PROBED_AFTER = 30.0


class Answer(Struct, frozen=True):
    """A reply and what it took."""

    reply: ChatReply
    usage: Usage
    """What it took."""


class TakenError(Exception):
    """The call is not sent: another payer is sending the same one."""


Turn: TypeAlias = AbstractContextManager[None]
"""Entered when a call is about to be sent, and left when it is answered or has failed."""


class ChatClient:
    """Calls one chat model, as often and as fast as its server, the settings and the budget allow.

    Args:
        settings: How it is called.
        budget: What may be spent; may be shared with other clients.
        tools: Clock, randomness and sleep.
        store: Remembers that the model has answered, for later processes; None forgets it.
    """

    def __init__(
        self,
        settings: ChatSettings,
        budget: CallBudget | None = None,
        tools: Tools | None = None,
        *,
        store: VerdictStore | None = None,
    ) -> None:
        self.settings = settings
        self.exchanges = settings.exchanges()
        self.budget: CallBudget = budget or Budget()
        self._tools = tools or Tools()
        self.servers = tuple(
            ChatServer(
                endpoint,
                max_concurrency=settings.max_concurrency,
                circuit_threshold=settings.circuit_threshold,
                circuit_seconds=settings.circuit_seconds,
                longest_wait=settings.retry.longest_wait,
                clock=self._tools.clock,
                offline=settings.offline,
            )
            for endpoint in settings.endpoints
        )
        judge = Outage(self._tools.clock)
        self._outages = ByCaller(lambda: Outage(self._tools.clock, judge))
        self.statistics = CallStatistics()
        # Only while the judge has never answered.
        self._rejections = Rejections(self._tools.clock)
        self._probes = {server: self._probe_of(server) for server in self.servers}
        self._known = KnownJudge(settings, store, self._tools.clock)
        self._store = store
        self._open_calls = 0
        # Runs that begin together must not each ask the servers.
        self._settling = asyncio.Lock()
        place = f"{settings.model} at {', '.join(e.place for e in settings.endpoints)}"
        judged = (place, settings.retry, self._outages, self._tools, settings.role)
        self._restarts, self._patience = Restarts(*judged), Patience(*judged)

    async def ask(
        self,
        request: ChatRequest,
        *,
        has_fallback: bool = False,
        turn: Turn | None = None,
        takes_room: bool = True,
    ) -> Answer:
        """Return one answer. An outage of the judge is waited for, see :class:`RetryPolicy`.

        Args:
            request: What is asked.
            has_fallback: Whether another judge is asked if this one fails. Then an outage is waited
                for only once, not again by each call, and an unknown model does not end the run.
            turn: Entered for each attempt to send the call.
            takes_room: Whether it gets room for a thought, where the judge thinks.

        Raises:
            CallFailedError: The call failed; the failure names the first cause.
            InvalidInputError: The key is rejected, or the model does not exist, and the judge has
                never answered, also no earlier process. Afterwards that is an outage.
            TakenError: The turn is another payer's.
            UnavailableError: The judge answered no call for ``give_up_after`` seconds.
        """
        await self._known.recall()
        order = preferred(self.servers, request.affinity or str(request.messages))
        call = self._call(request, has_fallback=has_fallback, servers=order, takes_room=takes_room)
        turn = turn if turn is not None else nullcontext()
        outage = self._outages.mine
        outage.call_begins()
        self._open_calls += 1
        try:
            while True:
                await self._restarts.wait(call)
                try:
                    return await self._once(call, turn)
                except CallFailedError as err:
                    failure = err
                if await self._restarts.caused(call, failure):
                    continue
                if (fatal := await self._settings_failure(call, failure)) is not None:
                    raise self._fatal(fatal, call) from failure
                if self._goes_elsewhere(call, failure):
                    continue
                self._patience.note(call, failure)
                await self._ask_about(call, failure)
                await self._patience.wait(call, failure)
        finally:
            self._open_calls -= 1
            outage.call_ends()

    async def settle(self, *, asks: bool = False) -> None:
        """Learn from the servers the dialect and the constraint, where they are guesses.

        Keys and signatures name both, so this comes before they are made. While no server answers,
        the guesses stay, and they hold for every call that is under way.

        Args:
            asks: Whether a question may be sent, if only that tells whether a constraint is taken.
        """
        async with self._settling:
            if self._open_calls or not self.settings.has_guesses:
                return
            refusal = self._refusal if asks else None
            found = await settled(self.settings, self.servers, self._store, refusal)
            # A call may have begun while the servers were asked.
            if not self._open_calls:
                self.settings, self.exchanges = found, found.exchanges()

    def limited(self, request: ChatRequest) -> ChatRequest:
        """Return a request with the limit of completion tokens that is sent."""
        return self._known.limited(request)

    def most_tokens(self, request: ChatRequest) -> int:
        """Return how many completion tokens a reply to a request may have at most."""
        return self._known.with_room(request).max_tokens

    @property
    def waiting(self) -> str:
        """What calls wait for, in one sentence; empty if only for answers."""
        known = (server.endpoint.supervision for server in self.servers)
        down = (each.waiting for each in known if each is not None and self._open_calls)
        paused = (server.limiter.paused for server in self.servers)
        reasons = (*down, self._patience.waiting, *paused)
        return next(filter(None, reasons), "")

    @property
    def state(self) -> JudgeState:
        """The calls at this moment."""
        limiters = [server.limiter for server in self.servers]
        return JudgeState(
            model=self.settings.model,
            running=sum(limiter.running for limiter in limiters),
            waiting=sum(limiter.waiting for limiter in limiters),
            limit=sum(limiter.limit for limiter in limiters),
            circuit_open=all(server.circuits.is_any_open for server in self.servers),
        )

    def _call(
        self,
        asked: ChatRequest,
        *,
        has_fallback: bool,
        servers: Sequence[ChatServer],
        takes_room: bool = False,
    ) -> Call:
        call = Call(
            asked=asked,
            request=asked,
            exchange=self.exchanges.of(asked),
            has_fallback=has_fallback,
            servers=servers,
            takes_room=takes_room,
        )
        self._limit(call)
        return call

    def _limit(self, call: Call) -> None:
        """Let a call have the limit of completion tokens that is sent, by what is known now."""
        if call.takes_room:
            self._change(call, self.limited(call.asked))

    async def close(self) -> None:
        """Close all connections."""
        for server in self.servers:
            await server.sender.close()

    def _goes_elsewhere(self, call: Call, failure: CallFailedError) -> bool:
        """Whether another server of the model is tried at once, since this one seems to be down."""
        kind = failure.kind
        if kind is FailureKind.RATE or not (kind.is_outage or kind is FailureKind.CIRCUIT):
            return False
        call.failed_at.append(call.server)
        left = [server for server in call.servers if server not in call.failed_at]
        used_up = call.attempts >= self.settings.retry.attempts
        if used_up or all(server.is_down for server in left):
            # After the wait that follows, every server is tried again.
            call.failed_at.clear()
            return False
        return True

    async def _settings_failure(
        self, call: Call, failure: CallFailedError
    ) -> CallFailedError | None:
        """Return the failure if it is that of every call, because of the settings; else None.

        Some servers refuse a key, a model or a parameter like a prompt that they don't accept. The
        first such refusal is compared with that of another question.
        """
        if self._known.was_ever_answered:
            return None
        if failure.kind.is_configuration:
            return failure
        if (earlier := self._rejections.mine()) is not None:
            return earlier
        # Where a fallback can answer, a prompt is refused and not a key.
        refused_key = failure.may_be_the_key and not call.has_fallback
        if failure.kind is not FailureKind.REFUSED_REQUEST and not refused_key:
            return None
        other = await self._probes[call.server].failure(call.request)
        if other is None or not is_same(failure, other):
            return None
        return failure.as_rejected_key() if refused_key else failure

    async def _ask_about(self, call: Call, failure: CallFailedError) -> None:
        """Ask the server another question where a call fails while no other call is answered."""
        outage, retry = self._outages.mine, self.settings.retry
        lasting = call.attempts >= retry.attempts
        if failure.kind is FailureKind.CIRCUIT:
            cause = outage.cause
            lasting = cause is not None and cause.kind.is_of_one_call
            lasting = lasting and outage.seconds >= _PROBED_AFTER
        if lasting and failure.kind is not FailureKind.RATE:
            await self._probes[call.server].failure(call.request)

    def _fatal(self, failure: CallFailedError, call: Call) -> CallFailedError | HallujudgeError:
        """The error of settings that the server rejects."""
        self._rejections.add(failure)
        # A wrong key is the user's mistake, which a fallback must not hide.
        if call.has_fallback and failure.kind is not FailureKind.AUTH:
            return failure
        where, model = call.server.endpoint.place, self.settings.model
        return unusable(failure, role=self.settings.role, place=where, model=model)

    async def _once(self, call: Call, turn: Turn) -> Answer:
        call.server = next_server(s for s in call.servers if s not in call.failed_at)
        # The place is taken before the budget is reserved: a call that waits must hold no money.
        async with call.server.limiter.place(call.request, self._tools.sleep) as started:
            if not self._known.was_ever_answered:
                # A question under way may show that the settings are wrong, for this call too.
                await self._probes[call.server].settled()
            with turn:
                self._limit(call)  # something may have been learnt since it was made
                answer = await self._guarded(call, started)
                if call.takes_room and is_cut_thought(answer.reply):
                    answer = await self._with_room(call, answer, started)
                await self._known.remember(answer.reply)
                return answer

    async def _with_room(self, call: Call, cut: Answer, started: float) -> Answer:
        """Return the answer to a call that was sent before it was known that the model thinks."""
        found = cut

        async def ask(request: ChatRequest) -> ChatReply:
            nonlocal found
            self._change(call, request)
            call.attempts -= 1  # the first answer is not a failure
            answer = await self._guarded(call, started)
            found = replace(answer, usage=cut.usage + answer.usage)
            return answer.reply

        tried = await self._known.ask_with_room(call.asked, call.request.max_tokens, ask)
        if not is_cut_thought(found.reply) or not call.asked.is_constrained:
            return found
        no_room = "; ".join(filter(None, (ROOM_ADVICE, tried)))
        return replace(found, reply=replace(found.reply, no_room=no_room))

    def _change(self, call: Call, request: ChatRequest) -> None:
        """Let a call have another limit of completion tokens."""
        if request.max_tokens != call.request.max_tokens:
            call.request, call.exchange = request, self.exchanges.of(request)

    async def _guarded(self, call: Call, started: float) -> Answer:
        """One call past the rejection, the circuit and the budget, reporting back to each."""
        self._raise_rejection()
        self._restarts.note(call)
        if not call.server.breaker.try_pass():
            raise self._not_sent()
        try:
            return await self._paid(call, started)
        except CallFailedError as failure:
            if (late := await self._late_thought(call, failure)) is not None:
                raise late from failure
            raise

    async def _late_thought(self, call: Call, failure: CallFailedError) -> CallFailedError | None:
        """Return the failure of a call whose thought takes too long at a server that works.

        Another call, or the same one again, would tell nothing else of the judge. A text, which a
        server may write for minutes, is not a sign of an outage without a thought either.
        """
        has_room = call.request.max_tokens > call.asked.max_tokens
        if failure.kind is not FailureKind.TIMEOUT or not (has_room or is_longer(call.asked)):
            return None
        down = await self._probes[call.server].failure(call.request)
        if down is not None or not self._known.has_thoughts:
            return None
        advice = ROOM_ADVICE if call.asked.is_constrained else TIME_ADVICE
        return CallFailedError(
            FailureKind.TRUNCATED, f"{failure.detail}, for the model thinks; {advice}"
        )

    async def _paid(self, call: Call, started: float) -> Answer:
        """One call within the budget."""
        reservation = None
        try:
            most = most_prompt_tokens(call.request)
            reservation = await self.budget.reserve(most, call.request.max_tokens)
        finally:
            if reservation is None:
                # Nothing is sent, so that another call may probe the circuit.
                call.server.circuits.abandoned()
        if reservation is None:
            tenancy().recorder.budget_refused()
            raise CallFailedError(FailureKind.BUDGET, self.budget.exhausted_detail())
        self.statistics.calls += 1
        self.statistics.retries += call.attempts > 0
        call.attempts += 1
        return await self._sent(call, reservation, started)

    def _raise_rejection(self) -> None:
        if self._known.answers_now:
            self._rejections.forget()
        elif (rejected := self._rejections.mine()) is not None:
            raise rejected

    def _probe_of(self, server: ChatServer) -> ServerProbe:
        async def asked(request: ChatRequest) -> None:
            await self._question(server, request, self.exchanges)

        return ServerProbe(lambda: server.sender.get("models"), asked, self._tools.clock)

    async def _question(
        self, server: ChatServer, request: ChatRequest, exchanges: Exchanges
    ) -> None:
        """Ask a server past its circuit; only whether it answers matters."""
        call = self._call(request, has_fallback=False, servers=[server])
        call.request, call.exchange = request, exchanges.of(request)
        answer = await self._paid(call, self._tools.clock())
        self._known.saw(answer.reply)

    async def _refusal(self, settings: ChatSettings) -> CallFailedError | None:
        """Return why a question with other settings is not answered; None if it is."""
        before = self._known.answers_now
        try:
            await self._question(self.servers[0], CONSTRAINED_QUESTION, settings.exchanges())
        except CallFailedError as failure:
            return failure
        finally:
            # It says nothing of requests of another form, the first of which may end the run.
            self._known.answers_now = before
        return None

    def _not_sent(self) -> CallFailedError:
        if refusal := self._patience.turned_away:
            return refusal.with_detail(f"not sent: {refusal.detail}")
        outage = self._outages.mine
        cause = outage.cause
        why = cause.detail if cause is not None else "the calls before it failed"
        return CallFailedError(
            FailureKind.CIRCUIT,
            f"not sent: {why}; the {self.settings.role} has not answered for "
            f"{outage.seconds:.0f} s",
        )

    async def _sent(self, call: Call, reservation: Reservation, placed: float) -> Answer:
        started, server, model = self._tools.clock(), call.server, self.settings.model
        # Until it answers this process as well, a judge may refuse every prompt, because of its key
        # or on its way: gateways refuse both with 403.
        unproven = self._known.answered_earlier and not self._known.answers_now
        try:
            with tenancy().recorder.span(f"chat {model}", server.attributes(model)):
                reply = await call.exchange(server.sender)
        except CallFailedError as err:
            failure = err
            if unproven and err.may_be_the_key:
                failure = err.as_rejected_key()
            self.statistics.failures[failure.kind.value] += 1
            Usage().record(model, failure.kind.value, self._tools.clock() - started)
            self._report(server, failure, placed)
            if failure.kind.may_be_billed:
                self.budget.keep(reservation)
            else:
                self.budget.settle(reservation, 0.0)
            raise failure from err
        except BaseException:
            # Cancelled, or something is not installed: the answer may be on its way.
            server.circuits.abandoned()
            self.budget.keep(reservation)
            raise
        answer = self._counted_answer(reply, reservation, self._tools.clock() - started)
        try:
            self._known.check_model(reply.model, self.settings.reply_models)
        except CallFailedError as failure:
            self.statistics.failures[failure.kind.value] += 1
            self._report(server, failure, placed)
            raise
        self._known.answers_now = True
        self._outages.mine.answered()
        server.circuits.succeeded()
        return answer

    def _counted_answer(self, reply: ChatReply, reservation: Reservation, seconds: float) -> Answer:
        usage = Usage(
            calls=1,
            prompt_tokens=reply.prompt_tokens,
            cached_tokens=reply.cached_tokens,
            completion_tokens=reply.completion_tokens,
            latency_seconds=seconds,
        )
        cost = None
        if (prices := self.budget.prices) is not None:
            # Of a server that does not say what it counted, the most that the call can cost.
            cost = prices.of(usage) if reply.is_counted else reservation.cost
        self.budget.settle(reservation, cost)
        usage = replace(usage, cost=cost)
        self.statistics.answered += 1
        self.statistics.usage = self.statistics.usage + usage
        usage.record(self.settings.model, "answered", seconds)
        return Answer(reply, usage)

    def _report(self, server: ChatServer, failure: CallFailedError, placed: float) -> None:
        """Report a failure to the circuit and to the record of the outage."""
        outage, retry = self._outages.mine, self.settings.retry
        # A call that was sent later is answered: what the server asks for concerns this prompt.
        own = retry.asks_too_long(failure) and server.limiter.pause.answered_after(placed)
        if own or not failure.kind.is_outage:
            outage.answered()
            server.circuits.succeeded()
            return
        if self._probes[server].is_answered and failure.kind.is_of_one_call:
            # The server works; a circuit would only hold up the other calls.
            server.circuits.abandoned()
            return
        outage.failed(failure)
        if failure.kind is FailureKind.QUOTA or retry.asks_too_long(failure):
            server.circuits.failed(at_once=True)
        elif failure.kind is FailureKind.RATE and outage.seconds < retry.outage_seconds:
            # The limiter slows down first; only lasting rate limits are an outage.
            server.circuits.abandoned()
        else:
            server.circuits.failed()
