import { Argument, type Command, Flag } from "effect/cli"
import { id, noun, optional, verb } from "#src/cli/Noun.ts"
import { tableOf } from "#src/cli/Output.ts"
import type { Domain } from "#schemas/mail/Domain.ts"
import { type Email, mailStatuses } from "#schemas/mail/Email.ts"

const mailId = id("Id of the mail (eml_…)")
const page = {
  limit: optional(Flag.Int("limit"), "1 to 100; default: 20"),
  offset: optional(Flag.Int("offset"), "So many newer ones are left out")
}

const recipientsOf = ({ recipients }: Email): string =>
  tableOf(["address", "status", "attempts", "last_reply", "next_attempt_at"], recipients)

const shown = (email: Email): string =>
  [`${email.subject} (from ${email.from}, ${email.message_id_header})`, recipientsOf(email)].join("\n")

const required = (name: string, about: string) => Flag.String(name).pipe(Flag.withDescription(about))

const send = verb(
  "send",
  "Send a mail",
  {
    from: required("from", "The sender's address"),
    to: required("to", "Addresses, separated by commas"),
    subject: required("subject", "Subject line"),
    text: optional(Flag.String("text"), "Text; this or --html"),
    html: optional(Flag.String("html"), "HTML"),
    name: optional(Flag.String("name"), "The sender's name"),
    cc: optional(Flag.String("cc"), "As --to"),
    bcc: optional(Flag.String("bcc"), "As --to, and in no header"),
    send_at: optional(Flag.String("send-at"), "An ISO-8601 instant, at most 30 days ahead")
  },
  (client, payload) => client.sendingMail.sendMail({ payload }),
  ({ message_id: sent }) => `Accepted as ${sent}`
)

const suppress = verb(
  "suppress",
  "Send nothing more to an address",
  {
    address: Argument.String("address").pipe(Argument.withDescription("An address, or *@ and a domain")),
    note: optional(Flag.String("note"), "Kept beside it")
  },
  (client, payload) => client.mailSuppressions.addSuppression({ payload }),
  ({ address, reason }) => `${address} is suppressed (${reason})`
)

const recordsOf = ({ name, records, verified }: Domain): string =>
  [
    `${name} is ${verified ? "verified" : "not verified"}`,
    tableOf(["kind", "status", "type", "name", "value"], records)
  ].join("\n")

const domains = noun("domains", "Add, list and verify domains that mail is sent from", [
  verb(
    "add",
    "Add a domain, and show the records to publish",
    { name: Argument.String("name").pipe(Argument.withDescription("Such as example.com")) },
    (client, payload) => client.mailDomains.createMailDomain({ payload }),
    (domain) => [domain.id, recordsOf(domain)].join("\n")
  ),
  verb(
    "list",
    "List domains, the oldest first",
    {},
    (client) => client.mailDomains.listMailDomains(),
    (answer) => tableOf(["id", "name", "verified", "verified_at"], answer.domains)
  ),
  verb(
    "verify",
    "Look a domain's records up",
    id("Id of the domain (dom_…)"),
    (client, params) => client.mailDomains.verifyMailDomain({ params }),
    recordsOf
  )
])

const mail = noun("mail", "Send, list, show and cancel mail, and read the sandbox's inbox", [
  send,
  verb(
    "list",
    "List mails, newest first",
    {
      ...page,
      status: optional(Flag.Literals("status", mailStatuses), "A recipient has this status"),
      to: optional(Flag.String("to"), "A recipient's address"),
      campaign: optional(Flag.String("campaign"), "Of this X-Campaign-ID alone")
    },
    (client, query) => client.emails.listEmails({ query }),
    ({ emails }) =>
      tableOf(
        ["id", "subject", "recipients", "created_at"],
        emails.map(({ recipients, ...email }) => ({
          ...email,
          recipients: recipients.map(({ address, status }) => `${address} ${status}`).join(", ")
        }))
      )
  ),
  verb(
    "show",
    "Show a mail and what became of its recipients",
    { ...mailId, wait: optional(Flag.Int("wait"), "Seconds to wait for the first attempts, at most 30") },
    (client, { id: mail, ...query }) => client.emails.readEmail({ params: { id: mail }, query }),
    shown
  ),
  verb(
    "attempts",
    "List the attempts at a mail's recipients",
    mailId,
    (client, params) => client.emails.listEmailAttempts({ params }),
    ({ attempts }) => tableOf(["address", "attempt", "route", "outcome", "reply", "ended_at"], attempts)
  ),
  verb(
    "cancel",
    "End the deliveries of a mail that are not under way",
    mailId,
    (client, params) => client.emails.cancelEmail({ params }),
    shown
  ),
  verb(
    "retry",
    "Try the failed deliveries of a mail once more",
    mailId,
    (client, params) => client.emails.retryEmail({ params }),
    ({ retried, suppressed }) =>
      tableOf(
        ["address", "status"],
        [
          ...retried.map((address) => ({ address, status: "queued" })),
          ...suppressed.map((address) => ({ address, status: "suppressed" }))
        ]
      )
  ),
  verb(
    "inbox",
    "List the mail that the sandbox took, newest first",
    page,
    (client, query) => client.mailInbox.listInbox({ query }),
    ({ emails }) => tableOf(["id", "address", "from", "subject", "received_at"], emails)
  ),
  suppress,
  domains
])

/** Commands of mail. */
export const commands: ReadonlyArray<Command.Command.Any> = [mail]
