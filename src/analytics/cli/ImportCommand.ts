import { Effect, Result, Schedule, Stream } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import type { CollectEvent } from "#schemas/analytics/CollectEvent.ts"
import type { ImportedPart } from "#schemas/analytics/ImportApi.ts"
import type { AccessLogEntry } from "./AccessLog.ts"
import { type Contents, linesOf, type LogFile, openLogFile, pageViewOf, survey } from "./AccessLogFile.ts"
import { Connection } from "#src/cli/Connection.ts"
import { json, show } from "#src/cli/Output.ts"
import { makeProgressBar } from "#src/cli/ProgressBar.ts"

/** Events of one request: a few hundred kilobytes, so that progress is seen and a lost part costs little. */
const partEvents = 2_000

/** A server that is busy, or wants a slower pace, is asked again every second, for so many times. */
const patience = { schedule: Schedule.spaced(1_000), times: 120 }

const eventOf = (entry: AccessLogEntry, shiftMillis: number): CollectEvent => ({
  url: entry.target,
  ip: entry.address,
  userAgent: entry.userAgent,
  referrer: entry.referrer,
  timestamp: entry.timeMillis + shiftMillis
})

/** The page views of the file as lines of NDJSON, in groups of one request. */
const partsOf = (file: LogFile, shiftMillis: number) =>
  linesOf(file).pipe(
    Stream.map((line) => {
      const entry = pageViewOf(line)
      return entry === undefined
        ? Result.failVoid
        : Result.succeed(JSON.stringify(eventOf(entry, shiftMillis)))
    }),
    Stream.filterMap((entry) => entry),
    Stream.rechunk(partEvents),
    Stream.chunks
  )

interface Totals {
  sent: number
  stored: number
  failed: number
  readonly dropped: Record<string, number>
  readonly bots: Record<string, number>
  readonly errors: Array<{ readonly line: number; readonly error: string }>
}

const addCounts = (totals: Record<string, number>, more: Readonly<Record<string, number>>): void => {
  for (const [name, count] of Object.entries(more)) totals[name] = (totals[name] ?? 0) + count
}

const add = (totals: Totals, part: ImportedPart): void => {
  totals.stored += part.stored
  totals.failed += part.failed
  totals.errors.push(...part.errors.slice(0, 20 - totals.errors.length))
  addCounts(totals.dropped, part.dropped)
  addCounts(totals.bots, part.bots)
}

/** Asks the server to take a part; `continues` matters where the import is new. */
const partSender = Effect.fnUntraced(function* (site: string, { beginning, name }: Contents) {
  const { ask } = yield* Connection
  const continues = beginning === undefined || beginning.name === name ? {} : { continues: beginning.name }
  return (offset: number, payload: string, isLast: boolean) =>
    ask((client) =>
      client.import
        .importEvents({
          params: { id: site },
          query: { import: name, ...continues, offset, last: isLast ? "true" : "false" },
          payload
        })
        .pipe(
          Effect.retry({
            ...patience,
            while: ({ _tag }) => _tag === "RateLimited" || _tag === "ServiceUnavailable"
          })
        )
    )
})

/** Sends what the server does not have yet, part by part; it keeps count, so a broken import goes on where it was. */
const send = Effect.fnUntraced(function* (
  site: string,
  file: LogFile,
  contents: Contents,
  shiftMillis: number
) {
  const { pages } = contents
  const part = yield* partSender(site, contents)
  // An empty part only asks how far an earlier try came, and where that was the end, says so.
  const { next } = yield* part(0, "", false)
  if (next >= pages) yield* part(next, "", true)
  const resumedAt = Math.min(next, pages)
  const totals: Totals = { sent: resumedAt, stored: 0, failed: 0, dropped: {}, bots: {}, errors: [] }
  const progress = makeProgressBar("Importing", pages, "page views")
  let offset = 0
  yield* Stream.runForEach(partsOf(file, shiftMillis), (lines) =>
    Effect.gen(function* () {
      const from = offset
      offset += lines.length
      if (offset <= resumedAt || from >= pages) return
      const some = lines.slice(0, pages - from)
      add(totals, yield* part(from, some.join("\n"), offset >= pages))
      totals.sent = Math.min(offset, pages)
      progress.update(totals.sent)
    })
  ).pipe(Effect.ensuring(Effect.sync(progress.finish)))
  return { resumedAt, ...totals }
})

type Outcome = Contents & Effect.Success<ReturnType<typeof send>>

const botsShown = 5

const dropWords = ({ bots, dropped }: Outcome): string => {
  const named = Object.entries(bots).toSorted((left, right) => right[1] - left[1])
  const some = named.slice(0, botsShown).map(([name, count]) => `${count} ${name}`)
  const names = `${some.join(", ")}${named.length > botsShown ? ", …" : ""}`
  return Object.entries(dropped)
    .map(([reason, count]) => `${count} ${reason}${reason === "bot" && names !== "" ? ` (${names})` : ""}`)
    .join(", ")
}

const words = (outcome: Outcome): string => {
  const { errors, failed, ignored, incomplete, lines, malformed, pages, resumedAt, stored } = outcome
  const drops = dropWords(outcome)
  return [
    `${lines} lines: ${pages} page views; no page views: ${ignored.asset} assets, ${ignored.status} by status, ` +
      `${ignored.method} by method, ${malformed} of another format`,
    ...(incomplete ? ["The last line is incomplete: it is left for the next time"] : []),
    ...(resumedAt > 0 ? [`${resumedAt} page views had been imported before`] : []),
    `${stored} stored${drops === "" ? "" : `; dropped: ${drops}`}${failed > 0 ? `; ${failed} refused` : ""}`,
    ...errors.map(({ error, line }) => `  page view ${line}: ${error}`)
  ].join("\n")
}

const accessLog = Command.make(
  "access-log",
  {
    json,
    file: Argument.File("file", { mustExist: true }).pipe(
      Argument.withDescription("Access log, Combined Log Format")
    ),
    site: Flag.String("site").pipe(Flag.withDescription("Id of the site (st_…)")),
    shiftToNow: Flag.Boolean("shift-to-now").pipe(
      Flag.withDescription("Move all times so that the last page view is now"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ file, json, shiftToNow, site }) {
    const { ask } = yield* Connection
    const { imports } = yield* ask((client) => client.import.listImports({ params: { id: site } }))
    const log = yield* openLogFile(file)
    const contents = yield* survey(log, imports)
    const sent = yield* send(site, log, contents, shiftToNow ? Date.now() - contents.newestMillis : 0)
    yield* show(json, { ...contents, ...sent }, words)
  })
).pipe(
  Command.withDescription(
    "Count the page views of an access log. Each line counts once, also when the log has grown and is imported again"
  )
)

export const importCommand = Command.make("import").pipe(
  Command.withDescription("Import the history of a site"),
  Command.withSubcommands([accessLog])
)
