import { definitionStatement, type OracleParameters, storedStatement } from "#test/analytics/VisitOracle.ts"
import { signalbox } from "#test/cli/Signalbox.ts"
import type { TestSite } from "#test/harness/ApiClient.ts"
import type { ServerProcess } from "#test/harness/ServerProcess.ts"
import { embeddedClickHouse, storedRows } from "./StoredEvents.ts"

/** Events whose visitors are compared at once: a statement has half a gigabyte. */
const sliceEvents = 50_000

export interface VisitDifferences {
  /** rows that the window query over the stored events gives and the server has not written */
  readonly missing: ReadonlyArray<string>
  /** rows that the server has written and the window query does not give */
  readonly surplus: ReadonlyArray<string>
}

export const noDifferences: VisitDifferences = { missing: [], surplus: [] }

/**
 * The differences between a site's stored visits and its `events` stored events, read past all of the server's code.
 */
export const visitDifferences = async (
  server: ServerProcess,
  site: TestSite,
  events: number
): Promise<VisitDifferences & { readonly rows: number }> => {
  const { url } = embeddedClickHouse(server)
  const slices = Math.ceil(events / sliceEvents)
  const missing: Array<string> = []
  const surplus: Array<string> = []
  let rows = 0
  for (let slice = 0; slice < slices; slice++) {
    const parameters: OracleParameters = { site: site.id, slice, slices }
    const rowsOf = async (statement: string): Promise<ReadonlySet<string>> => {
      const found = await storedRows<object>(url, statement, { ...parameters })
      return new Set(found.map((row) => JSON.stringify(row)))
    }
    const stored = await rowsOf(storedStatement)
    const expected = await rowsOf(definitionStatement)
    rows += stored.size
    missing.push(...[...expected].filter((row) => !stored.has(row)))
    surplus.push(...[...stored].filter((row) => !expected.has(row)))
  }
  return { missing, surplus, rows }
}

/** The exit code and the output of `signalbox rebuild visits --check`. */
export const checkVisits = (server: ServerProcess, site: TestSite) =>
  signalbox(["rebuild", "visits", "--check", "--site", site.id], {
    SIGNALBOX_URL: server.url,
    SIGNALBOX_KEY: server.adminKey()
  })
