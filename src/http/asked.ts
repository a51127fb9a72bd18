/** A request whose sender is known, and what its handler may use. */
import type * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Host, HostAgent } from "./Host.js"
import { findAgent } from "./Host.js"
import type { Fields, Query } from "./reading.js"
import { notFound, Refusal } from "./refusal.js"
import type { Runs } from "./runs.js"
import type { Principal, ServerSettings } from "./settings.js"
import { Tally } from "./tally.js"

/** What all requests of a server share. */
export interface Server {
  readonly host: Host
  readonly settings: ServerSettings
  readonly runs: Runs
  readonly openStreams: OpenStreams
}

/** One request. */
export interface Asked extends Server {
  readonly principal: Principal | undefined
  /** The resource that it is confined to; `undefined` where there is no `authenticate`. */
  readonly resource: string | undefined
  readonly params: Readonly<Record<string, string | undefined>>
  readonly query: Query
  readonly headers: Readonly<Record<string, string | undefined>>
  readonly body: Fields
}

/** Answers a request. What it fails with becomes an answer too. */
export type Handler = (
  asked: Asked
) => Effect.Effect<HttpServerResponse.HttpServerResponse, unknown, Scope.Scope>

/** The agent that the path names. */
export const agentOf = ({ host, params }: Asked): Effect.Effect<HostAgent, Refusal> => {
  const agent = findAgent(host, params["agentId"] ?? "")
  return agent === undefined ? notFound("Agent") : Effect.succeed(agent)
}

/** Whether something that is stored is for the sender to see: its owner is stored with it. */
export const isOwn = (
  { resource }: Pick<Asked, "resource">,
  { resourceId }: { readonly resourceId?: string | undefined }
): boolean => resource === undefined || resourceId === resource

/** Counts the streams that are open. */
export class OpenStreams {
  private readonly tally: Tally

  constructor({ perPrincipal, totalStreams }: Pick<ServerSettings, "perPrincipal" | "totalStreams">) {
    this.tally = new Tally({ total: totalStreams, each: perPrincipal })
  }

  get size(): number {
    return this.tally.size
  }

  /** Holds a place as long as the scope is open. */
  readonly enter = (principal: Principal | undefined): Effect.Effect<void, Refusal, Scope.Scope> =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        const full = this.tally.full(principal?.id)
        if (full === "all") {
          return new Refusal({ status: 503, message: "Too many streams are open", retryAfter: 5 })
        }
        if (full === "own") {
          return new Refusal({ status: 429, message: "Too many of your streams are open", retryAfter: 5 })
        }
        this.tally.add(principal?.id)
        return Effect.void
      }),
      () => Effect.sync(() => this.tally.remove(principal?.id))
    )
}
