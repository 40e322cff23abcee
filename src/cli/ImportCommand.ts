import { createHash } from "node:crypto"
import { createReadStream } from "node:fs"
import { createInterface } from "node:readline"
import { Effect, Result, Runtime, Schema, Stream } from "effect"
import { Argument, CliError, Command, Flag } from "effect/cli"
import type { CollectEvent } from "#schemas/analytics/CollectEvent.ts"
import type { ImportedPart } from "#schemas/analytics/ImportApi.ts"
import { type AccessLogEntry, notAPage, parseLine } from "./AccessLog.ts"
import { Connection } from "./Connection.ts"
import { json, show } from "./Output.ts"
import { makeProgressBar } from "./ProgressBar.ts"

/** Events of one request: a few hundred kilobytes, so that progress is seen and a lost part costs little. */
const partEvents = 2_000

/** The file could not be read, or holds no page view. */
export class LogFileUnusable extends Schema.TaggedError<LogFileUnusable>()("LogFileUnusable", {
  problem: Schema.String
}) {
  override readonly [Runtime.errorExitCode] = 1
  override get [CliError.userMessage](): string {
    return this.problem
  }
}

interface Contents {
  /** a name that the same content has again: a second import of it stores nothing twice */
  readonly digest: string
  readonly lines: number
  readonly pages: number
  readonly malformed: number
  readonly ignored: { readonly method: number; readonly status: number; readonly asset: number }
  readonly newestMillis: number
}

const linesOf = (file: string) =>
  Stream.fromAsyncIterable(
    createInterface({ input: createReadStream(file), crlfDelay: Infinity }),
    (error) => new LogFileUnusable({ problem: `${file} cannot be read: ${String(error)}` })
  )

/** A first pass over the file: what is in it, and when it ends. */
const survey = Effect.fnUntraced(function* (file: string) {
  const digest = createHash("sha256")
  const ignored = { method: 0, status: 0, asset: 0 }
  let [lines, pages, malformed, newestMillis] = [0, 0, 0, 0]
  yield* Stream.runForEach(linesOf(file), (line) =>
    Effect.sync(() => {
      if (line === "") return
      digest.update(line).update("\n")
      lines++
      const entry = parseLine(line)
      if (entry === undefined) return void malformed++
      const reason = notAPage(entry)
      if (reason !== undefined) return void ignored[reason]++
      pages++
      newestMillis = Math.max(newestMillis, entry.timeMillis)
    })
  )
  if (pages === 0) {
    return yield* new LogFileUnusable({
      problem: `${file} has no page view in Combined Log Format (${lines} lines, ${malformed} of another format)`
    })
  }
  const contents: Contents = { digest: digest.digest("hex"), lines, pages, malformed, ignored, newestMillis }
  return contents
})

const eventOf = (entry: AccessLogEntry, shiftMillis: number): CollectEvent => ({
  url: entry.target,
  ip: entry.address,
  userAgent: entry.userAgent,
  referrer: entry.referrer,
  timestamp: entry.timeMillis + shiftMillis
})

/** The page views of the file as lines of NDJSON, in groups of one request. */
const partsOf = (file: string, shiftMillis: number) =>
  linesOf(file).pipe(
    Stream.map((line) => {
      const entry = parseLine(line)
      return entry === undefined || notAPage(entry) !== undefined
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
  readonly errors: Array<{ readonly line: number; readonly error: string }>
}

const add = (totals: Totals, part: ImportedPart): void => {
  totals.stored += part.stored
  totals.failed += part.failed
  totals.errors.push(...part.errors.slice(0, 20 - totals.errors.length))
  for (const [reason, count] of Object.entries(part.dropped)) {
    totals.dropped[reason] = (totals.dropped[reason] ?? 0) + count
  }
}

/** Sends what the server does not have yet, part by part; it keeps count, so a broken import goes on where it was. */
const send = Effect.fnUntraced(function* (
  site: string,
  file: string,
  contents: Contents,
  shiftMillis: number
) {
  const { ask } = yield* Connection
  const part = (offset: number, payload: string) =>
    ask((client) =>
      client.import.importEvents({
        params: { id: site },
        query: {
          import: contents.digest.slice(0, 40),
          offset,
          last:
            offset + (payload === "" ? 0 : payload.split("\n").length) >= contents.pages ? "true" : "false"
        },
        payload
      })
    )
  // An empty part only asks how far an earlier try came.
  const { next: resumedAt } = yield* part(0, "")
  const totals: Totals = { sent: resumedAt, stored: 0, failed: 0, dropped: {}, errors: [] }
  const progress = makeProgressBar("Importing", contents.pages, "page views")
  let offset = 0
  yield* Stream.runForEach(partsOf(file, shiftMillis), (lines) =>
    Effect.gen(function* () {
      const from = offset
      offset += lines.length
      if (offset <= resumedAt) return
      add(totals, yield* part(from, lines.join("\n")))
      totals.sent = offset
      progress.update(offset)
    })
  ).pipe(Effect.ensuring(Effect.sync(progress.finish)))
  return { resumedAt, ...totals }
})

type Outcome = Contents & Effect.Success<ReturnType<typeof send>>

const words = (outcome: Outcome): string => {
  const { dropped, errors, failed, ignored, lines, malformed, pages, resumedAt, stored } = outcome
  const drops = Object.entries(dropped).map(([reason, count]) => `${count} ${reason}`)
  return [
    `${lines} lines: ${pages} page views; no page views: ${ignored.asset} assets, ${ignored.status} by status, ` +
      `${ignored.method} by method, ${malformed} of another format`,
    ...(resumedAt > 0 ? [`${resumedAt} page views had been imported before`] : []),
    `${stored} stored${drops.length > 0 ? `; dropped: ${drops.join(", ")}` : ""}${failed > 0 ? `; ${failed} refused` : ""}`,
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
    const contents = yield* survey(file)
    const sent = yield* send(site, file, contents, shiftToNow ? Date.now() - contents.newestMillis : 0)
    yield* show(json, { ...contents, ...sent }, words)
  })
).pipe(Command.withDescription("Count the page views of an access log; safe to run again"))

export const importCommand = Command.make("import").pipe(
  Command.withDescription("Import the history of a site"),
  Command.withSubcommands([accessLog])
)
