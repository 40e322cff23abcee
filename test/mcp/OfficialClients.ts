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

const modern =
  (options: ConstructorParameters<typeof ModernClient>[1]): Connect =>
  (url, key) => {
    const client = new ModernClient(identity, options)
    const transport = new ModernTransport(url, optionsOf(key))
    return spokenBy(client, transport, () => client.getNegotiatedProtocolVersion())
  }

/** The newest client where it is not told which version to speak: the one that it settles on by itself, and why. */
export const undecided: Readonly<Record<string, Connect>> = {
  "by itself": modern({}),
  "that looks for the newest": modern({ versionNegotiation: { mode: "auto" } })
}

/** The first two clients do not tell the version that was agreed on; it is the newest that they know, which they ask for. */
export const clients: Readonly<Record<string, Connect>> = {
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
  "2026-07-28": modern({ versionNegotiation: { mode: { pin: "2026-07-28" } } })
}
