/** How the runs of a server end with it. */
import { Deferred, Effect, Exit, Scope, Stream } from "effect"
import { expect, it } from "vitest"
import { make } from "../../src/http/runs.js"
import { settingsOf } from "../../src/http/settings.js"

it("runs that do not hear that they are stopped are told to be over all the same, in time", async () => {
  const program = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const runs = yield* Scope.extend(make(settingsOf({})), scope)
    const interrupted = yield* Deferred.make<void>()
    const deaf = Stream.concat(
      Stream.make({ type: "start", runId: "r", from: "AGENT", payload: { messageId: "m" } } as const),
      Stream.fromEffect(Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined)))
    )
    const { reader } = yield* runs.start({
      id: "r",
      agentId: "a",
      owner: undefined,
      principalId: undefined,
      policy: "abort",
      stream: () => deaf
    })
    const begun = performance.now()
    yield* Scope.close(scope, Exit.void)
    yield* Deferred.await(interrupted)
    return { took: performance.now() - begun, end: reader.end }
  })
  const { end, took } = await Effect.runPromise(Effect.scoped(program))
  expect(end).toEqual({ _tag: "Broken", message: "The server is shutting down." })
  expect(took).toBeLessThan(1000)
}, 5000)
