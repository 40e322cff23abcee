import { assert, layer } from "@effect/vitest"
import {
  Client as ModernClient,
  StreamableHTTPClientTransport as ModernTransport
} from "@modelcontextprotocol/client"
import { Client as Client2025November } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport as Transport2025November } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { Client as Client2024November } from "mcp-sdk-2024-11-05/client/index.js"
import { StreamableHTTPClientTransport as Transport2024November } from "mcp-sdk-2024-11-05/client/streamableHttp.js"
import { LATEST_PROTOCOL_VERSION as version2024November } from "mcp-sdk-2024-11-05/types.js"
import { Client as Client2025March } from "mcp-sdk-2025-03-26/client/index.js"
import { StreamableHTTPClientTransport as Transport2025March } from "mcp-sdk-2025-03-26/client/streamableHttp.js"
import { LATEST_PROTOCOL_VERSION as version2025March } from "mcp-sdk-2025-03-26/types.js"
import { Client as Client2025June } from "mcp-sdk-2025-06-18/client/index.js"
import { StreamableHTTPClientTransport as Transport2025June } from "mcp-sdk-2025-06-18/client/streamableHttp.js"
import { Effect } from "effect"
import { TestServer } from "#test/harness/TestServer.ts"
import { at } from "./Asking.ts"
import { diagnosticRooms } from "./DiagnosticRoom.ts"
import { diagnosticServer } from "./DiagnosticTools.ts"

/** The official TypeScript client of an era, as its own program would use it. */
interface Spoken {
  readonly version: () => string | undefined
  readonly session: () => string | undefined
  readonly instructions: () => string | undefined
  readonly list: () => Promise<unknown>
  readonly call: (name: string, args: Record<string, unknown>) => Promise<unknown>
  readonly close: () => Promise<void>
}

/** Their types differ from era to era: each gets the transport that came with it. */
interface OfficialClient {
  connect(transport: never): Promise<void>
  getInstructions(): string | undefined
  listTools(): Promise<unknown>
  callTool(params: { name: string; arguments: Record<string, unknown> }): Promise<unknown>
  close(): Promise<void>
}

type Connect = (url: URL, key: string) => Promise<Spoken>

const identity = { name: "signalbox-test", version: "1" }

const optionsOf = (key: string) => ({ requestInit: { headers: { authorization: `Bearer ${key}` } } })

const spokenBy = async (
  client: OfficialClient,
  transport: { readonly sessionId?: string | undefined },
  version: () => string | undefined
): Promise<Spoken> => {
  await client.connect(transport as never)
  return {
    version,
    session: () => transport.sessionId,
    instructions: () => client.getInstructions(),
    list: () => client.listTools(),
    call: (name, args) => client.callTool({ name, arguments: args }),
    close: () => client.close()
  }
}

/** The first two clients do not tell the version that was agreed on; it is the newest that they know, which they ask for. */
const clients: Readonly<Record<string, Connect>> = {
  "2024-11-05": (url, key) =>
    spokenBy(
      new Client2024November(identity),
      new Transport2024November(url, optionsOf(key)),
      () => version2024November
    ),
  "2025-03-26": (url, key) =>
    spokenBy(
      new Client2025March(identity),
      new Transport2025March(url, optionsOf(key)),
      () => version2025March
    ),
  "2025-06-18": (url, key) => {
    const transport = new Transport2025June(url, optionsOf(key))
    return spokenBy(new Client2025June(identity), transport, () => transport.protocolVersion)
  },
  "2025-11-25": (url, key) => {
    const transport = new Transport2025November(url, optionsOf(key))
    return spokenBy(new Client2025November(identity), transport, () => transport.protocolVersion)
  },
  "2026-07-28": (url, key) => {
    const client = new ModernClient(identity, { versionNegotiation: { mode: { pin: "2026-07-28" } } })
    const transport = new ModernTransport(url, optionsOf(key))
    return spokenBy(client, transport, () => client.getNegotiatedProtocolVersion())
  }
}

const live = { excludeTestServices: true, timeout: 120_000 } as const

layer(TestServer.own({ rooms: new Set(["accounts", "diagnostic"]) }, { rooms: diagnosticRooms }), live)(
  "the official TypeScript client",
  (it) => {
    for (const [era, connect] of Object.entries(clients))
      for (const path of ["/mcp", "/api/mcp"])
        it.effect(`of ${era} connects to ${path}, lists the tools and calls them`, () =>
          Effect.gen(function* () {
            const { adminKey, url } = yield* TestServer
            const spoken = yield* Effect.acquireRelease(
              Effect.promise(() => connect(new URL(`${url}${path}`), adminKey)),
              ({ close }) => Effect.promise(close)
            )
            assert.deepStrictEqual([spoken.version(), spoken.instructions()], [era, "Tools that tests call."])
            const hasSession = path === "/api/mcp" && era !== "2026-07-28"
            assert.strictEqual(spoken.session()?.startsWith("session-of-") ?? false, hasSession)
            const tools = at(yield* Effect.promise(spoken.list), "tools") as ReadonlyArray<unknown>
            assert.deepStrictEqual(
              tools.map((tool) => at(tool, "name")),
              [...diagnosticServer.tools.keys()]
            )
            const call = (name: string, args: Record<string, unknown> = {}) =>
              Effect.promise(() => spoken.call(name, args))
            const measured = yield* call("measure", { text: "four" })
            assert.deepStrictEqual(at(measured, "structuredContent"), { characters: 4 })
            assert.deepStrictEqual(at(measured, "content"), [{ type: "text", text: '{"characters":4}' }])
            for (const [name, args, text] of [
              ["measure", { text: 5 }, "text: expected text"],
              ["test_error_handling", {}, "This tool intentionally returns an error for testing"]
            ] as const) {
              const failed = yield* call(name, args)
              assert.deepStrictEqual([at(failed, "isError"), at(failed, "content", 0, "text")], [true, text])
            }
            const mixed = yield* call("test_multiple_content_types")
            assert.deepStrictEqual(
              [0, 1, 2].map((index) => at(mixed, "content", index, "type")),
              ["text", "image", "resource"]
            )
            const unknown = yield* Effect.promise(() =>
              spoken.call("nothing", {}).then(
                () => "it was called",
                (error: unknown) => String(error)
              )
            )
            assert.include(unknown, "Unknown tool: nothing")
          }).pipe(Effect.scoped)
        )

    it.effect("that speaks several eras finds the modern one by itself", () =>
      Effect.gen(function* () {
        const { adminKey, url } = yield* TestServer
        const client = new ModernClient(identity, { versionNegotiation: { mode: "auto" } })
        yield* Effect.promise(() =>
          client.connect(new ModernTransport(new URL(`${url}/mcp`), optionsOf(adminKey)))
        )
        assert.strictEqual(client.getNegotiatedProtocolVersion(), "2026-07-28")
        const region = yield* Effect.promise(() =>
          client.callTool({ name: "test_custom_header", arguments: { region: "Zürich " } })
        )
        assert.strictEqual(at(region, "content", 0, "text"), "Zürich ")
        yield* Effect.promise(() => client.close())
      })
    )
  }
)
