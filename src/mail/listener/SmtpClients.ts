import type { SMTPServer } from "smtp-server"
import { addressBlock } from "#src/front/ClientAddress.ts"
import { FairShares } from "#src/infra/shares/FairShares.ts"
import type { Limits } from "#src/Limits.ts"

interface Client {
  readonly block: string
  /** since the last message that was taken */
  commands: number
  refusals: number
  timer: NodeJS.Timeout | undefined
}

/** The clients of the listener, each with bounds on what it may do until a message of it is taken. */
export class SmtpClients {
  readonly #limits: Limits
  readonly #server: () => SMTPServer
  readonly #clients = new Map<string, Client>()
  readonly #shares: FairShares

  constructor(limits: Limits, server: () => SMTPServer) {
    this.#limits = limits
    this.#server = server
    this.#shares = new FairShares(limits.mailSmtpConnections, limits.mailSmtpConnectionsPerAddress)
  }

  get connected(): number {
    return this.#clients.size
  }

  /** false: its address has too many connections */
  enter(id: string, address: string): boolean {
    const block = addressBlock(address)
    if (!this.#shares.take(block, 1)) return false
    const client: Client = { block, commands: 0, refusals: 0, timer: undefined }
    this.#clients.set(id, client)
    this.#begin(id, client)
    return true
  }

  leave(id: string): void {
    const client = this.#clients.get(id)
    if (client === undefined) return
    clearTimeout(client.timer)
    this.#clients.delete(id)
    this.#shares.release(client.block, 1)
  }

  /** A message of it was taken: it may go on with the next one. */
  took(id: string): void {
    const client = this.#clients.get(id)
    if (client === undefined) return
    client.commands = 0
    client.refusals = 0
    this.#begin(id, client)
  }

  /** Its message is here whole: the time that is left is this server's. */
  handedOver(id: string): void {
    const client = this.#clients.get(id)
    if (client === undefined) return
    clearTimeout(client.timer)
    client.timer = undefined
  }

  commanded(id: string): void {
    const client = this.#clients.get(id)
    if (client !== undefined && ++client.commands > this.#limits.mailSmtpCommands)
      this.dismiss(id, "Too many commands without a message")
  }

  refused(id: string): void {
    const client = this.#clients.get(id)
    if (client === undefined) return
    if (client.timer === undefined) this.#begin(id, client)
    // The refusal itself is said first.
    if (++client.refusals >= this.#limits.mailSmtpRefusals)
      setImmediate(() => this.dismiss(id, "Too many refusals"))
  }

  /** Sends a client away. */
  dismiss(id: string, reason: string): void {
    for (const connection of this.#server().connections)
      if (connection.id === id) connection.send(421, reason)
  }

  /** Sends away those that are not in a transaction, or all. Whether any is left. */
  dismissAll(isForced: boolean): boolean {
    const { connections } = this.#server()
    for (const connection of connections)
      if (isForced || connection.session.envelope.mailFrom === false)
        connection.send(421, "The server stops; try again later")
    return connections.size > 0
  }

  close(): void {
    for (const id of this.#clients.keys()) this.leave(id)
  }

  #begin(id: string, client: Client): void {
    clearTimeout(client.timer)
    client.timer = setTimeout(() => this.dismiss(id, "Too slow"), this.#limits.mailSmtpMessageMillis)
  }
}
