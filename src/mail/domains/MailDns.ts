import * as NodeDns from "@effect/platform-node/NodeDns"
import { Context, Effect, Layer } from "effect"
import { Dns } from "effect/net"
import { AppConfig } from "#src/Config.ts"
import { DomainSettings } from "./DomainSettings.ts"

/** DNS as mail asks it: `MAIL_DNS` where it is set, else the system's name servers. */
export class MailDns extends Context.Service<MailDns, Dns.Dns["Service"]>()("signalbox/mail/MailDns") {
  static readonly layer = Layer.effect(
    MailDns,
    Effect.gen(function* () {
      const { nameServers } = yield* DomainSettings
      const { mailDnsTries: tries, mailDnsTryMillis: timeout } = (yield* AppConfig).limits
      // c-ares anew for each question: it reads the system's list of name servers when it is made, and its queries end
      // with their scope.
      const made = Effect.orDie(
        NodeDns.make({ timeout, tries, ...(nameServers.length > 0 && { nameServers }) })
      )
      return Dns.make({
        lookup: (host, family) => Effect.scoped(Effect.flatMap(made, (dns) => dns.lookup(host, { family }))),
        resolve: (name, type) => Effect.scoped(Effect.flatMap(made, (dns) => dns.resolve(name, type)))
      })
    })
  )
}
