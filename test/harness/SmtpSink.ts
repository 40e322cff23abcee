import type { AddressInfo } from "node:net"
import { buffer } from "node:stream/consumers"
import { SMTPServer } from "smtp-server"

export interface Mail {
  readonly from: string
  /** those recipients that were taken */
  readonly to: ReadonlyArray<string>
  /** headers and body as they came, without the dots of the protocol */
  readonly message: string
  /** as given with AUTH; "" without */
  readonly user: string
}

/**
 * The fault of a mail: refused at a step with a code (4xx asks for another try, 5xx does not), taken after a while,
 * read and never answered, or cut off before the answer, so that its sender does not know whether it was taken.
 */
export type MailFault =
  | { readonly at: "mail" | "rcpt" | "data"; readonly code: number; readonly text: string }
  | { readonly afterMillis: number }
  | "hang"
  | "cut"

export interface SmtpSinkOptions {
  /** AUTH is asked for, with these */
  readonly account?: { readonly user: string; readonly password: string }
  /** a longer message is refused with 552 */
  readonly maxBytes?: number
}

const refusal = (code: number, text: string): Error => Object.assign(new Error(text), { responseCode: code })

/** A real SMTP server on loopback that keeps what it is sent; without TLS. */
export class SmtpSink {
  /** all mails that were taken, in order */
  readonly mails: Array<Mail> = []
  /** `smtp://127.0.0.1:…`, without the account */
  readonly url: string
  readonly #ordered: Array<MailFault>
  readonly #server: SMTPServer

  private constructor(server: SMTPServer, ordered: Array<MailFault>, port: number) {
    this.#server = server
    this.#ordered = ordered
    this.url = `smtp://127.0.0.1:${port}`
  }

  /** Orders what becomes of the next mails, one each. A mail begins with MAIL FROM. */
  next(...faults: ReadonlyArray<MailFault>): void {
    this.#ordered.push(...faults)
  }

  static async start({ account, maxBytes = 1024 * 1024 }: SmtpSinkOptions = {}): Promise<SmtpSink> {
    const ordered: Array<MailFault> = []
    /** the reaction ordered for the mail that a session is sending, by the session's id */
    const faults = new Map<string, MailFault | undefined>()
    const refusedAt = (step: "mail" | "rcpt" | "data", id: string): Error | undefined => {
      const fault = faults.get(id)
      const isRefused = typeof fault === "object" && "at" in fault && fault.at === step
      return isRefused ? refusal(fault.code, fault.text) : undefined
    }
    const server = new SMTPServer({
      authOptional: account === undefined,
      disabledCommands: account === undefined ? ["AUTH", "STARTTLS"] : ["STARTTLS"],
      allowInsecureAuth: true,
      disableReverseLookup: true,
      logger: false,
      size: maxBytes,
      closeTimeout: 100,
      onAuth: ({ password, username }, _, done) => {
        if (username === account?.user && password === account?.password) done(null, { user: username })
        else done(refusal(535, "Authentication failed"))
      },
      onMailFrom: (_, { id }, done) => {
        faults.set(id, ordered.shift())
        done(refusedAt("mail", id))
      },
      onRcptTo: (_, { id }, done) => done(refusedAt("rcpt", id)),
      onData: (stream, { envelope, id, user }, done) => {
        const take = async (): Promise<unknown> => {
          const message = (await buffer(stream)).toString()
          const fault = faults.get(id)
          if (fault === "hang") return undefined
          const refused = stream.sizeExceeded ? refusal(552, "Message too large") : refusedAt("data", id)
          if (refused !== undefined) return done(refused)
          const { mailFrom, rcptTo } = envelope
          const from = mailFrom === false ? "" : (mailFrom?.address ?? "")
          const to = rcptTo.map(({ address }) => address)
          sink.mails.push({ from, to, message, user: typeof user === "string" ? user : "" })
          if (fault === "cut") {
            for (const connection of server.connections)
              if (connection.id === id) connection._socket.destroy()
            return undefined
          }
          const waits = typeof fault === "object" && "afterMillis" in fault ? fault.afterMillis : 0
          return setTimeout(() => done(null, "Taken"), waits)
        }
        // A client that leaves amid its message hears nothing more.
        take().catch(() => faults.delete(id))
      },
      onClose: ({ id }) => void faults.delete(id)
    })
    // A client that resets its connection ends that connection, and nothing else.
    server.on("error", () => undefined)
    const port = await new Promise<number>((resolve, reject) => {
      const listening = server.listen(0, "127.0.0.1", () =>
        resolve((listening.address() as AddressInfo).port)
      )
      listening.once("error", reject)
    })
    const sink = new SmtpSink(server, ordered, port)
    return sink
  }

  close(): Promise<void> {
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}
