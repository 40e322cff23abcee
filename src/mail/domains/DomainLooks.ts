import { Context, Effect, Layer } from "effect"
import type { Dns } from "effect/net"
import type { DomainRow, Finding } from "#schemas/mail/Domain.ts"
import { AppConfig } from "#src/Config.ts"
import { findingKey, namesFrom, recordsOf, unanswered, type WantedRecord } from "./DomainRecords.ts"
import { DomainSettings } from "./DomainSettings.ts"
import { MailDns } from "./MailDns.ts"

/** The outcome of a look at all records of a domain. */
export interface Look {
  /** as the row has them */
  readonly findings: Readonly<Record<string, Finding>>
  /** whether the record of the key that signs is there; undefined: DNS gave no answer */
  readonly isSeen: boolean | undefined
  /** whether that of the key is there that is to sign */
  readonly isNextSeen: boolean
}

interface Answered {
  readonly finding: Finding
  readonly isAnswer: boolean
}

type Asked = Pick<DomainRow, "name" | "selector" | "public_key" | "next_public_key">

/** Looks the records of domains up. */
export class DomainLooks extends Context.Service<
  DomainLooks,
  { readonly look: (row: Asked) => Effect.Effect<Look> }
>()("signalbox/mail/DomainLooks") {
  static readonly layer = Layer.effect(
    DomainLooks,
    Effect.gen(function* () {
      const dns = yield* MailDns
      const settings = yield* DomainSettings
      const { mailDomainLookMillis } = (yield* AppConfig).limits
      return DomainLooks.of({
        look: (row) =>
          Effect.map(
            Effect.forEach(
              recordsOf(row, settings),
              (record) =>
                Effect.map(answerTo(dns, record, mailDomainLookMillis), (answered) => ({
                  record,
                  ...answered
                })),
              { concurrency: "unbounded" }
            ),
            lookOf
          )
      })
    })
  )
}

const lookOf = (answers: ReadonlyArray<Answered & { readonly record: WantedRecord }>): Look => {
  const [signing, next] = answers.filter(({ record }) => record.kind === "dkim")
  return {
    findings: Object.fromEntries(answers.map(({ finding, record }) => [findingKey(record), finding])),
    isSeen: signing?.isAnswer === true ? signing.finding.status === "ok" : undefined,
    isNextSeen: next?.finding.status === "ok"
  }
}

const answerTo = (
  dns: Dns.Dns["Service"],
  record: WantedRecord,
  lookMillis: number
): Effect.Effect<Answered> =>
  (record.kind === "dmarc" ? dmarcAt(dns, record) : textsAt(dns, record)).pipe(
    Effect.map((found) => ({ finding: record.judge(found), isAnswer: true })),
    Effect.timeoutOrElse({
      duration: lookMillis,
      orElse: () => Effect.succeed(noAnswer("Timeout"))
    }),
    Effect.catchTag("DnsError", ({ reason }) => Effect.succeed(noAnswer(reason)))
  )

const noAnswer = (reason: string): Answered => ({
  finding: unanswered(`DNS gave no answer (${reason})`),
  isAnswer: false
})

/** The records of its name as texts; empty: there are none. */
const textsAt = (
  dns: Dns.Dns["Service"],
  { name, type }: Pick<WantedRecord, "name" | "type">
): Effect.Effect<ReadonlyArray<string>, Dns.DnsError> =>
  Effect.catchTag(
    type === "TXT"
      ? Effect.map(dns.resolve(name, "TXT"), (records) => records.map(({ chunks }) => chunks.join("")))
      : Effect.map(dns.resolve(name, "MX"), (records) =>
          records.map(({ exchange, priority }) => `${priority} ${exchange.replace(/\.$/, "")}`)
        ),
    "DnsError",
    (error) => (error.reason === "NotFound" ? Effect.succeed([]) : Effect.fail(error))
  )

/** The policy of a name above counts for a name that has none. Source: RFC 7489, 6.6.3. */
const dmarcAt = Effect.fnUntraced(function* (dns: Dns.Dns["Service"], { judge, name, type }: WantedRecord) {
  const prefix = "_dmarc."
  for (const place of namesFrom(name.slice(prefix.length)).slice(0, dmarcNamesMax)) {
    const texts = yield* textsAt(dns, { name: `${prefix}${place}`, type })
    if (judge(texts).status !== "missing") return texts
  }
  return []
})

const dmarcNamesMax = 5
