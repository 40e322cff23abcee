const id = "eml_2sJH7aQmXy4TzWcVbN8kLp"
const at = "2026-11-21T08:30:00.000Z"

const record = {
  kind: "dkim",
  type: "TXT",
  name: "sb1._domainkey.example.com",
  value: "v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQ",
  zone: 'sb1._domainkey.example.com. 3600 IN TXT "v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQ"',
  status: "ok",
  found: ["v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQ"],
  problem: null
}

/** Answers of mail, by the name of their schema. */
export const mailExamples: Readonly<Record<string, unknown>> = {
  Email: {
    id,
    message_id_header: `<${id}@example.com>`,
    from: "shop@example.com",
    subject: "Your invoice",
    created_at: at,
    send_at: null,
    campaign: "invoices",
    recipients: [
      {
        address: "ada@example.org",
        kind: "to",
        status: "deferred",
        attempts: 1,
        last_reply: "451 4.7.1 try again later",
        last_attempt_at: at,
        next_attempt_at: "2026-11-21T08:31:02.000Z",
        opted_out_at: null,
        bounces: []
      }
    ]
  },
  MailAttempt: {
    address: "ada@example.org",
    attempt: 1,
    route: "smtp",
    outcome: "deferred",
    reply: "451 4.7.1 try again later",
    began_at: at,
    ended_at: "2026-11-21T08:30:01.204Z"
  },
  InboxMail: {
    id: "mdl_2sJH7aQmXy4TzWcVbN8kLp",
    email_id: id,
    address: "ada@example.org",
    from: "shop@example.com",
    subject: "Your invoice",
    received_at: at
  },
  MailDomain: {
    id: "dom_2sJH7aQmXy4TzWcVbN8kLp",
    name: "example.com",
    verified: true,
    verified_at: at,
    looked_up_at: at,
    created_at: at,
    keys: [{ selector: "sb1", state: "signing", keep_until: null }],
    records: [record]
  },
  RetriedEmail: { retried: ["ada@example.org"], suppressed: ["bob@example.org"] },
  MailBounce: {
    message_id: id,
    recipient: "ada@example.org",
    type: "hard",
    known: false,
    suppressed: true
  },
  Suppression: {
    id: "sup_2sJH7aQmXy4TzWcVbN8kLp",
    address: "ada@example.org",
    scope: "all",
    reason: "hard_bounce",
    note: "550 5.1.1 no such mailbox",
    created_at: at
  }
}
