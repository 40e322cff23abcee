import { Context, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { AppConfig } from "#src/Config.ts"
import { Egress } from "#src/infra/egress/Egress.ts"
import type { Limits } from "#src/Limits.ts"
import { makeDirect } from "./Direct.ts"
import { makeMxLookup } from "./MxHosts.ts"
import { makeSmtpRelay } from "./SmtpRelay.ts"
import type { Handed, Transport } from "./Transport.ts"

/** The way by which this server's mail leaves it: `MAIL_TRANSPORT`. */
export class MailRoute extends Context.Service<MailRoute, Transport>()("signalbox/mail/MailRoute") {
  static readonly layer = Layer.effect(
    MailRoute,
    Effect.gen(function* () {
      const { limits, mailDirect, mailDomains, smtpServer } = yield* AppConfig
      if (smtpServer !== undefined) {
        const { hostname } = mailDomains
        const named = hostname === undefined ? {} : { hostname }
        return yield* makeSmtpRelay({ server: smtpServer, ...named, limits })
      }
      if (mailDirect !== undefined) {
        const { mailDnsTries: tries, mailDnsTryMillis: tryMillis } = limits
        const lookUp = makeMxLookup({ servers: mailDomains.nameServers, tryMillis, tries })
        return makeDirect({ ...mailDirect, egress: yield* Egress, lookUp, limits })
      }
      const sql = yield* SqlClient
      const tries = (id: string) =>
        Effect.map(
          sql<{ attempts: number }>`SELECT attempts FROM mail_deliveries WHERE id = ${id}`,
          ([row]) => row?.attempts ?? 0
        )
      return makeSandbox(tries, limits)
    })
  )
}

const accepted: Handed = { _tag: "Sent", reply: "250 2.0.0 the sandbox took it" }
const withdrawn: Handed = { _tag: "Withdrawn" }

/** Local parts that play a server's part. Source: contract/mail#sandbox. */
const partOf = (address: string): string => address.slice(0, address.lastIndexOf("@")).toLowerCase()

/**
 * Takes mail for the inbox of the page. The transaction that ends the delivery puts it there, so that no end of a try is
 * unknown but that of `lost@…`. `tries` counts the earlier ones of a delivery.
 */
const makeSandbox = (
  tries: (deliveryId: string) => Effect.Effect<number, SqlError>,
  { mailSandboxSlowMillis }: Limits
): Transport => ({
  name: "sandbox",
  handOver: ({ deliveryId, envelope }) =>
    Effect.gen(function* (): Effect.fn.Return<Handed, SqlError> {
      const part = partOf(envelope.to)
      if (part === "bounce") return { _tag: "Bounced", reply: "550 5.1.1 no such mailbox: bounce" }
      if (part === "defer" && (yield* tries(deliveryId)) < 2)
        return { _tag: "Deferred", reply: "451 4.3.0 try again: defer" }
      if (part === "slow") yield* Effect.sleep(mailSandboxSlowMillis)
      if (part === "lost" && (yield* tries(deliveryId)) === 0)
        return { _tag: "Unknown", reply: "the reply was lost: lost" }
      return accepted
    }).pipe(
      Effect.catch((error) =>
        Effect.as(Effect.logDebug("The sandbox waits for its store", error.message), withdrawn)
      )
    )
})
