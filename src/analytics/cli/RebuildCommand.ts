import { Effect, Option, Runtime, Schema } from "effect"
import { CliError, Command, Flag } from "effect/cli"
import type { RebuiltVisits, VisitsToRebuild } from "#schemas/analytics/RebuildApi.ts"
import { Connection } from "#src/cli/Connection.ts"
import { json, show } from "#src/cli/Output.ts"
import { makeProgressBar } from "#src/cli/ProgressBar.ts"

/** `--check` found visits that are not what the events say. */
export class VisitsDiffer extends Schema.TaggedError<VisitsDiffer>()("VisitsDiffer", {
  rows: Schema.Int
}) {
  override readonly [Runtime.errorExitCode] = 1
  override get [CliError.userMessage](): string {
    return `${this.rows} rows of visits are not what the events say; run it without --check to put them right`
  }
}

type Figures = Omit<RebuiltVisits, "next" | "daysLeft">

interface RebuiltSite extends Figures {
  readonly site: string
}

const nothing: Figures = { days: 0, events: 0, visits: 0, missing: 0, wrong: 0, surplus: 0 }

const sum = (left: Figures, right: Figures): Figures => ({
  days: left.days + right.days,
  events: left.events + right.events,
  visits: left.visits + right.visits,
  missing: left.missing + right.missing,
  wrong: left.wrong + right.wrong,
  surplus: left.surplus + right.surplus
})

const differing = ({ missing, surplus, wrong }: Figures): number => missing + wrong + surplus

/** Some days a request, from the first to the last. */
const ofSite = Effect.fnUntraced(function* (site: string, request: VisitsToRebuild) {
  const { ask } = yield* Connection
  const part = (payload: VisitsToRebuild) =>
    ask((client) => client.rebuild.rebuildVisits({ params: { id: site }, payload }))
  let answer = yield* part(request)
  let found = sum(nothing, answer)
  const label = `${request.check === true ? "Checking" : "Rebuilding"} ${site}`
  const progress = makeProgressBar(label, answer.days + answer.daysLeft, "days")
  yield* Effect.gen(function* () {
    while (answer.next !== null) {
      progress.update(found.days)
      answer = yield* part({ ...request, from: answer.next })
      found = sum(found, answer)
    }
  }).pipe(Effect.ensuring(Effect.sync(progress.finish)))
  const rebuilt: RebuiltSite = { site, ...found }
  return rebuilt
})

const words = (isCheck: boolean, { days, events, missing, site, surplus, visits, wrong }: RebuiltSite) => {
  const compared = `${site}: ${days} days, ${events} events, ${visits} visits`
  if (missing + wrong + surplus === 0) return `${compared}; all rows were right`
  const rows = `rows missing ${missing}, wrong ${wrong}, surplus ${surplus}`
  return `${compared}; ${rows}${isCheck ? "" : ", put right"}`
}

const day = (name: string, description: string) =>
  Flag.String(name).pipe(Flag.withDescription(`${description}, such as 2026-11-21`), Flag.optional)

const visits = Command.make(
  "visits",
  {
    json,
    site: Flag.String("site").pipe(
      Flag.withDescription("Id of the site (st_…); default: all one's own"),
      Flag.optional
    ),
    from: day("from", "First day (UTC)"),
    to: day("to", "Last day (UTC)"),
    check: Flag.Boolean("check").pipe(
      Flag.withDescription("Only compare; exit code 1 if anything differs"),
      Flag.withDefault(false)
    )
  },
  Effect.fnUntraced(function* ({ check, from, json, site, to }) {
    const { ask } = yield* Connection
    const ids = Option.isSome(site)
      ? [site.value]
      : (yield* ask((client) => client.sites.listSites())).sites.map(({ id }) => id)
    const request: VisitsToRebuild = {
      check,
      ...(Option.isSome(from) ? { from: from.value } : {}),
      ...(Option.isSome(to) ? { to: to.value } : {})
    }
    const sites = yield* Effect.forEach(ids, (id) => ofSite(id, request))
    yield* show(json, { sites }, () => sites.map((one) => words(check, one)).join("\n"))
    const rows = sites.reduce((total, one) => total + differing(one), 0)
    if (check && rows > 0) return yield* new VisitsDiffer({ rows })
  })
).pipe(
  Command.withDescription("Make visits from stored events anew, while events are taken; safe to run again")
)

export const rebuildCommand = Command.make("rebuild").pipe(
  Command.withDescription("Count again what was counted"),
  Command.withSubcommands([visits])
)
