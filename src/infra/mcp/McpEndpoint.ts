import type { Effect } from "effect"
import type { Principal } from "#schemas/core/Authorization.ts"
import type { Problem } from "#schemas/core/Problem.ts"
import type { Access } from "#src/accounts/Admission.ts"
import type { RawRequest } from "#src/front/RawRoute.ts"
import type { McpServer } from "#streams/mcp/McpServer.ts"
import type { BodyReaders } from "#streams/mcp/Messages.ts"

/** The request that a tool is called by. */
export interface McpCaller {
  readonly key: Principal
  readonly requestId: string
  /** undefined where there is none, and in a batch, of whose calls it could name any */
  readonly idempotencyKey: string | undefined
  /** `Mcp-Session-Id`; "" where there is none, and of modern requests */
  readonly session: string
  readonly request: RawRequest
  /** Adds a header to the answer, or replaces it. */
  readonly setHeader: (name: string, value: string) => void
}

/** A body that is no message, for the room's REST handler. */
export interface PlainBody {
  /** its JSON, or what the endpoint's reader made of it */
  readonly read: unknown
  readonly bytes: number
  readonly contentType: string
}

/** An answer of REST: status, headers beside or in the place of those of every answer, JSON. */
export interface PlainAnswer {
  readonly status: number
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly body: string
}

/** Sessions of legacy clients, for rooms that have some; the others ignore `Mcp-Session-Id`. */
export interface SessionRule {
  /** the id that the answer to `initialize` carries: visible ASCII */
  readonly issue: (key: Principal) => Effect.Effect<string>
  /** false: 404, after which a client says `initialize` again */
  readonly isOpen: (session: string, key: Principal) => Effect.Effect<boolean>
}

/** An endpoint of the Model Context Protocol as its room declares it. */
export interface McpEndpoint {
  readonly paths: ReadonlyArray<string>
  /** by the query of the endpoint's address; the headers that they read are those of the one for "" */
  readonly server: (query: string) => McpServer<McpCaller>
  readonly access: Access
  readonly maxBodyBytes: number
  /** the error of a longer body */
  readonly tooLarge: string
  /** a tool's call that takes longer is a failed result */
  readonly callMillis: number
  /** absent: a body without `jsonrpc` is no request */
  readonly plain?: (body: PlainBody, caller: McpCaller) => Effect.Effect<PlainAnswer, Problem>
  /** The readers of its bodies, and the module of jobs that has them in a thread (`bodyJob`). */
  readonly reading?: { readonly readers: BodyReaders; readonly module: URL }
  readonly sessions?: SessionRule
}
